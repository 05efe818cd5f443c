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

"""Event types: names, globs, exclusions."""

import fnmatch

import hypothesis
from hypothesis import strategies

from tests import base
from triggerlib.event import event_type

PIECES = strategies.sampled_from([
    'compute', 'instance', 'create', '.', '.', '*', '?', '[a-c]', '[!a]',
    '[', 'a', 'b', '\n', '-', '\\'])
PATTERNS = strategies.lists(
    strategies.builds(lambda sign, parts: sign + ''.join(parts),
                      strategies.sampled_from(['', '', '!']),
                      strategies.lists(PIECES, min_size=1, max_size=6)),
    min_size=1, max_size=5)
TYPES = strategies.lists(
    strategies.sampled_from([
        'compute', 'instance', 'create', '.', 'a', 'b', 'd', '\n', '[', '-',
        '\\']),
    max_size=6).map(''.join)


class TestEventTypes(base.TestCase):

    def assertMatches(self, patterns, matching, others):
        types = event_type.EventTypes(patterns)
        self.assertEqual(matching + others, [
            one for one in matching if types.match(one)] + [
            one for one in others if not types.match(one)])

    def test_name(self):
        self.assertMatches(
            'compute.instance.exists', ['compute.instance.exists'],
            ['compute.instance.exist', 'compute.instance.exists.x',
             'Compute.instance.exists', ''])

    def test_list(self):
        self.assertMatches(['a.b', 'c.*'], ['a.b', 'c.d', 'c.'], ['a.c', 'c'])

    def test_glob(self):
        self.assertMatches(
            'compute.instance.*',
            ['compute.instance.create.end', 'compute.instance.'],
            ['compute.instances', 'xcompute.instance.a',
             'COMPUTE.instance.a'])
        self.assertMatches('a?[0-9]', ['ab1'], ['a1', 'abc', 'ab12'])

    def test_exclusions(self):
        self.assertMatches(
            ['compute.*', '!compute.instance.*', '!compute.x'],
            ['compute.y'], ['compute.x', 'compute.instance.y', 'volume'])

    def test_order_does_not_count(self):
        self.assertMatches(['!a.b', 'a.*'], ['a.c'], ['a.b'])

    def test_exclusions_only(self):
        self.assertMatches(
            ['!compute.*', '!volume.exists'],
            ['volume.create', ''], ['compute.x', 'volume.exists'])

    def test_exact(self):
        for patterns, exact in (
                ('a.b', {'a.b'}), (['a', 'b'], {'a', 'b'}),
                (['a', '!b'], {'a'}), (['a', 'b', '!b*'], {'a'}),
                (['a', '!*'], set()),
                ('a.*', None), (['a', 'b?'], None), ('!a', None)):
            self.assertEqual(
                exact, event_type.EventTypes(patterns).exact, patterns)

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(patterns=PATTERNS, types=strategies.lists(TYPES))
    def test_as_fnmatch_has_it(self, patterns, types):
        wanted = [one for one in patterns if not one.startswith('!')]
        excluded = [one[1:] for one in patterns if one.startswith('!')]
        compiled = event_type.EventTypes(patterns)
        for one in types + wanted + excluded:
            expected = (not wanted or any(
                fnmatch.fnmatchcase(one, each) for each in wanted)
            ) and not any(fnmatch.fnmatchcase(one, each)
                          for each in excluded)
            self.assertEqual(expected, compiled.match(one), (patterns, one))
            if compiled.exact is not None:
                self.assertEqual(expected, one in compiled.exact)
