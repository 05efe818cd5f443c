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

"""Tests of arithmetic and of periods, in UTC."""

import datetime

from tests import base
from triggerlib import exceptions
from triggerlib import timex

UTC = datetime.timezone.utc


def _utc(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


class ShiftTestCase(base.TestCase):

    def _assert_moves(self, moment, operation, expected):
        self.assertEqual(
            _utc(expected),
            timex.parse(f'a {operation}')(a=_utc(moment)).timestamp)

    def test_each_unit(self):
        for duration, forth, back in (
                ('1us', '2024-03-10T12:00:00.000001',
                 '2024-03-10T11:59:59.999999'),
                ('2s', '2024-03-10T12:00:02', '2024-03-10T11:59:58'),
                ('2sec', '2024-03-10T12:00:02', '2024-03-10T11:59:58'),
                ('30m', '2024-03-10T12:30', '2024-03-10T11:30'),
                ('30min', '2024-03-10T12:30', '2024-03-10T11:30'),
                ('36h', '2024-03-12T00:00', '2024-03-09T00:00'),
                ('1hr', '2024-03-10T13:00', '2024-03-10T11:00'),
                ('40d', '2024-04-19T12:00', '2024-01-30T12:00'),
                ('2w', '2024-03-24T12:00', '2024-02-25T12:00'),
                ('11mo', '2025-02-10T12:00', '2023-04-10T12:00'),
                ('1y', '2025-03-10T12:00', '2023-03-10T12:00'),
                ('3yr', '2027-03-10T12:00', '2021-03-10T12:00'),
                ('1d 2h 3m 4s', '2024-03-11T14:03:04',
                 '2024-03-09T09:56:56'),
                ('0h', '2024-03-10T12:00', '2024-03-10T12:00')):
            self._assert_moves('2024-03-10T12:00', f'+ {duration}', forth)
            self._assert_moves('2024-03-10T12:00', f'- {duration}', back)

    def test_months_keep_to_the_calendar(self):
        for moment, operation, expected in (
                ('2023-01-31', '+ 1mo', '2023-02-28'),
                ('2024-01-31', '+ 1mo', '2024-02-29'),
                ('2024-03-31', '- 1mo', '2024-02-29'),
                ('2024-05-31', '+ 1mo', '2024-06-30'),
                ('2024-02-29', '+ 1y', '2025-02-28'),
                ('2024-02-29', '+ 4y', '2028-02-29'),
                ('2024-02-29', '- 1y', '2023-02-28'),
                ('1896-02-29', '+ 4y', '1900-02-28'),
                ('2024-12-31', '+ 2mo', '2025-02-28'),
                ('2024-01-31', '- 1mo', '2023-12-31'),
                ('2024-01-31', '+ 13mo', '2025-02-28'),
                ('2024-01-31', '+ 1mo + 1mo', '2024-03-29'),
                ('2024-01-31', '+ 2mo', '2024-03-31')):
            self._assert_moves(moment, operation, expected)

    def test_what_is_smaller_than_a_month_is_added_first(self):
        self._assert_moves('2023-01-30', '+ 1mo 2d', '2023-03-01')
        self._assert_moves('2023-01-30', '+ 1mo + 2d', '2023-03-02')
        self._assert_moves('2023-03-01', '- 1mo 1d', '2023-01-28')
        self._assert_moves('2023-01-31T23:00', '+ 1mo 2h', '2023-03-01T01:00')


class ReplaceTestCase(base.TestCase):

    def _assert_replaced(self, replacement, expected,
                         moment='2014-08-01T01:02:03.000004'):
        self.assertEqual(
            _utc(expected),
            timex.parse(f'a @ {replacement}')(a=_utc(moment)).timestamp)

    def test_a_time_of_day_leaves_nothing_below(self):
        self._assert_replaced('00:00', '2014-08-01')
        self._assert_replaced('23:59', '2014-08-01T23:59')
        self._assert_replaced('06:30:15', '2014-08-01T06:30:15')

    def test_units_leave_the_others(self):
        self._assert_replaced('6h', '2014-08-01T06:02:03.000004')
        self._assert_replaced('0h 0m 0s', '2014-08-01T00:00:00.000004')
        self._assert_replaced('0h 0m 0s 0us', '2014-08-01')
        self._assert_replaced(
            '12mo 31d 12h 0m 0s', '2014-12-31T12:00:00.000004')
        self._assert_replaced('2000y', '2000-08-01T01:02:03.000004')

    def test_a_day_that_the_month_lacks_is_its_last(self):
        self._assert_replaced('31d', '2014-06-30', '2014-06-15')
        self._assert_replaced('31d', '2014-02-28', '2014-02-15')
        self._assert_replaced('2mo', '2014-02-28', '2014-01-31')
        self._assert_replaced('2mo 30d', '2016-02-29', '2016-01-31')
        self._assert_replaced('2015y', '2015-02-28', '2016-02-29')

    def test_order(self):
        moment = _utc('2014-08-01T01:02:03')
        for text, expected in (
                ('(a + 1d) @ 0h 0m 0s', '2014-08-02'),
                ('a + 1d @ 0h 0m 0s', '2014-08-02'),
                ('a @ 0h 0m 0s + 1d', '2014-08-02'),
                ('a + 1h @ 0m 0s + 5m', '2014-08-01T02:05'),
                ('a @ 0m 0s + 5m + 1h - 30m', '2014-08-01T01:35')):
            self.assertEqual(
                _utc(expected), timex.parse(text)(a=moment).timestamp)


class RangeTestCase(base.TestCase):

    def _assert_range(self, text, begin, end):
        self.assertEqual(
            timex.TimeRange(_utc(begin), _utc(end)),
            timex.parse(text)(a=_utc('2024-01-31T05:00'),
                              b=_utc('2024-02-03T06:30')))

    def test_operations_go_to_the_nearer_end(self):
        self._assert_range('$a - 30m to $b + 1h',
                           '2024-01-31T04:30', '2024-02-03T07:30')

    def test_operations_on_the_whole_go_to_both(self):
        self._assert_range('(a to b) + 1h', '2024-01-31T06:00',
                           '2024-02-03T07:30')
        self._assert_range('(a to b) - 1mo @ 0m', '2023-12-31T05:00',
                           '2024-01-03T06:00')
        self._assert_range('((a to b) @ 00:00) + 1d', '2024-02-01',
                           '2024-02-04')

    def test_a_bare_number_goes_by_the_length(self):
        begin = _utc('2024-01-31T05:00')
        for length, unit in (
                (datetime.timedelta(days=366), 'mo'),
                (datetime.timedelta(days=365), 'mo'),
                (datetime.timedelta(days=28), 'd'),
                (datetime.timedelta(days=27), 'h'),
                (datetime.timedelta(days=1), 'h'),
                (datetime.timedelta(hours=23), 'm'),
                (datetime.timedelta(minutes=59), 's'),
                (datetime.timedelta(seconds=59), 'us'),
                (datetime.timedelta(0), 'us'),
                (datetime.timedelta(days=-2), 'h')):
            end = begin + length
            for symbol in '+-@':
                self.assertEqual(
                    timex.parse(f'(a to b) {symbol} 6{unit} 1h')(
                        a=begin, b=end),
                    timex.parse(f'(a to b) {symbol} 6 1h')(a=begin, b=end))

    def test_a_bare_number_that_its_unit_cannot_have(self):
        expression = timex.parse('(a to b) @ 30')
        error = self.assertRaises(
            exceptions.TimexError, expression,
            a=_utc('2024-01-01'), b=_utc('2024-01-03'))
        self.assertEqual(12, error.column)
        self.assertIn('hour 30', error.reason)
        self.assertEqual(
            _utc('2024-01-01T00:30'),
            expression(a=_utc('2024-01-01'),
                       b=_utc('2024-01-01T03:00')).begin)


class PeriodTestCase(base.TestCase):

    def _assert_period(self, text, moment, begin, end):
        found = timex.parse(text)(timestamp=_utc(moment))
        self.assertEqual(
            timex.TimeRange(_utc(begin), _utc(end)), found, text)

    def test_the_period_that_holds_the_moment(self):
        moment = '2014-08-01T01:02:03.000004'
        for text, begin, end in (
                ('hour', '2014-08-01T01:00', '2014-08-01T02:00'),
                ('day', '2014-08-01', '2014-08-02'),
                ('month', '2014-08-01', '2014-09-01'),
                ('year', '2014-01-01', '2015-01-01'),
                ('day(timestamp - 2h)', '2014-07-31', '2014-08-01'),
                ('month($timestamp + 1mo)', '2014-09-01', '2014-10-01')):
            self._assert_period(text, moment, begin, end)

    def test_a_boundary_belongs_to_the_later_period(self):
        self._assert_period('day', '2014-08-01', '2014-08-01', '2014-08-02')
        self._assert_period('day @ 6', '2014-08-01T06:00',
                            '2014-08-01T06:00', '2014-08-02T06:00')
        self._assert_period('day @ 6', '2014-08-01T05:59:59.999999',
                            '2014-07-31T06:00', '2014-08-01T06:00')

    def test_smaller_operations_keep_the_moment_inside(self):
        moment = '2014-08-01T01:02:03'
        for text, begin, end in (
                ('day + 6h', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day + 6', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day + 1h', '2014-08-01T01:00', '2014-08-02T01:00'),
                ('day - 6h', '2014-07-31T18:00', '2014-08-01T18:00'),
                ('day - 23h', '2014-08-01T01:00', '2014-08-02T01:00'),
                ('day @ 6h', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day @ 06:00', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day @ 0', '2014-08-01', '2014-08-02'),
                ('day + 30h', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day + 6h @ 30m', '2014-07-31T06:30', '2014-08-01T06:30'),
                ('(day + 6h) - 90m', '2014-07-31T04:30', '2014-08-01T04:30'),
                ('hour @ 30', '2014-08-01T00:30', '2014-08-01T01:30'),
                ('hour + 2', '2014-08-01T01:02', '2014-08-01T02:02'),
                ('hour + 99999999s', '2014-08-01T00:46:39',
                 '2014-08-01T01:46:39'),
                ('month @ 15', '2014-07-15', '2014-08-15'),
                ('month + 1w', '2014-07-08', '2014-08-08'),
                ('year @ 4', '2014-04-01', '2015-04-01'),
                ('year @ 9', '2013-09-01', '2014-09-01'),
                ('year - 3mo', '2013-10-01', '2014-10-01')):
            self._assert_period(text, moment, begin, end)

    def test_periods_of_unequal_length_stay_joined(self):
        self._assert_period('year + 3mo', '2012-01-15',
                            '2011-04-01', '2012-04-01')
        self._assert_period('month + 14d', '2013-03-10',
                            '2013-02-15', '2013-03-15')
        self._assert_period('month @ 31', '2013-03-10',
                            '2013-02-28', '2013-03-31')
        self._assert_period('month @ 31', '2013-02-28',
                            '2013-02-28', '2013-03-31')

    def test_operations_as_large_as_the_period_leave_the_moment(self):
        moment = '2014-08-01T01:02:03'
        for text, begin, end in (
                ('day - 1d', '2014-07-31', '2014-08-01'),
                ('day + 1d', '2014-08-02', '2014-08-03'),
                ('day - 1d + 6h', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day + 6h - 1d', '2014-07-30T06:00', '2014-07-31T06:00'),
                ('(day - 1d) @ 6', '2014-07-31T06:00', '2014-08-01T06:00'),
                ('day + 1d 6h', '2014-08-02T06:00', '2014-08-03T06:00'),
                ('day - 1w', '2014-07-25', '2014-07-26'),
                ('hour - 1h', '2014-08-01T00:00', '2014-08-01T01:00'),
                ('month - 1mo', '2014-07-01', '2014-08-01'),
                ('month - 1mo + 3', '2014-07-04', '2014-08-04'),
                ('year + 1y', '2015-01-01', '2016-01-01')):
            self._assert_period(text, moment, begin, end)

    def test_an_amount_of_nothing_changes_nothing(self):
        for text in ('day + 0d', 'day - 0y', 'day + 0'):
            self._assert_period(
                text, '2014-08-01T01:00', '2014-08-01', '2014-08-02')
        self._assert_period('day + 0d 6h', '2014-08-01T01:00',
                            '2014-07-31T06:00', '2014-08-01T06:00')
