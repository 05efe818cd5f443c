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

"""The scheduler: what is due, by which clock, and what happens to casts."""

from triggerlib.state import State

from tests import base
from tests import engine
from tests.unit.trigger import test_manager

TRIGGERS = test_manager.TRIGGERS
PIPELINES = test_manager.PIPELINES
start = test_manager.start
end = test_manager.end


class SchedulerRules:
    """The rules; a subclass says on which storage."""

    url = None

    def engine(self, triggers=TRIGGERS, pipelines=PIPELINES, **kwargs):
        return self.useFixture(engine.Engine(
            triggers, pipelines, self.url, **kwargs))

    def test_nothing_is_due_before_its_time(self):
        it = self.engine()
        it.add(start(), end())
        it.clock.advance(9.999999)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(0.000001)
        self.assertEqual(1, it.scheduler.run_once())
        one = it.instance()
        self.assertEqual(State.READY_TO_FIRE, one.state)
        self.assertEqual([('fire', one.id)], it.casts)

    def test_what_is_incomplete_expires(self):
        it = self.engine()
        it.add(start())
        it.clock.advance(3599)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(1)
        it.scheduler.run_once()
        one = it.instance()
        self.assertEqual(State.READY_TO_EXPIRE, one.state)
        self.assertEqual([('expire', one.id)], it.casts)

    def test_what_is_complete_does_not_expire(self):
        it = self.engine(TRIGGERS.replace('fire_delay: 10',
                                          'fire_delay: 86400'))
        it.add(start(), end())
        it.clock.advance(7200)
        self.assertEqual(0, it.scheduler.run_once())
        self.assertEqual(State.ACTIVE, it.instance().state)

    def test_a_lost_cast_is_made_again(self):
        it = self.engine(ready_timeout=60)
        it.add(start(), end())
        it.clock.advance(10)
        it.scheduler.run_once()
        it.casts.clear()
        it.clock.advance(59)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(1)
        self.assertEqual(1, it.scheduler.run_once())
        self.assertEqual([('fire', it.instance().id)], it.casts)
        it.casts.clear()
        self.assertEqual(0, it.scheduler.run_once())

    def test_a_cast_that_fails_is_made_again(self):
        it = self.engine(ready_timeout=60)

        def refuse(trigger_id):
            raise ConnectionError('no broker')

        it.casts.fire_trigger = refuse
        it.add(start(), end())
        it.clock.advance(10)
        self.assertEqual(1, it.scheduler.run_once())
        del it.casts.fire_trigger
        it.clock.advance(60)
        it.scheduler.run_once()
        self.assertEqual([('fire', it.instance().id)], it.casts)

    def test_no_more_than_a_batch_at_once(self):
        it = self.engine(scheduler_batch=3)
        it.add(*(start(f's{n}', 0, f'i{n}') for n in range(8)))
        it.clock.advance(3600)
        self.assertEqual([3, 3, 2, 0],
                         [it.scheduler.run_once() for _ in range(4)])
        self.assertEqual(8, len(set(it.casts)))

    def test_no_more_casts_than_the_workers_take(self):
        it = self.engine(cast_limit=5, scheduler_batch=4, ready_timeout=60)
        it.add(*(start(f's{n}', 0, f'i{n}') for n in range(12)))
        it.clock.advance(3600)
        while it.scheduler.run_once():
            pass
        # All are ready, so that nothing joins them any more.
        self.assertEqual({State.READY_TO_EXPIRE},
                         {one.state for one in it.instances()})
        self.assertEqual(5, len(set(it.casts)))
        first = list(it.casts)
        it.casts[:] = first[:2]
        it.work()
        it.clock.advance(59)
        while it.scheduler.run_once():
            pass
        # Two were taken, so two more are cast, and none again.
        self.assertEqual(2, len(it.casts))
        self.assertEqual(set(), set(it.casts) & set(first))
        it.casts[:] = []
        it.clock.advance(1)
        while it.scheduler.run_once():
            pass
        # The three that nobody took in a minute are not counted any more;
        # those that have waited longest come first.
        self.assertEqual(3, len(it.casts))

    def test_nothing_is_left_when_there_is_little_room(self):
        it = self.engine(cast_limit=2, scheduler_batch=3)
        it.add(*(start(f's{n}', 0, f'i{n}') for n in range(12)))
        it.clock.advance(3600)
        it.settle()
        self.assertEqual([], it.instances())

    def test_a_lease_that_ran_out_gives_the_instance_back(self):
        it = self.engine(lease=30, ready_timeout=60)
        it.add(start(), end())
        it.clock.advance(10)
        it.scheduler.run_once()
        one = it.instance()
        it.storage.run(lambda tx: tx.transition(
            [one.id], State.READY_TO_FIRE, State.FIRING, new_owner='dead',
            deadline=engine.at(40), attempts=1))
        it.casts.clear()
        it.clock.advance(29)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(1)
        self.assertEqual(1, it.scheduler.run_once())
        one = it.instance()
        self.assertEqual(State.READY_TO_FIRE, one.state)
        self.assertIsNone(one.owner)
        self.assertEqual([('fire', one.id)], it.casts)
        self.assertEqual([True], it.work())
        self.assertEqual(2, len(it.published()))

    def test_a_lease_that_always_runs_out_is_an_error(self):
        it = self.engine(max_attempts=2)
        it.add(start())
        it.clock.advance(3600)
        it.scheduler.run_once()
        one = it.instance()
        for attempt in (1, 2):
            it.storage.run(lambda tx: tx.transition(
                [one.id], State.READY_TO_EXPIRE, State.EXPIRING,
                new_owner='dead', deadline=it.clock.now(),
                attempts=attempt))
            it.scheduler.run_once()
        one = it.instance()
        self.assertEqual(State.EXPIRE_ERROR, one.state)
        self.assertIn('lease', one.error)
        it.clock.advance(100000)
        self.assertEqual(0, it.scheduler.run_once())

    def test_event_time_holds_expiry_back(self):
        it = self.engine(expiry_clock='event', allowed_lateness=60,
                         idle_timeout=300)
        it.add(start())
        it.clock.advance(3600)
        it.add(start('other', 3500, 'j'))
        it.clock.advance(200)
        self.assertEqual(0, it.scheduler.run_once())
        it.add(start('third', 3660, 'k'))
        self.assertEqual(1, it.scheduler.run_once())

    def test_event_time_follows_the_wall_when_idle(self):
        it = self.engine(expiry_clock='event', allowed_lateness=60,
                         idle_timeout=300)
        it.add(start())
        it.clock.advance(3600)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(299)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(1)
        self.assertEqual(1, it.scheduler.run_once())

    def test_an_older_fingerprint_is_evaluated_before_it_expires(self):
        it = self.engine()
        it.add(start())
        new = self.useFixture(engine.Engine(
            TRIGGERS.replace('first + 1h', 'first + 2h'), PIPELINES,
            shared=it))
        it.clock.advance(3600)
        new.scheduler.run_once()
        one = it.instance()
        self.assertEqual(State.ACTIVE, one.state)
        self.assertEqual(engine.at(7200), one.expire_timestamp)
        it.clock.advance(3600)
        new.scheduler.run_once()
        self.assertEqual(State.READY_TO_EXPIRE, it.instance().state)

    def test_an_older_fingerprint_may_turn_out_complete(self):
        it = self.engine()
        it.add(start())
        new = self.useFixture(engine.Engine(TRIGGERS.replace(
            '        - event_type: compute.instance.create.end\n', ''),
            PIPELINES, shared=it))
        it.clock.advance(3600)
        new.scheduler.run_once()
        self.assertEqual(engine.at(3610), it.instance().fire_timestamp)
        self.assertEqual(State.ACTIVE, it.instance().state)


class TestMemory(SchedulerRules, base.TestCase):
    """On the in-memory driver."""

    url = 'memory://'


class TestSQLite(SchedulerRules, base.TestCase):
    """On SQLite."""

    url = 'sqlite://'
