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

"""YAML files: the places of values, and what is no YAML."""

import fixtures

from triggerlib import exceptions
from triggerlib import yamlfile

from tests import base

TEXT = '''\
- name: a
  list: &shared
    - 1
    - {x: 5,
       y: 6}
- name: b
  <<: {list: 7,
       other: 8}
  more: *shared
'''


class TestPlaces(base.TestCase):
    """The line of every value."""

    def setUp(self):
        super().setUp()
        self.document = yamlfile.parse(TEXT, 'f.yaml')

    def test_lines(self):
        for path, line in (((), 1), ((0, 'name'), 1), ((0, 'list'), 2),
                           ((0, 'list', 0), 3), ((0, 'list', 1, 'y'), 5),
                           ((1, 'name'), 6), ((1, 'other'), 8),
                           ((1, 'more', 1, 'x'), 4)):
            self.assertEqual(line, self.document.line(*path), path)

    def test_a_path_that_leads_nowhere_has_the_line_of_its_last_part(self):
        self.assertEqual(1, self.document.line(0, 'nothing', 'more'))
        self.assertEqual(4, self.document.line(0, 'list', 1, 'z'))

    def test_values(self):
        self.assertEqual(6, self.document.at(0, 'list', 1, 'y'))
        self.assertEqual(7, self.document.data[1]['list'])

    def test_problems(self):
        problem = self.document.problem('is bad', 0, 'list', 0,
                                        definition='a')
        self.assertEqual(
            "f.yaml:3, definition 'a', key '[0].list[0]': is bad",
            str(problem))

    def test_duplicate_keys(self):
        document = yamlfile.parse('a: 1\nb: {c: 1, c: 2}\na: 2\n', 'f')
        self.assertEqual([(2, 'c'), (3, 'a')],
                         sorted(document.duplicate_keys()))
        self.assertEqual([], list(self.document.duplicate_keys()))


class TestRefusals(base.TestCase):
    """What cannot be read, and where."""

    def refused(self, text):
        error = self.assertRaises(
            exceptions.DefinitionError, yamlfile.parse, text, 'f.yaml')
        problem, = error.problems
        return problem

    def test_no_yaml(self):
        self.assertEqual(2, self.refused('a: 1\nb: ]\n').line)
        self.assertIn('not YAML', str(self.refused('a: [1')))

    def test_a_date_that_is_none(self):
        problem = self.refused('a: 1\nb: [x, 2026-13-45]\n')
        self.assertEqual(2, problem.line)
        self.assertIn('month', problem.message)

    def test_a_date_that_is_none_behind_a_cycle(self):
        problem = self.refused('a: &a [*a]\nb: 2026-13-45\n')
        self.assertEqual(2, problem.line)

    def test_a_date_that_is_none_behind_a_merge(self):
        problem = self.refused(
            'a: &a {x: 1}\nb:\n  <<: *a\n  c: 2026-13-45\n')
        self.assertEqual(4, problem.line)

    def test_nothing_is_evaluated(self):
        self.assertIn('not YAML', str(self.refused(
            'a: !!python/object/apply:os.getcwd []')))

    def test_nested_too_deep(self):
        most = yamlfile.MAX_DEPTH
        yamlfile.parse('\n' + '[' * most + ']' * most, 'f.yaml')
        for depth in (most + 1, 100_000):
            problem = self.refused('\n' + '[' * depth + ']' * depth)
            self.assertEqual(2, problem.line)
            # libyaml's own limit may be met first.
            self.assertRegex(problem.message, 'deep|depth')
        self.assertIn('deep', self.refused(
            ''.join(' ' * level + 'a:\n' for level in range(most + 1))
        ).message)

    def test_files(self):
        folder = self.useFixture(fixtures.TempDir()).path
        with open(f'{folder}/f.yaml', 'wb') as stream:
            stream.write(b'a: \xff')
        for path in (f'{folder}/f.yaml', f'{folder}/none.yaml', folder):
            error = self.assertRaises(
                exceptions.DefinitionError, yamlfile.read, path)
            self.assertIn(path, str(error))

    def test_an_empty_file(self):
        document = yamlfile.parse('', 'f')
        self.assertIsNone(document.data)
        self.assertIsNone(document.line('a'))
