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

"""Clocks: where the package learns what time it is.

A storage driver without a clock of its own asks its database. A replay, and
a test, gives the driver a :class:`ReplayClock` in its place.
"""

import datetime
import threading

UTC = datetime.timezone.utc

#: The first and the last of all datetimes.
FIRST = datetime.datetime.min.replace(tzinfo=UTC)
LAST = datetime.datetime.max.replace(tzinfo=UTC)


def seconds(number):
    """Return a length of time given in seconds, a timedelta."""
    return datetime.timedelta(seconds=number)


def after(moment, seconds_):
    """Return the moment so many seconds later, or earlier if negative.

    What would be out of all datetimes is the last, or the first, of them.

    :param moment: an aware UTC datetime
    :param seconds_: a number of seconds
    """
    try:
        return moment + datetime.timedelta(seconds=seconds_)
    except OverflowError:
        return LAST if seconds_ > 0 else FIRST


class SystemClock:
    """The host's clock."""

    def now(self):
        """Return the current time, an aware UTC datetime."""
        return datetime.datetime.now(UTC)


class ReplayClock:
    """A clock that stands still until it is told to go on.

    :param start: the time it shows first, an aware datetime
    """

    def __init__(self, start):
        self._now = start.astimezone(UTC)
        self._lock = threading.Lock()

    def now(self):
        """Return the time last set, an aware UTC datetime."""
        return self._now

    def advance_to(self, moment):
        """Go on to ``moment``; an earlier moment leaves the clock alone."""
        with self._lock:
            if moment > self._now:
                self._now = moment.astimezone(UTC)

    def advance(self, seconds):
        """Go on by ``seconds``."""
        self.advance_to(after(self._now, seconds))
