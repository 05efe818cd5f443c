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

"""Alignment: queues of different length are emptied at one pace.

Notifications of different priorities, topics and exchanges are in queues of
their own. After an outage a short one would be empty when a long one has
just begun, and its newest notifications would end what the old ones of the
other still belong to. So what is ahead of the other queues waits for them.
"""

from collections import abc as collections_abc
import datetime
import threading
import time

from triggerlib import clock as clock_module

#: Seconds after which a queue that delivers nothing is taken for empty.
PATIENCE = 5.0


class Stopped(Exception):
    """Nothing more is to be handed on."""


class Alignment:
    """Keeps the queues of one process together. It is shared by threads.

    :param queues: names of the queues
    :param slack: seconds by which a queue may be ahead of another one
    :param patience: seconds after which a queue that delivers nothing is
        taken for empty
    :param monotonic: returns the time, in seconds
    """

    def __init__(self, queues, slack, patience=PATIENCE,
                 monotonic=time.monotonic):
        self._slack = slack
        self._patience = patience
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._stopped = False
        now = monotonic()
        #: What is the oldest that a queue may still bring, by name.
        self._progress = dict.fromkeys(queues, clock_module.FIRST)
        #: When a queue was heard of last, by name; None while it is worked
        #: on.
        self._heard = dict.fromkeys(queues, now)

    def portions(self, queue, moments) -> collections_abc.Iterator[int]:
        """Yield how many further notifications may be handed on.

        It waits until all have been. Whoever asks for the next portion has
        handed on the one before.

        :param queue: name of the queue that they are from
        :param moments: their timestamps, aware UTC datetimes, in order of
            arrival
        :raises Stopped: nothing more is to be handed on
        """
        done = 0
        with self._changed:
            self._heard[queue] = None
        try:
            while done < len(moments):
                with self._changed:
                    count = self._wait(queue, moments[done:])
                yield count
                done += count
        finally:
            with self._changed:
                if done:
                    self._go_on(queue, max(moments[:done]))
                self._heard[queue] = self._monotonic()
                self._changed.notify_all()

    def stop(self) -> None:
        """Have those that wait give up."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def allowed(self, queue, moments) -> int:
        """Return how many notifications may be handed on now.

        :param queue: name of the queue that they are from
        :param moments: their timestamps, in order of arrival
        """
        bound = self._bound(queue)
        for count, moment in enumerate(moments):
            if moment > bound:
                return count
        return len(moments)

    def _wait(self, queue, moments):
        # Nothing older is to come from here, which others may wait for.
        self._go_on(queue, moments[0])
        while not self._stopped:
            count = self.allowed(queue, moments)
            if count:
                return count
            self._changed.wait(min(self._patience, 0.5))
        raise Stopped

    def _go_on(self, queue, moment):
        if moment > self._progress[queue]:
            self._progress[queue] = moment
            self._changed.notify_all()

    def _bound(self, queue) -> datetime.datetime:
        now = self._monotonic()
        return clock_module.after(min(
            (progress for name, progress in self._progress.items()
             if name != queue and (
                 self._heard[name] is None
                 or now - self._heard[name] < self._patience)),
            default=clock_module.LAST), self._slack)
