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

"""The worker: once, in order, with what was loaded, and what errors do."""

from triggerlib import exceptions
from triggerlib.publisher import test as test_publisher
from triggerlib.state import State
from triggerlib.trigger import worker as worker_module

from tests import base
from tests import engine
from tests.unit.trigger import test_manager

TRIGGERS = test_manager.TRIGGERS
PIPELINES = test_manager.PIPELINES
start = test_manager.start
end = test_manager.end


class WorkerRules:
    """The rules; a subclass says on which storage."""

    url = None

    def engine(self, triggers=TRIGGERS, pipelines=PIPELINES, **kwargs):
        return self.useFixture(engine.Engine(
            triggers, pipelines, self.url, **kwargs))

    def ready(self, **kwargs):
        it = self.engine(**kwargs)
        it.add(end(), start())
        it.clock.advance(10)
        it.scheduler.run_once()
        return it, it.instance().id

    def fail_with(self, error):
        def publish(publisher, events, context):
            raise error
        original = test_publisher.TestPublisher.publish
        test_publisher.TestPublisher.publish = publish

        def mend():
            test_publisher.TestPublisher.publish = original
        self.addCleanup(mend)
        return mend

    def test_events_are_published_in_order_of_time(self):
        it, _ = self.ready()
        self.assertEqual([True], it.work())
        self.assertEqual(['s', 'e'],
                         [each.message_id for each in it.published()])
        self.assertEqual([], it.instances())

    def test_a_second_request_does_nothing(self):
        it, instance_id = self.ready()
        self.assertTrue(it.worker.fire_trigger(instance_id))
        self.assertFalse(it.worker.fire_trigger(instance_id))
        self.assertFalse(it.worker.expire_trigger(instance_id))
        self.assertEqual(2, len(it.published()))

    def test_a_request_of_the_wrong_kind_does_nothing(self):
        it, instance_id = self.ready()
        self.assertFalse(it.worker.expire_trigger(instance_id))
        self.assertEqual(State.READY_TO_FIRE, it.instance().state)

    def test_expiring_runs_the_other_pipeline(self):
        it = self.engine(pipelines=PIPELINES.replace(
            "- name: expired\n", "- name: expired\n        transformers:\n"
            "          - name: map\n            parameters:\n"
            "              set: {failed: 1}\n"))
        it.add(start())
        it.clock.advance(3600)
        it.settle()
        one, = it.published()
        self.assertEqual(1, one.traits['failed'])

    def test_expiring_without_a_pipeline_deletes(self):
        it = self.engine(TRIGGERS.replace(
            'expire_pipeline: expired', ''))
        it.add(start())
        it.clock.advance(3600)
        it.settle()
        self.assertEqual([], it.instances())
        self.assertEqual([], it.published())

    def test_history_is_loaded_once_each_and_sorted(self):
        it = self.engine(TRIGGERS + """
      load_criteria:
        - event_type: compute.instance.*
          timestamp: "first - 1h to last + 1h"
    """)
        it.add(engine.event('old', 'compute.instance.update', -100,
                            instance_id='i'),
               engine.event('older', 'compute.instance.update', -4000,
                            instance_id='i'),
               engine.event('else', 'compute.instance.update', 1,
                            instance_id='j'),
               start(), end(),
               engine.event('mid', 'compute.instance.update', 30,
                            instance_id='i'))
        it.clock.advance(10)
        it.settle()
        self.assertEqual(['old', 's', 'mid', 'e'],
                         [each.message_id for each in it.published()])

    def test_the_newest_of_the_history(self):
        it = self.engine(TRIGGERS + """
      load_criteria:
        - event_type: compute.instance.update
          last: 2
    """)
        it.add(*(engine.event(f'u{n}', 'compute.instance.update', -n,
                              instance_id='i') for n in (4, 3, 2, 1)))
        it.add(start(), end())
        it.clock.advance(10)
        it.settle()
        self.assertEqual(['u2', 'u1', 's', 'e'],
                         [each.message_id for each in it.published()])

    def test_a_final_error_is_kept_with_its_traceback(self):
        it, _ = self.ready()
        self.fail_with(ZeroDivisionError('nothing left'))
        self.assertEqual([False], it.work())
        one = it.instance()
        self.assertEqual(State.ERROR, one.state)
        self.assertIn('ZeroDivisionError: nothing left', one.error)
        self.assertIn('Traceback', one.error)
        self.assertIsNone(one.owner)

    def test_a_retryable_error_waits_and_goes_on(self):
        it, instance_id = self.ready(retry_delay=100, max_attempts=3)
        mend = self.fail_with(
            exceptions.PublishError('down', retryable=True))
        self.assertEqual([False], it.work())
        one = it.instance()
        self.assertEqual(State.READY_TO_FIRE, one.state)
        self.assertEqual(1, one.attempts)
        self.assertTrue(
            it.clock.now() + engine.datetime.timedelta(seconds=50)
            <= one.not_before <= it.clock.now()
            + engine.datetime.timedelta(seconds=100))
        # Not before its backoff, whatever is cast.
        self.assertFalse(it.worker.fire_trigger(instance_id))
        self.assertEqual(1, it.instance().attempts)
        mend()
        it.clock.advance(100)
        it.scheduler.run_once()
        self.assertEqual([True], it.work())
        self.assertEqual(2, len(it.published()))

    def test_attempts_are_used_up(self):
        it, _ = self.ready(retry_delay=1, max_attempts=3)
        self.fail_with(ConnectionError('down'))
        for attempt in (1, 2, 3):
            it.work()
            self.assertEqual(attempt, it.instance().attempts)
            it.clock.advance(1000)
            it.scheduler.run_once()
        one = it.instance()
        self.assertEqual(State.ERROR, one.state)
        self.assertIn('ConnectionError: down', one.error)

    def test_a_receiver_says_how_long_to_leave_it_alone(self):
        for asked, least, most in (
                (None, 0.5, 1), (0.1, 0.5, 1), (50, 50, 50),
                (1e300, 200, 200)):
            it, _ = self.ready(retry_delay=1, retry_delay_max=200)
            mend = self.fail_with(exceptions.PublishError(
                'busy', retryable=True, retry_after=asked))
            self.assertEqual([False], it.work())
            mend()
            wait = it.instance().not_before - it.clock.now()
            self.assertTrue(least <= wait.total_seconds() <= most, asked)
            it.clock.advance(most)
            it.settle()
            self.assertEqual([], it.instances())

    def test_a_host_without_the_definition_hands_back(self):
        it, instance_id = self.ready(max_attempts=2, retry_delay=1)
        other = self.useFixture(engine.Engine(
            TRIGGERS.replace('name: create', 'name: other'), PIPELINES,
            shared=it, max_attempts=2, retry_delay=1))
        self.assertFalse(other.worker.fire_trigger(instance_id))
        one = it.instance()
        self.assertEqual(State.READY_TO_FIRE, one.state)
        self.assertIn("no 'create'", one.error)
        it.clock.advance(10)
        self.assertFalse(other.worker.fire_trigger(instance_id))
        self.assertEqual(State.ERROR, it.instance().state)

    def test_load_criteria_of_another_key_hand_back(self):
        it, instance_id = self.ready(retry_delay=1)
        other = self.useFixture(engine.Engine(
            TRIGGERS.replace('[instance_id]', '[host]') + """
      load_criteria: [{event_type: x}]
    """, PIPELINES, shared=it, retry_delay=1))
        self.assertFalse(other.worker.fire_trigger(instance_id))
        one = it.instance()
        self.assertEqual(State.READY_TO_FIRE, one.state)
        self.assertIn('distinguished by instance_id', one.error)

    def test_a_worker_that_lost_its_lease_does_not_publish(self):
        it, instance_id = self.ready()
        begin, seen = it.storage.begin, []

        def steal_before_the_second(write=True):
            seen.append(write)
            if len(seen) == 2:
                it.storage.begin = begin
                owner = it.instance().owner
                it.storage.run(lambda tx: tx.transition(
                    [instance_id], State.FIRING, State.READY_TO_FIRE,
                    owner=owner))
            return begin(write=write)

        it.manager.register_traits()
        it.storage.begin = steal_before_the_second
        self.assertFalse(it.worker.fire_trigger(instance_id))
        self.assertEqual([], it.published())
        self.assertEqual(State.READY_TO_FIRE, it.instance().state)

    def test_derived_ids_are_the_same_at_every_retry(self):
        pipelines = """
            sinks:
              - name: fired
                transformers:
                  - name: aggregate
                    parameters: {event_type: summary}
                publishers: ['test://$NAME', 'test://$NAME?fail=1']
              - name: expired
                publishers: ['test://$NAME']
            """.replace('?fail=1', '')
        it, instance_id = self.ready(pipelines=pipelines)
        it.work()
        ids = {each.message_id for each in it.published()}
        self.assertEqual(2, len(it.published()))
        self.assertEqual(1, len(ids))
        again, _ = self.ready(pipelines=pipelines)
        again.work()
        self.assertEqual(
            ids, {each.message_id for each in again.published()})

    def test_events_go_back_in_with_the_journal(self):
        pipelines = PIPELINES.replace(
            "- name: fired\n        publishers: ['test://$NAME']",
            "- name: fired\n        transformers:\n"
            "          - name: aggregate\n            parameters:\n"
            "              event_type: summary\n"
            "              traits: {who: {first: instance_id}}\n"
            "        publishers: ['event://']")
        it, _ = self.ready(triggers=TRIGGERS + """
    - name: chained
      distinguished_by: [who]
      expiration: first + 1h
      match_criteria: [{event_type: summary}]
      fire_criteria: [{event_type: summary}]
      fire_pipeline: expired
    """, pipelines=pipelines)
        self.assertEqual([True], it.work())
        it.settle()
        one, = it.published()
        self.assertEqual('summary', one.event_type)
        self.assertEqual({'who': 'i'}, one.traits)
        self.assertEqual([], it.instances())

    def test_history_that_cannot_be_loaded_is_an_error(self):
        it, instance_id = self.ready()

        def fail(*args):
            raise ZeroDivisionError('bad load')

        original = worker_module.history.load
        worker_module.history.load = fail
        try:
            self.assertFalse(it.worker.fire_trigger(instance_id))
        finally:
            worker_module.history.load = original
        one = it.instance()
        self.assertEqual(State.ERROR, one.state)
        self.assertIn('bad load', one.error)

    def test_ended_instances_are_told(self):
        it, instance_id = self.ready()
        told = []
        worker = worker_module.Worker(
            it.storage, it.catalog, it.manager,
            ended=lambda kind, one: told.append((kind, one.name)))
        worker.fire_trigger(instance_id)
        worker.fire_trigger(instance_id)
        self.assertEqual([('fire', 'create')], told)


class TestMemory(WorkerRules, base.TestCase):
    """On the in-memory driver."""

    url = 'memory://'


class TestSQLite(WorkerRules, base.TestCase):
    """On SQLite."""

    url = 'sqlite://'
