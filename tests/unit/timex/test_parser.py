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

"""Tests of the parser: what is accepted, and where mistakes are found."""

from tests import base
from triggerlib import exceptions
from triggerlib import timex
from triggerlib.timex import parser
from triggerlib.timex import tree


def _operation(symbol, column, bare=None, **amounts):
    return tree.Operation(symbol, amounts, bare, column)


class TreeTestCase(base.TestCase):

    def test_a_name_with_and_without_a_dollar(self):
        self.assertEqual(tree.Moment('last', 1), parser.parse('last'))
        self.assertEqual(tree.Moment('last', 2), parser.parse('$last'))

    def test_a_keyword_is_a_name_after_a_dollar(self):
        for name in ('to', 'hour', 'day', 'month', 'year', 'h', 'mo'):
            self.assertEqual(tree.Moment(name, 2), parser.parse(f'${name}'))

    def test_a_unit_is_a_name_where_a_name_is_wanted(self):
        self.assertEqual(
            tree.Moment('h', 1, (_operation('+', 5, hour=3),)),
            parser.parse('h + 3h'))

    def test_operations_apply_from_left_to_right(self):
        expected = (_operation('+', 9, hour=1),
                    _operation('@', 14, minute=0, second=0),
                    _operation('-', 22, minute=5))
        self.assertEqual(
            tree.Moment('first', 1, expected),
            parser.parse('first + 1h @ 0m 0s - 5m'))

    def test_parentheses_leave_no_trace(self):
        self.assertEqual(
            parser.parse('   first + 1h  @ 0m'),
            parser.parse('( (first + 1h) @ 0m)'))

    def test_all_units(self):
        for text, unit in (
                ('us', 'microsecond'), ('s', 'second'), ('sec', 'second'),
                ('m', 'minute'), ('min', 'minute'), ('h', 'hour'),
                ('hr', 'hour'), ('d', 'day'), ('w', 'week'), ('mo', 'month'),
                ('y', 'year'), ('yr', 'year')):
            self.assertEqual(
                tree.Moment('a', 1, (_operation('+', 3, **{unit: 4}),)),
                parser.parse(f'a+4{text}'))

    def test_the_same_unit_twice_is_summed(self):
        self.assertEqual(
            tree.Moment('a', 1, (_operation('+', 3, hour=3, minute=5),)),
            parser.parse('a+1h 5m 2h'))

    def test_a_time_of_day_sets_everything_below_the_day(self):
        for text, second in (('6:30', 0), ('06:30', 0), ('06:30:15', 15)):
            self.assertEqual(
                tree.Moment('a', 1, (_operation(
                    '@', 3, hour=6, minute=30, second=second,
                    microsecond=0),)),
                parser.parse(f'a@{text}'))

    def test_a_range_takes_operations_at_its_ends(self):
        self.assertEqual(
            tree.Between(
                tree.Moment('a', 2, (_operation('-', 6, minute=30),)),
                tree.Moment('b', 14, (_operation('+', 18, hour=1),))),
            parser.parse('$a - 30m to $b + 1h'))

    def test_a_range_takes_operations_as_a_whole(self):
        self.assertEqual(
            tree.Between(
                tree.Moment('a', 2), tree.Moment('b', 7),
                (_operation('+', 12, hour=1),)),
            parser.parse('(a to b) + 1h'))

    def test_a_period_is_of_the_timestamp_unless_told(self):
        expected = tree.Period('day', tree.Moment('timestamp', 1))
        self.assertEqual(expected, parser.parse('day'))
        self.assertEqual(expected, parser.parse('day()'))
        self.assertEqual(
            tree.Period('day', tree.Moment('last', 7)),
            parser.parse('day ($last)'))
        self.assertEqual(
            tree.Period('month', tree.Moment(
                'last', 8, (_operation('-', 15, day=1),))),
            parser.parse('month((last - 1d))'))

    def test_a_bare_number_is_of_the_unit_below_the_period(self):
        for period, unit in (('hour', 'minute'), ('day', 'hour'),
                             ('month', 'day'), ('year', 'month')):
            for symbol in '+-@':
                self.assertEqual(
                    tree.Period(
                        period, tree.Moment('timestamp', 1),
                        (_operation(symbol, len(period) + 2, **{unit: 6}),)),
                    parser.parse(f'{period}{symbol}6'))

    def test_a_bare_number_joins_its_unit(self):
        self.assertEqual(
            parser.parse('day + 8h 30m'), parser.parse('day + 2h 30m 6'))

    def test_a_bare_number_of_a_plain_range_waits(self):
        self.assertEqual(
            tree.Between(
                tree.Moment('a', 2), tree.Moment('b', 7),
                (_operation('+', 12, bare=6, minute=1),)),
            parser.parse('(a to b) + 6 1m'))

    def test_space_is_free(self):
        for text in ('first@00:00 to last+2h',
                     'first @ 00 : 00 to last + 2 h',
                     '\nfirst\t@00:00\r\nto last+ 2h ',
                     'first@00:00to last+2h',
                     '$ first@00:00 to $last+2h'):
            expression = timex.parse(text)
            self.assertTrue(expression.is_range)
            self.assertEqual({'first', 'last'}, expression.names)


class MistakeTestCase(base.TestCase):

    def _assert_refused(self, text, column, words, timezone='UTC'):
        error = self.assertRaises(
            exceptions.TimexError, timex.parse, text, timezone)
        self.assertEqual((text, column), (error.expression, error.column))
        self.assertIn(words, error.reason)
        self.assertIn(error.reason, str(error))

    def test_an_expression_that_ends_too_early(self):
        for text, words in (
                ('', 'a name'), ('   ', 'a name'), ('last +', 'a number'),
                ('last + ', 'a number'), ('first to', 'a name'),
                ('(first', '")" for the "(" in column 1'), ('$', 'after $'),
                ('day(', 'a name'), ('day(a', '"(" in column 4'),
                ('first @', 'a number'), ('first @ 06:', 'two digits'),
                ('first @ 06:00:', 'two digits')):
            self._assert_refused(text, len(text) + 1, words)
            self._assert_refused(text, len(text) + 1, 'the expression ends')

    def test_a_piece_that_does_not_belong_there(self):
        for text, column, words in (
                ('last 3h', 6, "there is '3'"),
                ('first last', 7, "there is 'last'"),
                ('first)', 6, "there is ')'"),
                ('to last', 1, "there is 'to'"),
                ('first to to', 10, "there is 'to'"),
                ('+ 3h', 1, "there is '+'"),
                ('3h', 1, "there is '3'"),
                ('last + + 3h', 8, "there is '+'"),
                ('last + h', 8, "there is 'h'"),
                ('$3', 2, "there is '3'"),
                ('$(a)', 2, "there is '('"),
                ('()', 2, "there is ')'"),
                ('(a b)', 4, "there is 'b'"),
                ('last + -3h', 8, "there is '-'"),
                ('day last', 5, "there is 'last'"),
                ('last + 3h 4m x', 14, "there is 'x'")):
            self._assert_refused(text, column, words)

    def test_units(self):
        self._assert_refused('last + 3x', 9, "'x' is no unit")
        self._assert_refused('last + 3H', 9, "'H' is no unit")
        self._assert_refused('last + 3 M', 10, "'M' is no unit")
        self._assert_refused('last + 3hto first', 9, "'hto' is no unit")
        self._assert_refused('last + 3', 8, '3 needs a unit')
        self._assert_refused('last @ 6', 8, '6 needs a unit')
        self._assert_refused('last + 1h 30', 11, '30 needs a unit')
        self._assert_refused('day(last + 3)', 12, '3 needs a unit')
        self._assert_refused('first to last + 3', 17, '3 needs a unit')

    def test_ranges_where_a_moment_is_needed(self):
        self._assert_refused('day to last', 5, 'a range already')
        self._assert_refused('a to b to c', 8, "there is 'to'")
        self._assert_refused('(a to b) to c', 10, 'a range already')
        self._assert_refused('a to day', 6, 'end of a range')
        self._assert_refused('a to (b to c)', 6, 'end of a range')
        self._assert_refused('day(hour)', 4, 'this is a range')
        self._assert_refused('day(a to b)', 4, 'this is a range')

    def test_periods(self):
        self._assert_refused('week(last)', 1, "there is no period 'week'")
        self._assert_refused('1h + Day (a)', 1, "there is '1'")
        self._assert_refused('Day(a)', 1, "there is no period 'Day'")

    def test_time_of_day(self):
        self._assert_refused('first@24:00', 7, 'hour 24')
        self._assert_refused('first@25:00', 7, 'hour 25')
        self._assert_refused('first @ 12:60', 9, 'minute 60')
        self._assert_refused('first @ 12:00:60', 9, 'second 60')
        self._assert_refused('first@006:00', 7, 'a time of day')
        self._assert_refused('first@6:5', 9, 'two digits')
        self._assert_refused('first@06:00:5', 13, 'two digits')
        self._assert_refused('first@:00', 7, "there is ':'")
        self._assert_refused('first+06:00', 9, 'only follow @')
        self._assert_refused('first@06:00 15d', 13, "there is '15'")
        self._assert_refused('first@06:00:00:00', 15, "there is ':'")

    def test_replacements_that_no_datetime_can_have(self):
        for amount, words in (
                ('13mo', 'month 13'), ('0mo', 'month 0'), ('0d', 'day 0'),
                ('32d', 'day 32'), ('24h', 'hour 24'), ('60m', 'minute 60'),
                ('60s', 'second 60'), ('0y', 'year 0'),
                ('10000y', 'year 10000'),
                ('1000000us', 'microsecond 1000000'), ('1w', 'set a week'),
                ('12h 12h', 'hour 24')):
            self._assert_refused(f'last @ {amount}', 8, words)
        self._assert_refused('day @ 24', 7, 'hour 24')
        self._assert_refused('month @ 0', 9, 'day 0')

    def test_replacements_as_large_as_the_period(self):
        for text in ('hour @ 6h', 'hour @ 06:00', 'hour @ 0h 5m', 'day @ 15d',
                     'month @ 3mo', 'year @ 2020y', '(day - 1d) @ 1d'):
            self._assert_refused(text, text.index('@') + 3, 'smaller than a')

    def test_absurd_numbers(self):
        digits = 'more than 18 digits'
        self._assert_refused(f'last + {"9" * 19}s', 8, digits)
        self._assert_refused(f'last + 1h {"9" * 100000}s', 11, digits)
        self._assert_refused(f'last @ {"0" * 5000}h', 8, digits)
        for unit in ('us', 's', 'm', 'h', 'd', 'w', 'mo', 'y'):
            self._assert_refused(
                f'last - {"9" * 18}{unit}', 8, 'longer than the calendar')
        self._assert_refused('last + 10038y', 8, 'longer than the calendar')
        self._assert_refused(
            f'day + {"9" * 18}', 7, 'longer than the calendar')

    def test_nesting(self):
        self.assertEqual(
            tree.Moment('a', 51), parser.parse('(' * 50 + 'a' + ')' * 50))
        self._assert_refused('(' * 51 + 'a' + ')' * 51, 51, 'nested')
        self._assert_refused('(' * 1000 + 'a' + ')' * 1000, 51, 'nested')
        self._assert_refused('(' * 100000, 51, 'nested')
        self._assert_refused('day(' * 1000, 51 * 4, 'nested')

    def test_parentheses_beside_each_other_are_not_nested(self):
        text = 'a' + '+1h' * 5000
        self.assertEqual(5000, len(parser.parse(text).operations))
        deep = '(' * 50 + 'a' + ')' * 50
        self.assertIsInstance(
            parser.parse(f'{deep} to {deep}'), tree.Between)
        text = '(day(((a)+1h)))' + ' + 1h' * 100
        self.assertEqual(100, len(parser.parse(text).operations))

    def test_the_column_counts_over_line_breaks(self):
        self._assert_refused('last\n+\n3x', 9, "'x' is no unit")

    def test_no_text(self):
        for value in (None, 3, b'last', ['last'], {}):
            error = self.assertRaises(
                exceptions.TimexError, timex.parse, value)
            self.assertIs(None, error.column)
            self.assertIn(type(value).__name__, error.reason)

    def test_no_time_zone(self):
        for name in ('', 'Mars/Olympus', 'utc+1', '../UTC', '/etc/passwd',
                     'America', 'A' * 5000, 'Europe/\x00', '\ud800'):
            self._assert_refused('last', None, 'no time zone', name)
        for name in (None, 1, [], b'UTC'):
            self._assert_refused('last', None, 'IANA name', name)
