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

"""The heartbeat: leases are renewed while pipelines run long."""

import threading

import fixtures

from tests import base
from tests.unit.pipeline import stage
from triggerlib.cmd import config
from triggerlib import exceptions
from triggerlib.pipeline import heartbeat

#: Seconds after which a thread is taken for stuck.
PATIENCE = 30


class Storage:
    """Hands every renewal to a function."""

    def __init__(self, renew):
        self._renew = renew

    def run(self, work, lease):
        self._renew(lease)


class TestBeat(base.TestCase):
    """What one beat does."""

    def setUp(self):
        super().setUp()
        self.on = self.useFixture(stage.Stage(config.load(
            [], overrides={'connection': 'memory://'})))
        self.heartbeat = heartbeat.Heartbeat(self.on.storage, stage.LEASE)

    def test_it_renews_the_lease(self):
        with self.heartbeat.keep(self.on.instance_id, self.on.owner) as lease:
            self.on.clock.advance(100)
            self.heartbeat.beat()
            lease.check()
        self.assertEqual(
            400, (self.on.instance().deadline - stage.START).total_seconds())

    def test_it_leaves_alone_what_has_ended(self):
        with self.heartbeat.keep(self.on.instance_id, self.on.owner):
            pass
        self.heartbeat.beat()
        self.assertEqual(stage.START, self.on.instance().deadline)

    def test_it_finds_out_that_a_lease_is_lost(self):
        with self.heartbeat.keep(self.on.instance_id, self.on.owner) as lease:
            self.on.claim_again()
            self.heartbeat.beat()
            self.assertRaises(exceptions.LeaseLost, lease.check)
            # The one who took it is not disturbed, now or later.
            self.heartbeat.beat()
            self.assertEqual(stage.START, self.on.instance().deadline)

    def test_one_lease_does_not_depend_on_another(self):
        renewed = []

        def renew(lease):
            if lease.instance_id == 1:
                raise exceptions.StorageBusy('deadlock')
            if lease.instance_id == 2:
                raise ZeroDivisionError
            if lease.instance_id == 3:
                raise exceptions.LeaseLost('lost')
            renewed.append(lease.instance_id)

        beats = heartbeat.Heartbeat(Storage(renew), stage.LEASE)
        with (beats.keep(1, 'a') as one, beats.keep(2, 'b') as two,
              beats.keep(3, 'c') as three, beats.keep(4, 'd') as four):
            beats.beat()
            for lease in (one, two, four):
                lease.check()
            self.assertRaises(exceptions.LeaseLost, three.check)
        self.assertEqual([4], renewed)
        self.assertIn('trigger instance 1', self.logger.output)
        self.assertIn('ZeroDivisionError', self.logger.output)


class TestThread(base.TestCase):
    """The thread that beats."""

    def test_it_beats_and_ends_when_there_is_nothing_to_renew(self):
        beaten = threading.Event()
        beats = heartbeat.Heartbeat(
            Storage(lambda lease: beaten.set()), 0.03)
        for _ in range(2):
            beaten.clear()
            with beats.keep(1, 'a'):
                thread = beats._thread
                self.assertTrue(thread.daemon)
                self.assertTrue(beaten.wait(PATIENCE))
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())

    def test_runs_share_it(self):
        beats = heartbeat.Heartbeat(Storage(lambda lease: None), 0.3)
        with beats.keep(1, 'a'):
            first = beats._thread
            with beats.keep(2, 'b'):
                self.assertIs(first, beats._thread)

    def test_it_is_begun_anew_where_it_died(self):
        beats = heartbeat.Heartbeat(Storage(lambda lease: None), 0.03)
        dead = threading.Thread(target=len, args=('',))
        dead.start()
        dead.join()
        beats._thread = dead
        with beats.keep(1, 'a'):
            self.assertTrue(beats._thread.is_alive())

    def test_a_lease_does_not_outlive_a_thread_that_cannot_start(self):
        def refuse(self):
            raise RuntimeError('no more threads')

        renewed = []
        beats = heartbeat.Heartbeat(Storage(renewed.append), stage.LEASE)
        with fixtures.MonkeyPatch('threading.Thread.start', refuse):
            self.assertRaises(
                RuntimeError, beats.keep(1, 'a').__enter__)
        # Renewed by a later run, it would hold the instance for ever.
        beats.beat()
        self.assertEqual([], renewed)
