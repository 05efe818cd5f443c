# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A Galera cluster that is written to at both servers at once.

A lock is known to the server that gave it, and no other. That two
transactions on two servers were in each other's way is seen when the second
commits, and is refused.
"""

import random
import threading
import unittest

import sqlalchemy as sa

from triggerlib.state import State
from triggerlib import storage
from triggerlib.testing import storage_contract

from tests import base
from tests.chaos import galera
from tests import engine
from tests import sql

event = storage_contract.event
template = storage_contract.template

PATIENCE = 60
DEADLOCK = 1213
#: The cluster of this process.
CLUSTER = None


def setUpModule():
    # It takes some seconds, so that all tests of a process have one.
    global CLUSTER
    CLUSTER = galera.GaleraNodes()
    CLUSTER.setUp()
    unittest.addModuleCleanup(CLUSTER.cleanUp)


class Cluster:
    """Mix it with a test case: an empty database in the cluster."""

    def setUp(self):
        self.urls = CLUSTER.new_database()
        self.url = self.urls[0]
        super().setUp()


def synchronize(url):
    """Wait until a server has all that was committed at the others."""
    waiter = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with waiter.connect() as connection:
        # Of all kinds of statements.
        connection.exec_driver_sql('SET SESSION wsrep_sync_wait = 15')
        connection.exec_driver_sql('SHOW TABLES')


class TestRules(Cluster, sql.ServerRules, storage_contract.StorageContract,
                base.TestCase):
    """The rules of the SQL driver, a second one being on the other server."""

    # What one driver does by itself, it does as on any other MariaDB.
    vars().update(dict.fromkeys(
        name for name in vars(storage_contract.StorageContract)
        if name.startswith('test_')))
    # In these the second transaction has to wait for a lock of the first.
    test_a_purge_of_what_is_just_collected = None
    test_an_event_that_another_is_about_to_store = None
    test_an_event_that_another_stored_in_vain = None
    test_an_instance_that_leaves_before_it_is_joined = None
    test_what_another_has_locked_is_not_due = None

    def test_a_batch_beside_a_registration(self):
        other = self.another(self.clock)
        self.beside(
            lambda tx: tx.register_traits(['trait']),
            lambda: other.run(lambda tx: tx.add_events(
                [event('a', trait='x')])))
        # Neither waited for the other, so that the index lacks the event.
        self.backfill()
        self.assertEqual(['a'], self.found(sql.Query(traits={'trait': 'x'})))

    def test_a_trait_that_is_registered_beside_a_batch(self):
        other = self.another(self.clock)
        self.beside(
            lambda tx: tx.add_events([event('a', trait='x')]),
            lambda: other.run(lambda tx: tx.register_traits(['trait'])))
        self.backfill()
        self.assertEqual(['a'], self.found(sql.Query(traits={'trait': 'x'})))

    def read(self, work, *args):
        """Run a unit of work that only reads, and reads all there is."""
        synchronize(self.url)
        return super().read(work, *args)

    def race(self, *works):
        """Run all at once, and have their outcome reach this server."""
        results = super().race(*works)
        synchronize(self.url)
        return results

    def another(self, clock=None, **overrides):
        synchronize(self.urls[1])
        driver = storage.get_driver(
            sql.load(self.urls[1], **{**self.options, **overrides}), clock)
        self.addCleanup(driver.close)
        return driver

    def kill(self, tx):
        """End a transaction's connection from outside."""
        number = tx._connection.exec_driver_sql(
            'SELECT CONNECTION_ID()').scalar_one()
        self.execute(f'KILL {number}')


class TestConflicts(Cluster, base.TestCase):
    """Two units of work that commit at the same moment, one a server."""

    def setUp(self):
        super().setUp()
        self.drivers = [
            storage.get_driver(sql.load(url)) for url in self.urls]
        #: For each driver, what the server refused: where, and the code.
        self.refused = [[], []]
        for driver, refused in zip(self.drivers, self.refused):
            self.addCleanup(driver.close)
            self.note_errors(driver, refused)
        self.drivers[0].upgrade()
        self.synchronize()

    def note_errors(self, driver, refused):
        def note(context):
            refused.append((context.statement or 'COMMIT',
                            context.original_exception.args[0]))

        # Before oslo.db's listener, which raises.
        sa.event.listen(driver.engine, 'handle_error', note, insert=True)

    def collide(self, *works):
        """Run a unit of work on each server, which commit at once.

        :param works: each is called with its transaction
        :returns: what each returned in the end
        """
        together = threading.Barrier(len(works))
        results = [None] * len(works)

        def run(position):
            tries = []

            def work(tx):
                result = works[position](tx)
                tries.append(result)
                if len(tries) == 1:
                    together.wait(PATIENCE)
                return result

            results[position] = self.drivers[position].run(work)

        threads = [threading.Thread(target=run, args=[position], daemon=True)
                   for position in range(len(works))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive(), 'it waits for ever')
        # One was refused at its end. As it is run again, it may be in the
        # way of the other's writes once more, which then come first.
        refused, = filter(None, self.refused)
        self.assertEqual(('COMMIT', DEADLOCK), refused[0])
        self.assertEqual({DEADLOCK}, {code for _, code in refused})
        return results

    def collector(self, *message_ids):
        """Return a unit of work that collects events into one instance."""
        def work(tx):
            flags = tx.add_events([event(one) for one in message_ids])
            new = [one for one, flag in zip(message_ids, flags) if flag]
            if new:
                instance, = tx.lock_active([template('k')])
                instance.event_count += len(new)
                tx.collect([instance], {instance.id: new})
            return new
        return work

    def assert_collected(self, message_ids):
        """Fail if not these events are in one instance, at each server."""
        def look(tx):
            one, = tx.list_instances()
            return one, tx.instance_events([one.id])[one.id]

        self.synchronize()
        for driver in self.drivers:
            one, events = driver.run(look, write=False)
            self.assertEqual(len(message_ids), one.event_count)
            self.assertEqual(
                sorted(message_ids),
                sorted(each.message_id for each in events))

    def test_a_new_key_that_both_meet(self):
        results = self.collide(
            self.collector('a', 'b'), self.collector('c', 'd'))
        self.assertEqual([['a', 'b'], ['c', 'd']], results)
        self.assert_collected(['a', 'b', 'c', 'd'])

    def test_an_instance_that_both_add_to(self):
        self.drivers[0].run(self.collector('a'))
        self.synchronize()
        self.collide(self.collector('b'), self.collector('c'))
        self.assert_collected(['a', 'b', 'c'])

    def test_an_event_that_both_store(self):
        results = self.collide(
            self.collector('a', 'b'), self.collector('b', 'c'))
        self.assertEqual(['a', 'b', 'b', 'c'], sorted(
            sum(results, []) + ['b']))
        self.assert_collected(['a', 'b', 'c'])

    def test_an_event_that_comes_as_its_instance_is_made_ready(self):
        self.drivers[0].run(self.collector('a'))
        self.synchronize()

        def make_ready(tx):
            return tx.transition(
                [one.id for one in tx.list_instances(state=State.ACTIVE)],
                State.ACTIVE, State.READY_TO_FIRE)

        (new, moved) = self.collide(self.collector('b'), make_ready)
        self.assertEqual(['b'], new)
        self.synchronize()
        places = self.drivers[1].run(lambda tx: [
            each.message_id for one in tx.list_instances()
            for each in tx.instance_events([one.id])[one.id]])
        self.assertEqual(['a', 'b'], sorted(places))

    def test_a_purge_of_what_is_just_collected(self):
        self.drivers[0].run(lambda tx: tx.add_events([event('a')]))
        self.synchronize()

        def collect(tx):
            if not tx.get_events(['a']):
                return False
            one, = tx.lock_active([template('k')])
            one.event_count = 1
            tx.collect([one], {one.id: ['a']})
            return True

        collected, gone = self.collide(
            collect,
            lambda tx: tx.purge_events(storage_contract.at(9), 10))
        self.assertEqual([True, 0] if collected else [False, 1],
                         [collected, gone])

    def test_a_claim_that_both_make(self):
        one, = self.drivers[0].run(
            lambda tx: tx.lock_active([template('k')]))
        self.drivers[0].run(lambda tx: tx.transition(
            [one.id], State.ACTIVE, State.READY_TO_FIRE))
        self.synchronize()

        def claimer(owner):
            return lambda tx: tx.transition(
                [one.id], State.READY_TO_FIRE, State.FIRING,
                new_owner=owner, deadline=storage_contract.at(10 ** 9))

        results = self.collide(claimer('first'), claimer('second'))
        self.assertEqual([[], [one.id]], sorted(results))
        winner = ('first', 'second')[results.index([one.id])]
        self.synchronize()
        for driver in self.drivers:
            found, = driver.run(lambda tx: tx.get_instances([one.id]))
            self.assertEqual(winner, found.owner)

    def test_a_trait_that_another_registers_first(self):
        first, second = self.drivers
        waiting = [True]

        def register(driver):
            return driver.run(lambda tx: tx.register_traits(['trait']))

        def overtake(connection, cursor, statement, *args):
            if waiting and statement.startswith('INSERT'):
                waiting.clear()
                register(first)
                synchronize(self.urls[1])

        sa.event.listen(second.engine, 'before_cursor_execute', overtake)
        self.assertEqual(frozenset(), register(second))
        self.assertEqual([], waiting)

    def synchronize(self):
        """Wait until both servers have what was committed at either."""
        for url in self.urls:
            synchronize(url)


TRIGGERS = """
    - name: create
      distinguished_by: [instance_id]
      expiration: first + 1h
      match_criteria:
        - event_type: [start, end]
      fire_criteria:
        - event_type: start
          number: 2
        - event_type: end
      fire_pipeline: fired
      expire_pipeline: fired
    """

PIPELINES = """
    sinks:
      - name: fired
        transformers:
          - name: aggregate
            parameters:
              event_type: summary
              traits: {instance_id: {first: instance_id}, number: count}
        publishers: ['test://$NAME', 'event://']
    """


class TestPipeline(Cluster, base.TestCase):
    """Managers, schedulers and workers at both servers."""

    def setUp(self):
        super().setUp()
        self.engines = []
        for url in self.urls:
            # The second finds the schema that the first has made.
            synchronize(url)
            self.engines.append(self.useFixture(
                engine.Engine(TRIGGERS, PIPELINES, url)))

    def summaries(self):
        """Return what ``event://`` published: instance_id and number."""
        synchronize(self.urls[0])
        found = self.engines[0].storage.run(lambda tx: [
            one for one in tx.find_events(
                storage_contract.Query(('summary',)))])
        return sorted((one.traits['instance_id'], one.traits['number'])
                      for one in found)

    def published(self):
        """Return the same of ``test://``, of both workers."""
        return sorted(
            (one.traits['instance_id'], one.traits['number'])
            for each in self.engines for one in each.published())

    def run_together(self, *works):
        errors = []

        def run(work):
            try:
                work()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=[work], daemon=True)
                   for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive(), 'it waits for ever')
        if errors:
            raise errors[0]

    def test_two_workers_that_claim_at_once(self):
        first, second = self.engines
        first.add(engine.event('s1', 'start', 0, instance_id='i'),
                  engine.event('s2', 'start', 1, instance_id='i'),
                  engine.event('e', 'end', 2, instance_id='i'))
        first.clock.advance(10)
        first.scheduler.run_once()
        instance = first.instance()
        synchronize(self.urls[1])
        together = threading.Barrier(2)
        answers, claims = [], []

        def hold(worker):
            """Have the worker's first claim commit with the other's."""
            take, done = worker._take, []

            def take_together(*args):
                claim = take(*args)
                claims.append(claim is not None)
                if not done:
                    done.append(claim)
                    together.wait(PATIENCE)
                return claim

            worker._take = take_together

        for one in self.engines:
            hold(one.worker)
        self.run_together(*[
            lambda one=one: answers.append(
                one.worker.fire_trigger(instance.id))
            for one in self.engines])
        # Both had it, and one was refused and found that it is gone.
        self.assertEqual([True, True], claims[:2])
        self.assertIs(False, claims[-1])
        self.assertEqual(2, claims.count(True))
        self.assertEqual([False, True], sorted(answers))
        self.assertEqual([('i', 3)], self.published())
        self.assertEqual([('i', 3)], self.summaries())
        self.assertEqual([], first.instances())

    def test_everything_at_once(self):
        keys = [f'i{number}' for number in range(20)]
        events = [
            engine.event(f'{kind}{number}-{key}', kind, number,
                         instance_id=key)
            for key in keys for number, kind in enumerate(
                ('start', 'start', 'end'))]
        done = threading.Event()

        def feed(one, seed):
            mine = events.copy()
            random.Random(seed).shuffle(mine)
            for start in range(0, len(mine), 7):
                one.manager.add_events(mine[start:start + 7])

        def feed_all():
            # Each event comes four times, twice at each server.
            try:
                self.run_together(*[
                    lambda one=one, seed=seed: feed(one, seed)
                    for one in self.engines for seed in range(2)])
            finally:
                done.set()

        def work(one):
            while not done.is_set():
                if not one.scheduler.run_once():
                    done.wait(0.01)
                one.work()

        for one in self.engines:
            one.clock.advance(10)
        self.run_together(feed_all, *[
            lambda one=one: work(one) for one in self.engines])
        # What was cast as the other server took it, is cast again.
        for _ in range(3):
            for one, url in zip(self.engines, self.urls):
                synchronize(url)
                one.clock.advance(100)
                one.settle()
        self.assertEqual([(key, 3) for key in sorted(keys)],
                         self.summaries())
        self.assertEqual(self.summaries(), self.published())
        self.assertEqual([], self.engines[0].instances())
