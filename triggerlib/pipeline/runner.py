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
with what it gave. Another attempt starts behind them. One that yields its
items is noted item by item, and goes on behind the last; the items share
rows of the journal, in chunks.
"""

from collections import abc as collections_abc
import dataclasses
import itertools
import json
import logging
import typing
import uuid

from triggerlib import clock
from triggerlib import error_text
from triggerlib.event import encoding
from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib.pipeline import context as context_module
from triggerlib.pipeline import heartbeat as heartbeat_module
from triggerlib.storage import driver as storage_module

LOG = logging.getLogger(__name__)

StepState = storage_module.StepState


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


class _JournalFound(Exception):
    """What was taken for a first attempt is not."""


class Runner:
    """Runs pipelines. It may be shared by threads.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param lease: seconds for which a worker holds an instance without
        renewing it
    :param chunk: items of a step that share a row of the journal
    """

    def __init__(self, storage, lease: float, chunk: int = 100):
        self._storage = storage
        self._lease = lease
        self._chunk = chunk
        self._heartbeat = heartbeat_module.Heartbeat(storage, lease)

    def run(self, sinks, events, run: Run,
            finish: typing.Callable) -> None:
        """Run the events through sinks, from where the last attempt ended.

        :param sinks: :class:`triggerlib.pipeline.pipelines.Sink` objects;
            each gets all events
        :param events: events in order
        :param run: this attempt
        :param finish: ``finish(transaction)`` ends the instance, in the
            transaction in which the last step is done
        :raises PipelineError: a step failed; the journal says which
        :raises LeaseLost: another worker may have taken the instance
        :raises StorageBusy: the storage stayed busy
        """
        with self._heartbeat.keep(run.instance_id, run.owner) as lease:
            _Attempt(self._storage, self._lease, self._chunk, run, finish,
                     lease).run(list(sinks), events)


class _Attempt:
    """One call of :meth:`Runner.run`."""

    def __init__(self, storage, seconds, chunk, run, finish, lease):
        self._storage = storage
        self._seconds = seconds
        self._chunk = chunk
        self._run = run
        self._finish = finish
        self._lease = lease
        self._finished = False
        # None until it is read. A first attempt has none to read, unless an
        # operator made it the first again: the first transaction looks.
        self._journal = None

    def run(self, sinks, events):
        if self._run.attempt > 1:
            self._journal = self._storage.run(
                lambda tx: tx.journal(self._run.instance_id), write=False)
        try:
            self._sinks(sinks, events)
        except _JournalFound:
            self._sinks(sinks, events)

    def _sinks(self, sinks, events):
        steps = [step for sink in sinks for step in sink.steps]
        last = next((position for position in range(len(steps) - 1, -1, -1)
                     if steps[position].publishes), None)
        offset = 0
        for sink in sinks:
            self._sink(sink.steps, offset, events, last)
            offset += len(sink.steps)
        if not self._finished:
            self._storage.run(self._end)

    def _sink(self, steps, offset, events, last):
        begin, current = self._resume(steps, events)
        for index in range(begin, len(steps)):
            step, position = steps[index], offset + index
            if step.publishes:
                if not self._is_done(step):
                    self._publish(step, position, current, position == last)
            elif any(one.publishes and not self._is_done(one)
                     for one in steps[index:]):
                current = self._transform(step, position, current)

    def _resume(self, steps, events):
        """Return where to begin, and with which events."""
        for index in range(len(steps) - 1, -1, -1):
            step = steps[index]
            if step.checkpoint and self._is_done(step):
                return index + 1, encoding.load_events(
                    self._noted(step.name).output)
        return 0, events

    def _noted(self, name):
        return None if self._journal is None else self._journal.get(name)

    def _is_done(self, step):
        record = self._noted(step.name)
        return record is not None and record.state is StepState.DONE

    def _transform(self, step, position, events):
        self._lease.check()
        if not step.checkpoint:
            try:
                return list(step.plugin.transform(
                    events, self._context(step)))
            except Exception as error:
                self._fail(self._begin(step, position), error)
        record = self._begin(step, position)
        self._storage.run(self._save, record)
        chunks = self._chunks(step)
        kept = [event for chunk in chunks
                for event in encoding.load_events(chunk)]
        try:
            given = step.plugin.transform(
                events, self._context(step, done=len(kept)))
            if isinstance(given, collections_abc.Iterator):
                self._collect(step, position, given, kept, len(chunks))
                given = kept
            given = list(given)
            record.output = encoding.dump_events(given)
            record.items = len(given)
        except Exception as error:
            self._fail(record, error)
        self._storage.run(self._done, record, False)
        return given

    def _publish(self, step, position, events, is_last):
        self._lease.check()
        record = self._begin(step, position)
        if step.plugin.transactional:
            self._publish_in(step, record, events, is_last)
            return
        self._storage.run(self._save, record)
        letters = _Letters(self._run, step)
        chunks = self._chunks(step)
        left, done = events, set()
        if chunks:
            done.update(*map(json.loads, chunks))
            left = [event for event in events
                    if event.message_id not in done]
        try:
            handed = step.plugin.publish(left, self._context(
                step, done=len(events) - len(left), dead_letter=letters.add))
            if isinstance(handed, collections_abc.Iterator):
                self._follow(step, position, handed, len(chunks), letters)
        except Exception as error:
            self._fail(record, error)
        record.items = len(events)
        self._storage.run(self._done, record, is_last, letters)
        letters.stored()
        self._finished = is_last

    def _publish_in(self, step, record, events, is_last):
        def work(tx):
            def add_events(added):
                self._run.add_events(tx, added)

            self._hold(tx)
            letters.forget()
            handed = step.plugin.publish(events, self._context(
                step, add_events if self._run.add_events else None,
                dead_letter=letters.add))
            if isinstance(handed, collections_abc.Iterator):
                # It only begins when it is asked for its items.
                for _ in handed:
                    pass
            record.items = len(events)
            self._end_step(tx, record, is_last, letters)

        letters = _Letters(self._run, step)
        try:
            self._storage.run(work)
        except _JournalFound:
            raise
        except Exception as error:
            self._fail(record, error)
        letters.stored()
        self._finished = is_last

    def _chunks(self, step):
        """Return what earlier attempts noted of a step's items."""
        found = []
        for number in itertools.count():
            record = self._noted(_chunk_name(step, number))
            if record is None:
                return found
            found.append(record.output)

    def _collect(self, step, position, given, kept, number):
        """Note each event that a transformer yields, in ``kept`` too."""
        known = {event.message_id for event in kept}
        chunk = []
        for event in given:
            # One that does not look at context.done gives all of them anew.
            if event.message_id in known:
                continue
            kept.append(event)
            chunk.append(event)
            self._note_chunk(step, position, number, len(chunk),
                             encoding.dump_events(chunk))
            if len(chunk) >= self._chunk:
                number += 1
                chunk = []

    def _follow(self, step, position, handed, number, letters):
        """Note what a publisher yields: an event, or a list of them."""
        chunk = []
        for item in handed:
            events = [item] if isinstance(item, event_module.Event) else item
            chunk += [event.message_id for event in events]
            self._note_chunk(step, position, number, len(chunk),
                             json.dumps(chunk), letters)
            if len(chunk) >= self._chunk:
                number += 1
                chunk = []

    def _note_chunk(self, step, position, number, items, output,
                    letters=None):
        """Note a chunk with one item more than before.

        Each item is noted when it is done, so that another attempt begins
        behind it; that they share a row keeps the journal short.
        """
        self._storage.run(self._done, storage_module.StepRecord(
            _chunk_name(step, number), position, StepState.DONE, items=items,
            output=output), False, letters)
        if letters is not None:
            letters.stored()
        self._lease.check()

    def _context(self, step, add_events=None, done=0, dead_letter=None):
        run = self._run
        return context_module.Context(
            run.trigger, run.kind, run.key, run.instance_id, run.attempt,
            step.name, run.identity, add_events, done, dead_letter)

    def _begin(self, step, position):
        before = self._noted(step.name)
        return storage_module.StepRecord(
            step.name, position, StepState.RUNNING,
            attempts=1 if before is None else before.attempts + 1)

    def _hold(self, tx):
        tx.hold(self._run.instance_id, self._run.owner,
                clock.after(tx.now(), self._seconds))
        if self._journal is None:
            journal = tx.journal(self._run.instance_id)
            self._journal = journal
            if journal:
                raise _JournalFound

    def _save(self, tx, record):
        self._hold(tx)
        record.started_at = tx.now()
        tx.save_step(self._run.instance_id, record)

    def _done(self, tx, record, is_last, letters=None):
        self._hold(tx)
        self._end_step(tx, record, is_last, letters)

    def _end_step(self, tx, record, is_last, letters=None):
        if letters and not self._is_noted(tx, record):
            tx.add_dead_letters(letters.all)
        if is_last:
            # The journal goes with the instance.
            self._finish(tx)
            return
        record.state = StepState.DONE
        record.finished_at = tx.now()
        record.started_at = record.started_at or tx.now()
        tx.save_step(self._run.instance_id, record)

    def _is_noted(self, tx, record):
        """Return whether this was committed, and the answer was lost.

        Unlike everything else that is written here, a dead letter that is
        written again is there twice.
        """
        found = tx.journal(self._run.instance_id).get(record.step)
        return (found is not None and found.state is StepState.DONE
                and found.output == record.output)

    def _end(self, tx):
        self._hold(tx)
        self._finish(tx)

    def _fail(self, record, error):
        """Note that a step failed, and raise what the caller is to see.

        Called while ``error`` is handled.
        """
        if isinstance(error, (exceptions.LeaseLost, exceptions.StorageBusy)):
            raise error
        record.state = StepState.FAILED
        record.output = None
        record.items = 0
        record.error = error_text.describe(error)

        def note(tx):
            self._hold(tx)
            record.finished_at = tx.now()
            record.started_at = record.started_at or tx.now()
            tx.save_step(self._run.instance_id, record)

        self._storage.run(note)
        raise exceptions.PipelineError(record.step, error) from error


class _Letters:
    """The dead letters of a publisher that are not stored yet."""

    def __init__(self, run, step):
        self.all = []
        self._place = (f'step {step.name!r} of trigger instance '
                       f'{run.instance_id} ({run.trigger})')

    def __bool__(self):
        return bool(self.all)

    def add(self, event, reason):
        """Keep an event until the next transaction."""
        self.all.append(storage_module.DeadLetter(
            'published', event.message_id, f'{self._place}: {reason}',
            encoding.to_json(event)))

    def forget(self):
        """Begin anew."""
        self.all.clear()

    def stored(self):
        """Tell people, now that they are there to be looked at."""
        for letter in self.all:
            LOG.error('Kept as dead letter: event %s: %s',
                      letter.message_id, letter.reason)
        self.all.clear()


def _chunk_name(step, number):
    return f'{step.name}[{number}]'
