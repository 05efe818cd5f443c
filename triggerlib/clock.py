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


def seconds(number):
    """Return a length of time given in seconds, a timedelta."""
    return datetime.timedelta(seconds=number)


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
        self.advance_to(self._now + datetime.timedelta(seconds=seconds))
