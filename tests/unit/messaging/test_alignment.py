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

"""Queues of different length are emptied at one pace."""

import queue as queue_module
import threading

from triggerlib.messaging import alignment

from tests import base
from tests import engine

at = engine.at

#: Seconds after which something that should have happened has not.
PATIENCE = 30


class TestAlignment(base.TestCase):
    """What may go on, and what waits."""

    def setUp(self):
        super().setUp()
        self.time = 0.0
        self.it = alignment.Alignment(
            ('info', 'error'), slack=30, patience=5,
            monotonic=lambda: self.time)

    def hand_on(self, queue, *seconds):
        """Hand a batch on whatever others do, and come to its end."""
        with self.it._changed:
            self.it._go_on(queue, max(at(one) for one in seconds))
            self.it._heard[queue] = self.time

    def allowed(self, queue, *seconds):
        return self.it.allowed(queue, [at(one) for one in seconds])

    def test_at_the_start_others_have_a_chance_to_say_something(self):
        self.assertEqual(0, self.allowed('error', 0))
        self.time = 4.9
        self.assertEqual(0, self.allowed('error', 0))
        self.time = 5.0
        self.assertEqual(1, self.allowed('error', 0))

    def test_what_is_ahead_waits(self):
        self.hand_on('info', 100)
        self.assertEqual(3, self.allowed('error', 90, 120, 130, 131, 100))

    def test_one_that_is_silent_is_not_waited_for(self):
        self.hand_on('info', 100)
        self.time = 4.9
        self.assertEqual(0, self.allowed('error', 1000))
        self.time = 5.0
        self.assertEqual(1, self.allowed('error', 1000))

    def test_one_that_is_worked_on_is_waited_for(self):
        portions = self.it.portions('info', [at(100), at(200)])
        self.time = 5.0
        self.assertEqual(2, next(portions))
        self.time = 1000.0
        # The head is what may not be stored yet.
        self.assertEqual(1, self.allowed('error', 130, 131))
        self.assertRaises(StopIteration, next, portions)
        self.assertEqual(2, self.allowed('error', 130, 230, 231))

    def test_a_batch_that_failed_is_waited_for_when_it_comes_again(self):
        self.time = 5.0
        portions = self.it.portions('info', [at(100)])
        next(portions)
        portions.close()
        self.assertEqual(1, self.allowed('error', 130, 131))

    def test_two_that_are_both_ahead_do_not_wait_for_each_other(self):
        # After a quiet night the next ones come at the same time.
        it = alignment.Alignment(('info', 'error'), slack=1)
        results = queue_module.SimpleQueue()

        def run(queue, *seconds):
            for count in it.portions(queue, [at(one) for one in seconds]):
                results.put((queue, count))
            results.put(queue)

        threads = [
            threading.Thread(target=run, args=each, daemon=True)
            for each in (('info', 3600, 3601), ('error', 3600, 3650))]
        for thread in threads:
            thread.start()
        found = [results.get(timeout=PATIENCE) for _ in range(5)]
        self.assertIn('info', found)
        self.assertIn('error', found)

    def test_a_long_queue_and_a_short_one_come_in_order(self):
        it = alignment.Alignment(('info', 'error'), slack=10)
        order = []
        lock = threading.Lock()

        def run(queue, seconds, batch):
            for start in range(0, len(seconds), batch):
                part = seconds[start:start + batch]
                done = 0
                for count in it.portions(queue, [at(one) for one in part]):
                    with lock:
                        order.extend(part[done:done + count])
                    done += count

        threads = [
            threading.Thread(target=run, args=each, daemon=True)
            for each in (('info', list(range(0, 2000)), 20),
                         ('error', list(range(5, 2000, 100)), 20))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.assertEqual(2020, len(order))
        newest = 0
        for one in order:
            newest = max(newest, one)
            # The slack, and what is in the batch that is handed on.
            self.assertGreaterEqual(one, newest - 30)

    def test_those_that_wait_give_up_when_it_is_over(self):
        portions = self.it.portions('info', [at(100)])
        self.it.stop()
        self.assertRaises(alignment.Stopped, next, portions)
