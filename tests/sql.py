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

"""What the SQL storage driver does beside the contract, on each backend."""

import contextlib
import datetime
import multiprocessing
import random
import threading

from oslo_config import cfg
from oslo_db.sqlalchemy import test_migrations
import sqlalchemy as sa

from triggerlib import clock as clock_module
from triggerlib import criteria
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import state as state_module
from triggerlib import storage
from triggerlib.storage.sql import models
from triggerlib.storage.sql import schema
from triggerlib.testing import storage_contract

State = state_module.State
Query = criteria.EventQuery
at = storage_contract.at
event = storage_contract.event
template = storage_contract.template

#: Seconds after which a thread of a test is given up.
PATIENCE = 60
#: Seconds in which something is done, unless it waits for something.
MOMENT = 0.3


def load(url, **overrides):
    """Return a configuration that names a storage."""
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([], default_config_files=[])
    for name, value in {'connection': url, **overrides}.items():
        conf.set_override(name, value, opts.GROUP)
    return conf


class Scratch:
    """Builds drivers over :attr:`url`, an empty database of the test's."""

    url = None
    options = {}

    def make_driver(self, clock=None, **overrides):
        """Return a driver over the test's database."""
        return storage.get_driver(
            load(self.url, **{**self.options, **overrides}), clock)


class SQLRules(Scratch):
    """Mix it with the contract."""

    def another(self, clock=None, **overrides):
        """Return a second driver, as another process would have it."""
        driver = self.make_driver(clock, **overrides)
        self.addCleanup(driver.close)
        return driver

    def execute(self, statement):
        """Run a statement behind the driver's back, and return its rows."""
        with self.driver.engine.begin() as connection:
            result = connection.exec_driver_sql(statement)
            return result.all() if result.returns_rows else None

    @contextlib.contextmanager
    def statements(self, driver):
        """Collect what a driver executes, as ``(statement, values)``."""
        found = []

        def note(connection, cursor, statement, values, context, many):
            found.append((statement, values, many))

        sa.event.listen(driver.engine, 'before_cursor_execute', note)
        try:
            yield found
        finally:
            sa.event.remove(driver.engine, 'before_cursor_execute', note)

    def race(self, *works):
        """Run each in a thread of its own, all at once.

        :returns: what they returned, in order
        """
        barrier = threading.Barrier(len(works))
        results = [None] * len(works)
        errors = []

        def run(position, work):
            try:
                barrier.wait(PATIENCE)
                results[position] = work()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=each, daemon=True)
                   for each in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive(), 'it waits for ever')
        if errors:
            raise errors[0]
        return results

    def beside(self, first, second):
        """Run one unit of work, and begin another before it ends.

        :param first: called with its transaction
        :param second: called with nothing, in a thread of its own
        :returns: what the second returned
        """
        results, begun = [], threading.Event()

        def run():
            begun.set()
            results.append(second())

        thread = threading.Thread(target=run, daemon=True)
        with self.driver.begin() as tx:
            first(tx)
            thread.start()
            begun.wait(PATIENCE)
            # Where it does not have to wait, it is done before this ends.
            thread.join(MOMENT)
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive(), 'it waits for ever')
        self.assertEqual(1, len(results), 'it failed')
        return results[0]

    # Time

    def test_without_a_clock_it_is_the_time_of_the_database(self):
        driver = self.another()
        before = clock_module.SystemClock().now()
        with driver.begin() as tx:
            now = tx.now()
            self.assertEqual(now, tx.now())
        # Hosts' clocks may differ, but not by a time zone.
        self.assertLess(abs(now - before), datetime.timedelta(minutes=10))
        self.assertEqual(datetime.timedelta(0), now.utcoffset())

    # What a batch costs

    def _cost(self, size):
        """Return how many statements a batch of this size takes."""
        prefix = f's{size}'
        with self.statements(self.driver) as found:
            with self.driver.begin() as tx:
                events = [event(f'{prefix}-{number}', number, trait='x')
                          for number in range(size)]
                tx.add_events(events)
                instances = tx.lock_active(
                    [template(f'{prefix}-{number}')
                     for number in range(size)])
                tx.collect(instances, {
                    instance.id: [one.message_id]
                    for instance, one in zip(instances, events)})
                ids = [one.id for one in instances]
            with self.driver.begin() as tx:
                # The next one finds all of it.
                tx.add_events(events)
                tx.lock_active([template(one.active_key)
                                for one in instances])
                tx.get_events([one.message_id for one in events])
                tx.instance_events(ids)
                tx.transition(ids, State.ACTIVE, State.READY_TO_FIRE)
                tx.postpone(ids, at(9))
                tx.transition(ids, State.READY_TO_FIRE, State.DELETED)
        return len(found)

    def test_a_large_batch_takes_as_many_statements_as_a_small_one(self):
        self.register('trait')
        small = self._cost(10)
        self.assertEqual(small, self._cost(300))
        self.assertLess(small, 40)

    # The trait index

    def found(self, query):
        """Return the ids of all that a query gives, unfiltered."""
        return [one.message_id for one in self.read(
            lambda tx: list(tx.find_events(query)))]

    def test_the_index_narrows_once_it_is_complete(self):
        self.store(event('old', 1, trait='x'), event('older', 0, trait='y'))
        self.assertEqual({'trait'}, self.register('trait'))
        query = Query(traits={'trait': ('x', 'z')})
        self.assertEqual(['older', 'old'], self.found(query))
        self.store(event('new', 2, trait='z'), event('newer', 3, trait='y'))
        self.assertEqual(4, len(self.found(query)))
        self.backfill(1)
        self.assertEqual(['old', 'new'], self.found(query))
        self.assertEqual(['new'], self.found(
            Query(begin=at(2), end=at(2), traits={'trait': ('x', 'z')})))
        # A second trait is not complete, and the first one stays so.
        self.assertEqual({'second'}, self.register('trait', 'second'))
        self.assertEqual(['old', 'new'], self.found(query))

    def test_types_and_times_narrow(self):
        self.store(event('a', 1, 'x'), event('b', 2, 'X'),
                   event('c', 3, 'x'))
        self.assertEqual(['a', 'c'], self.found(Query(('x',))))
        self.assertEqual(['b'], self.found(Query(None, at(2), at(3))))
        self.assertEqual(['c'], self.found(Query(('x', 'y'), at(2))))

    def test_the_index_goes_with_the_events(self):
        self.register('trait')
        self.store(event('a', 1, trait='x'), event('b', 2, trait='x'))
        self.assertEqual([(2,)], self.execute(
            'SELECT count(*) FROM event_trait'))
        self.purge(2)
        self.assertEqual([(1,)], self.execute(
            'SELECT count(*) FROM event_trait'))

    def test_a_trait_of_which_no_index_can_be_made(self):
        for name in ('', 'x' * 256, 'a\0b', '\ud800'):
            self.assertRaises(exceptions.StorageError, self.register, name)
        name = '\U0001f600' * 255
        self.register(name)
        self.store(event('a', **{name: 'x'}))
        self.assertEqual(['a'], self.found(Query(traits={name: 'x'})))
        self.assertEqual([], self.found(Query(traits={name: 'y'})))

    # Several at once

    def test_new_keys_that_several_meet_at_once(self):
        drivers = [self.driver, self.another(self.clock)]
        keys = [f'k{number}' for number in range(20)]

        def work(seed):
            mine = random.Random(seed).sample(keys, len(keys))

            def lock(tx):
                found = tx.lock_active([template(key) for key in mine])
                for one in found:
                    one.event_count += 1
                tx.collect(found, {})
                return {one.active_key: one.id for one in found}

            return drivers[seed % 2].run(lock)

        results = self.race(*[
            lambda seed=seed: work(seed) for seed in range(6)])
        for result in results:
            self.assertEqual(results[0], result)
        found = self.read(lambda tx: tx.list_instances())
        self.assertEqual(20, len(found))
        self.assertEqual([6] * 20, [one.event_count for one in found])

    def test_new_events_that_several_meet_at_once(self):
        drivers = [self.driver, self.another(self.clock)]
        self.register('trait')

        def work(seed):
            ids = [f'm{number}' for number in range(50)] + [f'own{seed}']
            random.Random(seed).shuffle(ids)
            flags = drivers[seed % 2].run(lambda tx: tx.add_events(
                [event(one, trait=seed) for one in ids]))
            return [one for one, new in zip(ids, flags) if new]

        results = self.race(*[
            lambda seed=seed: work(seed) for seed in range(6)])
        new = [one for result in results for one in result]
        self.assertEqual(56, len(new))
        self.assertEqual(56, len(set(new)))
        self.assertEqual(set(new), set(self.find()))
        # The traits are those of the one that stored it.
        for seed, result in enumerate(results):
            self.assertEqual(sorted(result), sorted(
                self.found(Query(traits={'trait': seed}))))

    def test_an_event_that_another_is_about_to_store(self):
        other = self.another(self.clock)
        flags = self.beside(
            lambda tx: tx.add_events([event('b', 1)]),
            lambda: other.run(lambda tx: tx.add_events(
                [event('a'), event('b', 2), event('c')])))
        self.assertEqual([True, False, True], flags)

    def test_an_event_that_another_stored_in_vain(self):
        other = self.another(self.clock)

        def fail(tx):
            tx.add_events([event('a', 1)])

        with contextlib.suppress(KeyError):
            with self.driver.begin() as tx:
                fail(tx)
                result = []
                thread = threading.Thread(target=lambda: result.append(
                    other.run(lambda tx: tx.add_events([event('a', 2)]))))
                thread.start()
                thread.join(MOMENT)
                raise KeyError
        thread.join(PATIENCE)
        self.assertEqual([[True]], result)
        found = self.read(lambda tx: tx.get_events(['a']))
        self.assertEqual(at(2), found['a'].timestamp)

    def test_only_one_claims(self):
        drivers = [self.driver, self.another(self.clock)]
        for _ in range(5):
            instance_id = self.make(State.READY_TO_FIRE)

            def claim(number):
                return drivers[number % 2].run(lambda tx: tx.transition(
                    [instance_id], State.READY_TO_FIRE, State.FIRING,
                    new_owner=f'owner{number}', deadline=at(60)))

            results = self.race(*[
                lambda number=number: claim(number) for number in range(6)])
            winner, = [number for number, moved in enumerate(results)
                       if moved]
            self.assertEqual(f'owner{winner}', self.get(instance_id).owner)

    def test_an_event_that_comes_as_its_instance_is_made_ready(self):
        other = self.another(self.clock)
        names = [f'm{number}' for number in range(30)]

        def collector():
            def work(tx, name):
                tx.add_events([event(name)])
                one, = tx.lock_active([template('k')])
                one.event_count += 1
                tx.collect([one], {one.id: [name]})

            for name in names:
                self.driver.run(work, name)

        def scheduler():
            def work(tx):
                for one in tx.list_instances(state=State.ACTIVE):
                    tx.transition([one.id], State.ACTIVE,
                                  State.READY_TO_FIRE)

            for _ in names:
                other.run(work)

        self.race(collector, scheduler)
        found = self.read(lambda tx: tx.list_instances())
        places = []
        for one in found:
            ids = self.ids_of(one.id)
            self.assertEqual(one.event_count, len(ids))
            places += ids
        self.assertEqual(sorted(names), sorted(places))
        self.assertLessEqual(
            len([one for one in found if one.state is State.ACTIVE]), 1)

    def test_an_instance_that_leaves_before_it_is_joined(self):
        other = self.another(self.clock)
        one = self.new('k')
        joined = self.beside(
            lambda tx: tx.transition([one.id], State.ACTIVE,
                                     State.READY_TO_FIRE),
            lambda: other.run(lambda tx: tx.lock_active([template('k')])))
        self.assertNotEqual(one.id, joined[0].id)
        self.assertEqual(0, joined[0].version)

    def test_a_trait_that_is_registered_beside_a_batch(self):
        other = self.another(self.clock)
        self.beside(
            lambda tx: tx.add_events([event('a', trait='x')]),
            lambda: other.run(lambda tx: tx.register_traits(['trait'])))
        query = Query(traits={'trait': 'x'})
        self.assertEqual(['a'], self.found(query))
        self.backfill()
        self.assertEqual(['a'], self.found(query))

    def test_a_batch_beside_a_registration(self):
        other = self.another(self.clock)
        self.beside(
            lambda tx: tx.register_traits(['trait']),
            lambda: other.run(lambda tx: tx.add_events(
                [event('a', trait='x')])))
        self.assertEqual(['a'], self.found(Query(traits={'trait': 'x'})))
        self.assertEqual(frozenset(), self.register('trait'))

    def test_a_purge_of_what_is_just_collected(self):
        other = self.another(self.clock)
        self.store(event('a', 1), event('b', 2))
        one = self.new()
        one.event_count = 1
        self.beside(
            lambda tx: tx.collect([one], {one.id: ['a']}),
            lambda: other.run(lambda tx: tx.purge_events(at(9), 10)))
        self.assertEqual(['a'], self.ids_of(one.id))
        self.assertEqual(['a'], self.find())

    def test_several_purges_and_backfills_at_once(self):
        drivers = [self.driver, self.another(self.clock)]
        self.store(*[event(f'm{number:03}', number, trait=number % 3)
                     for number in range(200)])
        self.register('trait')

        def purge(driver):
            gone, last = 0, 1
            while last:
                last = driver.run(lambda tx: tx.purge_events(at(100), 7))
                gone += last
            return gone

        def backfill(driver):
            after = 0
            while after is not None:
                after = driver.run(lambda tx: tx.index_events(after, 7))

        results = self.race(*[
            lambda work=work, driver=driver: work(driver)
            for driver in drivers for work in (purge, backfill)])
        self.backfill(50)
        # Those that one purge had locked the other may have passed over.
        self.assertEqual(100, results[0] + results[2] + self.purge(100))
        self.assertEqual(100, len(self.find()))
        self.assertEqual(
            [f'm{number:03}' for number in range(102, 200, 3)],
            self.found(Query(traits={'trait': 0})))

    def test_a_child_process_has_connections_of_its_own(self):
        self.store(event('a'))
        context = multiprocessing.get_context('fork')

        def child():
            self.driver.run(lambda tx: tx.add_events([event('b')]))

        process = context.Process(target=child)
        process.start()
        process.join(PATIENCE)
        self.assertEqual(0, process.exitcode)
        self.assertEqual(['a', 'b'], self.find())

    # Schema

    def test_without_a_schema(self):
        schema.downgrade(self.driver.engine, 'base')
        for call in (self.driver.check, lambda: self.store(event('a'))):
            error = self.assertRaises(exceptions.SchemaError, call)
            self.assertIn('triggerlib db upgrade', str(error))
        self.assertEqual(set(), self._tables())
        self.driver.upgrade()
        self.driver.check()
        self.assertEqual([True], self.store(event('a')))

    def _tables(self):
        found = set(sa.inspect(self.driver.engine).get_table_names())
        return found - {schema.VERSION_TABLE, 'sqlite_sequence'}

    def test_a_schema_of_a_newer_release(self):
        self.execute(f"UPDATE {schema.VERSION_TABLE} "
                     f"SET version_num = 'later'")
        for call in (self.driver.check, self.driver.upgrade):
            error = self.assertRaises(exceptions.SchemaError, call)
            self.assertIn('later', str(error))
            self.assertIn('upgrade triggerlib', str(error))

    def test_the_revisions_of_another_service_are_its_own(self):
        schema.downgrade(self.driver.engine, 'base')
        self.execute('CREATE TABLE alembic_version (version_num CHAR(5))')
        self.execute("INSERT INTO alembic_version VALUES ('other')")
        self.driver.upgrade()
        self.driver.check()
        self.assertEqual([('other',)], self.execute(
            'SELECT version_num FROM alembic_version'))

    def test_tables_that_no_upgrade_made_are_left_alone(self):
        schema.downgrade(self.driver.engine, 'base')
        self.execute('CREATE TABLE event (id INTEGER)')
        self.execute('INSERT INTO event VALUES (7)')
        for _ in range(2):
            error = self.assertRaises(
                exceptions.SchemaError, self.driver.upgrade)
            self.assertIn('already', str(error))
            self.assertIn(': event;', str(error))
            self.assertEqual({'event'}, self._tables())
            self.assertRaises(exceptions.SchemaError, self.driver.check)
        self.assertEqual([(7,)], self.execute('SELECT id FROM event'))
        self.execute('DROP TABLE event')
        self.driver.upgrade()
        self.driver.check()

    def test_several_upgrades_at_once(self):
        schema.downgrade(self.driver.engine, 'base')
        self.race(*[self.another().upgrade for _ in range(4)])
        self.driver.check()
        self.assertEqual(set(models.metadata.tables), self._tables())

    def test_models_and_migrations_agree(self):
        _Sync(self).test_models_sync()

    # Errors

    def test_a_url_that_cannot_be_read_is_not_shown(self):
        scheme = sa.make_url(self.url).drivername
        error = self.assertRaises(
            exceptions.PluginError, storage.get_driver,
            load(f'{scheme}://user:sekret@host:port/name'))
        self.assertNotIn('sekret', str(error))
        self.assertIsNone(error.__cause__)

    def test_a_python_driver_that_is_not_installed(self):
        scheme = sa.make_url(self.url).get_backend_name()
        error = self.assertRaises(
            exceptions.PluginError, storage.get_driver,
            load(f'{scheme}+nosuch://user:sekret@host/name'))
        self.assertIn('nosuch', str(error))
        self.assertNotIn('sekret', str(error))

    def test_an_instance_that_is_gone_has_no_journal(self):
        self.assertRaises(
            exceptions.StorageError, self.write, lambda tx: tx.save_step(
                10 ** 9, storage.StepRecord(
                    'step', 0, storage.StepState.DONE)))


class ServerRules(SQLRules):
    """For backends that let several write at a time."""

    def test_many_templates_without_a_key_take_one_statement(self):
        def cost(size):
            with self.statements(self.driver) as found:
                self.lock(*[template(None) for _ in range(size)])
            return len(found)

        self.assertEqual(cost(3), cost(50))

    def test_what_another_has_locked_is_not_due(self):
        ids = [self.new(fire_timestamp=at(number)).id
               for number in range(4)]
        other = self.another(self.clock)
        with self.driver.begin() as tx:
            self.assertEqual(ids[:2], [one.id for one in tx.due(
                storage.Due.TO_FIRE, at(9), 2)])
            with other.begin() as tx:
                self.assertEqual(ids[2:], [one.id for one in tx.due(
                    storage.Due.TO_FIRE, at(9), 2)])

    def test_a_deadlock_is_run_again(self):
        one, two = self.new().id, self.new().id
        barrier = threading.Barrier(2)
        tries = []

        def work(first, second):
            def lock(tx):
                tries.append(first)
                tx.get_instances([first], lock=True)
                if tries.count(first) == 1:
                    barrier.wait(PATIENCE)
                tx.get_instances([second], lock=True)
                tx.transition([first], State.ACTIVE, State.READY_TO_FIRE)

            self.driver.run(lock)

        self.race(lambda: work(one, two), lambda: work(two, one))
        self.assertEqual(3, len(tries))
        for instance_id in (one, two):
            self.assertIs(State.READY_TO_FIRE, self.get(instance_id).state)

    def test_a_lost_connection_is_run_again(self):
        tries = []

        def work(tx):
            flags = tx.add_events([event('a')])
            tries.append(flags)
            if len(tries) == 1:
                self.kill(tx)
            return flags

        self.assertEqual([True], self.write(work))
        self.assertEqual(2, len(tries))
        self.assertEqual(['a'], self.find())

    def test_a_server_that_is_away_is_busy(self):
        url = sa.make_url(self.url).set(host='127.0.0.1', port=1)
        driver = storage.get_driver(
            load(url.render_as_string(hide_password=False)))
        self.addCleanup(driver.close)
        self.assertRaises(exceptions.StorageBusy, driver.begin().__enter__)

    def test_a_database_that_is_not_there(self):
        url = sa.make_url(self.url).set(database='triggerlib_nosuch')
        driver = storage.get_driver(
            load(url.render_as_string(hide_password=False)))
        self.addCleanup(driver.close)
        error = self.assertRaises(
            exceptions.StorageError, driver.begin().__enter__)
        self.assertNotIsInstance(error, exceptions.StorageBusy)


class _Sync(test_migrations.ModelsMigrationsSync):
    """oslo.db's test, over the database of another test."""

    def __init__(self, test):
        self._test = test
        self.fail = test.fail

    def addCleanup(self, *args):
        """Leave it to the test to drop its database."""

    def db_sync(self, engine):
        self._test.driver.upgrade()

    def get_engine(self):
        return self._test.driver.engine

    def get_metadata(self):
        return models.metadata

    def include_object(self, object_, name, type_, reflected, compare_to):
        return name != schema.VERSION_TABLE
