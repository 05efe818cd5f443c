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

"""``filter``"""

from tests import base
from tests.unit.pipeline import definition
from tests.unit.pipeline import stage
from triggerlib import exceptions
from triggerlib.pipeline import filter as filter_module

EVENTS = [stage.event(0, 'a.start', size=1), stage.event(1, 'a.end', size=2),
          stage.event(2, 'b.start', size=3), stage.event(3, 'b.end')]


class TestFilter(base.TestCase):
    """Which events are kept."""

    def kept(self, parameters, events=EVENTS):
        one = definition.transformer(filter_module.Filter, parameters)
        return [each.message_id for each in one.transform(events, None)]

    def test_what_is_kept(self):
        for parameters, expected in (
                ('{event_type: "a.*"}', ['m0', 'm1']),
                ('{event_type: "a.*", exclude: true}', ['m2', 'm3']),
                ('{event_type: "a.*", traits: {size: "> 1"}}', ['m1']),
                ('{criteria: [{event_type: a.end}, {traits: {size: 3}}]}',
                 ['m1', 'm2']),
                ('{criteria: [{event_type: a.end}, {traits: {size: 3}}], '
                 'exclude: true}', ['m0', 'm3']),
                ('{timestamp: "first to first + 2s"}', ['m0', 'm1']),
                ('{timestamp: last}', ['m3']),
                ('{event_type: nothing}', [])):
            self.assertEqual(expected, self.kept(parameters), parameters)

    def test_first_and_last_go_by_time(self):
        self.assertEqual(
            ['m1', 'm0'], self.kept('{timestamp: "first to first + 2s"}',
                                    EVENTS[::-1]))

    def test_without_events(self):
        self.assertEqual([], self.kept('{timestamp: first}', []))

    def test_what_is_refused(self):
        for parameters, key, part in (
                ('{}', None, 'needs criteria'),
                ('{exclude: true}', None, 'needs criteria'),
                ('{criteria: []}', 'criteria', 'list of criteria'),
                ('{criteria: {event_type: a}}', 'criteria',
                 'list of criteria'),
                ('{criteria: [{event_type: a}], event_type: b}',
                 'event_type', 'beside criteria'),
                ('{criteria: [{event_type: a}, {evnt_type: b}]}',
                 'criteria[1].evnt_type', 'event_type'),
                ('{event_type: a, exclude: perhaps}', 'exclude',
                 'true or false'),
                ('{event_type: a, number: 2}', 'number', 'no key'),
                ('{timestamp: "first +"}', 'timestamp', 'first +')):
            error = self.assertRaises(
                exceptions.DefinitionError, definition.transformer,
                filter_module.Filter, parameters)
            one, = error.problems
            self.assertEqual(key, one.key, parameters)
            self.assertIn(part, one.message)
