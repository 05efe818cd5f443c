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

"""The agenda: runs many life cycles at once, in the order of time.

A life cycle is a generator (in Python's sense) that yields the moment at
which it wants to go on. It is resumed at that moment, sends what there is to
say and yields the next moment, which is never one that has passed; when it
returns, it is over. Only the life cycles under way are held, however many
there will have been.
"""

import heapq
import typing

from triggerlib.testing.lifecycle import message

LifeCycle = typing.Generator[int, None, None]


class Agenda:
    """The life cycles under way."""

    def __init__(self):
        self._heap = []
        self._count = 0
        self._sent = []

    def __len__(self) -> int:
        """Return how many life cycles are under way."""
        return len(self._heap)

    def start(self, life_cycle: LifeCycle) -> None:
        """Let a life cycle run up to the first moment that it yields."""
        moment = next(life_cycle, None)
        if moment is not None:
            # The count decides between equal moments.
            self._count += 1
            heapq.heappush(self._heap, (moment, self._count, life_cycle))

    def send(self, sent: message.Message) -> None:
        """Take a message from the life cycle that is running."""
        self._sent.append(sent)

    def run(self) -> typing.Iterator[message.Message]:
        """Yield what the life cycles send, ordered by time."""
        heap = self._heap
        sent = self._sent
        while heap:
            _, count, life_cycle = heap[0]
            moment = next(life_cycle, None)
            # Whatever it started comes later, by its moment or its count:
            # the life cycle that ran is still on top.
            if moment is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (moment, count, life_cycle))
            if sent:
                yield from sent
                sent.clear()
