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

"""The time by which instances expire: the wall's, or the events'."""

import datetime

from triggerlib import clock
from triggerlib import opts


class ExpiryClock:
    """Tells how far time has gone for expiring.

    With ``wall`` it is the storage's time. With ``event`` it goes no further
    than the newest stored event less the allowed lateness, and follows the
    wall again when no event has come for the idle timeout.

    :param mode: ``wall`` or ``event``
    :param allowed_lateness: seconds
    :param idle_timeout: seconds
    """

    def __init__(self, mode: str = 'wall', allowed_lateness: float = 60.0,
                 idle_timeout: float = 300.0):
        self.follows_events = mode == 'event'
        self._lateness = allowed_lateness
        self._idle_timeout = clock.seconds(idle_timeout)
        self._started = None

    @classmethod
    def from_conf(cls, conf) -> 'ExpiryClock':
        """Build one from the options of ``[triggerlib]``."""
        group = conf[opts.GROUP]
        return cls(group.expiry_clock, group.allowed_lateness,
                   group.idle_timeout)

    def now(self, tx) -> datetime.datetime:
        """Return the time for expiring, between batches.

        :param tx: the running storage transaction
        """
        wall = tx.now()
        if not self.follows_events:
            return wall
        if self._started is None:
            # After an outage the backlog is older than the idle timeout;
            # it gets its chance to arrive before the wall counts again.
            self._started = wall
        newest = tx.newest_event()
        if newest is None:
            return wall
        if wall - max(newest.stored_at, self._started) >= self._idle_timeout:
            return wall
        return min(wall, clock.after(newest.timestamp, -self._lateness))

    def batch(self, tx, events):
        """Return the time for expiring at each event of a batch.

        It is what a scheduler that never sleeps would have gone by when the
        event arrived.

        :param tx: the running storage transaction, before ``events`` are
            stored in it
        :param events: the batch, in order of arrival
        :returns: a function from an event's position in the batch to a
            datetime
        """
        wall = tx.now()
        if not self.follows_events:
            return lambda position: wall
        newest = tx.newest_event()
        latest = None if newest is None else newest.timestamp
        moments = []
        for event in events:
            if latest is None or event.timestamp > latest:
                latest = event.timestamp
            moments.append(min(wall, clock.after(latest, -self._lateness)))
        return moments.__getitem__
