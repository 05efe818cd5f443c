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

"""What once went wrong where several rules of the blueprint meet."""

import collections
import contextlib
import datetime

import hypothesis
from hypothesis import strategies as st

from triggerlib import exceptions
from triggerlib.state import State
from triggerlib.trigger import replay
from triggerlib.trigger import scheduler

from tests import base
from tests import engine

PIPELINES = """
    sinks:
      - name: out
        publishers: ['test://$NAME']
    """

LISTED = """
    - name: listed
      distinguished_by: [server]
      expiration: first + 50s
      fire_delay: 100
      match_criteria: [{event_type: a.*}]
      fire_criteria:
        - {event_type: a.start, timestamp: first to first + 10s}
        - {event_type: a.error, timestamp: first to first + 60s, number: 0}
      fire_pipeline: out
    """

MIXED = LISTED + """
    - name: idle
      distinguished_by: [server]
      expiration: [last + 20s, first + 50s]
      fire_delay: 7
      match_criteria: [{event_type: a.*}]
      fire_criteria:
        - {event_type: a.end, timestamp: last - 10s to last + 1s}
        - {event_type: a.error, timestamp: last - 3s to last + 3s, number: 0}
      fire_pipeline: out
    - name: plain
      distinguished_by: [server]
      expiration: first + 60s
      fire_delay: 5
      match_criteria: [{event_type: a.*}]
      fire_criteria:
        - event_type: a.start
        - {event_type: a.end, number: 2}
        - {event_type: a.error, number: 0}
      fire_pipeline: out
      expire_pipeline: out
    - name: joined
      distinguished_by: [server, {timestamp: hour}]
      expiration: last + 30s
      match_criteria:
        - {event_type: a.end, timestamp: first - 5s to first + 15s}
        - {event_type: a.start}
        - {event_type: a.other, map_distinguished_by: {server: host}}
      fire_criteria:
        - {event_type: a.end, number: 2}
      fire_pipeline: out
    """


class TestBatches(base.TestCase):
    """How events are cut into batches decides nothing."""

    def test_a_complete_list_may_expire_within_a_batch(self):
        it = self.useFixture(engine.Engine(LISTED, PIPELINES))
        it.add(engine.event('s', 'a.start', 0, server=1))
        it.clock.advance(55)
        it.add(engine.event('e', 'a.error', 5, server=1),
               engine.event('o', 'a.other', 56, server=1))
        old, new = it.instances()
        self.assertEqual((State.READY_TO_EXPIRE, None, ['s', 'e']), (
            old.state, old.fire_timestamp, it.ids_of(old)))
        self.assertEqual((State.ACTIVE, ['o']), (
            new.state, it.ids_of(new)))

    def test_a_fire_time_may_be_taken_back_and_set_within_a_batch(self):
        it = self.useFixture(engine.Engine(MIXED, PIPELINES))
        it.add(engine.event('m1', 'a.end', 0, server=1))
        idle, = it.instances(name='idle')
        self.assertEqual(engine.at(7), idle.fire_timestamp)
        it.clock.advance(30)
        it.add(engine.event('m2', 'a.start', 19, server=1),
               engine.event('m3', 'a.end', 19, server=1))
        idle, = it.instances(name='idle')
        self.assertEqual(engine.at(37), idle.fire_timestamp)

    @hypothesis.settings(deadline=None, max_examples=25)
    @hypothesis.given(
        mode=st.sampled_from(['wall', 'event']),
        steps=st.lists(st.tuples(
            st.lists(st.tuples(
                st.sampled_from(['start', 'end', 'error', 'other']),
                st.integers(0, 1), st.integers(-70, 20)),
                min_size=1, max_size=8),
            st.sampled_from([0, 3, 8, 30, 61]), st.booleans()),
            min_size=1, max_size=4))
    def test_one_by_one_is_as_all_at_once(self, mode, steps):
        options = {'expiry_clock': mode, 'allowed_lateness': 10}
        number = 0
        with engine.Engine(MIXED, PIPELINES, **options) as whole, \
                engine.Engine(MIXED, PIPELINES, **options) as single:
            for events, seconds, sweeps in steps:
                batch = []
                for kind, server, offset in events:
                    number += 1
                    moment = whole.clock.now() + datetime.timedelta(
                        seconds=offset)
                    batch.append(engine.event_module.Event(
                        f'm{number}', f'a.{kind}', moment,
                        {'server': server, 'host': 1 - server}))
                whole.add(*batch)
                for event in batch:
                    single.add(event)
                self.assertEqual(_shape(single), _shape(whole))
                for it in (whole, single):
                    it.clock.advance(seconds)
                    if sweeps:
                        it.scheduler.run_once()


def _shape(it):
    return sorted(
        (one.name, one.key, it.ids_of(one), one.state, one.first_event,
         one.last_event, one.expire_timestamp, one.fire_timestamp or '',
         one.event_count, one.counts)
        for one in it.instances(limit=10 ** 6))


class TestDeadLetters(base.TestCase):
    """What cannot be stored takes nothing along."""

    def test_a_sound_event_of_the_same_id_is_stored(self):
        for url in ('memory://', 'sqlite://'):
            it = self.useFixture(engine.Engine(LISTED, PIPELINES, url))
            report = it.add(
                engine.event('m', 'a.start\0', 0, server=1),
                engine.event('m', 'a.start', 0, server=1),
                engine.event('n', 'a.start', 0, server=2))
            self.assertEqual((3, 2, 1, 2), (
                report.received, report.stored, report.dead_letters,
                report.collected))


class TestLostAnswers(base.TestCase):
    """A commit is done, and the connection ends before it says so."""

    def test_a_claim_is_found_again(self):
        it = self.useFixture(engine.Engine(
            MIXED, PIPELINES, 'sqlite://'))
        it.add(engine.event('e1', 'a.end', 0, server=1))
        it.clock.advance(10)
        it.scheduler.run_once()
        lost = []
        begin = it.storage.begin

        @contextlib.contextmanager
        def lose(write=True):
            with begin(write) as tx:
                yield tx
                claimed = [one for one in tx.list_instances()
                           if one.state is State.FIRING]
            if claimed and not lost:
                lost.extend(claimed)
                raise exceptions.StorageBusy('the connection was lost')

        it.storage.begin = lose
        self.assertEqual([True], it.work())
        self.assertEqual([1], [one.attempts for one in lost])
        self.assertEqual(
            ['e1'], [event.message_id for event in it.published()])
        self.assertEqual([], it.instances(name='idle'))


REPLAYED = """
    - name: waits
      distinguished_by: [server]
      expiration: first + 100s
      match_criteria: [{event_type: a.*}]
      fire_criteria: [{event_type: a.end}]
      fire_pipeline: out
    - name: fires
      distinguished_by: [server]
      expiration: first + 1h
      fire_delay: 10
      match_criteria: [{event_type: b.*}]
      fire_criteria: [{event_type: b.end}]
      fire_pipeline: out
    """


class _AsItIs:
    """A converter for what are events already."""

    def to_event(self, event):
        return event


class TestReplay(base.TestCase):
    """What waits for the events' time holds nothing else up."""

    def replay(self, step, *events):
        it = self.useFixture(engine.Engine(
            REPLAYED, PIPELINES, expiry_clock='event', allowed_lateness=60))
        it.manager.converter = _AsItIs()
        ended = collections.Counter()
        it.worker._ended = lambda kind, instance: ended.update(
            [(instance.name, kind, instance.event_count)])
        one = replay.Replay(
            it.storage, it.clock, it.manager,
            scheduler.Scheduler.from_conf(
                it.conf, it.storage, it.worker, it.catalog),
            ended, step=step)
        one.feed(events)
        one.run_out()
        self.assertEqual([], it.instances())
        return ended

    def test_each_fires_before_the_next_begins(self):
        fires = (engine.event('b1', 'b.end', 120, server=1),
                 engine.event('b2', 'b.end', 150, server=1))
        self.assertEqual(
            {('fires', 'fire', 1): 2}, self.replay(1, *fires))
        waits = engine.event('a1', 'a.start', 0, server=2)
        self.assertEqual(
            {('fires', 'fire', 1): 2, ('waits', 'expire', 1): 1},
            self.replay(1, waits, *fires))

    def test_it_ends_without_a_step(self):
        self.assertEqual({('waits', 'expire', 1): 1}, self.replay(
            0, engine.event('a1', 'a.start', 0, server=2)))
