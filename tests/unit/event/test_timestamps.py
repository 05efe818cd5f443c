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

"""Timestamps in the forms that notifications have them."""

import datetime

import hypothesis
from hypothesis import strategies

from tests import base
from triggerlib.event import timestamps

UTC = datetime.timezone.utc
HERE = datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))


class TestParse(base.TestCase):

    def assertParsed(self, expected, value):
        moment = timestamps.parse(value)
        self.assertEqual(expected.replace(tzinfo=UTC), moment)
        self.assertIs(UTC, moment.tzinfo)

    def test_of_the_blueprints(self):
        self.assertParsed(datetime.datetime(2012, 3, 12, 17, 1, 29, 899834),
                          '2012-03-12 17:01:29.899834')
        self.assertParsed(datetime.datetime(2012, 3, 12, 16, 57, 29),
                          '2012-03-12 16:57:29')
        self.assertParsed(datetime.datetime(2012, 3, 13, 17, 1),
                          '2012-03-13 17:01')

    def test_iso(self):
        noon = datetime.datetime(2012, 3, 13, 12, 0, 1)
        for text in ('2012-03-13T12:00:01', '2012-03-13T12:00:01Z',
                     '2012-03-13T12:00:01.000000',
                     '2012-03-13T12:00:01+00:00', '20120313T120001Z',
                     '2012-03-13T14:00:01+02:00', '2012-03-13T14:00:01+0200',
                     '2012-03-13 06:30:01-05:30', ' 2012-03-13T12:00:01Z '):
            self.assertParsed(noon, text)
        self.assertParsed(datetime.datetime(2012, 3, 13), '2012-03-13')

    def test_what_only_the_library_reads(self):
        self.assertParsed(datetime.datetime(2012, 3, 1), '2012-03')
        self.assertParsed(datetime.datetime(2012, 3, 2, 14, 5, 6),
                          '2012-3-2 14:05:6')

    def test_utc_in_letters(self):
        for text in ('2012-03-01 01:00UTC', '2012-03-01 01:00:00 UTC',
                     '2012-03-01T01:00:00.0 UTC '):
            self.assertParsed(datetime.datetime(2012, 3, 1, 1), text)

    def test_minute_of_one_digit(self):
        # The library would take it for the second.
        for text in ('2012-03-02 14:5', '2012-3-2T14:5Z', '2012-03-02 145'):
            self.assertRaises(ValueError, timestamps.parse, text)

    def test_datetime(self):
        self.assertParsed(datetime.datetime(2012, 3, 13, 1, 2),
                          datetime.datetime(2012, 3, 13, 1, 2))
        self.assertParsed(datetime.datetime(2012, 3, 13, 17, 31),
                          datetime.datetime(2012, 3, 13, 12, 1, tzinfo=HERE))

    def test_refused(self):
        for value in ('', ' ', 'UTC', 'n/a', 'now', '2012-13-01', '17:01',
                      '2012-02-30 10:00', '2012-03-13 25:00', 'x' * 5000,
                      None, 0, 1.5, True, [], {}, b'2012-03-13',
                      datetime.date(2012, 3, 13)):
            error = self.assertRaises(ValueError, timestamps.parse, value)
            self.assertIn('is not a timestamp', str(error))
            self.assertLess(len(str(error)), 200)

    def test_out_of_all_years(self):
        for text in ('0001-01-01T00:00:00+02:00',
                     '9999-12-31T23:00:00-02:00'):
            error = self.assertRaises(ValueError, timestamps.parse, text)
            self.assertIn('out of all years', str(error))

    @hypothesis.settings(deadline=None, max_examples=200)
    @hypothesis.given(moment=strategies.datetimes(
        datetime.datetime(2, 1, 1), datetime.datetime(9998, 12, 31),
        timezones=strategies.sampled_from([UTC, HERE])))
    def test_what_isoformat_writes(self, moment):
        for separator in 'T ':
            self.assertEqual(
                moment, timestamps.parse(moment.isoformat(separator)))

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(text=strategies.one_of(
        strategies.text(),
        strategies.text('0123456789-+:.,TZW \u0661', max_size=35)))
    def test_anything_else_raises_valueerror(self, text):
        try:
            moment = timestamps.parse(text)
        except ValueError:
            return
        self.assertIs(UTC, moment.tzinfo)
