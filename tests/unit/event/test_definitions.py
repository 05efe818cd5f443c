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

"""Event definitions: the file, and its mistakes."""

import os

import fixtures

from tests import base
from triggerlib.event import definitions
from triggerlib import exceptions


class DefinitionsTestCase(base.TestCase):

    def load(self, text):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path,
                            'events.yaml')
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write(text)
        return definitions.EventDefinitions.load(path)


class TestLoad(DefinitionsTestCase):

    def test_example(self):
        loaded = definitions.EventDefinitions.load(
            base.ROOT / 'tests' / 'data' / 'event_definitions.yaml')
        self.assertEqual(2, len(loaded.definitions))
        traits = loaded.definitions[1].traits
        self.assertEqual(
            {'user_id', 'instance_id', 'host', 'service_name',
             'instance_type_id', 'os_architecture', 'launched_at',
             'deleted_at', 'audit_period_beginning', 'audit_period_ending'},
            set(traits))
        self.assertEqual('int', traits['instance_type_id'].type)
        self.assertEqual('text', traits['user_id'].type)
        self.assertEqual(
            ('payload', 'image_meta', 'org.openstack__1__architecture'),
            traits['os_architecture'].paths[0].keys)

    def test_last_one_counts(self):
        loaded = self.load('''
- {event_type: compute.*, traits: {a: {fields: a}}}
- {event_type: compute.instance.*, traits: {b: {fields: b}}}
- {event_type: [image.*, "!image.delete"], traits: {c: {fields: c}}}
''')
        for event_type, names in (
                ('compute.instance.x', {'b'}), ('compute.x', {'a'}),
                ('image.create', {'c'})):
            self.assertEqual(names, set(loaded.find(event_type).traits))
        self.assertIsNone(loaded.find('image.delete'))
        self.assertIsNone(loaded.find('volume.create'))

    def test_ceilometers_short_forms(self):
        traits = self.load('''
- event_type: x
  traits:
    one: payload.one
    two: [payload.two, payload.zwei]
    three: 3
    four: {type: float, fields: 4}
''').find('x').traits
        self.assertEqual(['payload.one'],
                         [one.text for one in traits['one'].paths])
        self.assertEqual(['payload.two', 'payload.zwei'],
                         [one.text for one in traits['two'].paths])
        self.assertEqual(3, traits['three'].constant)
        self.assertEqual(4, traits['four'].constant)

    def test_empty(self):
        for text in ('', '---\n', '[]'):
            self.assertEqual((), self.load(text).definitions)
        self.assertEqual({}, self.load(
            '[{event_type: x, traits: {}}]').find('x').traits)

    def test_equal_paths_are_read_once(self):
        loaded = self.load('''
- {event_type: x, traits: {a: {fields: payload.a}}}
- {event_type: y, traits: {b: {fields: payload.a}}}
''')
        self.assertIs(loaded.find('x').traits['a'].paths[0],
                      loaded.find('y').traits['b'].paths[0])


class TestMistakes(DefinitionsTestCase):

    def problems(self, text):
        return self.assertRaises(
            exceptions.DefinitionError, self.load, text).problems

    def assertMistake(self, text, line, key, *words):
        problem, = self.problems(text)
        self.assertEqual(line, problem.line, problem)
        self.assertEqual(key, problem.key, problem)
        for word in words:
            self.assertIn(word, problem.message)

    def test_all_at_once(self):
        problems = self.problems('''
- event_type: compute.instance.*
  traits:
    host:
      fields: payload.
      type: txt
    state:
      field: payload.state
- event_types: image.*
  traits: {}
- traits: []
''')
        self.assertEqual([
            (6, 'compute.instance.*', 'traits.host.type'),
            (5, 'compute.instance.*', 'traits.host.fields'),
            (8, 'compute.instance.*', 'traits.state.field'),
            (7, 'compute.instance.*', 'traits.state'),
            (9, '#2', None), (9, '#2', 'event_types'),
            (11, '#3', None), (11, '#3', 'traits')],
            [(one.line, one.definition, one.key) for one in problems])
        self.assertTrue(all(one.file.endswith('events.yaml')
                            for one in problems))
        for number, words in enumerate((
                "mean 'text'", 'ends too early', "mean 'fields'",
                'fields is missing', 'event_type is missing',
                "mean 'event_type'", 'event_type is missing', 'mapping')):
            self.assertIn(words, problems[number].message)

    def test_file(self):
        self.assertMistake('a: b', 1, None, 'list of mappings')
        self.assertMistake('- x', 1, None, 'mapping')
        self.assertMistake('- {event_type: x, traits', 2, None, 'YAML')
        self.assertMistake(
            '- event_type: x\n  traits: {}\n  traits: {}\n', 3, 'traits',
            'twice')

    def test_event_type(self):
        for text in ('5', '[]', '[a, 5]', '""', '"!"', '{a: b}', 'null'):
            self.assertMistake(
                f'- traits: {{}}\n  event_type: {text}', 2, 'event_type')

    def test_traits(self):
        self.assertMistake('- event_type: x', 1, None, 'traits is missing')
        for text in ('', '[]', 'x'):
            self.assertMistake(f'- event_type: x\n  traits: {text}', 2,
                               'traits', 'mapping')
        self.assertMistake(
            '- event_type: x\n  traits:\n    5: {fields: a}', 3,
            'traits[5]', 'name of a trait')

    def trait(self, text):
        return f'- event_type: x\n  traits:\n    t: {text}'

    def test_fields(self):
        self.assertMistake(self.trait('{fields: []}'), 3, 'traits.t.fields',
                           'empty')
        self.assertMistake(
            self.trait('{fields: [payload.a, {a: b}]}'), 3,
            'traits.t.fields[1]')
        self.assertMistake(self.trait('{fields: "a..[b"}'), 3,
                           'traits.t.fields', "'a..[b'")
        self.assertMistake(self.trait('null'), 3, 'traits.t')
        self.assertMistake(self.trait('{fields: true}'), 3,
                           'traits.t.fields')
        self.assertMistake(self.trait('{fields: 5, type: datetime}'), 3,
                           'traits.t.fields', 'datetime')
        self.assertMistake(self.trait('{fields: 5, plugin: split}'), 3,
                           'traits.t.fields', 'plugin')

    def test_type(self):
        for text in ('string', 'null', '[int]'):
            self.assertMistake(
                self.trait(f'{{fields: a, type: {text}}}'), 3,
                'traits.t.type')

    def test_plugin(self):
        self.assertMistake(self.trait('{fields: a, plugin: splitt}'), 3,
                           'traits.t.plugin', 'splitt', 'bitfield')
        self.assertMistake(
            self.trait('{fields: a, plugin: {parameters: {}}}'), 3,
            'traits.t.plugin', 'name')
        self.assertMistake(self.trait('{fields: a, plugin: 5}'), 3,
                           'traits.t.plugin')
        self.assertMistake(
            self.trait('{fields: a, plugin: {name: split, params: {}}}'), 3,
            'traits.t.plugin.params', 'parameters')

    def test_plugin_parameters(self):
        text = self.trait('''
      fields: a
      plugin:
        name: split
        parameters: {}
''')
        self.assertMistake(text.format('{segmet: 1}'), 7,
                           'traits.t.plugin.parameters', 'segmet')
        self.assertMistake(text.format('{segment: one}'), 7,
                           'traits.t.plugin.parameters', 'whole number')
        self.assertMistake(text.format('[1]'), 7,
                           'traits.t.plugin.parameters', 'mapping')
        self.assertMistake(text.format('{1: 2}'), 7,
                           'traits.t.plugin.parameters', 'mapping')
