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

"""The time by which instances fire and expire: the wall's, or the events'."""

import datetime
import typing

from triggerlib import clock
from triggerlib import opts
from triggerlib.storage import driver as storage_module


class Time(typing.NamedTuple):
    """How far time has gone.

    :param fire: for firing, an aware UTC datetime
    :param expire: for expiring, an aware UTC datetime
    """

    fire: datetime.datetime
    expire: datetime.datetime


class ExpiryClock:
    """Tells how far time has gone for firing and expiring.

    With ``wall`` it is the storage's time. With ``event`` it goes no further
    than the newest stored event, and for expiring stays behind that by the
    allowed lateness. It follows the wall, as late as an event may be, when
    none has come for the idle timeout. What is made of an event then depends
    on the events before it alone, not on when and with how many others it
    came.

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

    def now(self, tx) -> Time:
        """Return the time between batches.

        :param tx: the running storage transaction
        """
        wall = tx.now()
        if not self.follows_events:
            return Time(wall, wall)
        if self._started is None:
            # After an outage the backlog is older than the idle timeout;
            # it gets its chance to arrive before the wall counts again.
            self._started = wall
        newest = tx.newest_event()
        if newest is None:
            return self._at(wall)
        moment = newest.timestamp
        if wall - max(newest.stored_at, self._started) >= self._idle_timeout:
            # An event that arrives now may be late as well.
            moment = max(moment, clock.after(wall, -self._lateness))
        return self._at(min(wall, moment))

    def batch(self, tx, events):
        """Return the time at each event of a batch.

        It is what a scheduler that never sleeps would have gone by when the
        event arrived.

        :param tx: the running storage transaction, before ``events`` are
            stored in it
        :param events: the batch, in order of arrival
        :returns: a function from an event's position in the batch to a
            :class:`Time`
        """
        wall = tx.now()
        if not self.follows_events:
            time = Time(wall, wall)
            return lambda position: time
        newest = tx.newest_event()
        latest = None if newest is None else newest.timestamp
        limit = clock.after(wall, storage_module.AHEAD)
        times = []
        for event in events:
            if event.timestamp <= limit and (
                    latest is None or event.timestamp > latest):
                latest = event.timestamp
            times.append(self._at(
                wall if latest is None else min(wall, latest)))
        return times.__getitem__

    def _at(self, moment):
        return Time(moment, clock.after(moment, -self._lateness))
