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

"""Tests of what evaluating an expression gives back."""

import dataclasses
import datetime
import zoneinfo

from tests import base
from triggerlib import timex

UTC = datetime.timezone.utc
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
HOUR = datetime.timedelta(hours=1)


class TimestampTestCase(base.TestCase):

    def test_it_is_begin_and_end(self):
        moment = timex.Timestamp(NOON)
        self.assertEqual(
            (NOON, NOON, NOON),
            (moment.timestamp, moment.begin, moment.end))

    def test_it_matches_itself_only(self):
        moment = timex.Timestamp(NOON)
        self.assertTrue(moment.match(NOON))
        self.assertIn(NOON, moment)
        self.assertNotIn(NOON + MICROSECOND, moment)
        self.assertNotIn(NOON - MICROSECOND, moment)

    def test_a_naive_datetime_is_utc(self):
        self.assertIn(NOON.replace(tzinfo=None), timex.Timestamp(NOON))

    def test_a_repeated_hour_elsewhere_matches(self):
        zone = zoneinfo.ZoneInfo('America/New_York')
        first = datetime.datetime(2024, 11, 3, 1, 30, tzinfo=zone)
        second = first.replace(fold=1)
        moment = timex.Timestamp(
            datetime.datetime(2024, 11, 3, 6, 30, tzinfo=UTC))
        self.assertIn(second, moment)
        self.assertNotIn(first, moment)

    def test_other_types_do_not_match(self):
        for value in (None, 'x', 3, NOON.date(), NOON.isoformat()):
            self.assertNotIn(value, timex.Timestamp(NOON))

    def test_a_moment_that_utc_cannot_hold_does_not_match(self):
        east = datetime.timezone(datetime.timedelta(hours=1))
        early = datetime.datetime.min.replace(tzinfo=east)
        moment = timex.Timestamp(datetime.datetime.min.replace(tzinfo=UTC))
        self.assertNotIn(early, moment)

    def test_it_is_frozen_and_small(self):
        moment = timex.Timestamp(NOON)
        self.assertRaises(dataclasses.FrozenInstanceError,
                          setattr, moment, 'timestamp', NOON)
        self.assertFalse(hasattr(moment, '__dict__'))


class TimeRangeTestCase(base.TestCase):

    def test_its_timestamp_is_its_begin(self):
        found = timex.TimeRange(NOON, NOON + HOUR)
        self.assertEqual(
            (NOON, NOON, NOON + HOUR),
            (found.timestamp, found.begin, found.end))

    def test_it_holds_its_begin_and_not_its_end(self):
        found = timex.TimeRange(NOON, NOON + HOUR)
        self.assertNotIn(NOON - MICROSECOND, found)
        self.assertIn(NOON, found)
        self.assertTrue(found.match(NOON + HOUR - MICROSECOND))
        self.assertFalse(found.match(NOON + HOUR))

    def test_an_empty_or_reversed_range_holds_nothing(self):
        for end in (NOON, NOON - HOUR):
            found = timex.TimeRange(NOON, end)
            for moment in (NOON, end, NOON - HOUR / 2):
                self.assertNotIn(moment, found)

    def test_a_naive_datetime_is_utc(self):
        found = timex.TimeRange(NOON, NOON + HOUR)
        self.assertIn(NOON.replace(tzinfo=None), found)

    def test_other_types_do_not_match(self):
        for value in (None, 'x', 3, NOON.date(), NOON.isoformat()):
            self.assertNotIn(value, timex.TimeRange(NOON, NOON + HOUR))

    def test_a_moment_that_utc_cannot_hold_does_not_match(self):
        west = datetime.timezone(datetime.timedelta(hours=-1))
        late = datetime.datetime.max.replace(tzinfo=west)
        found = timex.TimeRange(NOON, NOON + HOUR)
        self.assertNotIn(late, found)

    def test_it_is_frozen_and_small(self):
        found = timex.TimeRange(NOON, NOON)
        self.assertRaises(dataclasses.FrozenInstanceError,
                          setattr, found, 'begin', NOON)
        self.assertFalse(hasattr(found, '__dict__'))
