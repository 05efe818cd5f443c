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

"""Tests of expressions: their attributes, and calling them."""

import copy
import dataclasses
import datetime
import pickle
import zoneinfo

from tests import base
from triggerlib import exceptions
from triggerlib import timex

UTC = datetime.timezone.utc


def _utc(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


class AttributesTestCase(base.TestCase):

    def test_text_is_kept_as_given(self):
        expression = timex.parse('  last+ 3h ')
        self.assertEqual('  last+ 3h ', expression.text)
        self.assertEqual('  last+ 3h ', str(expression))

    def test_names(self):
        for text, names in (
                ('last+3h', {'last'}), ('first@00:00 to last+2h',
                                        {'first', 'last'}),
                ('day', {'timestamp'}), ('day + 6h', {'timestamp'}),
                ('day(launched_at)', {'launched_at'}),
                ('$to to $hour', {'to', 'hour'}), ('(a to a) + 6', {'a'})):
            names_found = timex.parse(text).names
            self.assertIsInstance(names_found, frozenset)
            self.assertEqual(names, names_found)

    def test_is_range(self):
        for text in ('last+3h', '(last)', '$hour'):
            self.assertFalse(timex.parse(text).is_range)
        for text in ('a to b', '(a to b) + 1h', 'day', 'hour(a) - 5'):
            self.assertTrue(timex.parse(text).is_range)

    def test_frozen(self):
        expression = timex.parse('last')
        self.assertRaises(dataclasses.FrozenInstanceError,
                          setattr, expression, 'text', 'first')

    def test_equal_by_text_and_zone(self):
        self.assertEqual(timex.parse('last'), timex.parse('last', 'UTC'))
        self.assertNotEqual(timex.parse('last'), timex.parse('$last'))
        self.assertNotEqual(
            timex.parse('last'), timex.parse('last', 'Europe/Berlin'))
        self.assertEqual(1, len({timex.parse('last'), timex.parse('last')}))

    def test_it_can_be_copied_and_pickled(self):
        expression = timex.parse('day', 'Europe/Berlin')
        for other in (copy.deepcopy(expression),
                      pickle.loads(pickle.dumps(expression))):
            self.assertEqual(expression, other)
            moment = _utc('2024-05-05')
            self.assertEqual(
                expression(timestamp=moment), other(timestamp=moment))


class CallTestCase(base.TestCase):

    def test_a_moment(self):
        self.assertEqual(
            timex.Timestamp(_utc('2024-05-05T04:00')),
            timex.parse('last+3h')(last=_utc('2024-05-05T01:00')))

    def test_a_range(self):
        self.assertEqual(
            timex.TimeRange(_utc('2024-05-04'), _utc('2024-05-05T03:30')),
            timex.parse('first@00:00 to last+2h')(
                first=_utc('2024-05-04T17:12:13.000014'),
                last=_utc('2024-05-05T01:30')))

    def test_names_not_needed_are_ignored(self):
        moment = _utc('2024-05-05')
        self.assertEqual(
            timex.Timestamp(moment),
            timex.parse('last')(last=moment, first=None, size='large'))

    def test_any_name_can_be_given(self):
        moment = _utc('2024-05-05')
        for name in ('self', 'datetimes', 'text', 'to', 'class'):
            self.assertEqual(
                timex.Timestamp(moment),
                timex.parse(f'${name}')(**{name: moment}))

    def test_results_are_utc(self):
        zone = zoneinfo.ZoneInfo('Asia/Kolkata')
        local = datetime.datetime(2024, 5, 5, 1, tzinfo=zone)
        for given, expected in (
                (local, '2024-05-04T19:30'),
                (datetime.datetime(2024, 5, 5, 1), '2024-05-05T01:00'),
                (datetime.datetime(2024, 5, 5, 1, tzinfo=zoneinfo.ZoneInfo(
                    'UTC')), '2024-05-05T01:00')):
            found = timex.parse('a')(a=given).timestamp
            self.assertEqual(_utc(expected), found)
            self.assertIs(UTC, found.tzinfo)
        for text in ('a + 1mo', 'a @ 3h', 'day(a) @ 6', 'month(a)',
                     'hour(a)', '(a to a) + 6'):
            for name in ('UTC', 'America/New_York'):
                found = timex.parse(text, name)(a=local)
                self.assertIs(UTC, found.begin.tzinfo)
                self.assertIs(UTC, found.end.tzinfo)

    def test_a_missing_name_is_told_with_its_column(self):
        for text, name, column in (
                ('first to $last', 'last', 11), ('day', 'timestamp', 1),
                ('hour(first + 1h)', 'first', 6)):
            expression = timex.parse(text)
            given = {'first': _utc('2024-05-05')} if name == 'last' else {}
            error = self.assertRaises(
                exceptions.TimexError, expression, **given)
            self.assertEqual((text, column), (error.expression, error.column))
            self.assertIn(repr(name), error.reason)

    def test_what_is_no_datetime_is_told(self):
        expression = timex.parse('last + 1h')
        for value in (None, 'now', 12, datetime.date(2024, 5, 5),
                      datetime.time(5, tzinfo=UTC)):
            error = self.assertRaises(
                exceptions.TimexError, expression, last=value)
            self.assertEqual(1, error.column)
            self.assertIn(f"'last' is no datetime: {value!r}", error.reason)

    def test_a_result_outside_of_the_calendar(self):
        low = datetime.datetime.min
        high = datetime.datetime.max
        for text, moment in (
                ('a + 1us', high), ('a + 1d', high), ('a + 1mo', high),
                ('a + 1y', high), ('a - 1us', low), ('a - 1mo', low),
                ('a - 9999y', low), ('a + 9999y', low), ('hour(a)', high),
                ('day(a)', high), ('month(a)', high), ('year(a)', high),
                ('day(a) @ 6', low), ('a to a + 9998y', high)):
            for zone in ('UTC', 'America/New_York', 'Pacific/Auckland'):
                expression = timex.parse(text, zone)
                error = self.assertRaises(
                    exceptions.TimexOverflow, expression, a=moment)
                self.assertIsInstance(error, exceptions.TimexError)
                self.assertEqual(text, error.expression)
                self.assertIn('1 to 9999', error.reason)

    def test_an_input_outside_of_the_calendar(self):
        east = datetime.timezone(datetime.timedelta(hours=1))
        self.assertRaises(
            exceptions.TimexOverflow, timex.parse('a'),
            a=datetime.datetime.min.replace(tzinfo=east))

    def test_a_wrapped_range_at_the_end_of_the_calendar(self):
        self.assertEqual(
            timex.TimeRange(_utc('9999-12-30T06:00'),
                            _utc('9999-12-31T06:00')),
            timex.parse('day @ 6')(timestamp=_utc('9999-12-31T05:00')))

    def test_a_long_chain(self):
        expression = timex.parse('a' + ' + 1d - 23h' * 5000)
        self.assertEqual(
            _utc('2024-01-01') + datetime.timedelta(hours=5000),
            expression(a=_utc('2024-01-01')).timestamp)
