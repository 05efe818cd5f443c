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

"""What a storage driver promises: units of work over events and instances.

Every call is made in a transaction and takes or gives lists. Rows that a
call is said to lock stay so until the transaction ends, and are locked in
key order, so that two transactions wait for each other at most one way
round.
"""

import abc
from collections import abc as collections_abc
import contextlib
import dataclasses
import datetime
import enum
import math
import random
import time
import typing

from triggerlib import criteria
from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib import state as state_module

UTC = datetime.timezone.utc

State = state_module.State
Event = event_module.Event


@dataclasses.dataclass(slots=True)
class Instance:
    """A trigger instance: events that belong together, and what is next.

    :param name: name of its trigger definition
    :param key: JSON document of its distinguishing traits, by name
    :param active_key: what makes it unique while ACTIVE; None for one that
        nothing joins
    :param fingerprint: of the definition it was last evaluated under
    :param first_event: timestamp of its earliest event
    :param last_event: timestamp of its latest event
    :param expire_timestamp: when it expires; None for never
    :param fire_timestamp: when it fires; None until it is complete
    :param counts: events found so far for each fire criterion
    :param event_count: events in its list
    :param state: where it stands
    :param id: given by the storage
    :param version: bumped by every change
    :param owner: token of the worker that holds it
    :param deadline: READY_*: when it is cast again; FIRING and EXPIRING: end
        of the lease
    :param not_before: earliest moment of the next claim, after an error
    :param attempts: how often it was claimed
    :param error: the last error, for people
    :param created_at: when it was stored
    :param updated_at: when it changed last
    """

    name: str
    key: str
    active_key: str | None
    fingerprint: str
    first_event: datetime.datetime
    last_event: datetime.datetime
    expire_timestamp: datetime.datetime | None = None
    fire_timestamp: datetime.datetime | None = None
    counts: list[int] = dataclasses.field(default_factory=list)
    event_count: int = 0
    state: State = State.ACTIVE
    id: int | None = None
    version: int = 0
    owner: str | None = None
    deadline: datetime.datetime | None = None
    not_before: datetime.datetime | None = None
    attempts: int = 0
    error: str | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


class Due(enum.Enum):
    """What the scheduler asks the storage for."""

    TO_FIRE = 'ACTIVE, and the fire_timestamp has passed'
    TO_EXPIRE = ('ACTIVE, no fire_timestamp, and the expire_timestamp has '
                 'passed')
    READY = 'READY_*, and the deadline has passed'
    LEASED = 'FIRING or EXPIRING, and the deadline has passed'


class StepState(enum.StrEnum):
    """How far a journaled step is."""

    RUNNING = 'RUNNING'
    DONE = 'DONE'
    FAILED = 'FAILED'


@dataclasses.dataclass(slots=True)
class StepRecord:
    """A journaled step of one instance's pipeline.

    :param step: the step's name, unique in the pipeline
    :param position: its place in the pipeline, from 0
    :param state: how far it is
    :param attempts: how often it was begun
    :param items: events it finished (a publisher) or gave (a transformer)
    :param output: JSON document of the events it gave, where it is a
        checkpoint
    :param error: the last error, for people
    :param started_at: begin of its last attempt
    :param finished_at: end of its last attempt
    """

    step: str
    position: int
    state: StepState
    attempts: int = 1
    items: int = 0
    output: str | None = None
    error: str | None = None
    started_at: datetime.datetime | None = None
    finished_at: datetime.datetime | None = None


@dataclasses.dataclass(slots=True)
class DeadLetter:
    """Something that could not be handled, kept for people to look at.

    :param kind: ``notification``, which cannot become an event; ``event``,
        which cannot be stored; ``published``, an event that a receiver
        refused
    :param message_id: its id, where it has one
    :param reason: why it could not be handled
    :param body: what arrived, as JSON text where that is possible
    :param created_at: when it was put here
    :param id: given by the storage
    """

    kind: str
    message_id: str | None
    reason: str
    body: str
    created_at: datetime.datetime | None = None
    id: int | None = None


#: Seconds by which a timestamp may be ahead of the clock. What is further
#: ahead, by a host whose clock is wrong, does not tell what time it is.
AHEAD = 60.0


class NewestEvent(typing.NamedTuple):
    """How far the events go.

    :param timestamp: the latest timestamp of all events stored, except those
        that were more than :data:`AHEAD` ahead of the clock
    :param stored_at: when an event was stored last
    """

    timestamp: datetime.datetime
    stored_at: datetime.datetime


class Progress(typing.NamedTuple):
    """How far a listener is with one of its queues.

    :param listener: its name, which no other one has
    :param queue: name of the queue
    :param moment: what it is still to hand on from there is not older
    :param holds: whether it has notifications from there in its hands
    """

    listener: str
    queue: str
    moment: datetime.datetime
    holds: bool


#: What :meth:`Transaction.transition` can set, and the columns it stands for.
_CHANGES = {'new_owner': 'owner', 'deadline': 'deadline',
            'not_before': 'not_before', 'attempts': 'attempts',
            'error': 'error'}


def changes_of(changes) -> dict:
    """Return the attributes that the changes of a transition stand for.

    :raises TypeError: one of them is not to be changed by a transition
    """
    unknown = set(changes) - set(_CHANGES)
    if unknown:
        raise TypeError(f'a transition does not change '
                        f'{", ".join(sorted(unknown))}')
    return {_CHANGES[name]: value for name, value in changes.items()}


#: Longest message_id, event_type and definition name, in characters.
ID_LENGTH = 255


def check_event(event) -> None:
    """Refuse an event that not every storage can hold whole.

    :raises EventError: it says what is wrong
    """
    for name, text in (('message_id', event.message_id),
                       ('event_type', event.event_type)):
        if not isinstance(text, str) or not 0 < len(text) <= ID_LENGTH:
            raise exceptions.EventError(
                event.message_id,
                f'its {name} is not a text of 1 to {ID_LENGTH} characters')
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise exceptions.EventError(
                event.message_id,
                f'its {name} is not Unicode text: {error}') from error
        if b'\0' in data:
            raise exceptions.EventError(
                event.message_id, f'its {name} has a NUL character')
    if event.timestamp.tzinfo is not UTC:
        _check_moment(event, 'timestamp', event.timestamp)
    for name, value in event.traits.items():
        if type(value) not in _PLAIN or type(name) is not str:
            _check_trait(event, name, value)


#: Types of traits that need no closer look.
_PLAIN = frozenset({str, int})


def _check_trait(event, name, value):
    if not isinstance(name, str):
        raise exceptions.EventError(
            event.message_id,
            f'the name of its trait {name!r} is not a text')
    if isinstance(value, datetime.datetime):
        _check_moment(event, f'trait {name!r}', value)
    elif isinstance(value, float) and not math.isfinite(value):
        # JSON has no word for it, and no database compares it as Python does.
        raise exceptions.EventError(
            event.message_id,
            f'its trait {name!r} is {value}, which is no number')
    elif not isinstance(value, (str, int, float)):
        raise exceptions.EventError(
            event.message_id,
            f'its trait {name!r} is neither text, int, float nor datetime '
            f'but {type(value).__name__}')


def _check_moment(event, what, moment):
    # What has no place in UTC could be written, and never be read again.
    if moment.utcoffset() is None:
        raise exceptions.EventError(
            event.message_id, f'its {what} has no time zone')
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise exceptions.EventError(
            event.message_id,
            f'its {what} {moment} is outside of the years 1 to 9999 in UTC'
        ) from error


def lease_lost(instance_id, owner) -> exceptions.LeaseLost:
    """Return the error for an instance that a token does not hold."""
    return exceptions.LeaseLost(
        f'trigger instance {instance_id} is not held by {owner}')


class Transaction(abc.ABC):
    """One unit of work: all of it is stored, or nothing."""

    @abc.abstractmethod
    def now(self) -> datetime.datetime:
        """Return the time by the driver's clock, asked once a transaction.

        That is the database's clock, or the one given to the driver.
        """

    @abc.abstractmethod
    def add_events(
            self, events: collections_abc.Sequence[Event]) -> list[bool]:
        """Store those events whose message_id is not stored yet.

        The traits registered by :meth:`register_traits` are indexed.

        :param events: may repeat a message_id; the first one counts
        :returns: for each event, in order, whether it was stored now
        :raises EventError: an event that this storage cannot hold whole
        """

    @abc.abstractmethod
    def register_traits(
            self, names: collections_abc.Iterable[str]) -> frozenset[str]:
        """Index these traits of all events stored from now on.

        :returns: the registered traits that events stored earlier lack, so
            that the index is not used for them before
            :meth:`index_events` has caught up
        """

    @abc.abstractmethod
    def index_events(self, after: int, limit: int) -> int | None:
        """Backfill the trait index for the next events.

        :param after: where the call before stopped, 0 at first
        :param limit: events to look at
        :returns: where to go on, or None when all events are indexed
        """

    @abc.abstractmethod
    def newest_event(self) -> NewestEvent | None:
        """Return how far the stored events go, None when there is none.

        Any number of transactions may ask while others store events: it
        is not kept in one place that all of them write to.
        """

    @abc.abstractmethod
    def save_progress(self, progress: Progress,
                      until: datetime.datetime) -> None:
        """Say how far a listener is, in place of what it said before.

        :param progress: a listener's own; no two write the same one
        :param until: when it is not to be counted on any more
        """

    @abc.abstractmethod
    def list_progress(self, moment: datetime.datetime) -> list[Progress]:
        """Return how far all listeners are that can be counted on.

        :param moment: only what was said to hold until after this
        :returns: in order of listener and queue
        """

    @abc.abstractmethod
    def forget_progress(self, moment: datetime.datetime) -> None:
        """Delete what was said to hold until ``moment`` or before."""

    @abc.abstractmethod
    def get_events(
            self, message_ids: collections_abc.Sequence[str],
    ) -> dict[str, Event]:
        """Return the stored events of these ids, by id."""

    @abc.abstractmethod
    def find_events(
            self, query: criteria.EventQuery, newest_first: bool = False,
    ) -> collections_abc.Iterator[Event]:
        """Yield stored events, in order of timestamp and message_id.

        The query narrows: what is left out cannot match it, what is given
        may not match it.
        """

    @abc.abstractmethod
    def purge_events(self, before: datetime.datetime, limit: int) -> int:
        """Delete events older than ``before`` that no instance holds.

        :param limit: how many at most
        :returns: how many were deleted
        """

    @abc.abstractmethod
    def lock_active(
            self, templates: collections_abc.Sequence[Instance],
    ) -> list[Instance]:
        """Return, locked, the ACTIVE instance that each template stands for.

        Where none holds the template's ``active_key``, or that key is None,
        the template is stored and returned. Two transactions that meet the
        same new key end up with one instance.

        :param templates: of different active keys
        :returns: the instances, in the order of the templates; one that was
            just stored has version 0
        """

    @abc.abstractmethod
    def collect(
            self, instances: collections_abc.Sequence[Instance],
            message_ids: collections_abc.Mapping[
                int, collections_abc.Sequence[str]]) -> None:
        """Write what :meth:`lock_active` gave back after more was collected.

        Stores fingerprint, first_event, last_event, expire_timestamp,
        fire_timestamp, counts and event_count, and bumps the version.

        :param instances: instances locked by this transaction
        :param message_ids: ids of stored events to put on the instances'
            lists, by instance id; none may be in the list already
        """

    @abc.abstractmethod
    def get_instances(
            self, ids: collections_abc.Sequence[int], lock: bool = False,
    ) -> list[Instance]:
        """Return the instances of these ids that exist, in order of id.

        :param lock: lock them, and read what was committed last
        """

    @abc.abstractmethod
    def instance_events(
            self, ids: collections_abc.Sequence[int],
    ) -> dict[int, list[Event]]:
        """Return the event lists of instances.

        :returns: for each id a list in order of timestamp and message_id
        """

    @abc.abstractmethod
    def due(self, what: Due, moment: datetime.datetime,
            limit: int) -> list[Instance]:
        """Return, locked, instances whose time has come by ``moment``.

        Those longest due come first. Rows that another transaction has
        locked are skipped where the backend can.
        """

    @abc.abstractmethod
    def backlog(
            self, what: Due, moment: datetime.datetime,
    ) -> tuple[int, datetime.datetime | None]:
        """Count, without locking, the instances that are due by ``moment``.

        :returns: how many, and since when the longest due is due
        """

    @abc.abstractmethod
    def count_cast(self, moment: datetime.datetime, limit: int) -> int:
        """Count, without locking, READY_* instances that have been cast.

        Those are the ones whose deadline is after ``moment``, and that a
        worker could claim by then.

        :param limit: where to stop counting
        """

    @abc.abstractmethod
    def next_due(self) -> datetime.datetime | None:
        """Return when the next instance will be due for anything."""

    @abc.abstractmethod
    def transition(
            self, ids: collections_abc.Sequence[int], source: State,
            target: State, *, owner: str | None = None,
            **changes: typing.Any) -> list[int]:
        """Move instances from one state to another: compare and set.

        Bumps the version. Leaving ACTIVE gives the active key free; entering
        DELETED deletes the instance, its list and its journal. ``owner``,
        ``deadline`` and ``not_before`` become NULL unless given.

        :param ids: instances to move
        :param source: only those in this state are moved
        :param target: the state they enter
        :param owner: only those held by this token are moved; needed for a
            source of FIRING or EXPIRING unless the lease ran out
        :param changes: new values of ``new_owner``, ``deadline``,
            ``not_before``, ``attempts`` and ``error``
        :returns: ids of those that were moved
        :raises InvalidTransition: the state machine has no such way
        """

    @abc.abstractmethod
    def postpone(self, ids: collections_abc.Sequence[int],
                 deadline: datetime.datetime) -> None:
        """Set when READY_* instances are cast again, and bump the version.

        Instances that are not READY_* any more are left alone.
        """

    @abc.abstractmethod
    def hold(self, instance_id: int, owner: str,
             deadline: datetime.datetime) -> None:
        """Lock an instance that a worker holds, and renew its lease.

        :raises LeaseLost: the instance is not held by that token
        """

    @abc.abstractmethod
    def journal(self, instance_id: int) -> dict[str, StepRecord]:
        """Return the journaled steps of an instance, by name."""

    @abc.abstractmethod
    def save_step(self, instance_id: int, record: StepRecord) -> None:
        """Write a step to the journal, in place of one of that name.

        Whoever calls it holds the instance in the same transaction.
        """

    @abc.abstractmethod
    def forget_steps(self, instance_id: int, from_position: int = 0) -> None:
        """Take steps at and after a position out of the journal."""

    @abc.abstractmethod
    def list_instances(
            self, *, state: State | None = None, name: str | None = None,
            after: int = 0, limit: int = 100) -> list[Instance]:
        """Return instances with an id above ``after``, in order of id."""

    @abc.abstractmethod
    def count_instances(self) -> dict[tuple[str, State], int]:
        """Return how many instances there are, by name and state."""

    @abc.abstractmethod
    def count_events(self) -> int:
        """Return how many events are stored."""

    @abc.abstractmethod
    def add_dead_letters(
            self, letters: collections_abc.Sequence[DeadLetter]) -> None:
        """Keep what could not be handled."""

    @abc.abstractmethod
    def list_dead_letters(
            self, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """Return dead letters with an id above ``after``, in order."""

    @abc.abstractmethod
    def delete_dead_letters(
            self, ids: collections_abc.Sequence[int]) -> int:
        """Delete the dead letters of these ids.

        Of two transactions that delete the same one, one waits and finds it
        gone.

        :returns: how many of them were there
        """

    @abc.abstractmethod
    def count_dead_letters(self) -> int:
        """Return how many dead letters there are."""


class Driver(abc.ABC):
    """A storage.

    Drivers are plugins (``triggerlib.storage``), chosen by the scheme of the
    ``connection`` option, and built as ``driver(conf, url, clock=None)``.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param url: the ``connection`` option
    :param clock: the clock to go by, in place of the database's
    """

    #: How often :meth:`run` tries again, and the first wait in seconds.
    retries: int = 10
    retry_delay: float = 0.02
    retry_delay_max: float = 2.0

    @abc.abstractmethod
    def begin(
            self, write: bool = True,
    ) -> contextlib.AbstractContextManager[Transaction]:
        """Begin a unit of work.

        It is stored when the block ends, and undone when that raises.

        :param write: False promises that the block only reads
        :raises StorageBusy: a deadlock, a serialization failure, a busy or
            unreachable database: the whole block may be run again
        """

    @abc.abstractmethod
    def upgrade(self) -> None:
        """Bring the schema to what this release needs."""

    @abc.abstractmethod
    def check(self) -> None:
        """Refuse a schema that this release cannot work with.

        :raises SchemaError: it says which command to run
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Give connections back."""

    def run(self, work: typing.Callable[..., typing.Any],
            *args: typing.Any, write: bool = True) -> typing.Any:
        """Run ``work(transaction, *args)`` in a unit of work.

        It is run again from its start, after a growing wait with jitter,
        when the storage was busy.

        :returns: what ``work`` returned
        :raises StorageBusy: the storage stayed busy for all tries
        """
        delay = self.retry_delay
        for attempt in range(self.retries + 1):
            try:
                with self.begin(write=write) as transaction:
                    return work(transaction, *args)
            except exceptions.StorageBusy:
                if attempt == self.retries:
                    raise
            time.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(delay * 2, self.retry_delay_max)
        raise AssertionError('not reached')
