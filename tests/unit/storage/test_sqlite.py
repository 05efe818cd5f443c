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

"""The SQL storage driver on SQLite."""

import re

import fixtures
import hypothesis
from hypothesis import strategies as st

from triggerlib import exceptions
from triggerlib import state as state_module
from triggerlib import storage
from triggerlib.testing import storage_contract

from tests import base
from tests import sql

State = state_module.State
at = storage_contract.at
event = storage_contract.event


class TestFile(sql.SQLRules, storage_contract.StorageContract,
               base.TestCase):
    """``sqlite:///path``."""

    options = {'sqlite_synchronous': 'OFF'}

    def setUp(self):
        folder = self.useFixture(fixtures.TempDir()).path
        self.url = f'sqlite:///{folder}/test.sqlite'
        super().setUp()

    def pragma(self, name, **overrides):
        with self.another(**overrides).begin() as tx:
            return tx._connection.exec_driver_sql(
                f'PRAGMA {name}').scalar_one()

    def test_how_the_file_is_written(self):
        self.assertEqual('wal', self.pragma('journal_mode'))
        self.assertEqual(1, self.pragma('foreign_keys'))
        for name, number in (('OFF', 0), ('NORMAL', 1), ('FULL', 2)):
            self.assertEqual(number, self.pragma(
                'synchronous', sqlite_synchronous=name))
        self.assertEqual(1500, self.pragma(
            'busy_timeout', sqlite_busy_timeout=1.5))

    def test_a_file_that_another_process_writes_is_busy(self):
        other = self.another(sqlite_busy_timeout=0)
        with self.driver.begin() as tx:
            tx.add_events([event('a')])
            self.assertRaises(
                exceptions.StorageBusy, other.begin().__enter__)
            # Who only reads is not in the way.
            with other.begin(write=False) as reading:
                self.assertEqual(0, reading.count_events())
        with other.begin() as tx:
            self.assertEqual(1, tx.count_events())

    def test_reading_beside_writing(self):
        self.store(event('a'))
        with self.driver.begin() as tx:
            tx.add_events([event('b')])
            self.assertEqual(['a'], self.find())
        self.assertEqual(['a', 'b'], self.find())

    def test_a_unit_of_work_in_another_would_wait_for_itself(self):
        with self.driver.begin():
            error = self.assertRaises(
                exceptions.StorageError, self.driver.begin().__enter__)
        self.assertNotIsInstance(error, exceptions.StorageBusy)
        self.assertEqual([True], self.store(event('a')))

    def test_a_file_in_a_folder_that_is_not_there(self):
        driver = storage.get_driver(
            sql.load('sqlite:////nosuch-folder/test.sqlite'))
        self.assertRaises(exceptions.StorageError, driver.upgrade)

    def test_what_is_asked_all_the_time_is_looked_up_in_indexes(self):
        self.register('trait')
        self.store(*[event(f'm{number}', number, trait='x')
                     for number in range(20)])
        one = self.new('k', fire_timestamp=at(5))
        self.collect(one, 'm1', 'm2')
        firing = self.make(State.FIRING, deadline=at(1))

        def work(tx):
            tx.add_events([event('m1'), event('new', trait='y')])
            found = tx.lock_active([storage_contract.template('k'),
                                    storage_contract.template('l')])
            tx.collect(found, {found[1].id: ['new', 'm1']})
            tx.get_events(['m1', 'm2'])
            tx.instance_events([one.id])
            tx.newest_event()
            for what in storage.Due:
                tx.due(what, at(9), 10)
                tx.backlog(what, at(9))
            tx.next_due()
            tx.get_instances([one.id], lock=True)
            tx.transition([one.id], State.ACTIVE, State.READY_TO_FIRE)
            tx.postpone([one.id], at(3))
            tx.hold(firing, storage_contract._OWNER, at(9))
            tx.journal(firing)
            tx.forget_steps(firing, 1)
            tx.purge_events(at(3), 10)
            tx.index_events(0, 5)
            tx.list_instances(after=1)
            tx.list_dead_letters(after=1)
            for query in (
                    sql.Query(), sql.Query(('test.event',)),
                    sql.Query(None, at(1), at(4)),
                    sql.Query(('test.event',), at(1), at(4)),
                    sql.Query(traits={'trait': 'x'}),
                    sql.Query(('test.event',), at(1), None,
                              {'trait': ('x', 'y')})):
                for newest_first in (False, True):
                    list(tx.find_events(query, newest_first))

        with self.statements(self.driver) as found:
            self.write(work)
        plans = 0
        with self.driver.engine.begin() as connection:
            for statement, values, many in found:
                if not re.match(r'SELECT|UPDATE|DELETE', statement):
                    continue
                plan = connection.exec_driver_sql(
                    f'EXPLAIN QUERY PLAN {statement}',
                    values[0] if many else values).all()
                plans += 1
                for *_, step in plan:
                    if not step.startswith('SCAN'):
                        continue
                    # These end with their page; the registry is short, and
                    # a row of subqueries is no table.
                    self.assertTrue(
                        step.startswith('SCAN indexed_trait')
                        or step == 'SCAN CONSTANT ROW'
                        or 'ORDER BY event.id DESC' in statement
                        or (step == 'SCAN event USING INDEX '
                                    'ix_event_timestamp'
                            and 'trait0' not in statement
                            and 'event_type IN' not in statement),
                        f'{step}: {statement}')
        self.assertGreater(plans, 35)


class TestMemory(sql.Scratch, storage_contract.StorageContract,
                 base.TestCase):
    """``sqlite://``, which ends with its driver."""

    url = 'sqlite://'

    def test_each_driver_is_a_storage_of_its_own(self):
        self.store(event('a'))
        other = self.make_driver()
        self.addCleanup(other.close)
        self.assertRaises(exceptions.SchemaError, other.check)

    def test_the_scheme_may_name_the_python_driver(self):
        driver = storage.get_driver(sql.load('sqlite+pysqlite://'))
        self.addCleanup(driver.close)
        driver.upgrade()
        driver.check()


VALUES = st.one_of(
    st.sampled_from(['', 'a', 'A', 'a ', '1', 'x' * 250 + 'a',
                     'x' * 250 + 'b', '\U0001f600']),
    st.sampled_from([0, 1, -1, 2 ** 63]),
    st.sampled_from([0.0, -0.0, 1.0, 1e300]),
    st.sampled_from([at(0), at(0, 1)]))
NAMES = st.sampled_from(['indexed', 'late', 'plain'])
EVENTS = st.lists(st.builds(
    lambda message_id, micros, event_type, traits: event(
        message_id, micros / 10 ** 6, event_type, **traits),
    st.text('aAä\uffee\U0001f600 ', min_size=1, max_size=3),
    st.integers(0, 5), st.sampled_from(['t', 'T', 'u']),
    st.dictionaries(NAMES, VALUES)), max_size=12)
MOMENTS = st.one_of(st.none(), st.integers(0, 5).map(
    lambda micros: at(0, micros)))
QUERIES = st.builds(
    sql.Query,
    st.one_of(st.none(), st.lists(
        st.sampled_from(['t', 'T', 'v']), max_size=2).map(tuple)),
    MOMENTS, MOMENTS, st.dictionaries(NAMES, st.one_of(
        VALUES, st.lists(VALUES, max_size=3).map(tuple)), max_size=2))


class TestQueries(sql.Scratch, base.TestCase):
    """Whatever is asked, nothing that matches is left out."""

    url = 'sqlite://'

    @hypothesis.settings(deadline=None, max_examples=200)
    @hypothesis.given(EVENTS, EVENTS, st.booleans(),
                      st.lists(QUERIES, min_size=1, max_size=5),
                      st.booleans())
    def test_a_query_finds_what_matches(
            self, before, after, backfill, queries, newest_first):
        driver = self.make_driver()
        driver.upgrade()
        try:
            driver.run(lambda tx: tx.register_traits(['indexed']))
            driver.run(lambda tx: tx.add_events(before))
            driver.run(lambda tx: tx.register_traits(['late']))
            driver.run(lambda tx: tx.add_events(after))
            if backfill:
                position = 0
                while position is not None:
                    position = driver.run(
                        lambda tx: tx.index_events(position, 5))
            stored = {}
            for one in before + after:
                stored.setdefault(one.message_id, one)
            order = sorted(
                stored.values(), reverse=newest_first,
                key=lambda one: (one.timestamp, one.message_id))
            for query in queries:
                found = driver.run(
                    lambda tx: list(tx.find_events(query, newest_first)),
                    write=False)
                self.assertEqual(
                    [one for one in order
                     if storage_contract.matches(query, one)],
                    [one for one in found
                     if storage_contract.matches(query, one)])
        finally:
            driver.close()
