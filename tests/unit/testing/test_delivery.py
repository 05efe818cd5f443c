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

"""Tests of the disorder that a stream is brought into."""

import datetime
import random

import hypothesis
from hypothesis import strategies

from tests import base
from triggerlib import testing
from triggerlib.testing import delivery

START = datetime.datetime(2013, 10, 1, tzinfo=datetime.timezone.utc)


def notifications(seconds):
    """Return a notification for each offset, in the flat form."""
    return [{'message_id': f'm-{number}', 'event_type': 'test',
             'timestamp': str(START + datetime.timedelta(seconds=offset)),
             'payload': {}}
            for number, offset in enumerate(seconds)]


def timestamp(notification):
    return datetime.datetime.fromisoformat(notification['timestamp'])


class DisorderTest(base.TestCase):

    @hypothesis.settings(deadline=None, max_examples=60)
    @hypothesis.given(
        offsets=strategies.lists(strategies.floats(0, 1000), max_size=60),
        spread=strategies.floats(0, 100),
        duplicates=strategies.floats(0, 1),
        seed=strategies.integers())
    def test_bounded_and_complete(self, offsets, spread, duplicates, seed):
        given = notifications(sorted(offsets))
        result = list(testing.disorder(given, spread, duplicates,
                                       random.Random(seed)))
        latest = START
        for each in result:
            lag = (latest - timestamp(each)).total_seconds()
            self.assertLessEqual(lag, spread)
            latest = max(latest, timestamp(each))
        counts = [sum(each is other for other in result) for each in given]
        self.assertTrue(set(counts) <= {1, 2})
        self.assertEqual(sum(counts), len(result))

    def test_nothing_to_do_changes_nothing(self):
        given = notifications([1, 1, 2, 3, 3, 3])
        result = list(testing.disorder(given, 0, 0, random.Random(1)))
        self.assertEqual(given, result)

    def test_disorder_is_real(self):
        given = notifications(range(1000))
        result = list(testing.disorder(given, 60, 0, random.Random(1)))
        late = sum(timestamp(a) > timestamp(b)
                   for a, b in zip(result, result[1:]))
        self.assertGreater(late, 300)

    def test_share_of_duplicates(self):
        given = notifications(range(5000))
        result = list(testing.disorder(given, 5, 0.1, random.Random(1)))
        self.assertTrue(400 < len(result) - len(given) < 600)
        doubled = list(testing.disorder(given, 0, 1, random.Random(1)))
        self.assertEqual([each for each in given for _ in range(2)], doubled)

    def test_same_seed_same_order(self):
        given = notifications(range(200))
        orders = [[each['message_id'] for each in testing.disorder(
            given, 30, 0.2, random.Random(seed))] for seed in (7, 7, 8)]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])

    def test_holds_back_no_more_than_spread_brings(self):
        drawn = 0

        def endless():
            nonlocal drawn
            while True:
                drawn += 1
                yield drawn * 1_000_000, drawn

        stream = delivery.deliver(endless(), 50, 0, random.Random(1))
        for delivered in range(1, 5000):
            next(stream)
            self.assertLessEqual(drawn - delivered, 51)

    def test_bounds(self):
        for spread, duplicates, name in (
                (-1, 0, 'spread'), (float('nan'), 0, 'spread'),
                (0, 1.1, 'duplicates'), (0, -0.1, 'duplicates')):
            error = self.assertRaises(
                ValueError, testing.disorder, [], spread, duplicates,
                random.Random(1))
            self.assertIn(name, str(error))
