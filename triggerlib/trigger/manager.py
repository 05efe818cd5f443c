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

"""The trigger manager: events in, instances collected, all or nothing.

Follows the blueprint's "Incoming Event". A batch is one transaction, so that
an event that is stored is an event that is matched.
"""

import bisect
from collections import abc as collections_abc
import dataclasses
import json
import logging

from triggerlib.event import converter as converter_module
from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import state as state_module
from triggerlib.storage import driver as storage_module
from triggerlib.trigger import catalog as catalog_module
from triggerlib.trigger import evaluation
from triggerlib.trigger import expiry
from triggerlib.trigger import source as source_module

LOG = logging.getLogger(__name__)

Event = event_module.Event
State = state_module.State

#: Characters of a notification's text that a dead letter keeps.
BODY_LIMIT = 1024 * 1024


@dataclasses.dataclass(slots=True)
class Report:
    """What became of a batch.

    :param received: notifications or events that were handed in
    :param stored: events stored
    :param duplicates: events whose message_id was stored before
    :param dropped: notifications that no event definition is for, where
        the options say to drop them
    :param dead_letters: what can never be handled, kept as dead letter
    :param collected: places on event lists that were filled
    """

    received: int = 0
    stored: int = 0
    duplicates: int = 0
    dropped: int = 0
    dead_letters: int = 0
    collected: int = 0

    def add(self, other: 'Report') -> None:
        """Add the counts of another batch."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name)
                    + getattr(other, field.name))


@dataclasses.dataclass(slots=True)
class Batch:
    """What goes into the storage in one transaction.

    :param events: in order of arrival
    :param letters: what can never become an event
    :param report: what became of the notifications so far
    """

    events: list = dataclasses.field(default_factory=list)
    letters: list = dataclasses.field(default_factory=list)
    report: Report = dataclasses.field(default_factory=Report)

    def merge(self, other: 'Batch') -> None:
        """Add what another batch holds, behind what this one does."""
        self.events += other.events
        self.letters += other.letters
        self.report.add(other.report)


@dataclasses.dataclass(slots=True)
class _Group:
    """Events of a batch that go to one instance, in order of arrival."""

    definition: object
    key: tuple
    events: list
    positions: list


class TriggerManager:
    """Stores events and collects them into trigger instances.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param catalog: a :class:`triggerlib.trigger.catalog.Catalog`
    :param converter: a :class:`triggerlib.event.Converter`, for those who
        hand in notifications
    :param expiry_clock: a :class:`triggerlib.trigger.expiry.ExpiryClock`
    :param indexed_traits: names of traits to index beside those that the
        definitions distinguish by
    """

    def __init__(self, storage, catalog, converter=None, expiry_clock=None,
                 indexed_traits=()):
        #: The storage that the events go into.
        self.storage = storage
        self._catalog = catalog
        self.converter = converter
        self._expiry_clock = expiry_clock or expiry.ExpiryClock()
        self._indexed_traits = frozenset(indexed_traits)
        self._registered = None

    @classmethod
    def from_conf(cls, conf, storage, catalog=None,
                  converter=None) -> 'TriggerManager':
        """Build one from the options of ``[triggerlib]``.

        :param conf: an ``oslo_config.cfg.ConfigOpts``
        :param storage: a :class:`triggerlib.storage.Driver`
        :param catalog: loaded from ``conf`` unless given
        :param converter: built from ``conf`` unless given
        :raises DefinitionError: every mistake in the files
        """
        return cls(
            storage, catalog or catalog_module.Catalog.from_conf(conf),
            converter or converter_module.Converter.from_conf(conf),
            expiry.ExpiryClock.from_conf(conf),
            conf[opts.GROUP].indexed_traits)

    def add_notification(self, body) -> Report:
        """Convert, store and collect one notification.

        See :meth:`add_notifications`.
        """
        return self.add_notifications([body])

    def add_notifications(
            self, bodies: collections_abc.Sequence) -> Report:
        """Convert, store and collect notifications, in one transaction.

        What can never become an event is logged, counted and kept as a dead
        letter; the rest of the batch goes on.

        :param bodies: notifications in any form that
            :class:`triggerlib.event.Converter` takes
        :returns: what became of them
        :raises StorageError: nothing of the batch was stored; hand it in
            again
        """
        batch = Batch()
        for body in bodies:
            self.convert(body, batch)
        return self.add(batch)

    def convert(self, body, batch: Batch) -> Event | None:
        """Convert a notification, and put what became of it into a batch.

        :param body: a notification
        :param batch: gets the event, or the dead letter
        :returns: the event, None when there is none
        """
        batch.report.received += 1
        try:
            event = self.converter.to_event(body)
        except exceptions.NotificationError as error:
            LOG.error('Kept as dead letter: %s', error)
            batch.letters.append(storage_module.DeadLetter(
                'notification', error.message_id, error.reason,
                _text(body)))
            return None
        if event is None:
            batch.report.dropped += 1
        else:
            batch.events.append(event)
        return event

    def add_event(self, event: Event) -> Report:
        """Store and collect one event; see :meth:`add_events`."""
        return self.add_events([event])

    def add_events(
            self, events: collections_abc.Sequence[Event]) -> Report:
        """Store and collect events, in one transaction.

        Those whose message_id is stored already are dropped as duplicates.

        :param events: in order of arrival
        :returns: what became of them
        :raises StorageError: nothing of the batch was stored; hand it in
            again
        """
        return self.add(Batch(list(events), [], Report(len(events))))

    def add_events_in(
            self, tx, events: collections_abc.Sequence[Event]) -> Report:
        """Store and collect events as part of a running transaction.

        :param tx: the running storage transaction
        :param events: in order of arrival
        :returns: what became of them once the transaction is committed
        :raises EventError: an event that the storage cannot hold

        :meth:`register_traits` must have been called before.
        """
        return self._work(tx, Batch(list(events), [], Report(len(events))))

    def add(self, batch: Batch) -> Report:
        """Store and collect what a batch holds, in one transaction.

        An event that the storage cannot hold is kept as a dead letter.

        :returns: what became of the batch
        :raises StorageError: nothing of it was stored; hand it in again
        """
        self.register_traits()
        while True:
            try:
                return self.storage.run(self._work, batch)
            except exceptions.EventError as error:
                LOG.error('Kept as dead letter: %s', error)
                batch = _without(batch, error)

    def register_traits(self) -> None:
        """Have the traits indexed that the definitions in force need.

        Whoever adds events in transactions of its own calls it first, outside
        of them; it does nothing when nothing changed.
        """
        definitions = self._catalog.current.definitions
        if self._registered is definitions:
            return
        names = self._indexed_traits | definitions.indexed_traits
        lacking = self.storage.run(
            lambda tx: tx.register_traits(sorted(names)))
        if lacking:
            LOG.warning(
                'The trait index lacks events stored before these traits '
                'were in it: %s. Load criteria go without the index until '
                '"triggerlib db reindex" was run.',
                ', '.join(sorted(lacking)))
        self._registered = definitions

    def _work(self, tx, batch):
        events = batch.events
        # A copy: the storage may have to run this again.
        report = dataclasses.replace(batch.report)
        if batch.letters:
            tx.add_dead_letters(batch.letters)
            report.dead_letters = len(batch.letters)
        times = self._expiry_clock.batch(tx, events)
        flags = tx.add_events(events) if events else []
        new = [(position, events[position])
               for position, stored in enumerate(flags) if stored]
        report.stored = len(new)
        report.duplicates = len(events) - len(new)
        if not new:
            return report
        loaded = self._catalog.current
        # Due at once, whichever clock counts.
        self._pass_through(tx, [event for _, event in new], loaded.pipelines,
                           times(len(events) - 1).fire)
        groups = _group(new, loaded.definitions)
        # Further rounds are only for events that come after the end of the
        # instance that earlier events of the same batch went to.
        while groups:
            groups = self._collect(tx, groups, times, report)
        return report

    def _pass_through(self, tx, events, pipelines, moment):
        carriers, lists = [], []
        for source in pipelines.sources:
            taken = [event for event in events
                     if source.event_types.match(event.event_type)]
            if taken:
                carriers.append(
                    source_module.instance_of(source, taken, moment))
                lists.append([event.message_id for event in taken])
        if carriers:
            carriers = tx.lock_active(carriers)
            tx.collect(carriers, {
                carrier.id: ids for carrier, ids in zip(carriers, lists)})

    def _collect(self, tx, groups, times, report):
        """Give each group's events to its ACTIVE instance.

        :returns: the groups whose instance had come to its end, with the
            events that are left
        """
        now = tx.now()
        closes = self._expiry_clock.follows_events
        active_keys = sorted(groups)
        instances = tx.lock_active([
            evaluation.new_instance(group.definition, group.key,
                                    group.events[0])
            for group in map(groups.__getitem__, active_keys)])
        known = _lists(tx, instances, active_keys, groups)
        changed, taken, empty, rest = [], {}, [], {}
        complete, expired = [], []
        for active_key, instance in zip(active_keys, instances):
            group = groups[active_key]
            stale = instance.fingerprint != group.definition.fingerprint
            accepted, left = _take(
                instance, group, known.get(instance.id), times, closes)
            if accepted:
                taken[instance.id] = accepted
                report.collected += len(accepted)
            elif instance.event_count == 0:
                empty.append(instance.id)
            if accepted or stale:
                changed.append(instance)
            if left is not None:
                (expired if instance.fire_timestamp is None
                 else complete).append(instance.id)
                rest[active_key] = left
        if changed:
            tx.collect(changed, taken)
        if empty:
            tx.transition(empty, State.ACTIVE, State.DELETED)
        for ended, ready in ((complete, State.READY_TO_FIRE),
                             (expired, State.READY_TO_EXPIRE)):
            if ended:
                # Due for a cast at once: the next sweep finds them.
                tx.transition(ended, State.ACTIVE, ready, deadline=now)
        return rest


def _group(new, definitions):
    groups = {}
    for position, event in new:
        for definition, criteria in definitions.for_event_type(
                event.event_type):
            key = definition.key(event, criteria)
            if key is None:
                continue
            active_key = definition.active_key(key)
            group = groups.get(active_key)
            if group is None:
                group = groups[active_key] = _Group(definition, key, [], [])
            group.events.append(event)
            group.positions.append(position)
    return groups


def _lists(tx, instances, active_keys, groups):
    """Load the lists of those instances that must be looked at whole."""
    wanted = []
    for active_key, instance in zip(active_keys, instances):
        definition = groups[active_key].definition
        if instance.event_count and (
                definition.needs_list
                or instance.fingerprint != definition.fingerprint):
            wanted.append(instance.id)
    return tx.instance_events(wanted) if wanted else {}


def _take(instance, group, events, times, closes):
    """Put a group's events on an instance's list, up to its end.

    :param events: the instance's list where it must be looked at whole
    :param times: a function from a position in the batch to a
        :class:`triggerlib.trigger.expiry.Time`
    :param closes: whether an instance whose fire_timestamp has passed takes
        no more; else it does until it is made ready
    :returns: the message_ids taken, and a group of what is left when the
        instance had come to its end, else None
    """
    definition = group.definition
    if instance.fingerprint != definition.fingerprint:
        evaluation.evaluate(definition, instance, events,
                            times(group.positions[0]).fire)
    if definition.needs_list and events is None:
        events = []
    taken = []
    for index, event in enumerate(group.events):
        time = times(group.positions[index])
        if instance.event_count and (
                closes and instance.fire_timestamp is not None
                and instance.fire_timestamp <= time.fire
                or _is_expired(definition, instance, events, time)):
            return taken, _Group(definition, group.key,
                                 group.events[index:],
                                 group.positions[index:])
        if definition.matches_list and not definition.accepts(
                event, group.key, instance):
            continue
        evaluation.add(definition, instance, event)
        taken.append(event.message_id)
        if definition.needs_list:
            bisect.insort(events, event, key=event_module.sort_key)
            if closes or instance.fire_timestamp is not None:
                # This event may complete the instance or take that back, and
                # one behind it in the batch come too late, or set it anew.
                evaluation.settle(definition, instance, time.fire, events)
        else:
            evaluation.settle(definition, instance, time.fire)
    if definition.needs_list and taken:
        evaluation.settle(definition, instance, time.fire, events)
    return taken, None


def _is_expired(definition, instance, events, time):
    if (instance.fire_timestamp is not None
            or instance.expire_timestamp is None
            or instance.expire_timestamp > time.expire):
        return False
    if definition.needs_list:
        # What was taken of this batch has not been counted yet.
        evaluation.settle(definition, instance, time.fire, events)
    return instance.fire_timestamp is None


def _without(batch, error):
    """Return a batch with the event of an error among its dead letters."""
    suspects = [event for event in batch.events
                if event.message_id == error.message_id]
    if not suspects:
        raise error
    # One of the same id that is sound is stored all the same.
    poison = [event for event in suspects if _is_refused(event)] or suspects
    letters = [
        storage_module.DeadLetter('event', event.message_id, error.reason,
                                  _text(_plain(event)))
        for event in poison]
    return Batch(
        [event for event in batch.events
         if not any(event is one for one in poison)],
        batch.letters + letters, batch.report)


def _is_refused(event):
    try:
        storage_module.check_event(event)
    except exceptions.EventError:
        return True
    return False


def _plain(event):
    return {'message_id': event.message_id, 'event_type': event.event_type,
            'timestamp': event.timestamp, 'traits': event.traits}


def _text(body):
    """Return what arrived as JSON text, or as near to it as it lets us."""
    try:
        text = json.dumps(body, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        text = f'not JSON ({type(error).__name__}): {type(body).__name__}'
    return text[:BODY_LIMIT]
