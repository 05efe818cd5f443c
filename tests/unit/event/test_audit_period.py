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

"""Audit periods (blueprint NotificationEventExamples)."""

import datetime

import hypothesis
from hypothesis import strategies

from tests import base
from triggerlib.event import audit_period
from triggerlib.event import timestamps

UTC = datetime.timezone.utc
PERIODS = strategies.one_of(
    strategies.sampled_from(('hour', 'day', 'month', 'year')),
    strategies.integers(0, 59).map('hour@{}'.format),
    strategies.integers(0, 23).map('day@{}'.format),
    strategies.integers(1, 31).map('month@{}'.format),
    strategies.integers(1, 12).map('year@{}'.format))
MOMENTS = strategies.datetimes(
    datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1),
    timezones=strategies.just(UTC))


class TestAuditPeriod(base.TestCase):

    def assertPeriods(self, period, moment, last, begin, end):
        moment = timestamps.parse(moment)
        last, begin, end = map(timestamps.parse, (last, begin, end))
        self.assertEqual((begin, end),
                         audit_period.containing(period, moment))
        self.assertEqual((last, begin),
                         audit_period.last_completed(period, moment))

    def test_blueprint(self):
        self.assertPeriods('hour', '2012-03-01 02:10', '2012-03-01 01:00',
                           '2012-03-01 02:00', '2012-03-01 03:00')
        self.assertPeriods('hour@30', '2012-03-01 02:40', '2012-03-01 01:30',
                           '2012-03-01 02:30', '2012-03-01 03:30')
        self.assertPeriods('day', '2012-03-02 17:01', '2012-03-01',
                           '2012-03-02', '2012-03-03')
        # The notification of the example says that it covers this one.
        self.assertPeriods('day@6', '2012-03-13 17:01', '2012-03-12 06:00',
                           '2012-03-13 06:00', '2012-03-14 06:00')
        self.assertPeriods('month', '2012-04-10', '2012-03-01',
                           '2012-04-01', '2012-05-01')
        self.assertPeriods('month@15', '2012-04-20', '2012-03-15',
                           '2012-04-15', '2012-05-15')
        self.assertPeriods('year', '2012-04-10', '2011-01-01',
                           '2012-01-01', '2013-01-01')
        self.assertPeriods('year@4', '2012-04-10', '2011-04-01',
                           '2012-04-01', '2013-04-01')

    def test_before_its_begin(self):
        self.assertPeriods('hour@30', '2012-01-01 00:10', '2011-12-31 22:30',
                           '2011-12-31 23:30', '2012-01-01 00:30')
        self.assertPeriods('day@6', '2012-01-01 05:59:59.999999',
                           '2011-12-30 06:00', '2011-12-31 06:00',
                           '2012-01-01 06:00')
        self.assertPeriods('month@15', '2012-01-10', '2011-11-15',
                           '2011-12-15', '2012-01-15')
        self.assertPeriods('year@4', '2012-03-31', '2010-04-01',
                           '2011-04-01', '2012-04-01')

    def test_at_its_begin(self):
        self.assertPeriods('day@6', '2012-03-13 06:00', '2012-03-12 06:00',
                           '2012-03-13 06:00', '2012-03-14 06:00')

    def test_short_months(self):
        self.assertPeriods('month@31', '2012-03-10', '2012-01-31',
                           '2012-02-29', '2012-03-31')
        self.assertPeriods('month@30', '2013-03-30', '2013-02-28',
                           '2013-03-30', '2013-04-30')

    def test_zones(self):
        moment = datetime.datetime(2012, 3, 13, 1, tzinfo=datetime.timezone(
            datetime.timedelta(hours=2)))
        begin, end = audit_period.containing('day', moment)
        self.assertEqual('2012-03-12T00:00:00+00:00', begin.isoformat())
        self.assertIs(UTC, end.tzinfo)

    def test_refused(self):
        moment = datetime.datetime(2012, 1, 1, tzinfo=UTC)
        for period in ('', 'week', 'hour@60', 'day@24', 'month@0',
                       'month@32', 'year@0', 'year@13', 'hour@', 'hour@-1',
                       'hour@1x', ' hour', 'Hour', None, 5):
            for function in (audit_period.containing,
                             audit_period.last_completed):
                self.assertRaises(ValueError, function, period, moment)
        error = self.assertRaises(
            ValueError, audit_period.check, 'day@24')
        self.assertIn('0 to 23', str(error))

    def test_needs_a_zone(self):
        self.assertRaises(ValueError, audit_period.containing, 'day',
                          datetime.datetime(2012, 1, 1))

    def test_end_of_all_years(self):
        for period in ('hour', 'day', 'month', 'year'):
            for year in (1, 9999):
                moment = datetime.datetime(
                    year, 1 if year == 1 else 12, 1 if year == 1 else 31,
                    0 if year == 1 else 23, tzinfo=UTC)
                self.assertRaises(
                    ValueError, audit_period.last_completed
                    if year == 1 else audit_period.containing, period,
                    moment)

    @hypothesis.given(PERIODS, MOMENTS)
    @hypothesis.settings(deadline=None, max_examples=200)
    def test_they_follow_each_other(self, period, moment):
        begin, end = audit_period.containing(period, moment)
        self.assertTrue(begin <= moment < end)
        self.assertEqual((begin, end),
                         audit_period.containing(period, begin))
        self.assertEqual(end, audit_period.containing(period, end)[0])
        last = audit_period.last_completed(period, moment)
        self.assertEqual(begin, last[1])
        self.assertEqual(last, audit_period.containing(period, last[0]))
        self.assertEqual((begin, end),
                         audit_period.last_completed(period, end))
