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

"""Trait values of a type, from what a notification has."""

import datetime
import json

from tests import base
from triggerlib.event import coercion

UTC = datetime.timezone.utc


class TestCoercion(base.TestCase):

    def test_text(self):
        moment = datetime.datetime(2012, 3, 12, 17, tzinfo=UTC)
        for value, wanted in (
                ('', ''), ('a', 'a'), (5, '5'), (2.5, '2.5'),
                (True, 'True'), (moment, '2012-03-12T17:00:00.000000+00:00'),
                ([1, 'a', None], '[1, "a", null]'), ({'a': {}}, '{"a": {}}')):
            text = coercion.to_text(value)
            self.assertEqual(wanted, text)
            self.assertIs(str, type(text))

    def test_text_is_kept_whole(self):
        for text in ('a\0b', '\ud800', 'x' * 100000, ' a ', 'e\u0301'):
            self.assertEqual(text, coercion.to_text(text))

    def test_text_of_a_mapping_can_be_read(self):
        value = {'name': 'büro', 'list': [1, {'a': '\ud800'}]}
        self.assertEqual(value, json.loads(coercion.to_text(value)))

    def test_int(self):
        for value, wanted in (
                (5, 5), ('5', 5), (' -5 ', -5), (2.7, 2), (True, 1),
                (2 ** 63 - 1, 2 ** 63 - 1), (-2 ** 63, -2 ** 63)):
            number = coercion.to_int(value)
            self.assertEqual(wanted, number)
            self.assertIs(int, type(number))

    def test_no_int(self):
        for value in ('n/a', '2.5', '', 2 ** 63, -2 ** 63 - 1, '9' * 30,
                      '9' * 5000, float('nan'), float('inf'), [], {},
                      datetime.datetime(2012, 1, 1)):
            self.assertRaises((ValueError, TypeError, OverflowError),
                              coercion.to_int, value)

    def test_float(self):
        for value, wanted in (
                (2.5, 2.5), (5, 5.0), ('2.5', 2.5), (True, 1.0),
                ('1e3', 1000.0)):
            number = coercion.to_float(value)
            self.assertEqual(wanted, number)
            self.assertIs(float, type(number))

    def test_no_float(self):
        for value in ('n/a', '', float('nan'), float('inf'), 'nan', '-inf',
                      '1e999', 10 ** 400, [], {}):
            self.assertRaises((ValueError, TypeError, OverflowError),
                              coercion.to_float, value)
