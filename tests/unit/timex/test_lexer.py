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

"""Tests of the lexer."""

from tests import base
from triggerlib import exceptions
from triggerlib.timex import lexer


class TokensTestCase(base.TestCase):

    def _tokens(self, text):
        return [(token.kind, token.text, token.column)
                for token in lexer.tokens(text)]

    def test_columns_count_from_one(self):
        self.assertEqual(
            [('word', 'first', 1), ('@', '@', 6), ('number', '00', 7),
             (':', ':', 9), ('number', '00', 10), ('word', 'to', 13),
             ('$', '$', 16), ('word', 'last', 17), ('end', '', 21)],
            self._tokens('first@00:00 to $last'))

    def test_a_unit_ends_at_the_next_number(self):
        self.assertEqual(
            [('number', '3', 1), ('word', 'h', 2), ('number', '30', 3),
             ('word', 'm', 5), ('end', '', 6)],
            self._tokens('3h30m'))

    def test_a_name_may_hold_digits(self):
        self.assertEqual(
            [('word', 'eth0_up', 1), ('end', '', 8)],
            self._tokens('eth0_up'))

    def test_space_of_every_kind_is_passed(self):
        self.assertEqual(
            [('word', 'a', 3), ('+', '+', 6), ('end', '', 9)],
            self._tokens(' \ta\r\n+\f\v'))

    def test_empty(self):
        self.assertEqual([('end', '', 1)], self._tokens(''))

    def test_a_strange_character_is_refused(self):
        for text, column in (('last + 1.5h', 9), ('a*b', 2), ('\xe9t\xe9', 1),
                             ('a + \u0663h', 5), ('a\xa0+ 1h', 2),
                             ('a\x00', 2)):
            error = self.assertRaises(
                exceptions.TimexError, lexer.tokens, text)
            self.assertEqual(column, error.column)
            self.assertIn(repr(text[column - 1]), error.reason)
            self.assertEqual(text, error.expression)
