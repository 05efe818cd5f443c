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

"""Two processes at once: each rule of who wins, forced and not hoped for.

What one of them does is stopped right before a commit of it, with all its
locks held and nothing of it to be seen, and the other begins. That one is
through before the first goes on, or waits for it; either way each event must
be in one instance, and each instance must come out once.
"""

import functools
import itertools
import threading

import fixtures
import sqlalchemy as sa

from triggerlib.cmd import instance as instance_command
from triggerlib import criteria
from triggerlib import exceptions
from triggerlib import state as state_module

from tests import base
from tests import engine
from tests import servers

State = state_module.State

_OUT = criteria.EventQuery(('test.out',), None, None, {})

#: Seconds after which something that should have happened has not.
PATIENCE = 60
#: Seconds in which something is through, unless it waits for something.
MOMENT = 0.3
LEASE = 30

TRIGGERS = """
    - name: pair
      distinguished_by: [key]
      expiration: first + 1h
      match_criteria: [{event_type: [a, b, c]}]
      fire_criteria: [{event_type: a}, {event_type: b}]
      fire_pipeline: out
      expire_pipeline: out
    """

LOADS = TRIGGERS + """
      load_criteria:
        - event_type: note
    """

PIPELINES = """
    sinks:
      - name: out
        transformers:
          - name: aggregate
            checkpoint: true
            parameters:
              event_type: test.out
              traits:
                key: {first: key}
                events: count
                sum: {sum: number}
        publishers: ['event://', 'test://$NAME']
    """


class _Other:
    """Something that is done in a thread of its own, when it is told to.

    :param action: called with nothing
    :param engines: SQLAlchemy engines, by one of which it goes
    """

    def __init__(self, action, engines):
        self._action = action
        self._engines = engines
        self._begun = threading.Event()
        self._result = None
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self._result = self._action()
        except BaseException as error:
            self._error = error
        finally:
            self._begun.set()

    def _note(self, *_):
        if threading.get_ident() == self._thread.ident:
            self._begun.set()

    def go(self):
        """Begin, and wait for it to end or to be kept waiting itself."""
        if self._thread.ident is not None:
            return
        for each in self._engines:
            sa.event.listen(each, 'before_cursor_execute', self._note)
        self._thread.start()
        if not self._begun.wait(PATIENCE):
            raise AssertionError('it has not begun')
        # Where it does not have to wait, it is done by then.
        self._thread.join(MOMENT)

    def end(self):
        """Return what it returned, and whether it was begun at all."""
        if self._thread.ident is None:
            return None, False
        self._thread.join(PATIENCE)
        for each in self._engines:
            sa.event.remove(each, 'before_cursor_execute', self._note)
        if self._thread.is_alive():
            raise AssertionError('it waits for ever')
        if self._error is not None:
            raise self._error
        return self._result, True


class RaceRules:
    """The rules; a subclass gives the ``connection``."""

    def setUp(self):
        super().setUp()
        self.numbers = 0
        options = {'lease': LEASE, 'ready_timeout': 10, 'retry_delay': 0}
        url = self.connection()
        self.first = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES, url, **options))
        self.second = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES, url, shared=self.first, own_driver=True,
            **options))
        self.parties = [self.first, self.second]
        for it in self.parties:
            it.manager.register_traits()

    # What the tests say in one word

    def event(self, event_type, key='k', seconds=0):
        """Return an event with a number that no sum of others gives."""
        number = 1 << self.numbers
        self.numbers += 1
        return engine.event(f'm{number}', event_type, seconds, key=key,
                            number=number)

    def beside(self, first, second, number=1, of=None):
        """Do one thing, and another one right before a commit of it.

        :param first: called with nothing
        :param second: called with nothing, in a thread of its own
        :param number: which of the units of work of the first to stop in
        :param of: whose units of work, the first engine's unless given
        :returns: what both returned, and whether it came to that commit
        """
        storage = (of or self.first).storage
        run = storage.run
        units = []
        other = self.other(second)

        def patched(work, *args, write=True):
            units.append(work)
            if len(units) != number:
                return run(work, *args, write=write)

            def stopped(tx, *args):
                result = work(tx, *args)
                other.go()
                return result

            return run(stopped, *args, write=write)

        storage.run = patched
        try:
            result = first()
        finally:
            del storage.run
        return result, *other.end()

    def at_each_statement(self, first, second, before=lambda number: None):
        """Do two things, the second after each statement of the first.

        :param first: called with the number of the round, from 1
        :param second: called with that number, in a thread of its own
        :param before: called with that number when neither has begun
        :returns: the number of rounds, the last of which was undisturbed
        """
        for number in itertools.count(1):
            before(number)
            other = self.other(functools.partial(second, number))
            statements = []
            mine = threading.get_ident()

            def stop(*_):
                if threading.get_ident() == mine:
                    statements.append(None)
                    if len(statements) == number:
                        other.go()

            stopped = self.first.storage.engine
            sa.event.listen(stopped, 'after_cursor_execute', stop)
            try:
                first(number)
            finally:
                sa.event.remove(stopped, 'after_cursor_execute', stop)
            if not other.end()[1]:
                return number

    def other(self, action):
        """Return what is to be done in a thread of its own."""
        return _Other(action, {it.storage.engine for it in self.parties})

    def between(self, first, action, number):
        """Do something whole before a unit of work of the first engine."""
        storage = self.first.storage
        run = storage.run
        units = []

        def patched(work, *args, write=True):
            units.append(work)
            if len(units) == number:
                action()
            return run(work, *args, write=write)

        storage.run = patched
        try:
            return first(), len(units) >= number
        finally:
            del storage.run

    def ready(self, key='k'):
        """Return the id of an instance that is READY_TO_FIRE."""
        seconds = (self.first.clock.now() - engine.START).total_seconds()
        self.first.add(*(self.event(one, key, seconds) for one in 'ab'))
        self.first.scheduler.run_once()
        (kind, instance_id), = self.first.casts
        self.first.casts.clear()
        self.assertEqual('fire', kind)
        return instance_id

    def ready_to_expire(self, key='k'):
        self.first.add(self.event('a', key))
        self.first.clock.advance(4000)
        self.first.scheduler.run_once()
        (kind, instance_id), = self.first.casts
        self.first.casts.clear()
        self.assertEqual('expire', kind)
        return instance_id

    def failed(self):
        """Return the id of an instance that is in ERROR."""
        instance_id = self.ready()

        def fail(tx):
            tx.transition([instance_id], State.READY_TO_FIRE, State.FIRING,
                          new_owner='it', deadline=engine.at(10 ** 6))
            tx.transition([instance_id], State.FIRING, State.ERROR,
                          owner='it')
        self.first.storage.run(fail)
        return instance_id

    def states(self):
        return sorted(one.state for one in self.first.instances())

    def settle(self):
        """Let everything come to its end."""
        for _ in range(3):
            self.first.clock.advance(100_000)
            for it in (self.first, self.second):
                it.settle()
        self.assertEqual([], self.first.instances())

    def assert_sound(self, lost=0):
        """Every event came out once, of one instance.

        :param lost: the sum of those that an operator deleted
        """
        self.settle()
        stored = self.first.storage.run(lambda tx: list(tx.find_events(
            _OUT)), write=False)
        self.assertEqual((1 << self.numbers) - 1 - lost,
                         sum(one.traits['sum'] for one in stored))
        for one in stored:
            # No number is in there twice.
            self.assertEqual(one.traits['events'],
                             bin(one.traits['sum']).count('1'))
        # Not transactional: once or more, always the same.
        self.assertEqual(
            {one.message_id: one.traits for one in stored},
            {one.message_id: one.traits for one in self.first.published()})

    # Collectors

    def test_two_meet_the_same_new_key(self):
        self.beside(lambda: self.first.add(self.event('a')),
                    lambda: self.second.add(self.event('b')))
        self.assertEqual(2, self.first.instance().event_count)
        self.assert_sound()

    def test_two_get_the_same_event(self):
        event = self.event('a')
        one, other, _ = self.beside(lambda: self.first.add(event),
                                    lambda: self.second.add(event))
        self.assertEqual(1, one.stored + other.stored)
        self.assertEqual(1, one.duplicates + other.duplicates)
        self.assertEqual(1, self.first.instance().event_count)
        self.assert_sound()

    def test_two_add_to_the_same_instance(self):
        self.first.add(self.event('a'))
        self.beside(lambda: self.first.add(self.event('b')),
                    lambda: self.second.add(self.event('c')))
        self.assertEqual(3, self.first.instance().event_count)
        self.assertIsNotNone(self.first.instance().fire_timestamp)
        self.assert_sound()

    def test_the_same_keys_in_opposite_order(self):
        keys = [f'k{number}' for number in range(20)]
        for kinds in (('a', 'b'), ('c', 'c')):
            self.beside(
                lambda: self.first.add(
                    *(self.event(kinds[0], key) for key in keys)),
                lambda: self.second.add(
                    *(self.event(kinds[1], key) for key in keys[::-1])))
        self.assert_sound()

    def test_the_same_events_in_opposite_order(self):
        events = [self.event('a', f'k{number}') for number in range(20)]
        one, other, _ = self.beside(
            lambda: self.first.add(*events),
            lambda: self.second.add(*events[::-1]))
        self.assertEqual(20, one.stored + other.stored)
        self.assertEqual(20, len(self.first.instances()))
        self.assert_sound()

    def test_new_keys_in_opposite_order_at_each_statement(self):
        def keys(number):
            return [f'k{number}.{one}' for one in range(5)]

        rounds = self.at_each_statement(
            lambda number: self.first.add(
                *(self.event('a', key) for key in keys(number))),
            lambda number: self.second.add(
                *(self.event('b', key) for key in keys(number)[::-1])))
        self.assertGreater(rounds, 3)
        self.assertEqual([2] * 5 * (rounds - 1) + [1] * 5, [
            one.event_count for one in self.first.instances()])
        self.assert_sound()

    def test_known_keys_in_opposite_order_at_each_statement(self):
        keys = [f'k{one}' for one in range(5)]
        self.first.add(*(self.event('a', key) for key in keys))
        rounds = self.at_each_statement(
            lambda number: self.first.add(
                *(self.event('c', key) for key in keys)),
            lambda number: self.second.add(
                *(self.event('c', key) for key in keys[::-1])))
        self.assertGreater(rounds, 3)
        self.assertEqual([2 * rounds] * 5, [
            one.event_count for one in self.first.instances()])
        self.assert_sound()

    def test_the_same_events_at_each_statement(self):
        events, reports = [], []

        def before(number):
            events[:] = [self.event('a', f'k{number}.{one}')
                         for one in range(5)]

        rounds = self.at_each_statement(
            lambda number: reports.append(self.first.add(*events)),
            lambda number: reports.append(self.second.add(*events[::-1])),
            before)
        self.assertGreater(rounds, 3)
        self.assertEqual(5 * rounds, sum(one.stored for one in reports))
        self.assertEqual(5 * (rounds - 1),
                         sum(one.duplicates for one in reports))
        self.assertEqual(5 * rounds, len(self.first.instances()))
        self.assert_sound()

    # An event, and an instance that is leaving

    def test_an_event_comes_at_each_statement_of_a_sweep(self):
        def before(number):
            self.first.add(self.event('a', 'whole'),
                           self.event('b', 'whole'),
                           self.event('a', 'half'))
            self.first.clock.advance(4000)

        rounds = self.at_each_statement(
            lambda number: self.first.scheduler.run_once(),
            lambda number: self.second.add(
                self.event('c', 'whole'), self.event('a', 'half'),
                self.event('b', 'half')),
            before)
        self.assertGreater(rounds, 3)
        self.assert_sound()

    def test_a_sweep_comes_at_each_statement_of_a_batch(self):
        def add(number):
            self.first.add(*(self.event(kind, f'k{one}')
                             for kind in 'ab' for one in range(3)))

        def sweep(number):
            self.second.clock.advance(4000)
            self.second.scheduler.run_once()

        rounds = self.at_each_statement(add, sweep)
        self.assertGreater(rounds, 3)
        self.assert_sound()

    def test_an_event_comes_while_it_is_made_ready(self):
        self.first.add(self.event('a'), self.event('b'))
        self.beside(self.first.scheduler.run_once,
                    lambda: self.second.add(self.event('c')))
        self.assertEqual([State.ACTIVE, State.READY_TO_FIRE], self.states())
        self.assert_sound()

    def test_it_is_made_ready_while_an_event_comes(self):
        self.first.add(self.event('a'), self.event('b'))
        self.beside(lambda: self.first.add(self.event('c')),
                    self.second.scheduler.run_once)
        # Whoever sweeps passes over what is locked.
        self.assertEqual(3, self.first.instance().event_count)
        self.assert_sound()

    def test_an_event_completes_it_while_it_is_made_ready_to_expire(self):
        self.first.add(self.event('a'))
        self.first.clock.advance(3599)

        def sweep():
            self.first.clock.advance(10)
            return self.second.scheduler.run_once()

        self.beside(lambda: self.first.add(self.event('b')), sweep)
        self.assertIsNotNone(self.first.instance().fire_timestamp)
        self.assert_sound()

    def test_an_event_comes_after_the_end_while_it_is_made_ready(self):
        self.first.add(self.event('a'))
        self.first.clock.advance(4000)
        self.beside(self.first.scheduler.run_once,
                    lambda: self.second.add(self.event('b')))
        self.assertEqual([State.ACTIVE, State.READY_TO_EXPIRE],
                         self.states())
        self.assert_sound()

    def test_both_end_it_at_once(self):
        self.first.add(self.event('a'))
        self.first.clock.advance(4000)
        self.beside(lambda: self.first.add(self.event('b')),
                    self.second.scheduler.run_once)
        self.assertEqual([State.ACTIVE, State.READY_TO_EXPIRE],
                         self.states())
        self.assert_sound()

    def test_an_event_comes_at_any_moment_of_a_run(self):
        number = 1
        reached = True
        while reached:
            key = f'k{number}'
            instance_id = self.ready(key)
            done, _, reached = self.beside(
                lambda: self.first.worker.fire_trigger(instance_id),
                lambda: self.second.add(self.event('c', key)), number)
            self.assertTrue(done)
            number += 1
        # A claim, two steps, and the last one that is the end.
        self.assertGreater(number, 4)
        self.assert_sound()

    def test_an_event_comes_at_any_moment_of_an_expiry(self):
        number = 1
        reached = True
        while reached:
            key = f'k{number}'
            instance_id = self.ready_to_expire(key)
            done, _, reached = self.beside(
                lambda: self.first.worker.expire_trigger(instance_id),
                lambda: self.second.add(self.event('c', key)), number)
            self.assertTrue(done)
            # The next one expires by itself.
            self.first.clock.advance(4000)
            self.first.settle()
            number += 1
        self.assertGreater(number, 4)
        self.assert_sound()

    def test_a_backlog_begins_as_a_sweep_has_asked_for_the_time(self):
        options = {'expiry_clock': 'event', 'idle_timeout': 300}
        first = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES, self.first._url, shared=self.first,
            own_driver=True, **options))
        second = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES, self.first._url, shared=self.first,
            own_driver=True, **options))
        second.manager.register_traits()
        for number in range(2):
            # At first there is no event at all, then none for a day.
            key = f'k{number}'
            first.scheduler.run_once()
            self.first.clock.advance(86400)
            clock = first.scheduler._expiry_clock
            now = clock.now
            calls = []

            def ask(tx):
                time = now(tx)
                calls.append(time)
                if len(calls) == 1:
                    second.add(self.event('a', key))
                return time

            clock.now = ask
            first.scheduler.run_once()
            del clock.now
            self.assertIn((key, State.ACTIVE), [
                (one.key.split('"')[-2], one.state)
                for one in self.first.instances()])
        self.assert_sound()

    # Workers and schedulers

    def test_two_claim_it(self):
        instance_id = self.ready()
        one, other, _ = self.beside(
            lambda: self.first.worker.fire_trigger(instance_id),
            lambda: self.second.worker.fire_trigger(instance_id))
        self.assertEqual([False, True], sorted((one, other)))
        self.assertEqual(1, len(self.first.published()))
        self.assert_sound()

    def test_the_same_cast_comes_twice_to_one_worker(self):
        ids, done = [], []

        def fire(number):
            done.append(self.first.worker.fire_trigger(ids[-1]))

        rounds = self.at_each_statement(
            fire, fire, lambda number: ids.append(self.ready(f'k{number}')))
        self.assertGreater(rounds, 4)
        # Each was run to its end by one call of two.
        self.assertEqual(rounds, sum(done))
        self.assertEqual(rounds, len(self.first.published()))
        self.assert_sound()

    def test_two_sweep_the_same(self):
        self.first.add(*(self.event(kind, f'k{number}')
                         for number in range(30) for kind in 'ab'))
        one, other, _ = self.beside(self.first.scheduler.run_once,
                                    self.second.scheduler.run_once)
        casts = self.first.casts + self.second.casts
        self.assertEqual(30, one + other)
        self.assertEqual(30, len(casts))
        self.assertEqual(30, len(set(casts)))
        self.assert_sound()

    def test_a_cast_is_made_again_while_it_is_claimed(self):
        instance_id = self.ready()
        self.first.clock.advance(11)
        self.beside(lambda: self.first.worker.fire_trigger(instance_id),
                    self.second.scheduler.run_once)
        self.second.work()
        self.assertEqual(1, len(self.first.published()))
        self.assert_sound()

    def test_a_lease_runs_out_at_any_moment(self):
        def take_over():
            self.first.clock.advance(LEASE + 1)
            while self.second.scheduler.run_once():
                self.second.work()

        number = 2
        reached = True
        while reached:
            instance_id = self.ready(f'k{number}')
            done, reached = self.between(
                lambda: self.first.worker.fire_trigger(instance_id),
                take_over, number)
            # Who lost it does not say that it was done by it.
            self.assertEqual(not reached, done)
            self.assertEqual([], self.first.instances())
            number += 1
        self.assertGreater(number, 4)
        self.assert_sound()

    def test_a_lease_runs_out_while_a_step_is_stored(self):
        number = 2
        reached = True
        while reached:
            instance_id = self.ready(f'k{number}')

            def sweep():
                self.first.clock.advance(LEASE + 1)
                self.second.settle()

            _, _, reached = self.beside(
                lambda: self.first.worker.fire_trigger(instance_id),
                sweep, number)
            self.second.settle()
            self.first.settle()
            self.assertEqual([], self.first.instances())
            number += 1
        self.assertGreater(number, 4)
        self.assert_sound()

    def test_a_lease_is_lost_to_another_and_then_the_pipeline_fails(self):
        instance_id = self.ready()

        def fail(*args):
            self.first.clock.advance(LEASE + 1)
            while self.second.scheduler.run_once():
                self.second.work()
            raise ZeroDivisionError('too late')

        step = self.first.catalog.current.pipelines.sinks['out'].steps[0]
        self.useFixture(fixtures.MockPatchObject(
            step.plugin, 'transform', side_effect=fail))
        self.assertFalse(self.first.worker.fire_trigger(instance_id))
        self.assertEqual([], self.first.instances())
        self.assert_sound()

    def test_it_is_renewed_while_a_sweep_takes_it(self):
        instance_id = self.ready()
        owner = 'it'
        self.first.storage.run(lambda tx: tx.transition(
            [instance_id], State.READY_TO_FIRE, State.FIRING,
            new_owner=owner, attempts=1, deadline=engine.at(10)))
        self.first.clock.advance(11)

        def renew():
            try:
                self.second.storage.run(
                    lambda tx: tx.hold(instance_id, owner, engine.at(100)))
            except exceptions.LeaseLost:
                return 'lost'
            return 'kept'

        _, became, _ = self.beside(self.first.scheduler.run_once, renew)
        self.assertEqual('lost', became)
        self.assertEqual([State.READY_TO_FIRE], self.states())
        self.assert_sound()

    def test_a_cast_comes_at_each_statement_of_a_release(self):
        ids = []

        def before(number):
            self.settle()
            self.first.casts.clear()
            ids.append(self.ready(f'k{number}'))
            self.first.storage.run(lambda tx: tx.transition(
                ids[-1:], State.READY_TO_FIRE, State.FIRING,
                new_owner='dead', attempts=1, deadline=engine.at(0)))

        rounds = self.at_each_statement(
            lambda number: self.first.scheduler.run_once(),
            lambda number: self.second.worker.fire_trigger(ids[-1]), before)
        self.assertGreater(rounds, 3)
        self.assert_sound()

    # Operators

    def retry(self, it, instance_id):
        try:
            it.storage.run(
                instance_command._retry, [instance_id], None, False)
        except exceptions.TriggerlibError:
            return 'refused'
        return 'done'

    def delete(self, it, instance_id):
        try:
            it.storage.run(instance_command._delete, [instance_id])
        except exceptions.TriggerlibError:
            return 'refused'
        return 'done'

    def test_two_retry_it(self):
        instance_id = self.failed()
        self.assertEqual(('done', 'refused', True), self.beside(
            lambda: self.retry(self.first, instance_id),
            lambda: self.retry(self.second, instance_id)))
        self.assert_sound()

    def test_one_retries_and_one_deletes(self):
        instance_id = self.failed()
        self.assertEqual(('done', 'done', True), self.beside(
            lambda: self.retry(self.first, instance_id),
            lambda: self.delete(self.second, instance_id)))
        self.assert_sound(lost=(1 << self.numbers) - 1)

    def test_one_deletes_and_one_retries(self):
        instance_id = self.failed()
        self.assertEqual(('done', 'refused', True), self.beside(
            lambda: self.delete(self.first, instance_id),
            lambda: self.retry(self.second, instance_id)))
        self.assert_sound(lost=(1 << self.numbers) - 1)

    def test_one_deletes_what_is_claimed(self):
        instance_id = self.ready()
        self.assertEqual((True, 'refused', True), self.beside(
            lambda: self.first.worker.fire_trigger(instance_id),
            lambda: self.delete(self.second, instance_id)))
        self.assert_sound()

    def test_one_claims_what_is_deleted(self):
        instance_id = self.ready()
        self.assertEqual(('done', False, True), self.beside(
            lambda: self.delete(self.first, instance_id),
            lambda: self.second.worker.fire_trigger(instance_id)))
        self.assert_sound(lost=(1 << self.numbers) - 1)

    def test_one_deletes_what_an_event_is_added_to(self):
        self.first.add(self.event('a'))
        instance_id = self.first.instance().id
        self.beside(lambda: self.first.add(self.event('b')),
                    lambda: self.delete(self.second, instance_id))
        # The delete waited, and took both along.
        self.assert_sound(lost=3)

    def test_an_event_is_added_to_what_one_deletes(self):
        self.first.add(self.event('a'))
        instance_id = self.first.instance().id
        self.beside(lambda: self.delete(self.first, instance_id),
                    lambda: self.second.add(self.event('b')))
        self.assert_sound(lost=1)

    # Purge

    def purge(self, it):
        return it.storage.run(
            lambda tx: tx.purge_events(engine.at(10 ** 9), 1000))

    def test_a_purge_leaves_what_is_just_collected(self):
        self.beside(lambda: self.first.add(self.event('a'),
                                           self.event('b')),
                    lambda: self.purge(self.second))
        self.assertEqual(2, len(self.first.ids_of(self.first.instance())))
        self.assert_sound()

    def test_a_purge_at_any_moment_of_a_run(self):
        number = 1
        reached = True
        while reached:
            instance_id = self.ready(f'k{number}')
            done, _, reached = self.beside(
                lambda: self.first.worker.fire_trigger(instance_id),
                lambda: self.purge(self.second), number)
            self.assertTrue(done)
            number += 1
        self.assertGreater(number, 4)
        # What was published is not purged with what it came from.
        self.assertEqual([2] * (number - 1), [
            one.traits['events'] for one in self.first.published()])

    def check_load(self, load, race):
        """Race a purge against an instance that loads three events.

        :param load: the engine that fires the instance
        :param race: called with a function to purge, one to fire, and one
            that is called before each round of them
        """
        load.manager.register_traits()
        self.parties.append(load)
        ids, notes = [], []

        def before(number):
            key = f'k{number}'
            notes[:] = [self.event('note', key) for _ in range(3)]
            load.add(*notes, self.event('a', key), self.event('b', key))
            load.scheduler.run_once()
            ids.append(load.casts.pop()[1])

        rounds = race(lambda number: load.worker.fire_trigger(ids[-1]),
                      before)
        self.assertGreater(rounds, 2)
        load.clock.advance(100)
        load.settle()
        self.assertEqual([], self.first.instances())
        published = self.first.published()
        self.assertEqual(rounds, len(published))
        # All of the three or none, and in any case its own.
        self.assertEqual({2, 5},
                         {one.traits['events'] for one in published})
        for one in published:
            self.assertEqual(one.traits['events'],
                             bin(one.traits['sum']).count('1'))

    def test_a_purge_at_each_statement_of_a_load(self):
        load = self.useFixture(engine.Engine(
            LOADS, PIPELINES, self.first._url, shared=self.first))
        self.check_load(load, lambda fire, before: self.at_each_statement(
            fire, lambda number: self.purge(self.second), before))

    def test_a_load_at_each_statement_of_a_purge(self):
        load = self.useFixture(engine.Engine(
            LOADS, PIPELINES, self.first._url, shared=self.first,
            own_driver=True))
        self.check_load(load, lambda fire, before: self.at_each_statement(
            lambda number: self.purge(self.first), fire, before))

    def test_an_event_comes_again_while_it_is_purged(self):
        instance_id = self.ready()
        self.first.worker.fire_trigger(instance_id)
        event = self.event('c', 'other')
        self.first.storage.run(lambda tx: tx.add_events([event]))
        _, report, _ = self.beside(lambda: self.purge(self.first),
                                   lambda: self.second.add(event))
        # It is a duplicate of one that goes, or new after that has gone.
        self.assertEqual(1, report.stored + report.duplicates)
        self.assertEqual(
            report.stored, sum(one.event_count
                               for one in self.first.instances()))
        self.assertEqual(report.stored, len(self.first.storage.run(
            lambda tx: tx.get_events([event.message_id]), write=False)))

    # Definitions

    def test_files_are_loaded_again_while_a_batch_runs(self):
        path = self.first.paths['trigger_definitions_cfg_file']
        before = self.first.catalog.current
        find = before.definitions.for_event_type

        def reload(event_type):
            with open(path, 'w', encoding='utf-8') as stream:
                stream.write('[]')
            self.first.catalog.reload()
            return find(event_type)

        before.definitions.for_event_type = reload
        self.first.add(self.event('a'), self.event('b'))
        self.assertIsNot(before, self.first.catalog.current)
        # The batch has kept to what it began with.
        self.assertEqual(2, self.first.instance().event_count)
        # The next one has not; a host with the other files works it off.
        self.assertEqual(0, self.first.add(engine.event(
            'late', 'a', 0, key='k')).collected)
        self.second.clock.advance(1)
        self.second.settle()
        self.assertEqual([], self.first.instances())
        self.assertEqual(1, len(self.first.published()))

    def test_files_are_loaded_again_at_each_statement_of_a_batch(self):
        path = self.first.paths['trigger_definitions_cfg_file']
        with open(path, encoding='utf-8') as stream:
            text = stream.read()

        def reload(number):
            with open(path, 'w', encoding='utf-8') as stream:
                stream.write(text.replace('1h', f'{number + 1}h'))
            self.first.catalog.reload()

        rounds = self.at_each_statement(
            lambda number: self.first.add(
                self.event('a'), self.event('c'), self.event('a', 'other')),
            reload)
        self.assertGreater(rounds, 3)
        self.assertEqual({2 * rounds, rounds}, {
            one.event_count for one in self.first.instances()})
        self.assert_sound()

    def test_two_with_different_files(self):
        other = self.useFixture(engine.Engine(
            TRIGGERS.replace('first + 1h', 'first + 2h'), PIPELINES,
            self.first._url, shared=self.first, own_driver=True))
        self.parties.append(other)
        other.manager.register_traits()
        self.first.add(self.event('a'))
        self.beside(lambda: self.first.add(self.event('c')),
                    lambda: other.add(self.event('c')))
        self.beside(lambda: other.add(self.event('c')),
                    lambda: self.first.add(self.event('c')), of=other)
        self.assertEqual(5, self.first.instance().event_count)
        self.first.add(self.event('b'))
        self.beside(self.first.scheduler.run_once,
                    other.scheduler.run_once)
        self.assertEqual([State.READY_TO_FIRE], self.states())
        self.assert_sound()


class TestPostgreSQL(RaceRules, base.TestCase):
    """Two processes on PostgreSQL."""

    def connection(self):
        return servers.postgresql_url(self)


class TestMariaDB(RaceRules, base.TestCase):
    """Two processes on MariaDB."""

    def connection(self):
        return servers.mysql_url(self)
