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

"""Servers that die under a unit of work, and commits without an answer."""

import sqlalchemy as sa

from triggerlib import exceptions
from triggerlib.state import State
from triggerlib import storage
from triggerlib.testing import storage_contract

from tests import base
from tests.chaos import nodes
from tests.chaos import proxy
from tests import engine
from tests import servers
from tests import sql

event = storage_contract.event
template = storage_contract.template


class DeathRules:
    """A server dies; :attr:`kind` is the class of its node."""

    kind = None

    def setUp(self):
        super().setUp()
        self.node = self.useFixture(self.kind())
        self.driver = storage.get_driver(sql.load(self.node.url))
        self.addCleanup(self.driver.close)
        self.driver.upgrade()

    def collect(self, tx, *message_ids):
        """Store events, and put the new ones into one instance."""
        flags = tx.add_events([event(one) for one in message_ids])
        new = [one for one, flag in zip(message_ids, flags) if flag]
        instance, = tx.lock_active([template('k')])
        instance.event_count += len(new)
        tx.collect([instance], {instance.id: new})
        return new

    def assert_collected(self, *message_ids):
        def look(tx):
            one, = tx.list_instances()
            return one, tx.instance_events([one.id])[one.id]

        one, events = self.driver.run(look, write=False)
        self.assertEqual(len(message_ids), one.event_count)
        self.assertEqual(list(message_ids),
                         [each.message_id for each in events])
        self.assertEqual(len(message_ids), self.driver.run(
            lambda tx: tx.count_events(), write=False))

    def open_connections(self, number):
        """Leave that many connections in the driver's pool."""
        with self.driver.begin(write=False) as tx:
            tx.now()
            if number > 1:
                self.open_connections(number - 1)

    def interrupt(self, kill, at_the_end):
        """Restart the server in a unit of work, and count the tries."""
        tries = []

        def work(tx):
            tries.append(tx)
            first = len(tries) == 1
            new = self.collect(tx, 'a', 'b')
            if first:
                self.node.restart(kill)
            if not (first and at_the_end):
                tx.get_events(['a'])
            return new

        self.open_connections(3)
        self.assertEqual(['a', 'b'], self.driver.run(work))
        self.assertEqual(2, len(tries))
        self.assert_collected('a', 'b')
        # Of the connections to the dead server no other is used.
        self.driver.retries = 0
        self.open_connections(3)

    def test_one_that_is_killed_in_a_unit_of_work(self):
        self.interrupt(kill=True, at_the_end=False)

    def test_one_that_is_killed_before_the_commit(self):
        self.interrupt(kill=True, at_the_end=True)

    def test_one_that_is_stopped_in_a_unit_of_work(self):
        self.interrupt(kill=False, at_the_end=False)

    def test_one_that_is_stopped_before_the_commit(self):
        self.interrupt(kill=False, at_the_end=True)

    def test_one_that_is_away(self):
        self.driver.run(self.collect, 'a')
        self.driver.retries = 1
        for end in (self.node.stop, self.node.kill):
            self.open_connections(3)
            end()
            for work in (self.collect, lambda tx, _: tx.count_events()):
                self.assertRaises(
                    exceptions.StorageBusy, self.driver.run, work, 'b')
            self.node.start()
            self.assert_collected('a')
            self.open_connections(3)
        self.driver.run(self.collect, 'b')
        self.assert_collected('a', 'b')


class TestPostgreSQLDeath(DeathRules, base.TestCase):

    kind = nodes.PostgreSQLNode


class TestMariaDBDeath(DeathRules, base.TestCase):

    kind = nodes.MariaDBNode


TRIGGERS = """
    - name: create
      distinguished_by: [instance_id]
      expiration: first + 1h
      match_criteria:
        - event_type: [start, end]
      fire_criteria:
        - event_type: start
        - event_type: end
      fire_pipeline: fired
      expire_pipeline: fired
    - name: chain
      distinguished_by: [instance_id]
      expiration: first + 10y
      match_criteria:
        - event_type: summary
    """

PIPELINES = """
    sinks:
      - name: fired
        transformers:
          - name: aggregate
            checkpoint: true
            parameters:
              event_type: summary
              traits: {instance_id: {first: instance_id}, number: count}
        publishers: ['test://$NAME', 'event://']
    """


class LossRules:
    """A connection is lost at a commit; a subclass gives :attr:`url`."""

    url = None

    def setUp(self):
        super().setUp()
        url = sa.make_url(self.url)
        self.proxy = self.useFixture(proxy.Proxy(url.port))
        self.engine = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES,
            url.set(port=self.proxy.port).render_as_string(
                hide_password=False)))
        self.lose = (self.proxy.lose_commit, self.proxy.lose_answer)

    def lost(self, lose, work, *args):
        """Call something, and lose its first commit, or the answer to it."""
        # The commit is not to be that of a connection that is opened.
        self.engine.storage.run(lambda tx: tx.now())
        lose()
        result = work(*args)
        self.assertFalse(self.proxy.armed)
        return result

    def events_of(self, *names):
        """Return a pair of events of this moment for each name."""
        age = (self.engine.clock.now() - engine.START).total_seconds()
        return [engine.event(f'{name}-{kind}', kind, age, instance_id=name)
                for name in names for kind in ('start', 'end')]

    def test_events_are_collected_once(self):
        self.engine.manager.register_traits()
        for name, lose in zip('ij', self.lose):
            self.lost(lose, self.engine.add, *self.events_of(name))
        for one, name in zip(self.engine.instances(), 'ij'):
            self.assertEqual(2, one.event_count)
            self.assertEqual([f'{name}-end', f'{name}-start'],
                             self.engine.ids_of(one))
            self.assertEqual(1, one.version)
        self.assertEqual(2, len(self.engine.instances()))

    def test_a_claim_is_recognised(self):
        self.engine.add(*self.events_of('i', 'j'))
        self.engine.clock.advance(10)
        self.engine.scheduler.run_once()
        for one, lose in zip(self.engine.instances(), self.lose):
            self.assertIs(True, self.lost(
                lose, self.engine.worker.fire_trigger, one.id))
        self.assertEqual(2, len(self.engine.published()))

    def test_a_transition_is_made_once(self):
        self.engine.add(*self.events_of('i', 'j'))
        ids = [one.id for one in self.engine.instances()]
        moved = []
        for instance_id, lose in zip(ids, self.lose):
            moved.append(self.lost(
                lose, self.engine.storage.run, lambda tx: tx.transition(
                    [instance_id], State.ACTIVE, State.READY_TO_FIRE)))
        # Whoever got no answer has to look, as a worker does for its claim.
        self.assertEqual([[ids[0]], []], moved)
        for one in self.engine.instances():
            self.assertIs(State.READY_TO_FIRE, one.state)
            self.assertEqual(2, one.version)

    def run_through(self, name):
        """Take a pair of events through everything.

        :returns: how many commits that took
        """
        before = self.proxy.commits
        self.engine.add(*self.events_of(name))
        self.engine.clock.advance(10)
        for _ in range(4):
            self.engine.settle()
            # Behind what is cast or tried again later.
            self.engine.clock.advance(400)
        return self.proxy.commits - before

    def summaries(self, name):
        """Return what ``event://`` published for a name."""
        found = self.engine.storage.run(lambda tx: [
            one.traits['number'] for one in tx.find_events(
                storage_contract.Query(('summary',)))
            if one.traits['instance_id'] == name], write=False)
        return found

    def test_any_commit_on_the_way_of_an_event(self):
        # A run without a loss, by which each of the others is measured.
        self.run_through('first')
        number = self.run_through('second')
        self.assertGreater(number, 5)
        for after in range(number):
            for lose in self.lose:
                name = f'{lose.__name__}-{after}'
                lose(after)
                self.run_through(name)
                self.assertFalse(self.proxy.armed)
                self.assertEqual([2], self.summaries(name), name)
                self.assertEqual(
                    [2], [one.traits['number']
                          for one in self.engine.published()
                          if one.traits['instance_id'] == name], name)
        found = self.engine.instances()
        self.assertEqual(
            [('chain', State.ACTIVE, 1)] * len(found),
            [(one.name, one.state, one.event_count) for one in found])
        self.assertEqual(2 + 2 * number, len(found))


class TestPostgreSQLLoss(LossRules, base.TestCase):

    def setUp(self):
        self.url = servers.postgresql_url(self)
        super().setUp()


class TestMariaDBLoss(LossRules, base.TestCase):

    def setUp(self):
        self.url = servers.mysql_url(self)
        super().setUp()
