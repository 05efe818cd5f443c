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

"""expiry_clock = event: an outage changes nothing of what comes out."""

import collections
import datetime
import itertools
import random

import hypothesis
from hypothesis import strategies

from triggerlib import state as state_module

from tests import base
from tests import engine

State = state_module.State

LATENESS = 60
IDLE = 120
#: Longer than anything waits, in seconds.
LONG = 10 * 86400

TRIGGERS = """
    - name: at-once
      distinguished_by: [key]
      expiration: first + 10min
      match_criteria: [{event_type: '*'}]
      fire_criteria: [{event_type: start}, {event_type: end}]
      fire_pipeline: out
      expire_pipeline: out
    - name: later
      distinguished_by: [key]
      expiration: last + 5min
      fire_delay: 90
      match_criteria: [{event_type: '*'}]
      fire_criteria:
        - {event_type: start}
        - {event_type: end}
        - {event_type: other, number: 0}
      fire_pipeline: out
      expire_pipeline: out
    - name: by-list
      distinguished_by: [key]
      expiration: [last + 5min, first + 20min]
      match_criteria: [{event_type: '*'}]
      fire_criteria:
        - event_type: '*'
          traits: {timestamp: {datetime: first + 2min to first + 1h}}
      fire_pipeline: out
      expire_pipeline: out
    - name: window
      distinguished_by: [key, {timestamp: hour}]
      expiration: first + 1h @ 0m 0s + 2min
      match_criteria: [{event_type: '*'}]
      fire_criteria: []
      expire_pipeline: out
    """

PIPELINES = """
    sinks:
      - name: out
        transformers:
          - name: aggregate
            parameters:
              event_type: test.out
              traits:
                key: {first: key}
                events: count
                begin: {first: number}
                end: {last: number}
                sum: {sum: number}
        publishers: ['test://$NAME']
    """


class Case(base.TestCase):
    """Builds engines whose time goes by the events."""

    def engine(self, triggers=TRIGGERS, **overrides):
        return self.useFixture(engine.Engine(triggers, PIPELINES, **{
            'expiry_clock': 'event', 'allowed_lateness': LATENESS,
            'idle_timeout': IDLE, **overrides}))

    def outcome(self, it):
        """Let everything come to its end, and count what was published."""
        for _ in range(5):
            it.clock.advance(LONG)
            it.settle()
        self.assertEqual([], it.instances())
        return collections.Counter(
            (event.message_id, *sorted(event.traits.items()))
            for event in it.published())


class TestTime(Case):
    """What time it is."""

    def test_a_complete_instance_takes_no_more(self):
        it = self.engine()
        it.add(*(engine.event(kind, kind, number, key='k', number=number)
                 for number, kind in enumerate(('start', 'end', 'other'))))
        found = {(one.name, one.state): one.event_count
                 for one in it.instances()}
        self.assertEqual(2, found['at-once', State.READY_TO_FIRE])
        self.assertEqual(1, found['at-once', State.ACTIVE])

    def test_the_delay_goes_by_the_events(self):
        it = self.engine(TRIGGERS.replace('fire_delay: 90',
                                          'fire_delay: 600'))
        it.clock.advance(LONG)

        def fired():
            it.settle()
            return [one for one in it.instances()
                    if one.name == 'later'] == []

        it.add(engine.event('a', 'start', 0, key='k', number=0),
               engine.event('b', 'end', 10, key='k', number=1))
        self.assertFalse(fired())
        it.add(engine.event('c', 'x', 609, number=2))
        self.assertFalse(fired())
        it.add(engine.event('d', 'x', 610, number=3))
        self.assertTrue(fired())

    def test_a_host_that_is_ahead_does_not_end_everything(self):
        it = self.engine()
        it.clock.advance(100)
        it.add(engine.event('a', 'start', 0, key='k', number=0),
               engine.event('wrong', 'x', LONG, number=1))
        it.clock.advance(IDLE - 1)
        it.settle()
        self.assertEqual({State.ACTIVE},
                         {one.state for one in it.instances()})

    def test_sources_do_not_wait(self):
        it = self.useFixture(engine.Engine('[]', """
            sources:
              - {name: all, events: ['*'], sinks: [out]}
            sinks:
              - {name: out, publishers: ['test://$NAME']}
            """, expiry_clock='event'))
        it.clock.advance(LONG)
        it.add(engine.event('a', 'x', 5))
        it.settle()
        self.assertEqual(1, len(it.published()))


class TestOutage(Case):
    """The same events in the same order, as they come and all at once."""

    arrivals = strategies.lists(strategies.tuples(
        strategies.sampled_from('ab'),
        strategies.sampled_from(('start', 'end', 'other', 'any')),
        strategies.one_of(strategies.integers(0, 90),
                          strategies.integers(0, 1500)),
        strategies.integers(0, LATENESS)), min_size=1, max_size=20)

    def as_they_come(self, events):
        """No outage: a scheduler that hardly sleeps, and no batches."""
        it = self.engine()
        for arrival, event in events:
            # Whoever sweeps more often than this sees nothing in between.
            while it.clock.now() < arrival:
                it.clock.advance_to(min(
                    arrival - datetime.timedelta(microseconds=1)
                    if it.clock.now() < arrival - datetime.timedelta(
                        microseconds=1) else arrival,
                    it.clock.now() + datetime.timedelta(seconds=15)))
                if it.clock.now() < arrival:
                    it.settle()
            it.add(event)
            it.settle()
        return self.outcome(it)

    def after_an_outage(self, events, dice):
        """Hours later, in batches, swept now and then."""
        it = self.engine()
        it.clock.advance(LONG)
        backlog = [event for _, event in events]
        while backlog:
            size = dice.randint(1, len(backlog))
            it.add(*backlog[:size])
            backlog = backlog[size:]
            if dice.random() < 0.5:
                it.settle()
            it.clock.advance(dice.choice([0, 1, IDLE - 1]))
        return self.outcome(it)

    @hypothesis.settings(deadline=None, max_examples=60)
    @hypothesis.given(arrivals, strategies.integers(0, 2 ** 32))
    def test_nothing_changes(self, arrivals, seed):
        events, moment = [], 0
        for number, (key, kind, gap, late) in enumerate(arrivals):
            moment += gap
            events.append((engine.at(moment + late), engine.event(
                f'm{number}', kind, moment, key=key, number=number)))
        events.sort(key=lambda one: one[0])
        expected = self.as_they_come(events)
        dice = random.Random(seed)
        for _ in range(3):
            self.assertEqual(expected, self.after_an_outage(events, dice))
        self.assertEqual(expected, self.at_once(events))

    def at_once(self, events):
        """In one transaction."""
        it = self.engine()
        it.clock.advance(LONG)
        it.add(*(event for _, event in events))
        return self.outcome(it)

    def test_several_collectors(self):
        # Each takes every other batch, and the other's come in between.
        events = [
            engine.event(f'{kind}{number}', kind, number * 40 + offset,
                         key=f'k{number}', number=number)
            for number in range(100)
            for offset, kind in ((0, 'start'), (30, 'end'))]
        one = self.engine()
        one.clock.advance(LONG)
        for event in events:
            one.add(event)
            one.settle()
        expected = self.outcome(one)
        first = self.engine()
        second = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES, shared=first, expiry_clock='event',
            allowed_lateness=LATENESS, idle_timeout=IDLE))
        first.clock.advance(LONG)
        collectors = itertools.cycle((first, second))
        for batch in range(0, len(events), 8):
            collector = next(collectors)
            collector.add(*events[batch:batch + 8])
            collector.settle()
        self.assertEqual(expected, self.outcome(first))
