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

"""Delivery: brings a stream out of order, and some of it twice."""

import collections.abc
import heapq
import random
import typing

from triggerlib.testing.lifecycle import moments
from triggerlib.testing import notification as notification_


def disorder(notifications: collections.abc.Iterable[dict], spread: float,
             duplicates: float, rng: random.Random
             ) -> collections.abc.Iterator[dict]:
    """Yield notifications as a message bus might deliver them.

    Each is delivered up to ``spread`` seconds after its timestamp. So a
    notification is never overtaken by one that is ``spread`` seconds
    younger, and no more are held back than ``spread`` seconds bring.

    :param notifications: ordered by their timestamps, in any of the three
        forms; may be endless
    :param spread: seconds, 0 or more
    :param duplicates: the share, from 0 to 1, that is delivered twice; the
        repeat is the same object, within ``spread`` seconds too
    :param rng: decides; the same state gives the same order
    :raises ValueError: when ``spread`` or ``duplicates`` is out of bounds
    """
    timed = ((moments.from_datetime(notification_.read(each).timestamp), each)
             for each in notifications)
    return deliver(timed, spread, duplicates, rng)


def deliver(timed: collections.abc.Iterable[tuple[int, typing.Any]],
            spread: float, duplicates: float, rng: random.Random
            ) -> collections.abc.Iterator[typing.Any]:
    """Do what :func:`disorder` does with whatever has a moment.

    :param timed: pairs of a moment and what to yield
    """
    if not spread >= 0:
        raise ValueError(f'spread is {spread!r}; it must be 0 or more '
                         f'seconds')
    if not 0 <= duplicates <= 1:
        raise ValueError(f'duplicates is {duplicates!r}; it is a share, '
                         f'from 0 to 1')
    return _deliver(timed, spread * moments.SECOND, duplicates, rng.random)


def _deliver(timed, spread, duplicates, random_):
    held = []
    count = 0
    for moment, item in timed:
        # Whatever is still to come is delivered at its own moment or later.
        while held and held[0][0] <= moment:
            yield heapq.heappop(held)[2]
        times = 1
        if duplicates and random_() < duplicates:
            times = 2
        for _ in range(times):
            count += 1
            heapq.heappush(
                held, (moment + int(random_() * spread), count, item))
    while held:
        yield heapq.heappop(held)[2]
