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

"""A stage for the runner: an instance that is held, and steps that count."""

import contextlib
import datetime
import uuid

import fixtures

from triggerlib import clock as clock_module
from triggerlib.event import event as event_module
from triggerlib.pipeline import pipelines as pipelines_module
from triggerlib.pipeline import runner as runner_module
from triggerlib.pipeline import transformer
from triggerlib import state as state_module
from triggerlib import storage as storage_module
from triggerlib.storage import driver as driver_module

State = state_module.State
UTC = datetime.timezone.utc
START = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
IDENTITY = uuid.UUID('3c6b1d0e-8f43-4c44-9a5e-0d5a0b1c2d3e')
LEASE = 300


class Crash(BaseException):
    """The process dies here."""


def event(number, event_type='a', **traits):
    """Return an event so many seconds after the start."""
    return event_module.Event(
        f'm{number}', event_type,
        START + datetime.timedelta(seconds=number), traits)


class Plugin:
    """A step that remembers what it was called with.

    :param act: called as ``act(events, context)`` in each call; what it
        returns is what the step returns
    """

    transactional = False

    def __init__(self, act=None):
        self.calls = []
        self.contexts = []
        self._act = act

    def _called(self, events, context):
        self.calls.append([each.message_id for each in events])
        self.contexts.append(context)
        return None if self._act is None else self._act(events, context)


class Publisher(Plugin):
    """A publisher."""

    def publish(self, events, context):
        """Publish nothing."""
        return self._called(events, context)


class Chain(Publisher):
    """A transactional publisher: puts its events in, as ``event`` does."""

    transactional = True

    def publish(self, events, context):
        """Put the events in."""
        self._called(events, context)
        context.add_events(events)


class Transformer(Plugin, transformer.Transformer):
    """A transformer that adds one derived event."""

    def transform(self, events, context):
        """Return the events and one more."""
        given = self._called(events, context)
        if given is not None:
            return given
        return [*events, event_module.Event(
            context.derive(0), 'added', START, {})]


class Failing:
    """An act that raises as often as it is told, and then does nothing."""

    def __init__(self, error, times=1):
        self._error = error
        self._times = times

    def __call__(self, events, context):
        if self._times:
            self._times -= 1
            raise self._error


def sink(name, *plugins):
    """Return a sink of plugins; ``(plugin, True)`` is a checkpoint."""
    steps = []
    for index, plugin in enumerate(plugins):
        plugin, checkpoint = (
            plugin if isinstance(plugin, tuple) else (plugin, False))
        steps.append(pipelines_module.Step(
            f'{name}.{index}.x', plugin, isinstance(plugin, Publisher),
            checkpoint))
    return pipelines_module.Sink(name, tuple(steps))


class Stage(fixtures.Fixture):
    """A storage with one instance, that a worker holds.

    :param conf: an ``oslo_config.cfg.ConfigOpts``, which names the storage
    :param chunk: items of a step that share a row of the journal
    """

    def __init__(self, conf, chunk=2):
        self._conf = conf
        self._chunk = chunk

    def _setUp(self):
        self.clock = clock_module.ReplayClock(START)
        self.storage = storage_module.get_driver(self._conf, self.clock)
        self.storage.upgrade()
        self.addCleanup(self.storage.close)
        self.storage.retry_delay = 0
        self.owner = 'worker-1'
        self.attempt = 1
        self.instance_id = self.storage.run(self._make)
        self.runner = runner_module.Runner(
            self.storage, LEASE, self._chunk)
        self.transactions = 0

    def _make(self, tx):
        one, = tx.lock_active([driver_module.Instance(
            name='t', key='{}', active_key='k', fingerprint='f',
            first_event=START, last_event=START)])
        tx.transition([one.id], State.ACTIVE, State.READY_TO_FIRE,
                      deadline=START)
        tx.transition([one.id], State.READY_TO_FIRE, State.FIRING,
                      new_owner=self.owner, deadline=START, attempts=1)
        return one.id

    def claim_again(self, attempt=None):
        """Take the instance from whoever holds it, for another attempt."""
        owner = f'{self.owner}+'

        def work(tx):
            tx.transition([self.instance_id], State.FIRING,
                          State.READY_TO_FIRE, owner=self.owner)
            tx.transition([self.instance_id], State.READY_TO_FIRE,
                          State.FIRING, new_owner=owner, deadline=START)

        self.storage.run(work)
        self.owner = owner
        self.attempt = self.attempt + 1 if attempt is None else attempt

    def run(self, sinks, events, finish=None):
        """Make one attempt."""
        self.runner.run(sinks, events, runner_module.Run(
            instance_id=self.instance_id, owner=self.owner,
            attempt=self.attempt, trigger='t', kind='fire', key={'i': 'x'},
            identity=IDENTITY, add_events=self._add_events),
            finish or self.finish)

    def finish(self, tx):
        """End the instance, as a worker does."""
        tx.transition([self.instance_id], State.FIRING, State.DELETED,
                      owner=self.owner)

    def _add_events(self, tx, events):
        # Unlike events, dead letters are not told apart by an id, so that
        # one put in twice is seen.
        tx.add_dead_letters([
            driver_module.DeadLetter('event', each.message_id, 'chained', '')
            for each in events])

    def chained(self):
        """Return ids of the events that transactional publishers put in."""
        letters = self.storage.run(
            lambda tx: tx.list_dead_letters(), write=False)
        return [letter.message_id for letter in letters]

    def journal(self):
        """Return the journal."""
        return self.storage.run(
            lambda tx: tx.journal(self.instance_id), write=False)

    def states(self):
        """Return the states of the journaled steps, by name."""
        return {name: str(record.state)
                for name, record in self.journal().items()}

    def instance(self):
        """Return the instance, or None when it is gone."""
        found = self.storage.run(
            lambda tx: tx.get_instances([self.instance_id]), write=False)
        return found[0] if found else None

    @contextlib.contextmanager
    def watched(self, point):
        """Call ``point()`` around the begin and the end of transactions."""
        begin = self.storage.begin

        @contextlib.contextmanager
        def begin_watched(write=True):
            point()
            with begin(write=write) as tx:
                yield tx
                point()
            point()

        self.storage.begin = begin_watched
        try:
            yield
        finally:
            self.storage.begin = begin

    @contextlib.contextmanager
    def counted(self):
        """Count transactions in :attr:`transactions`."""
        begin = self.storage.begin

        def begin_counted(write=True):
            self.transactions += 1
            return begin(write=write)

        self.storage.begin = begin_counted
        try:
            yield
        finally:
            self.storage.begin = begin
