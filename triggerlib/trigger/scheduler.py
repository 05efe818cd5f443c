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

"""The scheduler: what is due is made ready, and cast to a worker.

Any number of schedulers may run at once (blueprint "Time-Based Trigger
Firing/Expiration"). A cast is a hint: it can be lost, so what is ready is
cast again after ``ready_timeout``, and what a worker held when its lease ran
out is made ready again.
"""

import dataclasses
import datetime
import logging
import random
import threading
import typing

from triggerlib import clock
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import state as state_module
from triggerlib.storage import driver as storage_module
from triggerlib.trigger import catalog as catalog_module
from triggerlib.trigger import evaluation
from triggerlib.trigger import expiry

LOG = logging.getLogger(__name__)

State = state_module.State
Due = storage_module.Due

#: Seconds to sleep at most while the workers have as many casts as they may.
CROWDED = 0.1


class Caster(typing.Protocol):
    """Where the scheduler sends its casts: the rpc client, or a worker."""

    def fire_trigger(self, trigger_id: int) -> None:
        """Have the pipeline of a READY_TO_FIRE instance run."""

    def expire_trigger(self, trigger_id: int) -> None:
        """Have the pipeline of a READY_TO_EXPIRE instance run."""


class Scheduler:
    """Finds what is due, batch by batch.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param caster: gets the casts; see :class:`Caster`
    :param catalog: a :class:`triggerlib.trigger.catalog.Catalog`
    :param expiry_clock: a :class:`triggerlib.trigger.expiry.ExpiryClock`
    :param interval: seconds to sleep when nothing was due
    :param batch: instances made ready in one transaction at most
    :param ready_timeout: seconds after which a cast is repeated
    :param cast_limit: instances that are cast and not claimed, at most
    :param max_attempts: claims after which a lease that runs out is final
    """

    def __init__(self, storage, caster, catalog, expiry_clock=None, *,
                 interval=1.0, batch=100, ready_timeout=60.0,
                 cast_limit=1000, max_attempts=5):
        self._storage = storage
        self._caster = caster
        self._catalog = catalog
        self._expiry_clock = expiry_clock or expiry.ExpiryClock()
        self._interval = interval
        self._batch = batch
        self._ready_timeout = ready_timeout
        self._cast_limit = cast_limit
        self._max_attempts = max_attempts
        self._crowded = False

    @classmethod
    def from_conf(cls, conf, storage, caster, catalog=None) -> 'Scheduler':
        """Build one from the options of ``[triggerlib]``.

        :param conf: an ``oslo_config.cfg.ConfigOpts``
        :param storage: a :class:`triggerlib.storage.Driver`
        :param caster: gets the casts
        :param catalog: loaded from ``conf`` unless given
        :raises DefinitionError: every mistake in the files
        """
        group = conf[opts.GROUP]
        return cls(
            storage, caster, catalog or catalog_module.Catalog.from_conf(conf),
            expiry.ExpiryClock.from_conf(conf),
            interval=group.scheduler_interval, batch=group.scheduler_batch,
            ready_timeout=group.ready_timeout, cast_limit=group.cast_limit,
            max_attempts=group.max_attempts)

    def run_once(self) -> int:
        """Make one batch of what is due ready, and cast it.

        :returns: how many instances were made ready, made ready again, cast
            again or given up
        :raises StorageBusy: the storage stayed busy
        """
        sweep = self._storage.run(self._sweep)
        casts = [(self._caster.fire_trigger, id) for id in sweep.fire]
        casts += [(self._caster.expire_trigger, id) for id in sweep.expire]
        # In random order, so that schedulers and workers that look at the
        # same batch do not all begin with the same instance.
        random.shuffle(casts)
        for cast, instance_id in casts:
            try:
                cast(instance_id)
            except Exception:
                # The transport may raise what it likes. The instance is
                # stored as ready, and is cast again after ready_timeout.
                LOG.exception('The cast for trigger instance %s failed; it '
                              'is made again later.', instance_id)
        self._crowded = sweep.room == 0
        return sweep.moved

    def run(self, stop: threading.Event) -> None:
        """Sweep until told to stop.

        :param stop: set it to end the loop
        """
        while not stop.is_set():
            try:
                moved = self.run_once()
            except exceptions.StorageBusy as error:
                LOG.warning('The scheduler goes on when the storage answers '
                            'again: %s', error)
                moved = 0
            if not moved:
                # The workers make room faster than new work comes due.
                stop.wait(min(self._interval, CROWDED) if self._crowded
                          else self._interval)

    def _sweep(self, tx):
        now = tx.now()
        time = self._expiry_clock.now(tx)
        sweep = _Sweep(
            now, clock.after(now, self._ready_timeout),
            self._cast_limit - tx.count_cast(now, self._cast_limit))
        self._make_ready(tx, sweep, Due.TO_FIRE, time)
        self._make_ready(tx, sweep, Due.TO_EXPIRE, time)
        self._release(tx, sweep)
        self._cast_again(tx, sweep)
        return sweep

    def _make_ready(self, tx, sweep, what, time):
        found = tx.due(what, _moment(what, time), self._batch)
        if not found:
            return
        # What was found may have been stored after the time was asked for,
        # by the first batch after a long while: then the events of that batch
        # say what time it is.
        time = self._expiry_clock.now(tx)
        due = [one for one in found if _is_due(one, what, time)]
        stale = evaluation.refresh(
            tx, due, self._catalog.current.definitions, time.fire)
        sweep.ready(tx, [
            instance.id for instance in due
            if instance.id not in stale or _is_due(instance, what, time)],
            State.ACTIVE, State.READY_TO_FIRE if what is Due.TO_FIRE
            else State.READY_TO_EXPIRE)
        sweep.moved += len(due)

    def _cast_again(self, tx, sweep):
        if not sweep.room:
            return
        waiting = tx.due(Due.READY, sweep.now, min(self._batch, sweep.room))
        if waiting:
            tx.postpone([instance.id for instance in waiting],
                        sweep.deadline)
            for instance in waiting:
                sweep.cast([instance.id], instance.state)
        sweep.moved += len(waiting)

    def _release(self, tx, sweep):
        overdue = tx.due(Due.LEASED, sweep.now, self._batch)
        for source, target, failed in (
                (State.FIRING, State.READY_TO_FIRE, State.ERROR),
                (State.EXPIRING, State.READY_TO_EXPIRE, State.EXPIRE_ERROR)):
            held = [one for one in overdue if one.state is source]
            again = [one.id for one in held
                     if one.attempts < self._max_attempts]
            final = [one.id for one in held
                     if one.attempts >= self._max_attempts]
            if again:
                sweep.ready(tx, again, source, target)
                LOG.warning('The lease of trigger instances %s ran out; they '
                            'are made ready again.', again)
            if final:
                tx.transition(
                    final, source, failed,
                    error=f'The lease ran out at attempt '
                          f'{self._max_attempts} of {self._max_attempts}: '
                          f'the worker died or hung each time.')
                LOG.error('The lease of trigger instances %s ran out and '
                          'their attempts are used up; they are %s.',
                          final, failed)
        sweep.moved += len(overdue)


@dataclasses.dataclass(slots=True)
class _Sweep:
    """One sweep, and the casts that it leads to.

    :param now: the storage's time
    :param deadline: when what is cast now is cast again
    :param room: how many casts may still be made
    """

    now: datetime.datetime
    deadline: datetime.datetime
    room: int
    moved: int = 0
    fire: list = dataclasses.field(default_factory=list)
    expire: list = dataclasses.field(default_factory=list)

    def ready(self, tx, ids, source, target):
        """Make instances ready, and cast those that there is room for."""
        ids, later = ids[:self.room], ids[self.room:]
        if ids:
            self.cast(tx.transition(ids, source, target,
                                    deadline=self.deadline), target)
        if later:
            # Cast as soon as there is room. They are made ready all the
            # same, as they are not to collect what comes from now on.
            tx.transition(later, source, target, deadline=self.now)

    def cast(self, ids, state):
        """Note casts of instances that are in this state."""
        (self.fire if state is State.READY_TO_FIRE
         else self.expire).extend(ids)
        self.room -= len(ids)


def _moment(what, time):
    return time.fire if what is Due.TO_FIRE else time.expire


def _is_due(instance, what, time):
    moment = _moment(what, time)
    if what is Due.TO_FIRE:
        return (instance.fire_timestamp is not None
                and instance.fire_timestamp <= moment)
    return (instance.fire_timestamp is None
            and instance.expire_timestamp is not None
            and instance.expire_timestamp <= moment)
