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

"""``map``"""

import datetime

from tests import base
from tests.unit.pipeline import definition
from tests.unit.pipeline import stage
from triggerlib import exceptions
from triggerlib import pipeline
from triggerlib.pipeline import map as map_module

CONTEXT = pipeline.Context('t', 'fire', {}, 1, 1, 's.0.map', stage.IDENTITY)


class TestMap(base.TestCase):
    """What becomes of events."""

    def mapped(self, parameters, *events):
        one = definition.transformer(map_module.Map, parameters)
        return one.transform(list(events), CONTEXT)

    def test_traits(self):
        traits = {'a': 1, 'b': 'x', 'user.id': 'u', 'user.name': 'n'}
        for parameters, expected in (
                ('{}', traits),
                ('{drop: [a, "user.*"]}', {'b': 'x'}),
                ('{drop: b}', {'a': 1, 'user.id': 'u', 'user.name': 'n'}),
                ('{keep: ["user.*"]}', {'user.id': 'u', 'user.name': 'n'}),
                ('{keep: ["user.*"], drop: [user.id]}', {'user.name': 'n'}),
                ('{keep: []}', {}),
                ('{keep: [a], rename: {a: c}}', {'c': 1}),
                ('{keep: [a, b], rename: {a: b}}', {'b': 1}),
                ('{keep: [a, b], rename: {b: a}}', {'a': 'x'}),
                ('{keep: [a, b], rename: {a: b, b: a}}', {'a': 'x', 'b': 1}),
                ('{keep: [b], rename: {a: b}}', {'b': 'x'}),
                ('{keep: [a], set: {c: 5, d: t, e: 1.5}}',
                 {'a': 1, 'c': 5, 'd': 't', 'e': 1.5}),
                ('{keep: [a], set: {a: 2}}', {'a': 2}),
                ('{keep: [], set: {m: 2026-03-01 12:00:00}}',
                 {'m': datetime.datetime(2026, 3, 1, 12,
                                         tzinfo=stage.UTC)})):
            one, = self.mapped(parameters, stage.event(1, 'x', **traits))
            self.assertEqual(expected, one.traits, parameters)
            self.assertEqual(('m1', 'x'), (one.message_id, one.event_type))

    def test_the_event_that_came_in_is_not_changed(self):
        event = stage.event(1, 'x', a=1)
        self.mapped('{drop: a, set: {b: 1}}', event)
        self.assertEqual({'a': 1}, event.traits)

    def test_another_type_is_another_event(self):
        first, second, third = self.mapped(
            '{event_type: y}', stage.event(1, 'x', a=1), stage.event(2, 'y'),
            stage.event(3, 'x'))
        self.assertEqual(
            [CONTEXT.derive(0), 'm2', CONTEXT.derive(2)],
            [first.message_id, second.message_id, third.message_id])
        self.assertEqual({'y'}, {each.event_type
                                 for each in (first, second, third)})
        self.assertEqual((stage.event(1).timestamp, {'a': 1}),
                         (first.timestamp, first.traits))

    def test_what_is_refused(self):
        for parameters, part in (
                ('{drop: 5}', 'drop is a list'), ('{keep: [5]}', 'keep is'),
                ('{rename: [a]}', 'rename is a mapping'),
                ('{rename: {a: 5}}', 'rename is a mapping'),
                ('{rename: {a: ""}}', 'rename is a mapping'),
                ('{rename: {5: a}}', 'rename is a mapping'),
                ('{rename: {a: c, b: c}}', 'the same name'),
                ('{set: {a: [1]}}', "'a' is none of them"),
                ('{set: {a: null}}', "'a' is none of them"),
                ('{set: {a: true}}', "'a' is none of them"),
                ('{set: {a: .nan}}', "'a' is not a finite number"),
                ('{set: {a: -.inf}}', "'a' is not a finite number"),
                ('{event_type: 5}', 'event_type is a text'),
                (f'{{event_type: {"y" * 256}}}', '1 to 255 characters'),
                ('{renmae: {a: b}}', "did you mean 'rename'"),
                ('{5: 6}', 'no parameter 5')):
            error = self.assertRaises(
                exceptions.DefinitionError, definition.transformer,
                map_module.Map, parameters)
            self.assertIn(part, str(error), parameters)
