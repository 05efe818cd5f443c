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

"""``aggregate``"""

import hypothesis
from hypothesis import strategies

from tests import base
from tests.unit.pipeline import definition
from tests.unit.pipeline import stage
from triggerlib import exceptions
from triggerlib import pipeline
from triggerlib.pipeline import aggregate

CONTEXT = pipeline.Context('t', 'fire', {'i': 'id-1'}, 1, 1, 's.0.aggregate',
                           stage.IDENTITY)

EVERYTHING = """
    event_type: summary
    group_by: [host]
    traits:
      all: count
      ends: {count: {event_type: b}}
      sum: {sum: size}
      sum_of_ends: {sum: size, where: {event_type: b}}
      mean: {mean: size}
      min: {min: size}
      max: {max: size, where: {event_type: a}}
      first: {first: size}
      last: {last: size, where: {event_type: b}}
      elapsed: {elapsed: {from: {event_type: a}, to: {event_type: b}}}
      same: {elapsed: {from: {event_type: a}, to: {event_type: a}}}
      constant: {value: 5}
      key: {key: i}
      no_key: {key: j}
    """


def naive(events):
    """Return the traits of EVERYTHING, each worked out by itself."""
    def values(of=None):
        return [each.traits['size'] for each in events
                if 'size' in each.traits and of in (None, each.event_type)]

    def elapsed(begin, end):
        for index, one in enumerate(events):
            if one.event_type == begin:
                for other in events[index + 1:]:
                    if other.event_type == end:
                        return (other.timestamp
                                - one.timestamp).total_seconds()
                return None
        return None

    traits = {
        'host': events[0].traits.get('host'),
        'all': len(events),
        'ends': sum(each.event_type == 'b' for each in events),
        'sum': sum(values()) if values() else None,
        'sum_of_ends': sum(values('b')) if values('b') else None,
        'mean': sum(values()) / len(values()) if values() else None,
        'min': min(values(), default=None),
        'max': max(values('a'), default=None),
        'first': values()[0] if values() else None,
        'last': values('b')[-1] if values('b') else None,
        'elapsed': elapsed('a', 'b'),
        'same': elapsed('a', 'a'),
        'constant': 5,
        'key': 'id-1',
    }
    return {name: value for name, value in traits.items()
            if value is not None}


@strategies.composite
def event_lists(draw):
    """Lists of events in order of time, some at the same moment."""
    moments = sorted(draw(strategies.lists(
        strategies.integers(0, 50), max_size=30)))
    return [
        stage.event(
            moment, draw(strategies.sampled_from('abc')),
            **draw(strategies.fixed_dictionaries({}, optional={
                'size': strategies.integers(-10 ** 6, 10 ** 6),
                'host': strategies.sampled_from(['h1', 'h2'])})))
        for moment in moments]


class TestAggregate(base.TestCase):
    """What summaries say."""

    def summaries(self, parameters, events):
        one = definition.transformer(aggregate.Aggregate, parameters)
        return one.transform(events, CONTEXT)

    @hypothesis.settings(deadline=None, max_examples=150)
    @hypothesis.given(event_lists())
    def test_it_is_what_one_would_work_out_by_hand(self, events):
        groups = {}
        for each in events:
            groups.setdefault(each.traits.get('host'), []).append(each)
        expected = [
            (CONTEXT.derive(position), 'summary', group[-1].timestamp,
             naive(group))
            for position, group in enumerate(groups.values())]
        self.assertEqual(expected, [
            (each.message_id, each.event_type, each.timestamp, each.traits)
            for each in self.summaries(EVERYTHING, events)])

    def test_one_summary(self):
        events = [stage.event(1, size=1), stage.event(2, size=2)]
        one, = self.summaries('{event_type: s}', events)
        self.assertEqual((CONTEXT.derive(0), 's', events[1].timestamp, {}),
                         (one.message_id, one.event_type, one.timestamp,
                          one.traits))
        one, = self.summaries('{event_type: s, timestamp: first}', events)
        self.assertEqual(events[0].timestamp, one.timestamp)

    def test_without_events_there_is_none(self):
        for keep in ('true', 'false'):
            self.assertEqual([], self.summaries(
                f'{{event_type: s, keep_events: {keep}, '
                f'traits: {{n: count}}}}', []))

    def test_events_can_be_kept(self):
        events = [stage.event(1), stage.event(2)]
        given = self.summaries('{event_type: s, keep_events: true}', events)
        self.assertEqual(events, given[:2])
        self.assertEqual(['s'], [each.event_type for each in given[2:]])

    def test_a_call_leaves_nothing_for_the_next(self):
        one = definition.transformer(aggregate.Aggregate, EVERYTHING)
        first = one.transform([stage.event(1, 'a', size=4)], CONTEXT)
        one.transform([stage.event(2, 'b', size=9)], CONTEXT)
        self.assertEqual(
            first, one.transform([stage.event(1, 'a', size=4)], CONTEXT))

    def test_values_of_every_kind(self):
        later = stage.event(9).timestamp
        events = [stage.event(1, v='b'), stage.event(2, v='a'),
                  stage.event(3, v=1), stage.event(4, v=2.5),
                  stage.event(5, v=later), stage.event(6)]
        one, = self.summaries("""
            event_type: s
            traits: {sum: {sum: v}, mean: {mean: v}, min: {min: v},
                     max: {max: v}, first: {first: v}, last: {last: v},
                     none: {sum: w}}
            """, events)
        # Numbers alone can be added; what is compared is of one kind, that
        # of the first.
        self.assertEqual(
            {'sum': 3.5, 'mean': 1.75, 'min': 'a', 'max': 'b', 'first': 'b',
             'last': later}, one.traits)

    def test_what_is_beyond_a_float_is_left_out(self):
        one, = self.summaries("""
            event_type: s
            traits: {sum: {sum: v}, mean: {mean: v}, max: {max: v}}
            """, [stage.event(1, v=1.5e308), stage.event(2, v=1.5e308)])
        self.assertEqual({'max': 1.5e308}, one.traits)
        self.assertIn("leaves out the trait 'sum'", self.logger.output)
        self.assertIn("leaves out the trait 'mean'", self.logger.output)

    def test_elapsed_to_an_event_before_is_none(self):
        events = [stage.event(1, 'b'), stage.event(2, 'a')]
        one, = self.summaries("""
            event_type: s
            traits: {t: {elapsed: {from: {event_type: a},
                                   to: {event_type: b}}}}
            """, events)
        self.assertEqual({}, one.traits)

    def test_what_is_refused(self):
        for parameters, key, part in (
                ('{}', None, 'needs an event_type'),
                ('{event_type: 5}', None, 'needs an event_type'),
                (f'{{event_type: {"s" * 256}}}', None, '1 to 255'),
                ('{event_type: s, trait: {}}', 'trait', 'traits'),
                ('{event_type: s, group_by: host}', 'group_by', 'is a list'),
                ('{event_type: s, timestamp: middle}', 'timestamp', 'first'),
                ('{event_type: s, keep_events: 1}', 'keep_events', 'true'),
                ('{event_type: s, traits: [n]}', 'traits', 'mapping'),
                ('{event_type: s, traits: {5: count}}', 'traits[5]', 'text'),
                ('{event_type: s, traits: {n: cuont}}', 'traits.n', 'count'),
                ('{event_type: s, traits: {n: {}}}', 'traits.n', 'one of'),
                ('{event_type: s, traits: {n: {sum: a, min: b}}}',
                 'traits.n', 'one of'),
                ('{event_type: s, traits: {n: {sum: 5}}}', 'traits.n.sum',
                 'name of a trait'),
                ('{event_type: s, traits: {n: {value: [1]}}}',
                 'traits.n.value', 'text or a finite number'),
                ('{event_type: s, traits: {n: {value: .nan}}}',
                 'traits.n.value', 'text or a finite number'),
                ('{event_type: s, traits: {n: {value: .inf}}}',
                 'traits.n.value', 'text or a finite number'),
                ('{event_type: s, group_by: [n], traits: {n: count}}',
                 'traits.n', 'by group_by'),
                ('{event_type: s, traits: {n: {value: 1, where: {}}}}',
                 'traits.n.where', 'does not go with value'),
                ('{event_type: s, traits: {n: {sum: a, where: {x: 1}}}}',
                 'traits.n.where.x', 'no key'),
                ('{event_type: s, traits: {n: {count: 5}}}',
                 'traits.n.count', 'criterion is a mapping'),
                ('{event_type: s, traits: {n: {count: {timestamp: first}}}}',
                 'traits.n.count', 'does not know yet'),
                ('{event_type: s, traits: {n: {elapsed: {from: {}}}}}',
                 'traits.n.elapsed', 'from and to')):
            error = self.assertRaises(
                exceptions.DefinitionError, definition.transformer,
                aggregate.Aggregate, parameters)
            one, = error.problems
            self.assertEqual(key, one.key, parameters)
            self.assertIn(part, one.message, parameters)
