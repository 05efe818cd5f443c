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

"""Calendar arithmetic on UTC datetimes, as the clocks of a zone show it.

Days, months and years, ``@`` and periods are read on the zone's wall clock;
hours and smaller are elapsed time. A wall-clock time that a change of the
clocks leaves out moves on by the length of the gap; one that occurs twice
is the first. Every function that cannot stay within the years 1 to 9999
raises OverflowError.
"""

import calendar
from collections import abc
import datetime
import typing

UTC = datetime.timezone.utc

Change: typing.TypeAlias = abc.Callable[[datetime.datetime],
                                        datetime.datetime]

_PARTS_BELOW_HOUR = frozenset({'minute', 'second', 'microsecond'})
_PARTS_OF_DATE = ('year', 'month', 'day')
_HOUR = datetime.timedelta(hours=1)
# By the number of the month; February has one more in a leap year.
_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def shift(zone: datetime.tzinfo, months: int, days: int,
          elapsed: datetime.timedelta) -> Change:
    """Return a function that moves a UTC datetime.

    Days come first, then elapsed time, then months: the last day of a month
    is decided on when all that is smaller has been added.

    :param zone: the zone whose wall clock counts
    :param months: calendar months, negative for back
    :param days: calendar days, negative for back
    :param elapsed: elapsed time
    """
    if zone is UTC:
        elapsed += datetime.timedelta(days=days)
        days = 0
    steps = []
    if days:
        length = datetime.timedelta(days=days)
        steps.append(_on_wall(zone, lambda wall: wall + length))
    if elapsed:
        steps.append(lambda moment: moment + elapsed)
    if months:
        steps.append(_on_wall(zone, lambda wall: add_months(wall, months)))
    return chain(steps)


def replace(zone: datetime.tzinfo, parts: dict[str, int]) -> Change:
    """Return a function that sets parts of a UTC datetime's wall clock.

    A day that the month does not have becomes the last one of the month.
    When nothing above the minute is set, the second one of a repeated hour
    stays the second.

    :param zone: the zone whose wall clock counts
    :param parts: the values by the names of datetime's attributes
    """
    keeps_fold = _PARTS_BELOW_HOUR.issuperset(parts)
    if not keeps_fold:
        parts = {**parts, 'fold': 0}
    if not any(part in parts for part in _PARTS_OF_DATE):
        if zone is UTC:
            return lambda moment: moment.replace(**parts)
        return lambda moment: (
            moment.astimezone(zone).replace(**parts).astimezone(UTC))

    year, month, day = (parts.get(part) for part in _PARTS_OF_DATE)
    time = {part: value for part, value in parts.items()
            if part not in _PARTS_OF_DATE}

    def change(moment):
        wall = moment.astimezone(zone)
        new_year = year or wall.year
        new_month = month or wall.month
        new_day = min(day or wall.day, _days_in(new_year, new_month))
        return wall.replace(
            new_year, new_month, new_day, **time).astimezone(UTC)

    return change


def chain(changes: abc.Sequence[Change]) -> Change:
    """Return the function that applies changes one after the other."""
    if not changes:
        return lambda moment: moment
    if len(changes) == 1:
        return changes[0]

    def change(moment):
        for one in changes:
            moment = one(moment)
        return moment

    return change


def add_months(moment: datetime.datetime, months: int) -> datetime.datetime:
    """Return a datetime some calendar months later.

    A day that the month does not have becomes the last one of the month.

    :param moment: any datetime
    :param months: how many, negative for earlier
    """
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise OverflowError(f'year {year} is out of range')
    month += 1
    return moment.replace(
        year=year, month=month, day=min(moment.day, _days_in(year, month)))


class Periods:
    """The calendar's periods of one kind, counted from that of a moment.

    :param unit: ``hour``, ``day``, ``month`` or ``year``
    :param zone: the zone whose wall clock counts; an hour begins where the
        wall clock shows a whole one, and lasts an hour; where clocks change
        by half an hour, the one around the change begins as long before its
        moment as the wall clock then shows minutes
    """

    def __init__(self, unit: str, zone: datetime.tzinfo):
        self._zone = zone
        self._parts = {'minute': 0, 'second': 0, 'microsecond': 0}
        self._is_hour = unit == 'hour'
        if not self._is_hour:
            self._parts.update(hour=0, fold=0)
        if unit in ('month', 'year'):
            self._parts['day'] = 1
        if unit == 'year':
            self._parts['month'] = 1
        self._begin = getattr(self, f'_begin_of_{unit}')
        self.usual_length = {
            'hour': _HOUR,
            'day': datetime.timedelta(days=1),
            'month': datetime.timedelta(days=31),
            'year': datetime.timedelta(days=366),
        }[unit]

    def around(self, moment: datetime.datetime) -> abc.Callable[
            [int], datetime.datetime]:
        """Return a function from a number to where that period begins.

        Number 0 is the period that the wall clock shows at ``moment``, -1
        the one before. Begins are in UTC.
        """
        wall = moment.astimezone(self._zone)
        first = wall.replace(**self._parts)
        if self._is_hour:
            # Elapsed, so that both ones of a repeated hour are hours.
            first = moment - (wall - first)
        begin = self._begin
        return lambda number: begin(first, number)

    def _begin_of_hour(self, first, number):
        return first + number * _HOUR

    def _begin_of_day(self, first, number):
        return (first + datetime.timedelta(days=number)).astimezone(UTC)

    def _begin_of_month(self, first, number):
        return add_months(first, number).astimezone(UTC)

    def _begin_of_year(self, first, number):
        return add_months(first, 12 * number).astimezone(UTC)


def _on_wall(zone, change):
    if zone is UTC:
        return change
    # Arithmetic within one zone is wall-clock arithmetic in Python.
    return lambda moment: change(
        moment.astimezone(zone)).replace(fold=0).astimezone(UTC)


def _days_in(year, month):
    if month == 2 and calendar.isleap(year):
        return 29
    return _DAYS[month]
