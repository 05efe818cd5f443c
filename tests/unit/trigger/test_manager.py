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

"""The trigger manager's rules (design section 8), on every local storage."""

import datetime

import hypothesis
from hypothesis import strategies as st

from triggerlib import exceptions
from triggerlib.state import State

from tests import base
from tests import engine

TRIGGERS = """
    - name: create
      distinguished_by: [instance_id]
      expiration: first + 1h
      fire_delay: 10
      match_criteria:
        - event_type: compute.instance.create.*
      fire_criteria:
        - event_type: compute.instance.create.start
        - event_type: compute.instance.create.end
      fire_pipeline: fired
      expire_pipeline: expired
    """

PIPELINES = """
    sinks:
      - name: fired
        publishers: ['test://$NAME']
      - name: expired
        publishers: ['test://$NAME']
    """


def start(message_id='s', seconds=0, instance='i'):
    return engine.event(message_id, 'compute.instance.create.start',
                        seconds, instance_id=instance)


def end(message_id='e', seconds=60, instance='i'):
    return engine.event(message_id, 'compute.instance.create.end', seconds,
                        instance_id=instance)


class ManagerRules:
    """The rules; a subclass says on which storage."""

    url = None

    def engine(self, triggers=TRIGGERS, pipelines=PIPELINES, **kwargs):
        return self.useFixture(engine.Engine(
            triggers, pipelines, self.url, **kwargs))

    def test_one_event_begins_an_instance(self):
        it = self.engine()
        report = it.add(start())
        one = it.instance()
        self.assertEqual('create', one.name)
        self.assertEqual(State.ACTIVE, one.state)
        self.assertEqual(engine.at(0), one.first_event)
        self.assertEqual(engine.at(0), one.last_event)
        self.assertEqual(engine.at(3600), one.expire_timestamp)
        self.assertIsNone(one.fire_timestamp)
        self.assertEqual(['s'], it.ids_of(one))
        self.assertEqual((1, 1, 0, 1), (
            report.received, report.stored, report.duplicates,
            report.collected))

    def test_the_fire_time_is_now_plus_the_delay(self):
        it = self.engine()
        it.add(end())
        it.clock.advance(100)
        it.add(start())
        one = it.instance()
        self.assertEqual(engine.at(110), one.fire_timestamp)
        self.assertEqual(engine.at(0), one.first_event)
        self.assertEqual(engine.at(60), one.last_event)
        self.assertEqual(['s', 'e'], it.ids_of(one))

    def test_a_fire_time_that_is_set_stays(self):
        it = self.engine()
        it.add(start(), end())
        it.clock.advance(5)
        it.add(end('e2', 61))
        one = it.instance()
        self.assertEqual(engine.at(10), one.fire_timestamp)
        self.assertEqual(3, one.event_count)

    def test_duplicates_are_counted_and_dropped(self):
        it = self.engine()
        report = it.add(start(), start(), end())
        self.assertEqual((3, 2, 1), (
            report.received, report.stored, report.duplicates))
        report = it.add(start(), end())
        self.assertEqual((0, 2, 0), (
            report.stored, report.duplicates, report.collected))
        self.assertEqual(2, it.instance().event_count)

    def test_an_event_without_the_distinguishing_trait_does_not_match(self):
        it = self.engine()
        report = it.add(
            engine.event('x', 'compute.instance.create.start', 0, host='h'))
        self.assertEqual((1, 0), (report.stored, report.collected))
        self.assertEqual([], it.instances())

    def test_each_key_has_its_own_instance(self):
        it = self.engine()
        it.add(*(start(f's{n}', n, f'i{n % 7}') for n in range(50)))
        self.assertEqual(7, len(it.instances()))
        self.assertEqual(
            50, sum(one.event_count for one in it.instances()))

    def test_an_expired_instance_is_not_joined(self):
        it = self.engine()
        it.add(start())
        it.clock.advance(3600)
        it.add(end(seconds=3600))
        old, new = it.instances()
        self.assertEqual(State.READY_TO_EXPIRE, old.state)
        self.assertIsNone(old.active_key)
        self.assertEqual(['s'], it.ids_of(old))
        self.assertEqual(State.ACTIVE, new.state)
        self.assertEqual(['e'], it.ids_of(new))
        it.scheduler.run_once()
        self.assertEqual([('expire', old.id)], it.casts)

    def test_a_complete_instance_takes_stragglers_though_expired(self):
        it = self.engine()
        it.add(start(), end())
        it.clock.advance(7200)
        it.add(end('late', 90))
        self.assertEqual(['s', 'e', 'late'], it.ids_of(it.instance()))

    def test_an_event_after_ready_goes_to_a_new_instance(self):
        it = self.engine()
        it.add(start(), end())
        it.clock.advance(10)
        it.scheduler.run_once()
        it.add(end('late', 61))
        old, new = it.instances()
        self.assertEqual(State.READY_TO_FIRE, old.state)
        self.assertEqual(['s', 'e'], it.ids_of(old))
        self.assertEqual(['late'], it.ids_of(new))

    def test_a_forbidden_event_takes_the_fire_time_back(self):
        it = self.engine(TRIGGERS.replace(
            "- event_type: compute.instance.create.*",
            "- event_type: compute.instance.*").replace(
            "- event_type: compute.instance.create.end",
            "- event_type: compute.instance.create.end\n"
            "        - event_type: compute.instance.delete.start\n"
            "          number: 0"))
        it.add(start(), end())
        self.assertIsNotNone(it.instance().fire_timestamp)
        it.add(engine.event('d', 'compute.instance.delete.start', 70,
                            instance_id='i'))
        self.assertIsNone(it.instance().fire_timestamp)

    def test_a_window_of_a_day(self):
        it = self.engine("""
            - name: day
              distinguished_by: [host, {timestamp: day}]
              expiration: "first + 1d @ 0h 0m 0s"
              match_criteria: [{event_type: '*'}]
              expire_pipeline: expired
            """)
        day = 24 * 3600
        it.add(*(engine.event(f'm{n}', 'x', n * day // 4, host='h')
                 for n in range(8)))
        days = sorted(it.instances(), key=lambda one: one.first_event)
        self.assertEqual([2, 4, 2], [one.event_count for one in days])
        self.assertEqual(
            [datetime.datetime(2026, 3, n, tzinfo=engine.UTC)
             for n in (2, 3, 4)],
            [one.expire_timestamp for one in days])

    def test_list_criteria_are_counted_over_the_list(self):
        it = self.engine("""
            - name: near_the_end
              distinguished_by: [host]
              expiration: last + 1h
              match_criteria: [{event_type: x}]
              fire_criteria:
                - event_type: x
                  timestamp: "last - 10s to last + 1s"
                  number: 3
              fire_pipeline: fired
            """)
        for n, seconds in enumerate((0, 20, 40, 60)):
            it.add(engine.event(f'a{n}', 'x', seconds, host='h'))
        self.assertIsNone(it.instance().fire_timestamp)
        self.assertEqual([1], it.instance().counts)
        it.add(engine.event('b', 'x', 55, host='h'),
               engine.event('c', 'x', 51, host='h'))
        self.assertEqual([3], it.instance().counts)
        self.assertIsNotNone(it.instance().fire_timestamp)
        it.add(engine.event('d', 'x', 100, host='h'))
        self.assertEqual([1], it.instance().counts)
        self.assertIsNone(it.instance().fire_timestamp)

    def test_match_criteria_may_look_at_the_list(self):
        it = self.engine("""
            - name: near
              distinguished_by: [host]
              expiration: first + 1h
              match_criteria:
                - event_type: x
                  timestamp: "first to first + 30s"
              expire_pipeline: expired
            """)
        it.add(engine.event('a', 'x', 0, host='h'))
        it.add(engine.event('b', 'x', 29, host='h'),
               engine.event('c', 'x', 30, host='h'))
        self.assertEqual(['a', 'b'], it.ids_of(it.instance()))

    def test_what_is_left_of_a_batch_after_expiry_goes_on(self):
        it = self.engine(TRIGGERS.replace('first + 1h', 'first + 1m'),
                         expiry_clock='event', allowed_lateness=0)
        it.clock.advance(7200)
        it.add(start('a', 0), start('b', 59), start('c', 60),
               start('d', 119), start('e', 3600))
        self.assertEqual(
            [['a', 'b'], ['c', 'd'], ['e']],
            [it.ids_of(one) for one in it.instances()])
        self.assertEqual(
            [State.READY_TO_EXPIRE, State.READY_TO_EXPIRE, State.ACTIVE],
            [one.state for one in it.instances()])

    def test_by_the_wall_a_backlog_expires_event_by_event(self):
        it = self.engine(TRIGGERS.replace('first + 1h', 'first + 1m'))
        it.clock.advance(7200)
        it.add(start('a', 0), start('b', 1))
        self.assertEqual([['a'], ['b']],
                         [it.ids_of(one) for one in it.instances()])

    def test_a_new_definition_evaluates_what_an_old_one_collected(self):
        it = self.engine()
        it.add(start(), engine.event(
            'x', 'compute.instance.create.error', 30, instance_id='i'))
        new = self.useFixture(engine.Engine(
            TRIGGERS.replace('create.end', 'create.error').replace(
                'first + 1h', 'first + 2h'), PIPELINES, shared=it))
        new.add(start('s2', 1))
        one = it.instance()
        self.assertEqual([2, 1], one.counts)
        self.assertEqual(engine.at(10), one.fire_timestamp)
        self.assertEqual(engine.at(7200), one.expire_timestamp)
        self.assertEqual(
            new.catalog.current.definitions.get('create').fingerprint,
            one.fingerprint)

    def test_sources_pass_events_through(self):
        it = self.engine(pipelines=PIPELINES + """
    sources:
      - name: all
        events: ['compute.*', '!compute.instance.create.end']
        sinks: [fired]
    """)
        it.add(start(), end(), engine.event('o', 'other', 0))
        it.settle()
        self.assertEqual(['s'], [each.message_id
                                 for each in it.published()])
        self.assertEqual(['create'], [one.name for one in it.instances()])

    def test_an_event_that_cannot_be_stored_is_a_dead_letter(self):
        it = self.engine()
        report = it.add(start(), engine.event(
            'x' * 300, 'compute.instance.create.start', 0,
            instance_id='i'))
        self.assertEqual((1, 1), (report.stored, report.dead_letters))
        letter, = it.storage.run(lambda tx: tx.list_dead_letters())
        self.assertEqual('x' * 300, letter.message_id)
        self.assertEqual('event', letter.kind)

    def test_nothing_of_a_failed_batch_is_stored(self):
        it = self.engine()
        it.add(start())

        def fail(tx):
            it.manager.add_events_in(tx, [end(), start('s2', 1, 'other')])
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, it.storage.run, fail)
        self.assertEqual(1, it.instance().event_count)
        self.assertEqual(
            1, it.storage.run(lambda tx: tx.count_events()))
        self.assertEqual(2, it.add(end(), start('s2', 1, 'other')).stored)

    def test_a_busy_storage_has_the_batch_run_again(self):
        it = self.engine()
        begin, tries = it.storage.begin, []

        def busy_twice(write=True):
            tries.append(write)
            if len(tries) < 3:
                raise exceptions.StorageBusy('deadlock')
            return begin(write=write)

        it.manager.register_traits()
        it.storage.begin = busy_twice
        it.storage.retry_delay = 0
        report = it.add(start(), end())
        self.assertEqual(3, len(tries))
        self.assertEqual((2, 2), (report.stored, report.collected))
        self.assertEqual(2, it.instance().event_count)

    @hypothesis.settings(
        deadline=None, max_examples=20, suppress_health_check=[
            # The test stands in a class that two others inherit.
            hypothesis.HealthCheck.differing_executors])
    @hypothesis.given(data=st.data())
    def test_any_order_and_any_duplicates_give_the_same(self, data):
        events = [
            make(f'{name}{server}', seconds, f'i{server}')
            for server in range(4)
            for make, name, seconds in (
                (start, 's', server), (end, 'e', 60 + server),
                (end, 'again', 50))]
        drawn = data.draw(st.permutations(
            events + data.draw(st.lists(st.sampled_from(events),
                                        max_size=8))))
        size = data.draw(st.integers(1, 6))
        it = engine.Engine(TRIGGERS, PIPELINES, self.url)
        it.setUp()
        try:
            for begin in range(0, len(drawn), size):
                it.add(*drawn[begin:begin + size])
            it.clock.advance(100)
            it.settle()
            self.assertEqual([], it.instances())
            self.assertEqual(
                sorted(each.message_id for each in events),
                sorted(each.message_id for each in it.published()))
        finally:
            it.cleanUp()


class TestMemory(ManagerRules, base.TestCase):
    """On the in-memory driver."""

    url = 'memory://'


class TestSQLite(ManagerRules, base.TestCase):
    """On SQLite."""

    url = 'sqlite://'
