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

"""The base class of transformers, as a third party uses it."""

from tests import base
from tests.unit.pipeline import definition
from tests.unit.pipeline import stage
from triggerlib import exceptions
from triggerlib import pipeline


class Tagging(pipeline.Transformer):
    """One that somebody else wrote."""

    def __init__(self, tag, *, times=1):
        if times < 1:
            raise ValueError('times is 1 or more')
        self.tag = tag
        self.times = times


class Anything(pipeline.Transformer):
    """One that takes any parameters."""

    def __init__(self, **parameters):
        self.parameters = parameters


class TestTransformer(base.TestCase):
    """Transformer.load"""

    def refused(self, cls, parameters):
        error = self.assertRaises(
            exceptions.DefinitionError, definition.transformer, cls,
            parameters)
        return [(one.line, one.key, one.message) for one in error.problems]

    def test_it_is_built_from_its_parameters(self):
        one = definition.transformer(Tagging, '{tag: t, times: 3}')
        self.assertEqual(('t', 3), (one.tag, one.times))
        one = definition.transformer(Anything, '{a: 1, b: [2]}')
        self.assertEqual({'a': 1, 'b': [2]}, one.parameters)

    def test_every_mistake_has_its_place(self):
        self.assertEqual(
            [(2, 'tmes', "there is no parameter 'tmes'; did you mean "
                         "'times'?"),
             (1, None, "the parameter 'tag' is missing")],
            self.refused(Tagging, 'x: 1\ntmes: 2\n')[1:])
        self.assertEqual([(1, None, 'times is 1 or more')],
                         self.refused(Tagging, '{tag: t, times: 0}'))
        (line, _, message), = self.refused(Tagging, '{tag: t, times: x}')
        self.assertIn('not supported', message)
        self.assertEqual(1, line)

    def test_it_has_to_be_written(self):
        self.assertRaises(
            NotImplementedError, pipeline.Transformer().transform, [],
            pipeline.Context('t', 'fire', {}, 1, 1, 's', stage.IDENTITY))
