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

"""All listeners empty all queues at one pace."""

import threading

import fixtures

from triggerlib import clock as clock_module
from triggerlib.messaging import alignment
from triggerlib import storage

from tests import base
from tests import engine
from tests import sql

at = engine.at

#: Seconds after which something that should have happened has not.
PATIENCE = 30
SLACK = 30


class TestAlignment(base.TestCase):
    """What may go on, and what waits."""

    def setUp(self):
        super().setUp()
        self.clock = clock_module.ReplayClock(engine.START)
        self.storage = storage.get_driver(sql.load('memory://'), self.clock)
        self.meanwhile = []
        self.it = self.listener()
        self.other = self.listener()

    def listener(self):
        return alignment.Alignment(self.storage, SLACK, 10, self.pause)

    def pause(self, seconds):
        """Let time pass, and whatever else is to happen first."""
        self.clock.advance(seconds)
        if self.meanwhile:
            return self.meanwhile.pop(0)()

    def hand_on(self, listener, queue, *seconds):
        """Hand a whole batch on."""
        return list(listener.portions(queue, [at(one) for one in seconds]))

    def test_alone_it_does_not_wait(self):
        self.assertEqual([3], self.hand_on(self.it, 'info', 0, 9999, 5))
        self.assertEqual([1], self.hand_on(self.it, 'info', 99999))

    def test_at_its_start_any_age_may_come(self):
        self.it.start()
        begin = self.clock.now()
        self.assertEqual([1], self.hand_on(self.other, 'info', 0))
        self.assertGreaterEqual((self.clock.now() - begin).total_seconds(),
                                alignment.PATIENCE)

    def test_what_is_ahead_waits(self):
        batch = self.it.portions('info', [at(100), at(200)])
        next(batch)
        ahead = self.other.portions(
            'info', [at(90), at(120), at(130), at(131), at(100), at(9999)])
        # The head of the other's batch may not be stored yet.
        self.assertEqual(3, next(ahead))

        self.meanwhile.append(lambda: self.assertEqual([], list(batch)))
        # Another batch of the first one has arrived, and waits itself.
        self.meanwhile.append(lambda: self.storage.run(
            self.it._exchange, 'info', at(5000), True) and None)
        self.assertEqual(2, next(ahead))
        # It is never heard of again.
        self.assertRaises(alignment.GiveBack, next, ahead)

    def test_its_own_queues_wait_too(self):
        batch = self.it.portions('info', [at(100)])
        next(batch)
        ahead = self.it.portions('error', [at(130), at(131)])
        self.assertEqual(1, next(ahead))

    def test_one_that_is_silent_is_not_waited_for(self):
        self.hand_on(self.other, 'info', 100)
        self.clock.advance(alignment.PATIENCE)
        self.assertEqual([1], self.hand_on(self.it, 'error', 1000))

    def test_one_that_is_in_the_middle_of_a_batch_is(self):
        batch = self.other.portions('info', [at(100)])
        next(batch)
        self.clock.advance(alignment.BUSY - 1)
        ahead = self.it.portions('error', [at(1000)])
        self.meanwhile.append(lambda: True)
        self.assertRaises(alignment.GiveBack, next, ahead)

    def test_one_whose_queue_is_empty_has_the_others_go_on(self):
        self.hand_on(self.other, 'info', 100)
        self.assertEqual([1], self.hand_on(self.it, 'info', 1000))

    def test_one_that_dies_has_the_others_give_back(self):
        batch = self.other.portions('info', [at(100)])
        next(batch)
        # What it held is in the queue again, before this.
        self.assertRaises(alignment.GiveBack, self.hand_on, self.it, 'info',
                          1000)
        # So does what was on its way already.
        self.assertRaises(alignment.GiveBack, self.hand_on, self.it, 'info',
                          *range(2001, 2005))
        self.assertEqual([2], self.hand_on(self.it, 'info', 100, 1000))
        self.assertEqual([4], self.hand_on(
            self.it, 'info', *range(2001, 2005)))

    def test_what_another_one_gets_again_is_not_waited_for(self):
        batch = self.other.portions('info', [at(100)])
        next(batch)
        self.assertRaises(alignment.GiveBack, self.hand_on, self.it, 'info',
                          1000)
        # No more than ten were on their way.
        for number in (4, 4, 2):
            self.assertRaises(alignment.GiveBack, self.hand_on, self.it,
                              'info', *[2000] * number)
        self.assertEqual([1], self.hand_on(self.it, 'info', 2000))

    def test_two_that_are_both_ahead_do_not_wait_for_each_other(self):
        self.hand_on(self.it, 'info', 0)
        self.hand_on(self.it, 'error', 0)
        # After a quiet night the next ones come at the same time.
        ahead = self.it.portions('info', [at(3600), at(3650)])
        self.meanwhile.append(lambda: batches.append(
            self.it.portions('error', [at(3601)])) or next(batches[0])
            and None)
        batches = []
        self.assertEqual(1, next(ahead))
        self.assertEqual([], list(batches[0]))

    def test_a_batch_that_failed_is_waited_for_when_it_comes_again(self):
        portions = self.other.portions('info', [at(100)])
        next(portions)
        portions.close()
        ahead = self.it.portions('error', [at(130), at(131)])
        self.assertEqual(1, next(ahead))

    def test_those_that_wait_give_up_when_it_is_over(self):
        it = alignment.Alignment(self.storage, SLACK)
        next(self.other.portions('info', [at(0)]))
        it.stop()
        self.assertRaises(alignment.GiveBack, self.hand_on, it, 'info', 9999)

    def test_what_is_old_is_forgotten(self):
        self.hand_on(self.other, 'info', 0)
        self.clock.advance(1000)
        self.it.start()
        self.assertEqual([''], [one.queue for one in self.storage.run(
            lambda tx: tx.list_progress(at(-10 ** 6)))])

    def test_long_queues_and_short_ones_come_in_order(self):
        driver = storage.get_driver(sql.load('memory://'))
        order = []
        lock = threading.Lock()

        def run(it, queue, seconds, batch):
            rest = [at(one) for one in seconds]
            while rest:
                done = 0
                try:
                    for count in it.portions(queue, rest[:batch]):
                        with lock:
                            order.extend(rest[done:done + count])
                        done += count
                except alignment.GiveBack:
                    self.assertLess(done, batch)
                rest = rest[done:]

        self.useFixture(fixtures.MonkeyPatch(
            'triggerlib.messaging.alignment.PATIENCE', 2.0))
        listeners = [alignment.Alignment(driver, SLACK) for _ in range(3)]
        for it in listeners:
            it.start()
        threads = [
            threading.Thread(target=run, args=(it, *each), daemon=True)
            for it, each in zip(listeners, (
                ('info', range(0, 4000, 2), 50),
                ('info', range(1, 4000, 2), 50),
                ('error', range(5, 4000, 100), 20)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.assertEqual(4040, len(order))
        newest = order[0]
        for one in order:
            newest = max(newest, one)
            # The slack, and what is in a batch that is handed on.
            self.assertGreaterEqual(
                one, clock_module.after(newest, -(SLACK + 100)))
