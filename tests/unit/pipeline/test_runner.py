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

"""The runner: each step once, over all attempts."""

import contextlib
import itertools

from tests import base
from tests.unit.pipeline import stage
from triggerlib.cmd import config
from triggerlib import error_text
from triggerlib import exceptions

Failing = stage.Failing
Publisher = stage.Publisher
Chain = stage.Chain
Transformer = stage.Transformer
event = stage.event
sink = stage.sink


class Ended(Exception):
    """No crash happened: there are no more points to crash at."""


class Fuse:
    """Raises :class:`stage.Crash` at its n-th call."""

    def __init__(self, left):
        self._left = left

    def __call__(self, *args):
        self._left -= 1
        if self._left == 0:
            raise stage.Crash


class RunnerRules:
    """The rules; a subclass gives ``url``, the storage."""

    url = None

    def stage(self, chunk=2):
        return self.useFixture(stage.Stage(config.load(
            [], overrides={'connection': self.url}), chunk))

    def setUp(self):
        super().setUp()
        self.on = self.stage()
        self.events = [event(1), event(2)]

    def test_each_sink_gets_the_original_events(self):
        adds, first, second = Transformer(), Publisher(), Publisher()
        self.on.run([sink('a', adds, first), sink('b', second)], self.events)
        self.assertEqual([['m1', 'm2']], adds.calls)
        self.assertEqual(
            [['m1', 'm2', adds.contexts[0].derive(0)]], first.calls)
        self.assertEqual([['m1', 'm2']], second.calls)
        self.assertIsNone(self.on.instance())

    def test_steps_learn_about_the_run(self):
        one = Publisher()
        self.on.run([sink('a', one)], self.events)
        context, = one.contexts
        self.assertEqual(
            ('t', 'fire', {'i': 'x'}, self.on.instance_id, 1, 'a.0.x'),
            (context.trigger, context.kind, context.key,
             context.instance_id, context.attempt, context.step))
        self.assertIsNone(context.add_events)

    def test_a_publisher_costs_two_transactions(self):
        with self.on.counted():
            self.on.run([sink('a', Publisher())], self.events)
        self.assertEqual(2, self.on.transactions)

    def test_a_transactional_publisher_costs_one(self):
        with self.on.counted():
            self.on.run([sink('a', Transformer(), Chain())], self.events)
        self.assertEqual(1, self.on.transactions)
        self.assertEqual(3, len(self.on.chained()))

    def test_without_publishers_the_instance_still_ends(self):
        for sinks in ([], [sink('a', Transformer())]):
            self.on = self.stage()
            with self.on.counted():
                self.on.run(sinks, self.events)
            self.assertEqual(1, self.on.transactions)
            self.assertIsNone(self.on.instance())

    def test_nothing_is_done_twice_wherever_it_crashes(self):
        for number in itertools.count(1):
            self.on = self.stage()
            try:
                self.crash_at(number)
            except Ended:
                break
        # Four journaled steps, each with several points around it.
        self.assertGreater(number, 25)

    def crash_at(self, number):
        fuse = Fuse(number)

        def act(events, context):
            fuse()

        adds, first, chain, last = (
            Transformer(act), Publisher(act), Chain(act), Publisher(act))
        sinks = [sink('a', (adds, True), first, chain), sink('b', last)]
        plugins = {step.name: step.plugin for one in sinks
                   for step in one.steps}
        try:
            with self.on.watched(fuse):
                self.on.run(sinks, self.events)
        except stage.Crash:
            pass
        else:
            raise Ended
        before = {name: len(one.calls) for name, one in plugins.items()}
        if self.on.instance() is None:
            # It died after the very last commit.
            self.assertEqual({1}, set(before.values()))
            return
        states = self.on.states()
        self.assertNotIn('FAILED', states.values())
        if states.get('a.2.x') != 'DONE':
            self.assertEqual([], self.on.chained())
        self.on.claim_again()
        self.on.run(sinks, self.events)
        for name, one in plugins.items():
            where = f'point {number}, step {name}'
            again = len(one.calls) - before[name]
            self.assertEqual(states.get(name) != 'DONE', bool(again), where)
            self.assertLessEqual(len(one.calls), 2, where)
            # The same events with the same ids at both attempts.
            self.assertEqual(1, len(set(map(tuple, one.calls))), where)
        # It was one step that was broken off.
        self.assertLessEqual(
            sum(len(one.calls) for one in plugins.values()),
            len(plugins) + 1)
        self.assertEqual(3, len(self.on.chained()))
        self.assertIsNone(self.on.instance())

    #: Ways for a step to fail, and how often it runs then: before, in the
    #: middle and at the end of its side effect, as its journal is written,
    #: and right after that.
    ways = {'error': 2, 'before': 2, 'during': 2, 'after': 2, 'at commit': 2,
            'noted': 1}

    def test_each_of_ten_steps_fails_in_each_way(self):
        for fatal, way in itertools.product(range(10), self.ways):
            with self.subTest(step=fatal, way=way):
                self.check_ten_steps(fatal, way)

    def check_ten_steps(self, fatal, way):
        self.on = self.stage()
        emitted = [[] for _ in range(10)]
        fuses = []

        def act(number):
            def of(events, context):
                first = not emitted[number]
                emitted[number].append([])
                if first and number == fatal:
                    fail_early()
                for each in events:
                    emitted[number][-1].append(each.message_id)
                    if first and (number, way) == (fatal, 'during'):
                        raise stage.Crash
                if first and number == fatal:
                    fail_late(number)
            return of

        def fail_early():
            if way == 'error':
                raise ConnectionError
            if way == 'before':
                raise stage.Crash

        def fail_late(number):
            if way == 'after':
                raise stage.Crash
            # The begin of the transaction that notes it comes first, unless
            # the step is within that.
            left = {'at commit': 2, 'noted': 3}.get(way, 10 ** 6)
            fuses.append(Fuse(left - isinstance(plugins[number], Chain)))

        plugins = [
            (Transformer, Chain if number == 7 else Publisher)[number % 2](
                act(number)) for number in range(10)]
        sinks = [sink('a', *(
            (plugin, number % 2 == 0)
            for number, plugin in enumerate(plugins)))]
        with self.on.watched(lambda: [fuse() for fuse in fuses]):
            self.assertRaises(
                exceptions.PipelineError if way == 'error' else stage.Crash,
                self.on.run, sinks, self.events)
        if self.on.instance() is not None:
            self.on.claim_again()
            self.on.run(sinks, self.events)
        self.assertIsNone(self.on.instance())
        self.assertEqual(
            [self.ways[way] if number == fatal else 1
             for number in range(10)], [len(one) for one in emitted])
        for number, calls in enumerate(emitted):
            # Each attempt has the same ids, and what each step before made.
            self.assertEqual(number // 2 + number % 2 + 2, len(calls[-1]))
            self.assertEqual(calls[-1][:len(calls[0])], calls[0])
        self.assertEqual(emitted[7][-1], self.on.chained())

    def test_a_retry_starts_at_the_step_that_failed(self):
        adds, first, last = (
            Transformer(), Publisher(),
            Publisher(Failing(ConnectionError('no route'), times=2)))
        sinks = [sink('a', (adds, True), first, last)]
        for attempt in (1, 2):
            error = self.assertRaises(
                exceptions.PipelineError, self.on.run, sinks, self.events)
            self.assertEqual('a.2.x', error.step)
            self.assertIsInstance(error.cause, ConnectionError)
            self.assertIs(error.cause, error.__cause__)
            self.assertTrue(error.retryable)
            self.assertEqual(
                {'a.0.x': 'DONE', 'a.1.x': 'DONE', 'a.2.x': 'FAILED'},
                self.on.states())
            record = self.on.journal()['a.2.x']
            self.assertEqual((2, attempt, 0),
                             (record.position, record.attempts,
                              record.items))
            self.assertIn('ConnectionError: no route', record.error)
            self.on.claim_again()
        self.on.run(sinks, self.events)
        self.assertEqual([1, 1, 3], [len(one.calls)
                                     for one in (adds, first, last)])
        self.assertEqual(1, len(set(map(tuple, last.calls))))
        self.assertIsNone(self.on.instance())

    def test_without_a_checkpoint_it_is_made_anew_where_needed(self):
        first, second = Transformer(), Transformer()
        done = Publisher()
        fails = Publisher(Failing(ConnectionError()))
        sinks = [sink('a', first, done), sink('b', second, fails)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, self.events)
        self.on.claim_again()
        self.on.run(sinks, self.events)
        # Nobody needs what the first one gives any more.
        self.assertEqual([1, 1, 2, 2], [
            len(one.calls) for one in (first, done, second, fails)])
        self.assertEqual(1, len(set(map(tuple, fails.calls))))

    def test_a_retry_begins_behind_the_last_checkpoint(self):
        before, kept, after = Transformer(), Transformer(), Transformer()
        fails = Publisher(Failing(ConnectionError()))
        sinks = [sink('a', (before, True), (kept, True), after, fails)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, self.events)
        self.on.claim_again()
        # What is loaded for the pipeline may be something else by now.
        self.on.run(sinks, [event(7)])
        self.assertEqual([1, 1, 2, 2], [
            len(one.calls) for one in (before, kept, after, fails)])
        self.assertEqual(fails.calls[0], fails.calls[1])

    def test_an_operators_retry_repeats_nothing(self):
        first = Publisher()
        last = Publisher(Failing(ValueError()))
        sinks = [sink('a', first, last)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, self.events)
        # The operator's retry sets the count of attempts back.
        self.on.claim_again(attempt=1)
        self.on.run(sinks, self.events)
        self.assertEqual([1, 2], [len(first.calls), len(last.calls)])
        self.assertIsNone(self.on.instance())

    def test_an_operators_retry_repeats_no_transactional_step(self):
        chain, last = Chain(), Publisher(Failing(ValueError()))
        sinks = [sink('a', chain, last)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, self.events)
        self.on.claim_again(attempt=1)
        self.on.run(sinks, self.events)
        self.assertEqual(['m1', 'm2'], self.on.chained())

    def test_an_operator_can_repeat_from_a_step(self):
        first, second = Publisher(), Publisher()
        last = Publisher(Failing(ValueError()))
        sinks = [sink('a', first, second, last)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, self.events)
        self.on.storage.run(
            lambda tx: tx.forget_steps(self.on.instance_id, 1))
        self.on.claim_again(attempt=1)
        self.on.run(sinks, self.events)
        self.assertEqual([1, 2, 2], [
            len(one.calls) for one in (first, second, last)])

    def test_a_pipeline_whose_last_step_is_done_ends(self):
        # The file lost the step that had failed.
        first, last = Publisher(), Publisher(Failing(ValueError()))
        self.assertRaises(
            exceptions.PipelineError, self.on.run,
            [sink('a', first, last)], self.events)
        self.on.claim_again()
        self.on.run([sink('a', first)], self.events)
        self.assertEqual(1, len(first.calls))
        self.assertIsNone(self.on.instance())

    def test_what_fails_for_good_says_so(self):
        for plugin in (
                Transformer(Failing(ZeroDivisionError('by zero'))),
                (Transformer(Failing(ZeroDivisionError('by zero'))), True),
                Publisher(Failing(ZeroDivisionError('by zero'))),
                Chain(Failing(ZeroDivisionError('by zero')))):
            self.on = self.stage()
            after = Publisher()
            error = self.assertRaises(
                exceptions.PipelineError, self.on.run,
                [sink('a', plugin, after)], self.events)
            self.assertFalse(error.retryable)
            record = self.on.journal()['a.0.x']
            self.assertEqual('FAILED', record.state)
            self.assertIn('ZeroDivisionError: by zero', record.error)
            self.assertEqual(stage.START, record.finished_at)
            self.assertEqual([], after.calls)
            self.assertEqual([], self.on.chained())

    def test_a_transformer_that_gives_no_list_fails(self):
        for checkpoint in (False, True):
            self.on = self.stage()
            plugin = Transformer(lambda events, context: 5)
            error = self.assertRaises(
                exceptions.PipelineError, self.on.run,
                [sink('a', (plugin, checkpoint), Publisher())], self.events)
            self.assertIsInstance(error.cause, TypeError)

    def test_an_endless_error_is_cut(self):
        error = ValueError('é' * 1_000_000)
        self.assertRaises(
            exceptions.PipelineError, self.on.run,
            [sink('a', Publisher(Failing(error)))], self.events)
        kept = self.on.journal()['a.0.x'].error
        self.assertEqual(error_text.LIMIT, len(kept))
        self.assertTrue(kept.endswith('éé\n'))

    def test_a_lease_lost_while_publishing_stops_the_next_step(self):
        def steal(events, context):
            self.on.claim_again()

        owner = self.on.owner
        first, last = Publisher(steal), Publisher()
        for sinks in ([sink('a', first, last)],
                      [sink('a', first), sink('b', (Transformer(), True),
                                              last)]):
            self.assertRaises(exceptions.LeaseLost, self.on.run, sinks,
                              self.events)
            self.assertEqual([], last.calls)
            self.assertNotEqual(owner, self.on.instance().owner)
            self.assertEqual({'a.0.x': 'RUNNING'}, self.on.states())

    def test_a_lease_lost_before_the_last_commit_does_not_end_it(self):
        def steal(events, context):
            self.on.claim_again()

        self.assertRaises(
            exceptions.LeaseLost, self.on.run,
            [sink('a', Publisher(steal))], self.events)
        self.assertIsNotNone(self.on.instance())

    def test_a_failure_under_a_lost_lease_is_not_noted(self):
        def steal(events, context):
            self.on.claim_again()
            raise ValueError

        self.assertRaises(
            exceptions.LeaseLost, self.on.run,
            [sink('a', Publisher(steal))], self.events)
        self.assertEqual({'a.0.x': 'RUNNING'}, self.on.states())

    def test_the_heartbeats_word_is_enough(self):
        last = Publisher()

        beats = self.on.runner._heartbeat

        def lose(events, context):
            lease, = beats._leases
            lease.lost = exceptions.LeaseLost('gone')

        for plugin in (Publisher(lose), Chain(lose), Transformer(lose)):
            self.on = self.stage()
            beats = self.on.runner._heartbeat
            error = self.assertRaises(
                exceptions.LeaseLost, self.on.run,
                [sink('a', plugin, last)], self.events)
            self.assertEqual('gone', str(error))
            self.assertEqual([], last.calls)

    def test_each_step_renews_the_lease(self):
        deadlines = []

        def act(events, context):
            self.on.clock.advance(100)
            deadlines.append(self.on.instance().deadline)

        self.on.run([sink('a', Publisher(act), Publisher(act))], self.events)
        self.assertEqual(
            [300.0, 400.0],
            [(one - stage.START).total_seconds() for one in deadlines])

    def test_storage_errors_pass_untouched(self):
        for error in (exceptions.StorageBusy('busy'),
                      exceptions.LeaseLost('lost'), KeyboardInterrupt(),
                      SystemExit()):
            for plugin in (Transformer(Failing(error, 100)),
                           (Transformer(Failing(error, 100)), True),
                           Publisher(Failing(error, 100)),
                           Chain(Failing(error, 100))):
                self.on = self.stage()
                raised = self.assertRaises(
                    type(error), self.on.run,
                    [sink('a', plugin, Publisher())], self.events)
                self.assertIs(error, raised)
                self.assertNotIn('FAILED', self.on.states().values())

    def test_a_transactional_step_is_safe_to_run_again(self):
        busy = [exceptions.StorageBusy('deadlock')] * 3

        def finish(tx):
            if busy:
                raise busy.pop()
            self.on.finish(tx)

        self.on.run([sink('a', Chain())], self.events, finish)
        self.assertEqual(['m1', 'm2'], self.on.chained())
        self.assertIsNone(self.on.instance())

    def test_a_transactional_step_without_a_manager(self):
        chain = Chain(lambda events, context: None)
        self.on._add_events = None
        error = self.assertRaises(
            exceptions.PipelineError, self.on.run, [sink('a', chain)],
            self.events)
        self.assertFalse(error.retryable)
        self.assertIsNone(chain.contexts[0].add_events)

    def test_a_busy_storage_does_not_publish_again(self):
        publisher = Publisher()
        failures = iter([False, False, True, True])

        def point():
            if next(failures, False):
                raise exceptions.StorageBusy('busy')

        with self.on.watched(point):
            self.on.run([sink('a', publisher)], self.events)
        self.assertEqual(1, len(publisher.calls))
        self.assertIsNone(self.on.instance())

    def test_a_publisher_that_yields_goes_on_behind_the_last(self):
        handed = []
        broken = [True]

        def act(events, context):
            for each in events:
                if each.message_id == 'm3' and broken:
                    broken.pop()
                    raise ConnectionError
                handed.append((each.message_id, context.done))
                yield each

        publisher = Publisher(act)
        sinks = [sink('a', publisher)]
        events = [event(number) for number in range(1, 6)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, events)
        self.assertEqual(
            {'a.0.x': 'FAILED', 'a.0.x[0]': 'DONE'}, self.on.states())
        self.on.claim_again()
        # One that came late stands before what was handed on already.
        self.on.run(sinks, [event(0), *events])
        self.assertEqual(
            [('m1', 0), ('m2', 0), ('m0', 2), ('m3', 2), ('m4', 2),
             ('m5', 2)], handed)
        self.assertIsNone(self.on.instance())

    def test_a_process_that_dies_at_any_item_does_none_again(self):
        events = [event(number) for number in range(1, 8)]
        for chunk in (1, 2, 3, 100):
            for fatal in range(len(events)):
                self.on = self.stage(chunk)
                handed = []
                broken = [True]

                def act(left, context):
                    for each in left:
                        if len(handed) == fatal and broken:
                            broken.pop()
                            raise stage.Crash
                        handed.append(each.message_id)
                        yield each

                sinks = [sink('a', Publisher(act), Publisher())]
                self.assertRaises(stage.Crash, self.on.run, sinks, events)
                # What was in the journal fills its chunks.
                self.assertEqual(-(-fatal // chunk) + 1,
                                 len(self.on.journal()))
                self.on.claim_again()
                self.on.run(sinks, events)
                self.assertEqual([one.message_id for one in events], handed)

    def test_ten_thousand_items_are_a_hundred_rows(self):
        count, fatal = 10_000, 7_654
        self.on = self.stage(100)
        events = [event(number) for number in range(count)]
        handed = []
        broken = [True]

        def act(left, context):
            for each in left:
                if len(handed) == fatal and broken:
                    broken.pop()
                    raise ConnectionError
                handed.append(each.message_id)
                yield each

        sinks = [sink('a', Publisher(act))]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, events)
        journal = self.on.journal()
        # And the step itself.
        self.assertEqual(77 + 1, len(journal))
        self.assertEqual(fatal, sum(
            record.items for record in journal.values()))
        self.on.claim_again()
        self.on.run(sinks, events)
        self.assertEqual([one.message_id for one in events], handed)

    def test_a_publisher_may_yield_batches(self):
        handed = []
        broken = [True]

        def act(events, context):
            while events:
                if len(handed) == 1 and broken:
                    broken.pop()
                    raise stage.Crash
                batch, events = events[:2], events[2:]
                handed.append([each.message_id for each in batch])
                yield batch

        sinks = [sink('a', Publisher(act), Publisher())]
        events = [event(number) for number in range(1, 6)]
        self.assertRaises(stage.Crash, self.on.run, sinks, events)
        self.on.claim_again()
        self.on.run(sinks, events)
        self.assertEqual([['m1', 'm2'], ['m3', 'm4'], ['m5']], handed)

    def test_a_transactional_publisher_may_yield(self):
        class Yielding(Chain):
            def publish(self, events, context):
                for each in events:
                    context.add_events([each])
                    yield each

        self.on.run([sink('a', Yielding())], self.events)
        self.assertEqual(['m1', 'm2'], self.on.chained())

    def test_a_lost_lease_stops_between_items(self):
        handed = []

        def act(events, context):
            for each in events:
                handed.append(each.message_id)
                self.on.claim_again()
                yield each

        self.assertRaises(
            exceptions.LeaseLost, self.on.run, [sink('a', Publisher(act))],
            self.events)
        self.assertEqual(['m1'], handed)

    def letters(self):
        return [(letter.kind, letter.message_id, letter.reason)
                for letter in self.on.storage.run(
                    lambda tx: tx.list_dead_letters(), write=False)]

    def picky(self, events, context):
        """Yield batches of one, and refuse the first and the last event."""
        for each in events:
            if each.message_id in ('m1', 'm3'):
                context.dead_letter(each, f'no {each.message_id}')
            yield [each]

    def refused(self, *message_ids):
        place = f'step \'a.0.x\' of trigger instance {self.on.instance_id}'
        return [('published', one, f'{place} (t): no {one}')
                for one in message_ids]

    def test_a_dead_letter_is_kept_once_wherever_it_crashes(self):
        events = [event(1), event(2), event(3)]
        for left in itertools.count(1):
            self.on = self.stage()
            sinks = [sink('a', Publisher(self.picky), Publisher())]
            try:
                with self.on.watched(Fuse(left)):
                    self.on.run(sinks, events)
            except stage.Crash:
                crashed = True
                if self.on.instance() is not None:
                    self.on.claim_again()
                    self.on.run(sinks, events)
            else:
                crashed = False
            self.assertEqual(self.refused('m1', 'm3'), self.letters())
            self.assertIsNone(self.on.instance())
            if not crashed:
                return

    def test_a_dead_letter_is_kept_once_when_an_answer_is_lost(self):
        events = [event(1), event(2), event(3)]
        for way in (self.picky, lambda *args: list(self.picky(*args))):
            for lost in range(2, 7):
                self.on = self.stage()
                begin = self.on.storage.begin
                seen = itertools.count(1)

                @contextlib.contextmanager
                def lose(write=True, begin=begin, seen=seen, lost=lost):
                    with begin(write=write) as tx:
                        yield tx
                    if next(seen) == lost:
                        raise exceptions.StorageBusy('no answer')

                self.on.storage.begin = lose
                try:
                    self.on.run(
                        [sink('a', Publisher(way), Publisher())], events)
                except exceptions.LeaseLost:
                    # It was the last answer, and the instance is gone.
                    pass
                self.on.storage.begin = begin
                self.assertEqual(self.refused('m1', 'm3'), self.letters())

    def test_dead_letters_of_a_step_that_fails_are_forgotten(self):
        failing = Failing(exceptions.PublishError('away', retryable=True))

        def publish(events, context):
            context.dead_letter(events[0], 'no m1')
            failing(events, context)

        sinks = [sink('a', Publisher(publish))]
        self.assertRaises(exceptions.PipelineError, self.on.run, sinks,
                          self.events)
        self.assertEqual([], self.letters())
        self.assertNotIn('no m1', self.logger.output)
        self.on.claim_again()
        self.on.run(sinks, self.events)
        self.assertEqual(self.refused('m1'), self.letters())
        self.assertIn('no m1', self.logger.output)

    def test_a_transactional_publisher_has_dead_letters(self):
        def publish(events, context):
            context.dead_letter(events[0], 'no m1')

        busy = Failing(exceptions.StorageBusy('once'))
        chain = Chain(publish)
        finish = self.on.finish

        def finish_late(tx):
            busy(None, None)
            finish(tx)

        self.on.run([sink('a', chain)], self.events[:1], finish_late)
        self.assertEqual(2, len(chain.calls))
        self.assertEqual(
            [('event', 'm1', 'chained'), *self.refused('m1')],
            self.letters())

    def test_a_transformer_has_no_dead_letters(self):
        one = Transformer()
        self.on.run([sink('a', one, Publisher())], self.events)
        self.assertIsNone(one.contexts[0].dead_letter)

    def yielding(self, made, looks):
        """Return a checkpoint that makes five events, and once fails."""
        broken = [True]

        def act(events, context):
            for number in range(context.done if looks else 0, 5):
                if number == 3 and broken:
                    broken.pop()
                    raise ConnectionError
                made.append(number)
                yield event(100 + number)

        return Transformer(act), True

    def test_a_checkpoint_that_yields_goes_on_behind_the_last(self):
        for looks, expected in ((True, [0, 1, 2, 3, 4]),
                                (False, [0, 1, 2, 0, 1, 2, 3, 4])):
            self.on = self.stage()
            made, last = [], Publisher()
            sinks = [sink('a', self.yielding(made, looks), last)]
            self.assertRaises(
                exceptions.PipelineError, self.on.run, sinks, self.events)
            self.assertEqual(
                {'a.0.x': 'FAILED', 'a.0.x[0]': 'DONE',
                 'a.0.x[1]': 'DONE'}, self.on.states())
            self.on.claim_again()
            self.on.run(sinks, self.events)
            self.assertEqual(expected, made)
            self.assertEqual(
                [['m100', 'm101', 'm102', 'm103', 'm104']], last.calls)

    def test_a_generator_without_a_checkpoint(self):
        last = Publisher()

        def act(events, context):
            yield from reversed(events)

        self.on.run([sink('a', Transformer(act), last)], self.events)
        self.assertEqual([['m2', 'm1']], last.calls)

    def test_a_checkpoint_keeps_what_it_gave_whole(self):
        given = [event(1, 'ä', text='\0\ud800', whole=2 ** 62, real=0.1,
                       moment=stage.START)]
        seen = []

        def publish(events, context):
            seen.append(events)
            if len(seen) == 1:
                raise ConnectionError

        sinks = [sink('a', (Transformer(lambda *args: given), True),
                      Publisher(publish))]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, self.events)
        self.on.claim_again()
        self.on.run(sinks, self.events)
        self.assertEqual([given, given], seen)


class TestMemory(RunnerRules, base.TestCase):
    """On the in-memory driver."""

    url = 'memory://'


class TestSQLite(RunnerRules, base.TestCase):
    """On SQLite."""

    url = 'sqlite://'
