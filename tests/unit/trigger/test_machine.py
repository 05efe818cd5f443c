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

"""Events, time, sweeps, deaths and retries in any order, against a model.

The model is the blueprint in a few lines: what is stored is in one instance
of its key, an instance is ACTIVE until it is complete or too old, and what it
held comes out of one pipeline.
"""

import collections
import contextlib
import datetime

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from triggerlib.publisher import test as test_publisher
from triggerlib.state import State

from tests import engine

LIFE = 60
DELAY = 5

TRIGGERS = f"""
    - name: create
      distinguished_by: [server]
      expiration: first + {LIFE}s
      fire_delay: {DELAY}
      match_criteria: [{{event_type: create.*}}]
      fire_criteria:
        - event_type: create.start
        - event_type: create.end
        - event_type: create.error
          number: 0
      fire_pipeline: fired
      expire_pipeline: expired
    """

PIPELINES = """
    sinks:
      - name: fired
        transformers:
          - {name: map, parameters: {set: {how: fired}}}
        publishers: ['test://$NAME']
      - name: expired
        transformers:
          - {name: map, parameters: {set: {how: expired}}}
        publishers: ['test://$NAME']
    """


class Death(BaseException):
    """The process dies here."""


class Commits:
    """Dies at one of a storage's transactions, before or after its commit.

    :param storage: has its ``begin`` replaced
    """

    def __init__(self, storage):
        self._begin = storage.begin
        self._left = 0
        storage.begin = self.begin

    @contextlib.contextmanager
    def begin(self, write=True):
        with self._begin(write) as tx:
            yield tx
            self._pass()
        self._pass()

    def _pass(self):
        self._left -= 1
        if self._left == 0:
            raise Death

    @contextlib.contextmanager
    def death(self, place):
        """Die at the ``place``-th end of a transaction, 0 for not at all."""
        self._left = place
        try:
            yield
        except Death:
            pass
        finally:
            self._left = 0


class Machine(stateful.RuleBasedStateMachine):
    """The rules; a subclass says on which storage."""

    url = None

    def __init__(self):
        super().__init__()
        self.it = engine.Engine(
            TRIGGERS, PIPELINES, self.url, lease=30, ready_timeout=20,
            retry_delay=1, max_attempts=1000, sqlite_synchronous='OFF')
        self.it.setUp()
        self.commits = Commits(self.it.storage)
        self.stored = {}
        self.repeated = collections.Counter()
        self.number = 0
        self.fate = None
        self.original = test_publisher.TestPublisher.publish
        machine = self

        def publish(publisher, events, context):
            if machine.fate == 'down':
                raise ConnectionError('down')
            if machine.fate == 'dies before':
                raise Death
            machine.original(publisher, events, context)
            if machine.fate == 'dies after':
                raise Death
            if machine.fate == 'is slow':
                # Its lease runs out, and a sweep gives the instance back.
                machine.it.clock.advance(31)
                machine.it.scheduler.run_once()

        test_publisher.TestPublisher.publish = publish

    # What happens

    @stateful.rule(
        kinds=st.lists(st.tuples(
            st.sampled_from(['start', 'end', 'error', 'other']),
            st.integers(0, 2), st.integers(-40, 5)), min_size=1, max_size=5),
        twice=st.booleans(), place=st.sampled_from([0, 0, 1, 2, 3, 4]))
    def events_come(self, kinds, twice, place):
        events = []
        for kind, server, seconds in kinds:
            self.number += 1
            event = engine.event(
                f'm{self.number}', f'create.{kind}', 0, server=server)
            moment = self.it.clock.now() + datetime.timedelta(
                seconds=seconds)
            events.append(engine.event_module.Event(
                event.message_id, event.event_type, moment, event.traits))
        report = None
        with self.commits.death(place):
            report = self.it.add(*events, *(events if twice else ()))
        if report is None:
            # Whoever handed them in does not know, and comes again.
            report = self.it.add(*events)
            assert report.stored in (0, len(events))
            assert report.stored + report.duplicates == len(events)
        else:
            assert report.stored == len(events)
            assert report.duplicates == (len(events) if twice else 0)
        self.stored.update({event.message_id: event for event in events})

    @stateful.rule(data=st.data())
    def an_event_comes_again(self, data):
        if self.stored:
            event = self.stored[data.draw(st.sampled_from(
                sorted(self.stored)))]
            report = self.it.add(event)
            assert (report.stored, report.duplicates) == (0, 1)

    @stateful.rule(seconds=st.sampled_from([1, 5, 19, 31, 61]))
    def time_passes(self, seconds):
        self.it.clock.advance(seconds)

    @stateful.rule(seconds=st.sampled_from([1, 20, 90]))
    def the_clock_is_put_back(self, seconds):
        self.it.clock._now -= datetime.timedelta(seconds=seconds)

    @stateful.rule(place=st.sampled_from([0, 0, 1, 2]))
    def the_scheduler_sweeps(self, place):
        with self.commits.death(place):
            self.it.scheduler.run_once()

    @stateful.rule()
    def casts_are_lost(self):
        self.it.casts.clear()

    @stateful.rule(fate=st.sampled_from(
        [None, None, 'down', 'dies before', 'dies after', 'is slow']),
        place=st.sampled_from([0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))
    def workers_take_casts(self, fate, place):
        casts, self.it.casts[:] = list(self.it.casts), []
        for kind, instance_id in casts:
            self.fate = fate
            before = collections.Counter(
                event.message_id for event in self.it.published())
            with self.commits.death(place):
                getattr(self.it.worker, f'{kind}_trigger')(instance_id)
            self.fate = None
            if self.it.storage.run(
                    lambda tx: tx.get_instances([instance_id]), write=False):
                # What was published and not noted is published again.
                self.repeated.update(collections.Counter(
                    event.message_id for event in self.it.published())
                    - before)

    @stateful.rule()
    def casts_come_twice(self):
        self.it.casts.extend(list(self.it.casts))

    # What always holds

    @stateful.invariant()
    def every_event_is_in_one_place(self):
        places = collections.Counter()
        held = set()
        for instance in self.it.instances(limit=10 ** 6):
            ids = self.it.ids_of(instance)
            held.update(ids)
            places.update(ids)
        out = collections.Counter(
            event.message_id for event in self.it.published())
        # A worker that died after publishing leaves the instance, which is
        # published again: at least once, under the same ids.
        for message_id, count in out.items():
            if message_id not in held:
                places[message_id] += 1
            assert count <= 1 + self.repeated[message_id], message_id
        assert places == dict.fromkeys(self.stored, 1)

    @stateful.invariant()
    def active_instances_are_what_their_lists_say(self):
        keys = []
        for instance in self.it.instances(state=State.ACTIVE,
                                          limit=10 ** 6):
            keys.append(instance.key)
            events = [self.stored[one] for one in self.it.ids_of(instance)]
            assert events
            assert len(events) == instance.event_count
            moments = [event.timestamp for event in events]
            assert instance.first_event == min(moments)
            assert instance.last_event == max(moments)
            assert instance.expire_timestamp == min(
                moments) + datetime.timedelta(seconds=LIFE)
            types = collections.Counter(
                event.event_type for event in events)
            assert instance.counts == [
                types['create.start'], types['create.end'],
                types['create.error']]
            complete = bool(types['create.start'] and types['create.end']
                            and not types['create.error'])
            assert complete == (instance.fire_timestamp is not None)
            assert len({event.traits['server'] for event in events}) == 1
        assert len(keys) == len(set(keys))

    def teardown(self):
        try:
            self.run_out()
        finally:
            test_publisher.TestPublisher.publish = self.original
            self.it.cleanUp()

    def run_out(self):
        for _ in range(1000):
            if not self.it.instances():
                break
            self.it.clock.advance(20)
            self.it.scheduler.run_once()
            self.it.work()
        assert self.it.instances() == []
        self.every_event_is_in_one_place()
        ways = collections.defaultdict(set)
        for event in self.it.published():
            ways[event.message_id].add(event.traits['how'])
        assert set(ways) == set(self.stored)
        assert all(len(how) == 1 for how in ways.values())


class MemoryMachine(Machine):
    """On the in-memory driver."""

    url = 'memory://'


class SQLiteMachine(Machine):
    """On SQLite."""

    url = 'sqlite://'


TestMemory = MemoryMachine.TestCase
TestMemory.settings = hypothesis.settings(
    deadline=None, max_examples=60, stateful_step_count=40)
TestSQLite = SQLiteMachine.TestCase
TestSQLite.settings = hypothesis.settings(
    deadline=None, max_examples=8, stateful_step_count=30)
