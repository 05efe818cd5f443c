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

"""Properties that hold for every expression."""

import calendar
import datetime

import hypothesis
from hypothesis import strategies

from tests import base
from triggerlib import exceptions
from triggerlib import timex

UTC = datetime.timezone.utc
NAMES = ('first', 'last', 'timestamp', 'launched_at')
ZONES = ('UTC', 'America/New_York', 'Europe/Berlin', 'Australia/Lord_Howe',
         'America/St_Johns', 'Pacific/Apia', 'Africa/Cairo', 'Asia/Kolkata')
PERIODS = ('hour', 'day', 'month', 'year')
SMALLER = {
    'hour': ('us', 's', 'm'),
    'day': ('us', 's', 'm', 'h'),
    'month': ('us', 's', 'm', 'h', 'd', 'w'),
    'year': ('us', 's', 'm', 'h', 'd', 'w', 'mo'),
}
SETTABLE = {'us': (0, 999999), 's': (0, 59), 'm': (0, 59), 'h': (0, 23),
            'd': (1, 31), 'mo': (1, 12), 'y': (1, 9999)}

settings = hypothesis.settings(deadline=None, max_examples=150)

zones = strategies.sampled_from(ZONES)
moments = strategies.datetimes(
    timezones=strategies.sampled_from([None, UTC]))
# The years for which changes of the clocks are known.
recent = strategies.datetimes(
    datetime.datetime(1980, 1, 1), datetime.datetime(2035, 1, 1)).map(
        lambda moment: moment.replace(tzinfo=UTC))


@strategies.composite
def spaced(draw, parts):
    """Join pieces with white space that the language ignores."""
    space = strategies.sampled_from(['', ' ', '\t', '\n '])
    return ''.join(part + draw(space) for part in parts)


@strategies.composite
def durations(draw, units=tuple(SETTABLE) + ('w', 'sec', 'min', 'hr', 'yr'),
              bare=False, most=10 ** 6):
    numbers = strategies.one_of(
        strategies.integers(0, 70), strategies.integers(0, most))
    choices = list(units) + ([' '] if bare else [])
    pieces = [f'{draw(numbers)}{draw(strategies.sampled_from(choices))}'
              for _ in range(draw(strategies.integers(1, 3)))]
    return draw(spaced(pieces))


@strategies.composite
def replacements(draw, units=tuple(SETTABLE)):
    chosen = draw(strategies.lists(
        strategies.sampled_from(units), min_size=1, unique=True))
    return ' '.join(
        f'{draw(strategies.integers(*SETTABLE[unit]))}{unit}'
        for unit in chosen)


@strategies.composite
def operations(draw, bare=False):
    pieces = []
    for _ in range(draw(strategies.integers(0, 3))):
        if draw(strategies.booleans()):
            pieces += ['@', draw(strategies.one_of(
                replacements(), durations(bare=bare),
                strategies.times().map('{:%H:%M:%S}'.format)))]
        else:
            pieces += [draw(strategies.sampled_from('+-')),
                       draw(durations(bare=bare))]
    return draw(spaced(pieces))


@strategies.composite
def single(draw, depth=2):
    name = draw(strategies.sampled_from(('', '$'))) + draw(
        strategies.sampled_from(NAMES))
    base_text = name
    if depth and draw(strategies.booleans()):
        base_text = f'({draw(single(depth - 1))})'
    return f'{base_text} {draw(operations())}'


@strategies.composite
def ranges(draw):
    kind = draw(strategies.sampled_from(('between', 'whole', 'period')))
    if kind == 'period':
        argument = draw(strategies.one_of(
            strategies.just(''), single().map('({})'.format)))
        text = draw(strategies.sampled_from(PERIODS)) + argument
        return text + draw(operations(bare=True))
    text = f'{draw(single())} to {draw(single())}'
    if kind == 'whole':
        return f'({text}) {draw(operations(bare=True))}'
    return text


@strategies.composite
def pinned(draw):
    """Draw a period and operations that keep its moment inside."""
    period = draw(strategies.sampled_from(PERIODS))
    text = period
    units = SMALLER[period]
    for _ in range(draw(strategies.integers(0, 2))):
        if draw(strategies.booleans()):
            settable = tuple(unit for unit in units if unit in SETTABLE)
            text += f' @ {draw(replacements(settable))}'
        else:
            sign = draw(strategies.sampled_from('+-'))
            text += f' {sign} {draw(durations(units, most=1000))}'
    return text


expressions = strategies.one_of(single(), ranges())


class LanguageTestCase(base.TestCase):

    @settings
    @hypothesis.given(
        expressions, zones,
        strategies.fixed_dictionaries({name: moments for name in NAMES}))
    def test_only_errors_of_our_own(self, text, zone, datetimes):
        try:
            expression = timex.parse(text, zone)
            found = expression(**datetimes)
        except exceptions.TimexError as error:
            self.assertEqual(text, error.expression)
            return
        self.assertLessEqual(expression.names, set(NAMES))
        self.assertIsInstance(
            found,
            timex.TimeRange if expression.is_range else timex.Timestamp)
        self.assertIs(UTC, found.begin.tzinfo)
        self.assertIs(UTC, found.end.tzinfo)
        again = timex.parse(str(expression) + ' ', expression.timezone)
        self.assertEqual(found, again(**datetimes))

    @settings
    @hypothesis.given(expressions)
    def test_generated_text_is_mostly_of_the_language(self, text):
        # What else can be wrong in the text is a number, never its form.
        try:
            timex.parse(text)
        except exceptions.TimexError as error:
            self.assertRegex(
                error.reason, '^@ |longer than the calendar|smaller than')

    @settings
    @hypothesis.given(strategies.one_of(
        strategies.text(),
        strategies.text('firstlahdmoy0123456789$()+-@: \n'),
        strategies.lists(strategies.sampled_from(
            ['first', 'to', 'day', 'hour', '$', '(', ')', '+', '-', '@', ':',
             '3', '00', 'h', 'mo', 'w', '3h', '06:00'])).map(' '.join)))
    def test_garbage(self, text):
        try:
            expression = timex.parse(text)
        except exceptions.TimexError as error:
            self.assertTrue(1 <= error.column <= len(text) + 1)
            self.assertTrue(error.reason)
        else:
            self.assertTrue(expression.names)

    @settings
    @hypothesis.given(strategies.text(), strategies.text())
    def test_any_zone_name(self, text, zone):
        try:
            timex.parse(text, zone)
        except exceptions.TimexError as error:
            self.assertEqual(text, error.expression)


class CalendarTestCase(base.TestCase):

    @settings
    @hypothesis.given(moments, strategies.integers(0, 130000),
                      strategies.sampled_from('+-'))
    def test_months(self, moment, months, sign):
        expression = timex.parse(f'a {sign} {months}mo')
        try:
            found = expression(a=moment).timestamp
        except exceptions.TimexOverflow:
            index = moment.year * 12 + moment.month - 1
            index += months if sign == '+' else -months
            self.assertFalse(12 <= index < 120000)
            return
        way = (found.year - moment.year) * 12 + found.month - moment.month
        self.assertEqual(months if sign == '+' else -months, way)
        self.assertEqual(moment.time(), found.time())
        last = calendar.monthrange(found.year, found.month)[1]
        self.assertEqual(min(moment.day, last), found.day)

    @settings
    @hypothesis.given(recent, zones, replacements())
    def test_replacing_never_leaves_the_calendar(self, moment, zone, text):
        hypothesis.assume('y' not in text)
        found = timex.parse(f'a @ {text}', zone)(a=moment).timestamp
        self.assertLess(abs(found - moment), datetime.timedelta(days=366))

    @settings
    @hypothesis.given(recent, strategies.integers(0, 10 ** 6),
                      strategies.sampled_from(('us', 's', 'm', 'h')), zones)
    def test_elapsed_time_can_be_taken_back(self, moment, number, unit, zone):
        text = f'a + {number}{unit} - {number}{unit}'
        self.assertEqual(moment, timex.parse(text, zone)(a=moment).timestamp)


class RangeTestCase(base.TestCase):

    @settings
    @hypothesis.given(recent, zones, pinned())
    def test_a_pinned_range_holds_its_moment(self, moment, zone, text):
        expression = timex.parse(text, zone)
        found = expression(timestamp=moment)
        self.assertIn(moment, found)
        self.assertIn(found.begin, found)
        self.assertNotIn(found.end, found)

    @settings
    @hypothesis.given(recent, zones, pinned())
    def test_pinned_ranges_join(self, moment, zone, text):
        # Hours go on by elapsed time, so that they may overlap where clocks
        # change by half an hour.
        hypothesis.assume(not text.startswith('hour') or zone == 'UTC')
        expression = timex.parse(text, zone)
        found = expression(timestamp=moment)
        following = expression(timestamp=found.end)
        self.assertEqual(found.end, following.begin)

    @settings
    @hypothesis.given(recent, recent, recent)
    def test_half_open(self, begin, end, moment):
        found = timex.parse('first to last')(first=begin, last=end)
        self.assertEqual(begin <= moment < end, moment in found)
        self.assertEqual(begin < end, begin in found)
        self.assertNotIn(end, found)
