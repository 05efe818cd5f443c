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

"""Audit periods, as Nova has them (blueprint NotificationEventExamples).

``hour``, ``day``, ``month`` or ``year``, with ``@`` and a number that moves
its begin: to a minute, an hour, a day of the month, or a month.
"""

import calendar
import datetime
import re

UTC = datetime.timezone.utc

_PERIOD = re.compile(r'(hour|day|month|year)(?:@(\d{1,2}))?')
_BOUNDS = {'hour': (0, 59), 'day': (0, 23), 'month': (1, 31),
           'year': (1, 12)}


def containing(period: str, moment: datetime.datetime):
    """Return begin and end of the period that a moment lies in.

    :param period: ``hour[@minute]``, ``day[@hour]``, ``month[@day]`` or
        ``year[@month]``; in a month without that day it begins on the
        month's last
    :param moment: an aware datetime
    :returns: ``(begin, end)``, aware UTC datetimes; the end lies outside
    :raises ValueError: there is no such period
    """
    unit, offset = _read(period)
    if moment.tzinfo is None:
        raise ValueError(f'{moment} has no time zone')
    moment = moment.astimezone(UTC)
    begin = _begin(unit, offset, moment, 0)
    if begin > moment:
        return _begin(unit, offset, moment, -1), begin
    return begin, _begin(unit, offset, moment, 1)


def last_completed(period: str, moment: datetime.datetime):
    """Return begin and end of the last period that is over at a moment.

    See :func:`containing`.
    """
    begin, _ = containing(period, moment)
    unit, offset = _read(period)
    return _begin(unit, offset, begin, -1), begin


def check(period: str) -> None:
    """Refuse what is no audit period.

    :raises ValueError: there is no such period
    """
    _read(period)


def _read(period):
    found = _PERIOD.fullmatch(period) if isinstance(period, str) else None
    if found is None:
        raise ValueError(
            f'{period!r} is no audit period; write hour, day, month or '
            f'year, and if need be @ and a number, such as day@6')
    unit, offset = found.groups()
    low, high = _BOUNDS[unit]
    offset = low if offset is None else int(offset)
    if not low <= offset <= high:
        raise ValueError(f'{period!r}: the number behind {unit}@ is '
                         f'{low} to {high}')
    return unit, offset


def _begin(unit, offset, moment, step):
    """Return a begin near a moment, moved on by ``step`` periods."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if unit == 'hour':
            return moment.replace(
                minute=offset, second=0, microsecond=0
            ) + datetime.timedelta(hours=step)
        if unit == 'day':
            return midnight.replace(
                hour=offset) + datetime.timedelta(days=step)
        if unit == 'month':
            months = moment.year * 12 + moment.month - 1 + step
            year, month = divmod(months, 12)
            month += 1
            day = min(offset, calendar.monthrange(year, month)[1])
            return midnight.replace(year=year, month=month, day=day)
        return midnight.replace(
            year=moment.year + step, month=offset, day=1)
    except (OverflowError, IndexError, calendar.IllegalMonthError) as error:
        raise ValueError(
            f'{moment} is at the end of all years') from error
