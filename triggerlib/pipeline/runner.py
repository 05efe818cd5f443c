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

"""The runner: the steps of sinks, once each, over all attempts.

Answers the question of blueprint duplicate-work. Each publisher is noted in
the journal when it is done, and so is a transformer marked as checkpoint,
with what it gave. Another attempt starts behind them.
"""

import dataclasses
import traceback
import typing
import uuid

from triggerlib import clock
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.pipeline import context as context_module
from triggerlib.pipeline import heartbeat as heartbeat_module
from triggerlib.storage import driver as storage_module

StepState = storage_module.StepState

#: Characters of an error text that are kept in the journal.
ERROR_LIMIT: typing.Final = 64 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One attempt at the pipeline of an instance.

    :param instance_id: id of the trigger instance
    :param owner: token of the worker that holds it
    :param attempt: which attempt this is, from 1
    :param trigger: name of the trigger definition, or of the source
    :param kind: ``fire``, ``expire`` or ``source``
    :param key: values of the distinguishing traits, by name
    :param identity: what the ids of derived events are made from
    :param add_events: ``add_events(transaction, events)``, for publishers
        that are transactional; None where there is no trigger manager
    """

    instance_id: int
    owner: str
    attempt: int
    trigger: str
    kind: str
    key: dict
    identity: uuid.UUID
    add_events: typing.Callable | None = None


class Runner:
    """Runs pipelines.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param lease: seconds for which a worker holds an instance without
        renewing it
    """

    def __init__(self, storage, lease: float):
        self._storage = storage
        self._lease = lease

    def run(self, sinks, events, run: Run,
            finish: typing.Callable) -> None:
        """Run the events through sinks, from where the last attempt ended.

        :param sinks: :class:`triggerlib.pipeline.pipelines.Sink` objects;
            each gets all events
        :param events: events in order
        :param run: this attempt
        :param finish: ``finish(transaction)`` ends the instance, in the
            transaction that notes the last step as done
        :raises PipelineError: a step failed; the journal says which
        :raises LeaseLost: another worker may have taken the instance
        :raises StorageBusy: the storage stayed busy
        """
        with heartbeat_module.Heartbeat(
                self._storage, run.instance_id, run.owner,
                self._lease) as heartbeat:
            _Attempt(self._storage, self._lease, run, finish,
                     heartbeat).run(sinks, events)


class _Attempt:
    """One call of :meth:`Runner.run`."""

    def __init__(self, storage, lease, run, finish, heartbeat):
        self._storage = storage
        self._lease = clock.seconds(lease)
        self._run = run
        self._finish = finish
        self._heartbeat = heartbeat
        self._journal = {}

    def run(self, sinks, events):
        if self._run.attempt > 1:
            self._journal = self._storage.run(
                lambda tx: tx.journal(self._run.instance_id), write=False)
        steps = [step for sink in sinks for step in sink.steps]
        # A sink ends with a publisher, so the last step is journaled.
        last = len(steps) - 1
        position = 0
        for sink in sinks:
            self._sink(sink, position, events, last)
            position += len(sink.steps)
        if self._is_done(steps[last]):
            self._storage.run(self._end)

    def _sink(self, sink, offset, events, last):
        steps = sink.steps
        begin, current = self._resume(steps, events)
        for index in range(begin, len(steps)):
            step, position = steps[index], offset + index
            if step.publishes:
                if not self._is_done(step):
                    self._publish(step, position, current, position == last)
            elif any(one.publishes and not self._is_done(one)
                     or one.checkpoint for one in steps[index:]):
                current = self._transform(step, position, current)

    def _resume(self, steps, events):
        """Return where to begin, and with which events."""
        for index in range(len(steps) - 1, -1, -1):
            step = steps[index]
            if step.checkpoint and self._is_done(step):
                return index + 1, encoding.load_events(
                    self._journal[step.name].output)
        return 0, events

    def _is_done(self, step):
        record = self._journal.get(step.name)
        return record is not None and record.state is StepState.DONE

    def _transform(self, step, position, events):
        self._heartbeat.check()
        record = None
        if step.checkpoint:
            record = self._begin(step, position)
            self._storage.run(self._save, record)
        try:
            given = list(step.plugin.transform(
                events, self._context(step)))
            if record is not None:
                record.output = encoding.dump_events(given)
        except (exceptions.LeaseLost, exceptions.StorageBusy):
            raise
        except Exception as error:
            self._fail(step, position, record, error)
        if record is not None:
            record.items = len(given)
            self._storage.run(self._done, record, False)
        return given

    def _publish(self, step, position, events, is_last):
        self._heartbeat.check()
        record = self._begin(step, position)
        if step.plugin.transactional:
            self._publish_in(step, position, record, events, is_last)
            return
        self._storage.run(self._save, record)
        try:
            step.plugin.publish(events, self._context(step))
        except (exceptions.LeaseLost, exceptions.StorageBusy):
            raise
        except Exception as error:
            self._fail(step, position, record, error)
        record.items = len(events)
        self._storage.run(self._done, record, is_last)

    def _publish_in(self, step, position, record, events, is_last):
        def work(tx):
            def add_events(added):
                self._run.add_events(tx, added)

            self._hold(tx)
            step.plugin.publish(events, self._context(
                step, add_events if self._run.add_events else None))
            record.items = len(events)
            self._done(tx, record, is_last)

        try:
            self._storage.run(work)
        except (exceptions.LeaseLost, exceptions.StorageBusy):
            raise
        except Exception as error:
            self._fail(step, position, record, error)

    def _context(self, step, add_events=None):
        run = self._run
        return context_module.Context(
            run.trigger, run.kind, run.key, run.instance_id, run.attempt,
            step.name, run.identity, add_events)

    def _begin(self, step, position):
        before = self._journal.get(step.name)
        return storage_module.StepRecord(
            step.name, position, StepState.RUNNING,
            attempts=1 if before is None else before.attempts + 1)

    def _hold(self, tx):
        tx.hold(self._run.instance_id, self._run.owner,
                tx.now() + self._lease)

    def _save(self, tx, record):
        self._hold(tx)
        record.started_at = tx.now()
        tx.save_step(self._run.instance_id, record)

    def _done(self, tx, record, is_last):
        self._hold(tx)
        if is_last:
            # The journal goes with the instance.
            self._finish(tx)
            return
        record.state = StepState.DONE
        record.finished_at = tx.now()
        record.started_at = record.started_at or tx.now()
        tx.save_step(self._run.instance_id, record)

    def _end(self, tx):
        self._hold(tx)
        self._finish(tx)

    def _fail(self, step, position, record, error):
        record = record or self._begin(step, position)
        record.state = StepState.FAILED
        record.items = 0
        record.error = ''.join(
            traceback.format_exception(error))[-ERROR_LIMIT:]

        def note(tx):
            self._hold(tx)
            record.finished_at = tx.now()
            record.started_at = record.started_at or tx.now()
            tx.save_step(self._run.instance_id, record)

        self._storage.run(note)
        raise exceptions.PipelineError(step.name, error) from error
