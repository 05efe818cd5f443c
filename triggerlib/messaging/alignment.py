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

"""Alignment: all listeners empty all queues at one pace.

Notifications of different priorities, topics and exchanges are in different
queues, and several listeners take from each. After an outage a short queue
would be empty when a long one has just begun, and a listener may hold older
notifications than what another one is about to store: the newest would end
what the old ones still belong to. So each listener says in the storage how
far it is with each queue, and waits where it is ahead of the others.
"""

from collections import abc as collections_abc
import socket
import threading
import uuid

from triggerlib import clock as clock_module
from triggerlib.storage import driver as storage_module

#: Seconds after which a queue that delivers nothing is taken for empty.
PATIENCE = 5.0
#: Seconds after which a listener that is in the middle of a batch, and says
#: nothing, is taken for dead.
BUSY = 60.0
#: Seconds between two looks at how far the others are.
PAUSE = 0.2


class GiveBack(Exception):
    """What is left of a batch is to be requeued.

    Listening has ended, or a listener that was waited for is gone: what that
    one held is in the queue again, before this.
    """


class Alignment:
    """Keeps the queues of this listener together with all others.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param slack: seconds by which a queue may be ahead of another one
    :param prefetch: how many notifications of a queue may be on their way to
        this listener beside those that it works on
    :param pause: ``pause(seconds)`` waits, and returns whether listening has
        ended; the system's unless given
    """

    def __init__(self, storage, slack, prefetch=0, pause=None):
        self.name = f'{socket.gethostname()}:{uuid.uuid4()}'
        self._storage = storage
        self._slack = slack
        self._prefetch = prefetch
        #: What was given back last, and how many more may be ahead of it, by
        #: queue.
        self._returned = {}
        self._stop = threading.Event()
        self._pause = pause or self._stop.wait

    def start(self) -> None:
        """Say that notifications of any age may come."""
        def work(tx):
            now = tx.now()
            tx.forget_progress(clock_module.after(now, -BUSY))
            self._save(tx, '', clock_module.FIRST, False)

        self._storage.run(work)

    def stop(self) -> None:
        """Have those that wait give up."""
        self._stop.set()

    def portions(self, queue, moments) -> collections_abc.Iterator[int]:
        """Yield how many further notifications may be handed on.

        It waits until all have been. Whoever asks for the next portion has
        handed on the one before.

        :param queue: name of the queue that they are from
        :param moments: their timestamps, aware UTC datetimes, in order of
            arrival
        :raises GiveBack: those that are left are to be requeued
        :raises StorageError: likewise
        """
        self._check_order(queue, moments)
        done = 0
        waited_for = frozenset()
        try:
            while done < len(moments):
                # Nothing older is to come from here, which others may wait
                # for.
                others = self._storage.run(
                    self._exchange, queue, moments[done], True)
                if not waited_for <= others.keys():
                    raise self._give_back(queue, moments[done])
                bound = clock_module.after(
                    min((one.moment for one in others.values()),
                        default=clock_module.LAST), self._slack)
                count = _leading(moments, done, bound)
                if count:
                    waited_for = frozenset()
                    yield count
                    done += count
                    continue
                waited_for = frozenset(
                    key for key, one in others.items()
                    if one.holds and clock_module.after(
                        one.moment, self._slack) < moments[done])
                if self._pause(PAUSE):
                    raise self._give_back(queue, moments[done])
        finally:
            self._storage.run(
                self._exchange, queue,
                max(moments[:done]) if done else moments[0], False)

    def _give_back(self, queue, moment):
        self._returned[queue] = moment, self._prefetch
        return GiveBack()

    def _check_order(self, queue, moments):
        """Give back what was on its way when what is before it was."""
        moment, left = self._returned.pop(queue, (None, 0))
        if left > 0 and moments[0] > clock_module.after(moment, self._slack):
            self._returned[queue] = moment, left - len(moments)
            raise GiveBack

    def _exchange(self, tx, queue, moment, holds):
        """Say how far a queue is, and return how far the others are."""
        self._save(tx, queue, moment, holds)
        return {
            (one.listener, one.queue): one
            for one in tx.list_progress(tx.now())
            if (one.listener, one.queue) != (self.name, queue)}

    def _save(self, tx, queue, moment, holds):
        tx.save_progress(
            storage_module.Progress(self.name, queue, moment, holds),
            clock_module.after(tx.now(), BUSY if holds else PATIENCE))


def _leading(moments, begin, bound):
    """Count the first ones from ``begin`` on that are not after a bound."""
    for end in range(begin, len(moments)):
        if moments[end] > bound:
            return end - begin
    return len(moments) - begin
