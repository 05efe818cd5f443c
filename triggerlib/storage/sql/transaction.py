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

"""All statements: what each of them decides, and in which order they lock."""

import functools
import itertools
import json
import operator

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

from triggerlib import clock
from triggerlib.event import encoding
from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib import state as state_module
from triggerlib.storage import driver as driver_module
from triggerlib.storage.sql import models
from triggerlib.storage.sql import rows

State = state_module.State
Due = driver_module.Due

_event = models.event
_trait = models.event_trait
_indexed = models.indexed_trait
_instance = models.instance
_held = models.instance_event
_journal = models.step_journal
_letter = models.dead_letter
_queue = models.listener_queue

#: Values in one IN list: within what every backend takes in a statement.
_CHUNK = 5000
#: Events read at once by :meth:`SQLTransaction.find_events`.
_PAGE = 500
#: How often :meth:`SQLTransaction.lock_active` looks for a new instance.
_ROUNDS = 10
#: The highest number that a row can have.
_LAST_ID = 2 ** 63 - 1
#: Traits of this many characters and more may be too much for MySQL.
_LARGE = 250_000

_READY = [str(state) for state in state_module.READY]
_LEASED = [str(state) for state in state_module.LEASED]
_ACTIVE = str(State.ACTIVE)

_NOW = {
    'postgresql': "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)"
                  "::bigint",
    'mysql': "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "
             "UTC_TIMESTAMP(6))",
}
_NOW['mariadb'] = _NOW['mysql']

#: States, further conditions, and the column that a due-query goes by. Each
#: state is asked for by itself, in the order of an index: what would have to
#: be sorted is all that is due, and MariaDB locks what it sorts.
_DUE = {
    Due.TO_FIRE: ([_ACTIVE], [], _instance.c.fire_timestamp),
    Due.TO_EXPIRE: ([_ACTIVE], [_instance.c.fire_timestamp.is_(None)],
                    _instance.c.expire_timestamp),
    Due.READY: (_READY, [], _instance.c.deadline),
    Due.LEASED: (_LEASED, [], _instance.c.deadline),
}


class SQLTransaction(driver_module.Transaction):
    """One transaction of a database.

    :param connection: a SQLAlchemy connection in a transaction
    :param clock: the clock to go by, None for the database's
    """

    def __init__(self, connection, clock):
        self._connection = connection
        self._clock = clock
        self._dialect = connection.dialect.name
        self._skips_duplicates = self._dialect in ('sqlite', 'postgresql')
        self._now = None
        #: Row numbers of the events that this transaction has met.
        self._event_ids = {}

    def _execute(self, statement, values=None):
        return self._connection.execute(statement, values)

    def _chunks(self, values):
        values = list(values)
        for start in range(0, len(values), _CHUNK):
            yield values[start:start + _CHUNK]

    # Time

    def now(self):
        return encoding.from_micros(self._micros())

    def _micros(self):
        if self._now is None:
            if self._clock is not None:
                self._now = encoding.to_micros(self._clock.now())
            elif self._dialect in _NOW:
                self._now = self._connection.exec_driver_sql(
                    _NOW[self._dialect]).scalar_one()
            else:
                # SQLite's clock is the host's.
                self._now = encoding.to_micros(clock.SystemClock().now())
        return self._now

    # Events

    def add_events(self, events):
        first = {}
        for position, event in enumerate(events):
            driver_module.check_event(event)
            first.setdefault(event.message_id, position)
        indexed = self._indexed_names(lock=True)
        now = self._micros()
        new_rows = []
        # In the order of the ids, so that two batches with the same events
        # wait for each other one way round.
        for message_id in sorted(first):
            event = events[first[message_id]]
            try:
                new_rows.append(rows.of_event(event, now))
            except (TypeError, ValueError, OverflowError) as error:
                raise exceptions.EventError(
                    message_id, f'its traits cannot be stored: {error}'
                ) from error
        self._check_size(new_rows)
        stored = self._insert_events(new_rows)
        self._event_ids.update(stored)
        flags = [False] * len(events)
        for message_id in stored:
            flags[first[message_id]] = True
        self._index([events[first[message_id]] for message_id in stored],
                    indexed)
        return flags

    def _check_size(self, new_rows):
        """Refuse events that do not fit into a packet of the server's."""
        large = [row for row in new_rows if len(row['traits']) >= _LARGE]
        if not large or self._dialect not in ('mysql', 'mariadb'):
            return
        packet = self._connection.exec_driver_sql(
            'SELECT @@max_allowed_packet').scalar_one()
        for row in large:
            traits = row['traits']
            # In a statement some characters take two, and the rest of the
            # row needs room too.
            size = (len(traits) + traits.count('"') + traits.count('\\')
                    + traits.count("'") + 16 * 1024)
            if size > packet:
                raise exceptions.EventError(
                    row['message_id'],
                    f'its traits take {size} bytes and the server takes '
                    f'{packet}; raise its max_allowed_packet')

    def _insert_events(self, new_rows):
        """Insert events that are not there, and return their ids."""
        if not new_rows:
            return {}
        if self._skips_duplicates:
            statement = self._insert(_event).on_conflict_do_nothing(
                index_elements=[_event.c.message_id]).returning(
                    _event.c.message_id, _event.c.id)
            return dict(self._execute(statement, new_rows).all())
        known = self._ids_of([row['message_id'] for row in new_rows])
        self._event_ids.update(known)
        new_rows = [row for row in new_rows
                    if row['message_id'] not in known]
        if not new_rows:
            return {}
        # One that another transaction stores meanwhile is a duplicate; the
        # unit of work is run again and finds it.
        self._execute(_event.insert(), new_rows)
        return self._ids_of([row['message_id'] for row in new_rows])

    def _insert(self, table):
        return {'sqlite': sqlite, 'postgresql': postgresql}[
            self._dialect].insert(table)

    def _insert_missing(self, table, column, new_rows):
        """Insert those rows whose column has a new value."""
        if self._skips_duplicates:
            statement = self._insert(table).on_conflict_do_nothing(
                index_elements=[column])
        else:
            # INSERT IGNORE would let wrong values pass, too.
            statement = mysql.insert(table).on_duplicate_key_update(
                {column.name: column})
        self._execute(statement, new_rows)

    def _put(self, table, key, values):
        """Insert a row, or give the one of that key these values."""
        if self._skips_duplicates:
            statement = self._insert(table).values(
                **key, **values).on_conflict_do_update(
                    index_elements=list(key), set_=values)
        else:
            statement = mysql.insert(table).values(
                **key, **values).on_duplicate_key_update(**values)
        self._execute(statement)

    def _ids_of(self, message_ids):
        found = {}
        for chunk in self._chunks(message_ids):
            found.update(self._execute(_IDS_OF, {'values': chunk}).all())
        return found

    def _index(self, events, indexed):
        new_rows = []
        for event in events:
            timestamp = encoding.to_micros(event.timestamp)
            for name in indexed.intersection(event.traits):
                new_rows.append({
                    'event_id': self._event_ids[event.message_id],
                    'name': name, 'timestamp': timestamp,
                    'value': rows.index_value(event.traits[name])})
        if new_rows:
            self._execute(_trait.insert(), new_rows)

    def _indexed_names(self, lock=False, complete=False):
        # Whoever registers a trait waits for the batches that do not know
        # of it yet. On PostgreSQL they lock the table, as a lock on a row
        # would be a write; who only reads is in nobody's way.
        statement = _COMPLETE if complete else _REGISTERED
        if lock and self._dialect == 'postgresql':
            self._connection.exec_driver_sql(
                'LOCK TABLE indexed_trait IN ROW SHARE MODE')
        elif lock and self._dialect in ('mysql', 'mariadb'):
            statement = statement.with_for_update(read=True)
        return frozenset(self._execute(statement).scalars()) - {''}

    def register_traits(self, names):
        wanted = frozenset(names)
        for name in wanted:
            _check_name(name)
        missing = wanted - self._indexed_names()
        if missing:
            if self._dialect == 'postgresql':
                self._connection.exec_driver_sql(
                    'LOCK TABLE indexed_trait IN EXCLUSIVE MODE')
            else:
                self._execute(sa.select(_indexed.c.name).where(
                    _indexed.c.name == '').with_for_update()).all()
            missing -= self._indexed_names()
        if missing:
            empty = self._execute(
                sa.select(_event.c.id).limit(1)).first() is None
            # In a cluster the lock keeps out only those at the same server.
            self._insert_missing(_indexed, _indexed.c.name, [
                {'name': name, 'indexed_to': None if empty else 0}
                for name in sorted(missing)])
        return self._indexed_names() - self._indexed_names(complete=True)

    def index_events(self, after, limit):
        # A trait that was registered while a backfill was on its way is
        # behind it, and waits for one that begins at its place.
        names = self._execute(sa.select(_indexed.c.name).where(
            _indexed.c.name != '', sa.or_(
                _indexed.c.indexed_to.is_(None),
                _indexed.c.indexed_to >= after))).scalars().all()
        progress = _indexed.update().where(
            _indexed.c.name.in_(names), _indexed.c.indexed_to >= after)
        # Locked, so that a purge does not take them away meanwhile.
        found = self._execute(
            sa.select(_event.c.id, *rows.EVENT).where(
                _event.c.id > after).order_by(_event.c.id).limit(limit)
            .with_for_update(key_share=True)).all()
        if not found:
            self._execute(progress.values(indexed_to=None))
            return None
        events = []
        for row_id, *row in found:
            event = rows.to_event(*row)
            self._event_ids[event.message_id] = row_id
            events.append(event)
        for chunk in self._chunks(row[0] for row in found):
            self._execute(_trait.delete().where(
                _trait.c.event_id.in_(chunk), _trait.c.name.in_(names)))
        self._index(events, frozenset(names))
        self._execute(progress.where(
            _indexed.c.indexed_to < found[-1][0]).values(
                indexed_to=found[-1][0]))
        return found[-1][0]

    def newest_event(self):
        # By the index on the timestamp, from its end: what is ahead of the
        # clock is at that end, and seldom there.
        ahead = int(driver_module.AHEAD * 1_000_000)
        timestamp = self._execute(
            sa.select(_event.c.timestamp).where(
                _event.c.timestamp <= self._micros() + ahead,
                _event.c.timestamp <= _event.c.stored_at + ahead).order_by(
                    _event.c.timestamp.desc()).limit(1)).scalar()
        if timestamp is None:
            return None
        stored_at = self._execute(
            sa.select(_event.c.stored_at).order_by(
                _event.c.id.desc()).limit(1)).scalar_one()
        return driver_module.NewestEvent(
            rows.moment(timestamp), rows.moment(stored_at))

    def save_progress(self, progress, until):
        values = {'progress': rows.micros(progress.moment),
                  'holds': progress.holds,
                  'until': rows.micros(until)}
        self._put(_queue, {'listener': progress.listener,
                           'queue': progress.queue}, values)

    def list_progress(self, moment):
        return [
            driver_module.Progress(
                listener, queue, rows.moment(progress), holds)
            for listener, queue, progress, holds in self._execute(
                sa.select(_queue.c.listener, _queue.c.queue,
                          _queue.c.progress, _queue.c.holds).where(
                    _queue.c.until > rows.micros(moment)).order_by(
                        _queue.c.listener, _queue.c.queue))]

    def forget_progress(self, moment):
        # By their keys, so that the rows of others are not locked.
        for key in self._execute(
                sa.select(_queue.c.listener, _queue.c.queue).where(
                    _queue.c.until <= rows.micros(moment))).all():
            self._execute(_queue.delete().where(
                _queue.c.listener == key.listener,
                _queue.c.queue == key.queue,
                _queue.c.until <= rows.micros(moment)))

    def get_events(self, message_ids):
        found = {}
        for chunk in self._chunks(filter(_storable, set(message_ids))):
            for row in self._execute(sa.select(*rows.EVENT).where(
                    _event.c.message_id.in_(chunk))):
                found[row[0]] = rows.to_event(*row)
        return found

    def find_events(self, query, newest_first=False):
        statement, timestamp = self._narrowed(query)
        key = sa.tuple_(timestamp, _event.c.message_id)
        if newest_first:
            statement = statement.order_by(
                timestamp.desc(), _event.c.message_id.desc())
        else:
            statement = statement.order_by(timestamp, _event.c.message_id)
        last = None
        while True:
            page = statement.limit(_PAGE)
            if last is not None:
                bound = sa.tuple_(*last, types=[
                    timestamp.type, _event.c.message_id.type])
                # The timestamp alone is for MySQL, which does not look up
                # a pair in an index.
                page = page.where(*(
                    (key < bound, timestamp <= last[0]) if newest_first
                    else (key > bound, timestamp >= last[0])))
            found = self._execute(page).all()
            for row in found:
                yield rows.to_event(*row)
            if len(found) < _PAGE:
                return
            last = found[-1].timestamp, found[-1].message_id

    def _narrowed(self, query):
        """Return a query of events, and the column that it goes by.

        The trait index has the timestamps too: a query of a trait goes by
        it alone, where a planner could take the one by time and look at
        every event there is.
        """
        usable = {}
        if query.traits:
            for name in self._indexed_names(complete=True):
                if name in query.traits:
                    wanted = query.traits[name]
                    if not isinstance(wanted, tuple):
                        wanted = (wanted,)
                    usable[name] = sorted(set(map(rows.index_value, wanted)))
        # The one of the fewest values first.
        names = sorted(usable, key=lambda name: (len(usable[name]), name))
        timestamp = _event.c.timestamp
        statement = sa.select(*rows.EVENT)
        if query.event_types is not None:
            statement = statement.where(
                _event.c.event_type.in_(
                    list(filter(_storable, query.event_types))))
        for number, name in enumerate(names):
            alias = _trait.alias(f'trait{number}')
            wanted = (alias.c.name == name,
                      alias.c.value.in_(usable[name]))
            if number == 0:
                timestamp = alias.c.timestamp
                statement = statement.join_from(
                    alias, _event, alias.c.event_id == _event.c.id).where(
                        *wanted)
            else:
                statement = statement.where(_event.c.id.in_(
                    sa.select(alias.c.event_id).where(
                        *wanted, *_in_time(query, alias.c.timestamp))))
        return statement.where(*_in_time(query, timestamp)), timestamp

    def purge_events(self, before, limit):
        unheld = ~sa.exists().where(_held.c.event_id == _event.c.id)
        ids = self._execute(
            sa.select(_event.c.id).where(
                _event.c.timestamp < rows.micros(before), unheld)
            .order_by(_event.c.timestamp).limit(limit).with_for_update(
                skip_locked=True, of=_event)).scalars().all()
        gone = 0
        for chunk in self._chunks(ids):
            # One may have come to be held before it was locked.
            gone += self._execute(_event.delete().where(
                _event.c.id.in_(chunk), unheld)).rowcount
        return gone

    # Instances

    def lock_active(self, templates):
        found = {}
        wanted = {one.active_key: one for one in templates
                  if one.active_key is not None}
        missing = sorted(wanted)
        for _ in range(_ROUNDS):
            if missing:
                found.update(self._lock_keys(missing))
                missing = [key for key in missing if key not in found]
            if not missing:
                break
            now = self._micros()
            self._insert_missing(
                _instance, _instance.c.active_key,
                [rows.of_template(wanted[key], now) for key in missing])
            # Another transaction may have stored one first, and a scheduler
            # may have taken that away again: then the key is free.
        else:
            raise exceptions.StorageBusy(
                f'the ACTIVE instances of {len(missing)} keys come and go '
                f'faster than they can be locked')
        keyless = iter(self._store(
            [one for one in templates if one.active_key is None]))
        return [next(keyless) if template.active_key is None
                else found[template.active_key] for template in templates]

    def _lock_keys(self, keys):
        found = {}
        for chunk in self._chunks(keys):
            for row in self._execute(_LOCK_KEYS, {'values': chunk}):
                instance = rows.to_instance(row)
                found[instance.active_key] = instance
        return found

    def _store(self, templates):
        if not templates:
            return []
        now = self._micros()
        new_rows = [rows.of_template(one, now) for one in templates]
        if (self._connection.dialect
                .insert_executemany_returning_sort_by_parameter_order):
            ids = self._execute(_instance.insert().returning(
                _instance.c.id, sort_by_parameter_order=True),
                new_rows).scalars().all()
        else:
            ids = [self._execute(_instance.insert(), row)
                   .inserted_primary_key[0] for row in new_rows]
        found = {one.id: one for one in self.get_instances(ids)}
        return [found[row_id] for row_id in ids]

    def collect(self, instances, message_ids):
        now = self._micros()
        changes = [{
            'row_id': one.id,
            'new_fingerprint': one.fingerprint,
            'new_first_event': rows.micros(one.first_event),
            'new_last_event': rows.micros(one.last_event),
            'new_expire_timestamp': rows.micros(one.expire_timestamp),
            'new_fire_timestamp': rows.micros(one.fire_timestamp),
            'new_counts': json.dumps(one.counts),
            'new_event_count': one.event_count,
            'now': now,
        } for one in instances]
        if changes:
            self._execute(_COLLECT, changes)
        self._find_ids(itertools.chain.from_iterable(message_ids.values()))
        places = [
            {'instance_id': instance_id,
             'event_id': self._event_ids[message_id]}
            for instance_id in sorted(message_ids)
            for message_id in message_ids[instance_id]]
        if places:
            self._execute(_held.insert(), places)

    def _find_ids(self, message_ids):
        missing = {one for one in message_ids if one not in self._event_ids}
        if missing:
            self._event_ids.update(self._ids_of(missing))
            missing -= set(self._event_ids)
        if missing:
            raise exceptions.StorageError(
                f'events {sorted(missing)} are not stored')

    def get_instances(self, ids, lock=False):
        found = []
        ids = {one for one in ids if 0 < one <= _LAST_ID}
        for chunk in self._chunks(sorted(ids)):
            found += map(rows.to_instance, self._execute(
                _LOCK_INSTANCES if lock else _INSTANCES, {'values': chunk}))
        return found

    def instance_events(self, ids):
        lists = {one: [] for one in ids}
        for chunk in self._chunks(lists):
            for row_id, *row in self._execute(_LISTS, {'values': chunk}):
                lists[row_id].append(rows.to_event(*row))
        for events in lists.values():
            events.sort(key=event_module.sort_key)
        return lists

    def due(self, what, moment, limit):
        states, _, column = _DUE[what]
        found = []
        for state in states:
            found += map(rows.to_instance, self._execute(
                _LOCK_DUE[what, state],
                {'moment': rows.micros(moment), 'most': limit}))
        if len(states) > 1:
            found.sort(key=operator.attrgetter(column.name))
        return found[:limit]

    def backlog(self, what, moment):
        states, conditions, column = _DUE[what]
        count, oldest = self._execute(
            sa.select(sa.func.count(), sa.func.min(column)).where(
                _instance.c.state.in_(states), *conditions,
                column <= rows.micros(moment))).one()
        return count, rows.moment(oldest)

    def count_cast(self, moment, limit):
        moment = rows.micros(moment)
        found = sa.select(sa.literal(1)).where(
            _instance.c.state.in_(_READY), _instance.c.deadline > moment,
            sa.or_(_instance.c.not_before.is_(None),
                   _instance.c.not_before <= moment)).limit(limit).subquery()
        return self._execute(
            sa.select(sa.func.count()).select_from(found)).scalar_one()

    def next_due(self):
        moments = self._execute(_NEXT_DUE).one()
        return rows.moment(min(
            (one for one in moments if one is not None), default=None))

    def transition(self, ids, source, target, *, owner=None, **changes):
        state_module.check(source, target)
        changes = driver_module.changes_of(changes)
        moved = []
        for chunk in self._chunks(sorted(set(ids))):
            moved += self._move(chunk, source, target, owner, changes)
        return moved

    def _move(self, ids, source, target, owner, changes):
        found = {'values': ids, 'source': str(source)}
        if owner is not None:
            statement = _LOCK_HELD
            found['old_owner'] = owner
        elif source in state_module.LEASED:
            statement = _LOCK_OVERDUE
            found['moment'] = self._micros()
        else:
            statement = _LOCK_STATE
        ids = self._execute(statement, found).scalars().all()
        if not ids:
            return ids
        if target is State.DELETED:
            # The list and the journal go by their foreign keys.
            self._execute(_DELETE, {'values': ids})
            return ids
        values = {'owner': None, 'deadline': None, 'not_before': None,
                  **changes, 'state': str(target),
                  'updated_at': self._micros()}
        for name in ('deadline', 'not_before'):
            values[name] = rows.micros(values[name])
        if 'error' in values:
            values['error'] = rows.clean(values['error'])
        if source is State.ACTIVE:
            values['active_key'] = None
        self._execute(
            _move_statement(tuple(sorted(values))),
            {'values': ids, **{f'new_{name}': value
                               for name, value in values.items()}})
        return ids

    def postpone(self, ids, deadline):
        for chunk in self._chunks(sorted(set(ids))):
            self._execute(_instance.update().where(
                _instance.c.id.in_(chunk),
                _instance.c.state.in_(_READY)).values(
                    deadline=rows.micros(deadline),
                    version=_instance.c.version + 1,
                    updated_at=self._micros()))

    def hold(self, instance_id, owner, deadline):
        done = self._execute(_HOLD, {
            'row_id': instance_id, 'old_owner': owner,
            'new_deadline': rows.micros(deadline), 'now': self._micros()})
        if done.rowcount != 1:
            raise driver_module.lease_lost(instance_id, owner)

    # Journal

    def journal(self, instance_id):
        return {
            row.step: driver_module.StepRecord(
                row.step, row.position,
                driver_module.StepState(row.state), row.attempts, row.items,
                row.output, row.error, rows.moment(row.started_at),
                rows.moment(row.finished_at))
            for row in self._execute(_STEPS, {'row_id': instance_id})}

    def save_step(self, instance_id, record):
        values = {
            'position': record.position, 'state': str(record.state),
            'attempts': record.attempts, 'items': record.items,
            'output': record.output, 'error': rows.clean(record.error),
            'started_at': rows.micros(record.started_at),
            'finished_at': rows.micros(record.finished_at),
        }
        self._put(_journal, {'instance_id': instance_id,
                             'step': record.step}, values)

    def forget_steps(self, instance_id, from_position=0):
        self._execute(_journal.delete().where(
            _journal.c.instance_id == instance_id,
            _journal.c.position >= from_position))

    # For people

    def list_instances(self, *, state=None, name=None, after=0, limit=100):
        if name is not None and not _storable(name):
            return []
        statement = sa.select(*rows.INSTANCE).where(
            _instance.c.id > min(after, _LAST_ID))
        if state is not None:
            statement = statement.where(_instance.c.state == str(state))
        if name is not None:
            statement = statement.where(_instance.c.name == name)
        return [rows.to_instance(row) for row in self._execute(
            statement.order_by(_instance.c.id).limit(limit))]

    def count_instances(self):
        return {
            (name, State(state)): count
            for name, state, count in self._execute(
                sa.select(_instance.c.name, _instance.c.state,
                          sa.func.count()).group_by(
                              _instance.c.name, _instance.c.state))}

    def count_events(self):
        return self._execute(
            sa.select(sa.func.count()).select_from(_event)).scalar_one()

    # Dead letters

    def add_dead_letters(self, letters):
        now = self._micros()
        if letters:
            self._execute(_letter.insert(), [{
                'kind': one.kind, 'message_id': rows.clean(one.message_id),
                'reason': rows.clean(one.reason),
                'body': rows.clean(one.body), 'created_at': now,
            } for one in letters])

    def list_dead_letters(self, after=0, limit=100):
        return [
            driver_module.DeadLetter(
                row.kind, row.message_id, row.reason, row.body,
                rows.moment(row.created_at), row.id)
            for row in self._execute(
                sa.select(_letter).where(
                    _letter.c.id > min(after, _LAST_ID)).order_by(
                        _letter.c.id).limit(limit))]

    def delete_dead_letters(self, ids):
        ids = sorted({one for one in ids if 0 < one <= _LAST_ID})
        return sum(
            self._execute(_letter.delete().where(
                _letter.c.id.in_(chunk))).rowcount
            for chunk in self._chunks(ids))

    def count_dead_letters(self):
        return self._execute(
            sa.select(sa.func.count()).select_from(_letter)).scalar_one()


def _in_time(query, column):
    """Yield the conditions that a query sets for a timestamp."""
    if query.begin is not None:
        yield column >= rows.micros(query.begin)
    if query.end is not None:
        end = rows.micros(query.end)
        yield column <= end if query.begin == query.end else column < end


def _storable(text):
    """Tell whether there can be a row of that text.

    Not every backend takes others even to look for them.
    """
    try:
        return b'\0' not in text.encode()
    except UnicodeEncodeError:
        return False


def _check_name(name):
    """Refuse a trait's name that the trait index cannot hold."""
    if not 0 < len(name) <= models.NAME_LENGTH or not _storable(name):
        raise exceptions.StorageError(
            f'the trait {name!r} cannot be indexed: its name is not a text '
            f'of 1 to {models.NAME_LENGTH} characters')


# Statements that are the same each time are built once: to build one takes
# longer than SQLite takes to run it.

_VALUES = sa.bindparam('values', expanding=True)

_REGISTERED = sa.select(_indexed.c.name)
_COMPLETE = _REGISTERED.where(_indexed.c.indexed_to.is_(None))

_IDS_OF = sa.select(_event.c.message_id, _event.c.id).where(
    _event.c.message_id.in_(_VALUES))

_LISTS = sa.select(_held.c.instance_id, *rows.EVENT).join_from(
    _held, _event, _held.c.event_id == _event.c.id).where(
        _held.c.instance_id.in_(_VALUES))

_INSTANCES = sa.select(*rows.INSTANCE).where(
    _instance.c.id.in_(_VALUES)).order_by(_instance.c.id)
_LOCK_INSTANCES = _INSTANCES.with_for_update()

_LOCK_KEYS = sa.select(*rows.INSTANCE).where(
    _instance.c.active_key.in_(_VALUES)).order_by(
        _instance.c.active_key).with_for_update()

_LOCK_DUE = {
    (what, state): sa.select(*rows.INSTANCE).where(
        _instance.c.state == state, *conditions,
        column <= sa.bindparam('moment')).order_by(column).limit(
            sa.bindparam('most', type_=sa.Integer)).with_for_update(
                skip_locked=True)
    for what, (states, conditions, column) in _DUE.items()
    for state in states}

# MariaDB looks a minimum up in an index only without conditions.
_NEXT_DUE = sa.select(*(
    sa.select(column).where(
        _instance.c.state == state, *conditions,
        column.is_not(None)).order_by(column).limit(1).scalar_subquery()
    for states, conditions, column in _DUE.values() for state in states))

_LOCK_STATE = sa.select(_instance.c.id).where(
    _instance.c.id.in_(_VALUES),
    _instance.c.state == sa.bindparam('source')).order_by(
        _instance.c.id).with_for_update()
_LOCK_HELD = _LOCK_STATE.where(
    _instance.c.owner == sa.bindparam('old_owner'))
_LOCK_OVERDUE = _LOCK_STATE.where(
    _instance.c.deadline <= sa.bindparam('moment'))

_DELETE = _instance.delete().where(_instance.c.id.in_(_VALUES))

_HOLD = _instance.update().where(
    _instance.c.id == sa.bindparam('row_id'),
    _instance.c.owner == sa.bindparam('old_owner'),
    _instance.c.state.in_(_LEASED)).values(
        deadline=sa.bindparam('new_deadline'),
        version=_instance.c.version + 1, updated_at=sa.bindparam('now'))

_STEPS = sa.select(*(
    column for column in _journal.c
    if column is not _journal.c.instance_id)).where(
        _journal.c.instance_id == sa.bindparam('row_id')).order_by(
            _journal.c.position)


@functools.lru_cache(maxsize=64)
def _move_statement(names):
    """Return the update that sets these columns of some instances."""
    return _instance.update().where(_instance.c.id.in_(_VALUES)).values(
        version=_instance.c.version + 1,
        **{name: sa.bindparam(f'new_{name}') for name in names})


#: What was collected, written to one instance.
_COLLECT = _instance.update().where(
    _instance.c.id == sa.bindparam('row_id')).values(
        fingerprint=sa.bindparam('new_fingerprint'),
        first_event=sa.bindparam('new_first_event'),
        last_event=sa.bindparam('new_last_event'),
        expire_timestamp=sa.bindparam('new_expire_timestamp'),
        fire_timestamp=sa.bindparam('new_fire_timestamp'),
        counts=sa.bindparam('new_counts'),
        event_count=sa.bindparam('new_event_count'),
        version=_instance.c.version + 1,
        updated_at=sa.bindparam('now'))
