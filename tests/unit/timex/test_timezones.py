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

"""Tests of expressions read in a time zone, around changes of the clocks."""

import datetime
import zoneinfo

from tests import base
from triggerlib import timex

UTC = datetime.timezone.utc
NEW_YORK = 'America/New_York'


def _local(text, zone, fold=0):
    return datetime.datetime.fromisoformat(text).replace(
        tzinfo=zoneinfo.ZoneInfo(zone), fold=fold).astimezone(UTC)


class NewYorkTestCase(base.TestCase):
    # The clocks went from 2:00 to 3:00 on 10 March 2024, and from 2:00 back
    # to 1:00 on 3 November.

    def _moved(self, operation, text, fold=0):
        expression = timex.parse(f'a {operation}', NEW_YORK)
        return expression(a=_local(text, NEW_YORK, fold)).timestamp

    def _assert_moves(self, text, operation, expected, fold=0):
        self.assertEqual(
            _local(expected, NEW_YORK), self._moved(operation, text, fold))

    def test_days_and_longer_keep_the_time_of_day(self):
        self._assert_moves('2024-03-09T12:00', '+ 1d', '2024-03-10T12:00')
        self._assert_moves('2024-03-10T12:00', '- 1d', '2024-03-09T12:00')
        self._assert_moves('2024-03-09T12:00', '+ 1w', '2024-03-16T12:00')
        self._assert_moves('2024-02-29T12:00', '+ 1mo', '2024-03-29T12:00')
        self._assert_moves('2024-03-29T12:00', '- 1y 1mo', '2023-02-28T12:00')
        self._assert_moves('2024-03-31T20:30', '+ 8mo', '2024-11-30T20:30')

    def test_hours_and_shorter_are_elapsed_time(self):
        self._assert_moves('2024-03-09T12:00', '+ 24h', '2024-03-10T13:00')
        self._assert_moves('2024-03-10T01:30', '+ 30m', '2024-03-10T03:00')
        self._assert_moves('2024-11-02T12:00', '+ 24h', '2024-11-03T11:00')
        self._assert_moves('2024-03-09T12:00', '+ 1d 1h', '2024-03-10T13:00')

    def test_a_time_left_out_moves_on_by_the_gap(self):
        self._assert_moves('2024-03-09T02:30', '+ 1d', '2024-03-10T03:30')
        self._assert_moves('2024-03-11T02:30', '- 1d', '2024-03-10T03:30')
        self._assert_moves('2024-02-10T02:30', '+ 1mo', '2024-03-10T03:30')
        self._assert_moves('2024-03-10T12:00', '@ 02:30', '2024-03-10T03:30')
        self._assert_moves('2024-03-11T02:30', '@ 10d', '2024-03-10T03:30')

    def test_a_time_that_occurs_twice_is_the_first(self):
        self._assert_moves('2024-11-02T01:30', '+ 1d', '2024-11-03T01:30')
        self._assert_moves('2024-11-04T01:30', '- 1d', '2024-11-03T01:30')
        self._assert_moves('2024-10-03T01:30', '+ 1mo', '2024-11-03T01:30')
        self._assert_moves('2024-11-03T12:00', '@ 01:30', '2024-11-03T01:30')
        self._assert_moves('2024-11-03T01:45', '@ 1h 30m',
                           '2024-11-03T01:30', fold=1)
        self._assert_moves('2024-11-03T01:45', '@ 3d', '2024-11-03T01:45',
                           fold=1)
        self._assert_moves('2020-11-01T01:30', '+ 6y', '2026-11-01T01:30',
                           fold=1)

    def test_minutes_stay_in_the_second_of_a_repeated_hour(self):
        self.assertEqual(
            _local('2024-11-03T01:30', NEW_YORK, fold=1),
            self._moved('@ 30m', '2024-11-03T01:45', fold=1))
        self._assert_moves('2024-11-03T01:45', '@ 30m', '2024-11-03T01:30')

    def test_nothing_moved_is_the_same_moment(self):
        second = _local('2024-11-03T01:45', NEW_YORK, fold=1)
        for operation in ('+ 0d', '- 0mo', '+ 0h'):
            self.assertEqual(
                second, self._moved(operation, '2024-11-03T01:45', fold=1))

    def test_midnight_is_the_local_one(self):
        found = timex.parse('first@00:00 to last+2h', NEW_YORK)(
            first=_local('2024-03-09T23:00', NEW_YORK),
            last=_local('2024-03-10T01:00', NEW_YORK))
        self.assertEqual(
            timex.TimeRange(_local('2024-03-09', NEW_YORK),
                            _local('2024-03-10T04:00', NEW_YORK)), found)

    def _assert_period(self, text, moment, begin, end, hours, fold=0):
        found = timex.parse(text, NEW_YORK)(
            timestamp=_local(moment, NEW_YORK, fold))
        self.assertEqual(
            timex.TimeRange(_local(begin, NEW_YORK), _local(end, NEW_YORK)),
            found)
        self.assertEqual(
            datetime.timedelta(hours=hours), found.end - found.begin)

    def test_days_of_23_and_25_hours(self):
        self._assert_period('day', '2024-03-10T12:00',
                            '2024-03-10', '2024-03-11', 23)
        self._assert_period('day', '2024-11-03T12:00',
                            '2024-11-03', '2024-11-04', 25)
        self._assert_period('day @ 6', '2024-03-10T05:00',
                            '2024-03-09T06:00', '2024-03-10T06:00', 23)
        self._assert_period('day @ 6', '2024-11-03T01:45',
                            '2024-11-02T06:00', '2024-11-03T06:00', 25,
                            fold=1)
        self._assert_period('day - 1d', '2024-03-11T12:00',
                            '2024-03-10', '2024-03-11', 23)
        self._assert_period('month', '2024-03-10T12:00', '2024-03-01',
                            '2024-04-01', 31 * 24 - 1)

    def test_a_bare_number_on_a_short_day_is_of_hours(self):
        self._assert_period('day + 6', '2024-03-10T12:00',
                            '2024-03-10T07:00', '2024-03-11T06:00', 23)

    def test_a_boundary_in_the_gap(self):
        self._assert_period('day @ 02:30', '2024-03-10T12:00',
                            '2024-03-10T03:30', '2024-03-11T02:30', 23)
        self._assert_period('day @ 02:30', '2024-03-10T03:15',
                            '2024-03-09T02:30', '2024-03-10T03:30', 24)

    def test_both_of_a_repeated_hour_are_hours(self):
        first = _local('2024-11-03T01:00', NEW_YORK)
        hour = datetime.timedelta(hours=1)
        expression = timex.parse('hour', NEW_YORK)
        half = timex.parse('hour @ 30', NEW_YORK)
        for number in range(4):
            begin = first + number * hour
            self.assertEqual(
                timex.TimeRange(begin, begin + hour),
                expression(timestamp=begin + hour / 3))
            self.assertEqual(
                timex.TimeRange(begin - hour / 2, begin + hour / 2),
                half(timestamp=begin + hour / 3))


class ElsewhereTestCase(base.TestCase):

    def _assert_period(self, text, zone, moment, begin, end):
        self.assertEqual(
            timex.TimeRange(begin, end),
            timex.parse(text, zone)(timestamp=moment))

    def test_hours_where_the_offset_is_no_whole_hour(self):
        zone = 'Asia/Kolkata'
        self._assert_period(
            'hour', zone, _local('2024-05-05T10:10', zone),
            _local('2024-05-05T10:00', zone),
            _local('2024-05-05T11:00', zone))

    def test_a_day_whose_midnight_is_left_out(self):
        zone = 'Africa/Cairo'
        self._assert_period(
            'day', zone, _local('2024-04-26T12:00', zone),
            _local('2024-04-26T01:00', zone), _local('2024-04-27', zone))

    def test_hours_where_the_clocks_change_by_half_an_hour(self):
        zone = 'Australia/Lord_Howe'
        moment = _local('2024-04-07T01:45', zone, fold=1)
        begin = moment - datetime.timedelta(minutes=45)
        self._assert_period(
            'hour', zone, moment, begin, begin + datetime.timedelta(hours=1))

    def test_a_day_that_begins_twice(self):
        zone = 'America/Havana'
        begin = _local('2024-11-03', zone)
        end = _local('2024-11-04', zone)
        self.assertEqual(datetime.timedelta(hours=25), end - begin)
        for fold in (0, 1):
            self._assert_period(
                'day', zone, _local('2024-11-03T00:30', zone, fold),
                begin, end)
            self._assert_period(
                'month', zone, _local('2015-11-01T00:30', zone, fold),
                _local('2015-11-01', zone), _local('2015-12-01', zone))

    def test_a_midnight_that_occurs_twice(self):
        # At 0:01 on 29 October 2006 the clocks went back to 23:01.
        zone = 'America/St_Johns'
        midnight = _local('2006-10-29', zone)
        again = _local('2006-10-28T23:30', zone, fold=1)
        self._assert_period(
            'day', zone, again, midnight, _local('2006-10-30', zone))

    def test_a_day_left_out(self):
        zone = 'Pacific/Apia'
        self._assert_period(
            'day', zone, _local('2011-12-31T12:00', zone),
            _local('2011-12-31', zone), _local('2012-01-01', zone))
        self._assert_period(
            'day - 1d', zone, _local('2012-01-01T12:00', zone),
            _local('2011-12-31', zone), _local('2012-01-01', zone))

    def test_the_zone_of_an_input_does_not_matter(self):
        moment = _local('2024-05-05T01:00', 'Europe/Berlin')
        expression = timex.parse('a@00:00', 'Europe/Berlin')
        for zone in (UTC, zoneinfo.ZoneInfo('Asia/Tokyo')):
            self.assertEqual(
                _local('2024-05-05', 'Europe/Berlin'),
                expression(a=moment.astimezone(zone)).timestamp)
