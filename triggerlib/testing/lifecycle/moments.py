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

"""Moments: points in time as whole microseconds since 1970, in UTC.

The life cycles reckon in integers, which are fast and the same everywhere;
this module writes them down as the services do.
"""

import datetime

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: later than every moment
NEVER = float('inf')

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_NAIVE_EPOCH = datetime.datetime(1970, 1, 1)


def from_datetime(value: datetime.datetime) -> int:
    """Return the moment of an aware datetime."""
    since = value - _EPOCH
    return (since.days * DAY + since.seconds * SECOND + since.microseconds)


def to_datetime(moment: int) -> datetime.datetime:
    """Return a moment as an aware UTC datetime."""
    return _EPOCH + datetime.timedelta(0, 0, moment)


def stamp(moment: int) -> str:
    """Write a moment as Nova does: '2012-03-12 17:01:29.899834'."""
    since = datetime.timedelta(0, 0, moment)
    return (_NAIVE_EPOCH + since).isoformat(' ', 'microseconds')


def second(moment: int) -> str:
    """Write a moment down to the second: '2012-03-12 17:01:29'."""
    since = datetime.timedelta(0, 0, moment)
    return (_NAIVE_EPOCH + since).isoformat(' ', 'seconds')


def iso(moment: int) -> str:
    """Write a moment down to the second, as '2012-03-12T17:01:29'."""
    since = datetime.timedelta(0, 0, moment)
    return (_NAIVE_EPOCH + since).isoformat('T', 'seconds')
