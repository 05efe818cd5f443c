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

"""``memory://``: a storage that ends with its process, for tests."""

import bisect
import collections
import contextlib
import dataclasses
import datetime
import threading

from triggerlib import clock as clock_module
from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib import state as state_module
from triggerlib.storage import driver as driver_module

UTC = datetime.timezone.utc

State = state_module.State
Due = driver_module.Due


@dataclasses.dataclass(slots=True)
class _Tables:
    """All there is. What is in them is replaced, and never changed."""

    events: dict = dataclasses.field(default_factory=dict)
    order: list = dataclasses.field(default_factory=list)
    #: message_ids of events that were ahead of the clock.
    ahead: dict = dataclasses.field(default_factory=dict)
    instances: dict = dataclasses.field(default_factory=dict)
    active: dict = dataclasses.field(default_factory=dict)
    lists: dict = dataclasses.field(default_factory=dict)
    journals: dict = dataclasses.field(default_factory=dict)
    #: Progress and until when it holds, by listener and queue.
    progress: dict = dataclasses.field(default_factory=dict)
    letters: dict = dataclasses.field(default_factory=dict)
    #: Numbers by what they count, and the moment of the last event stored.
    facts: dict = dataclasses.field(default_factory=dict)


class MemoryDriver(driver_module.Driver):
    """Keeps everything in memory; a unit of work excludes all others."""

    def __init__(self, conf, url, clock=None):
        self._clock = clock or clock_module.SystemClock()
        self._lock = threading.RLock()
        self._tables = _Tables()

    @contextlib.contextmanager
    def begin(self, write=True):
        """Begin a unit of work."""
        with self._lock:
            transaction = _Transaction(self._tables, self._clock.now())
            try:
                yield transaction
            except BaseException:
                transaction.undo()
                raise

    def upgrade(self):
        """Do nothing: there is no schema."""

    def check(self):
        """Do nothing: there is no schema."""

    def close(self):
        """Do nothing: there are no connections."""


def _in_utc(event):
    """Return a copy of an event as it comes out of a database."""
    traits = {
        name: value.astimezone(UTC)
        if isinstance(value, datetime.datetime) else value
        for name, value in event.traits.items()}
    return event_module.Event(event.message_id, event.event_type,
                              event.timestamp.astimezone(UTC), traits)


class _Transaction(driver_module.Transaction):
    """One unit of work, and how to undo it."""

    def __init__(self, tables, now):
        self._tables = tables
        self._now = now
        self._undo = []

    def undo(self):
        for restore in reversed(self._undo):
            restore()

    def _set(self, table, key, value):
        if key in table:
            old = table[key]
            self._undo.append(lambda: table.__setitem__(key, old))
        else:
            self._undo.append(lambda: table.pop(key, None))
        table[key] = value

    def _delete(self, table, key):
        if key in table:
            old = table.pop(key)
            self._undo.append(lambda: table.__setitem__(key, old))

    def _next(self, what):
        number = self._tables.facts.get(what, 0) + 1
        # Numbers are not used again, as in a database.
        self._tables.facts[what] = number
        return number

    def now(self):
        return self._now

    def add_events(self, events):
        flags = []
        for event in events:
            driver_module.check_event(event)
            new = event.message_id not in self._tables.events
            flags.append(new)
            if new:
                self._add_event(event)
        return flags

    def _add_event(self, event):
        key = event_module.sort_key(event)
        order = self._tables.order
        bisect.insort(order, key)
        self._undo.append(
            lambda: order.pop(bisect.bisect_left(order, key)))
        self._set(self._tables.events, event.message_id, _in_utc(event))
        if event.timestamp > clock_module.after(
                self._now, driver_module.AHEAD):
            self._set(self._tables.ahead, event.message_id, True)
        self._set(self._tables.facts, 'stored_at', self._now)

    def register_traits(self, names):
        # Everything is in memory, so nothing is indexed and nothing lacks.
        return frozenset()

    def index_events(self, after, limit):
        return None

    def newest_event(self):
        for timestamp, message_id in reversed(self._tables.order):
            if message_id not in self._tables.ahead:
                return driver_module.NewestEvent(
                    timestamp, self._tables.facts['stored_at'])
        return None

    def save_progress(self, progress, until):
        self._set(self._tables.progress,
                  (progress.listener, progress.queue), (progress, until))

    def list_progress(self, moment):
        return [progress for _, (progress, until)
                in sorted(self._tables.progress.items()) if until > moment]

    def forget_progress(self, moment):
        for key, (_, until) in list(self._tables.progress.items()):
            if until <= moment:
                self._delete(self._tables.progress, key)

    def get_events(self, message_ids):
        return {one: self._event(one) for one in message_ids
                if one in self._tables.events}

    def _event(self, message_id):
        # Whoever gets it may change its traits.
        event = self._tables.events[message_id]
        return dataclasses.replace(event, traits=dict(event.traits))

    def find_events(self, query, newest_first=False):
        order = self._tables.order
        begin, end = 0, len(order)
        if query.begin is not None:
            begin = bisect.bisect_left(order, (query.begin,))
        if query.end is not None:
            end = bisect.bisect_left(order, (query.end,))
            if query.begin == query.end:
                # Behind the last text of that moment.
                end = bisect.bisect_left(
                    order, query.end, key=lambda one: one[0], lo=begin)
                while end < len(order) and order[end][0] == query.end:
                    end += 1
        found = order[begin:end]
        if newest_first:
            found.reverse()
        for _, message_id in found:
            event = self._tables.events[message_id]
            if (query.event_types is None
                    or event.event_type in query.event_types):
                yield self._event(message_id)

    def purge_events(self, before, limit):
        held = {one for ids in self._tables.lists.values() for one in ids}
        gone = 0
        end = bisect.bisect_left(self._tables.order, (before,))
        for key in self._tables.order[:end]:
            if gone >= limit:
                break
            if key[1] not in held:
                self._remove_event(key)
                gone += 1
        return gone

    def _remove_event(self, key):
        order = self._tables.order
        order.pop(bisect.bisect_left(order, key))
        self._undo.append(lambda: bisect.insort(order, key))
        self._delete(self._tables.events, key[1])
        self._delete(self._tables.ahead, key[1])

    def lock_active(self, templates):
        return [self._copy(self._active(template))
                for template in templates]

    def _active(self, template):
        if template.active_key is not None:
            found = self._tables.active.get(template.active_key)
            if found is not None:
                return found
        instance_id = self._next('instance')
        self._set(self._tables.instances, instance_id, dataclasses.replace(
            template, id=instance_id, version=0, state=State.ACTIVE,
            counts=list(template.counts), created_at=self._now,
            updated_at=self._now))
        self._set(self._tables.lists, instance_id, {})
        if template.active_key is not None:
            self._set(self._tables.active, template.active_key, instance_id)
        return instance_id

    def _copy(self, instance_id):
        one = self._tables.instances[instance_id]
        return dataclasses.replace(one, counts=list(one.counts))

    def _change(self, instance_id, **changes):
        one = self._tables.instances[instance_id]
        self._set(self._tables.instances, instance_id, dataclasses.replace(
            one, version=one.version + 1, updated_at=self._now, **changes))

    def collect(self, instances, message_ids):
        for one in instances:
            self._change(
                one.id, fingerprint=one.fingerprint,
                first_event=one.first_event, last_event=one.last_event,
                expire_timestamp=one.expire_timestamp,
                fire_timestamp=one.fire_timestamp,
                counts=list(one.counts), event_count=one.event_count)
        for instance_id, ids in message_ids.items():
            held = self._tables.lists[instance_id]
            for message_id in ids:
                if message_id not in self._tables.events:
                    raise exceptions.StorageError(
                        f'event {message_id!r} is not stored')
                if message_id in held:
                    raise exceptions.StorageError(
                        f'event {message_id!r} is in the list of trigger '
                        f'instance {instance_id} already')
                self._set(held, message_id, True)

    def get_instances(self, ids, lock=False):
        return [self._copy(one) for one in sorted(set(ids))
                if one in self._tables.instances]

    def instance_events(self, ids):
        return {one: sorted(
            map(self._event, self._tables.lists.get(one, ())),
            key=event_module.sort_key) for one in ids}

    def _waiting(self, what):
        """Yield ``(since, id)`` of all that will be due for something."""
        for one in self._tables.instances.values():
            moment = None
            if one.state is State.ACTIVE:
                if what is Due.TO_FIRE:
                    moment = one.fire_timestamp
                elif what is Due.TO_EXPIRE and one.fire_timestamp is None:
                    moment = one.expire_timestamp
            elif one.state in state_module.READY:
                moment = one.deadline if what is Due.READY else None
            elif one.state in state_module.LEASED:
                moment = one.deadline if what is Due.LEASED else None
            if moment is not None:
                yield moment, one.id

    def due(self, what, moment, limit):
        found = sorted(one for one in self._waiting(what)
                       if one[0] <= moment)
        return [self._copy(instance_id) for _, instance_id in found[:limit]]

    def backlog(self, what, moment):
        found = [since for since, _ in self._waiting(what)
                 if since <= moment]
        return len(found), min(found, default=None)

    def count_cast(self, moment, limit):
        found = sum(
            1 for one in self._tables.instances.values()
            if one.state in state_module.READY
            and one.deadline is not None and one.deadline > moment
            and (one.not_before is None or one.not_before <= moment))
        return min(found, limit)

    def next_due(self):
        return min((since for what in Due
                    for since, _ in self._waiting(what)), default=None)

    def transition(self, ids, source, target, *, owner=None, **changes):
        state_module.check(source, target)
        changes = driver_module.changes_of(changes)
        moved = []
        for instance_id in sorted(set(ids)):
            one = self._tables.instances.get(instance_id)
            if one is None or one.state is not source:
                continue
            if owner is not None and one.owner != owner:
                continue
            if owner is None and source in state_module.LEASED and not (
                    one.deadline is not None
                    and one.deadline <= self._now):
                continue
            moved.append(instance_id)
            if source is State.ACTIVE and one.active_key is not None:
                self._delete(self._tables.active, one.active_key)
            if target is State.DELETED:
                self._delete(self._tables.instances, instance_id)
                self._delete(self._tables.lists, instance_id)
                self._delete(self._tables.journals, instance_id)
                continue
            self._change(instance_id, **{
                'state': target, 'owner': None, 'deadline': None,
                'not_before': None, **changes,
                **({'active_key': None} if source is State.ACTIVE else {})})
        return moved

    def postpone(self, ids, deadline):
        for instance_id in set(ids):
            one = self._tables.instances.get(instance_id)
            if one is not None and one.state in state_module.READY:
                self._change(instance_id, deadline=deadline)

    def hold(self, instance_id, owner, deadline):
        one = self._tables.instances.get(instance_id)
        if (one is None or one.owner != owner
                or one.state not in state_module.LEASED):
            raise driver_module.lease_lost(instance_id, owner)
        self._change(instance_id, deadline=deadline)

    def journal(self, instance_id):
        return {name: dataclasses.replace(record) for name, record in
                self._tables.journals.get(instance_id, {}).items()}

    def save_step(self, instance_id, record):
        self._set(self._tables.journals, instance_id, {
            **self._tables.journals.get(instance_id, {}),
            record.step: dataclasses.replace(record)})

    def forget_steps(self, instance_id, from_position=0):
        self._set(self._tables.journals, instance_id, {
            name: record for name, record in
            self._tables.journals.get(instance_id, {}).items()
            if record.position < from_position})

    def list_instances(self, *, state=None, name=None, after=0, limit=100):
        found = [
            instance_id for instance_id, one in
            sorted(self._tables.instances.items())
            if instance_id > after and state in (None, one.state)
            and name in (None, one.name)]
        return [self._copy(one) for one in found[:limit]]

    def count_instances(self):
        return dict(collections.Counter(
            (one.name, one.state)
            for one in self._tables.instances.values()))

    def count_events(self):
        return len(self._tables.events)

    def add_dead_letters(self, letters):
        for letter in letters:
            number = self._next('letter')
            self._set(self._tables.letters, number, dataclasses.replace(
                letter, id=number, created_at=self._now))

    def list_dead_letters(self, after=0, limit=100):
        return [dataclasses.replace(letter) for number, letter in
                sorted(self._tables.letters.items())
                if number > after][:limit]

    def delete_dead_letters(self, ids):
        found = [one for one in set(ids) if one in self._tables.letters]
        for number in found:
            self._delete(self._tables.letters, number)
        return len(found)

    def count_dead_letters(self):
        return len(self._tables.letters)
