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

"""``triggerlib instance``: the trigger instances."""

import json

from cliff import lister
from cliff import show

from triggerlib.cmd import config
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.state import State

#: States that an operator's retry leaves, and where it leads.
_RETRIED = {State.ERROR: State.READY_TO_FIRE,
            State.EXPIRE_ERROR: State.READY_TO_EXPIRE}

#: Instances in one transaction.
_GROUP = 500


class List(config.ConfiguredCommand, lister.Lister):
    """List trigger instances."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        _add_filters(parser)
        config.add_paging(parser)
        return parser

    def take_action(self, parsed_args):
        """Return the instances as columns and rows."""
        with self.storage(parsed_args) as storage:
            found = storage.run(lambda tx: tx.list_instances(
                state=_state(parsed_args), name=parsed_args.trigger,
                after=parsed_args.after, limit=parsed_args.limit),
                write=False)
        return (('id', 'trigger', 'key', 'state', 'events', 'first_event',
                 'last_event', 'fire_timestamp', 'expire_timestamp',
                 'attempts'),
                [(one.id, one.name, _key(one), str(one.state),
                  one.event_count, _time(one.first_event),
                  _time(one.last_event), _time(one.fire_timestamp),
                  _time(one.expire_timestamp), one.attempts)
                 for one in found])


class Show(config.ConfiguredCommand, show.ShowOne):
    """Show a trigger instance, its events and the steps of its pipeline."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('id', type=config.number,
                            help='id of the instance')
        return parser

    def take_action(self, parsed_args):
        """Return the instance as columns and values."""
        with self.storage(parsed_args) as storage:
            instance, events, journal = storage.run(
                _load, parsed_args.id, write=False)
        steps = sorted(journal.values(), key=lambda step: step.position)
        row = {
            'id': instance.id,
            'trigger': instance.name,
            'key': _key(instance),
            'state': str(instance.state),
            'first_event': _time(instance.first_event),
            'last_event': _time(instance.last_event),
            'fire_timestamp': _time(instance.fire_timestamp),
            'expire_timestamp': _time(instance.expire_timestamp),
            'counts': instance.counts,
            'attempts': instance.attempts,
            'not_before': _time(instance.not_before),
            'deadline': _time(instance.deadline),
            'fingerprint': instance.fingerprint,
            'created_at': _time(instance.created_at),
            'updated_at': _time(instance.updated_at),
            'events': [
                {'message_id': event.message_id,
                 'event_type': event.event_type,
                 'timestamp': encoding.isoformat(event.timestamp)}
                for event in events],
            'steps': [
                {'step': step.step, 'state': str(step.state),
                 'attempts': step.attempts, 'items': step.items,
                 'started_at': _time(step.started_at),
                 'finished_at': _time(step.finished_at),
                 'error': step.error} for step in steps],
            'error': instance.error,
        }
        if self._is_table(parsed_args):
            row['events'] = '\n'.join(
                f'{event["timestamp"]} {event["event_type"]} '
                f'{event["message_id"]}' for event in row['events'])
            row['steps'] = '\n'.join(
                f'{step["step"]} {step["state"]} attempts='
                f'{step["attempts"]} items={step["items"]}'
                for step in row['steps'])
        return tuple(row), tuple(row.values())

    def _is_table(self, parsed_args):
        return parsed_args.formatter == 'table'


class Retry(config.ConfiguredCommand):
    """Have failed trigger instances worked on again.

    They go on behind the last step that their journal says is done, unless
    that is to be forgotten. Those that are named are made ready all or none;
    those that a filter chooses in small groups, and what is not failed any
    more by then is left alone.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('id', type=config.number, nargs='*',
                            help='id of the instance')
        parser.add_argument(
            '--state', choices=[str(state) for state in _RETRIED],
            help='all failed ones in this state')
        parser.add_argument(
            '--trigger', metavar='NAME',
            help='all failed ones of this trigger definition')
        parser.add_argument(
            '--error-like', metavar='TEXT',
            help='all failed ones with this text in their error')
        parser.add_argument(
            '--dry-run', action='store_true',
            help='say which instances it would be, and change nothing')
        begin = parser.add_mutually_exclusive_group()
        begin.add_argument(
            '--from-step', metavar='STEP',
            help='do this step, and those behind it, again; a filter '
                 'chooses those only that came to this step')
        begin.add_argument(
            '--from-start', action='store_true',
            help='do every step again')
        return parser

    def take_action(self, parsed_args):
        """Make the instances ready."""
        filters = (parsed_args.state, parsed_args.trigger,
                   parsed_args.error_like)
        if bool(parsed_args.id) == any(one is not None for one in filters):
            raise exceptions.TriggerlibError(
                'name instances by their ids, or choose them by --state, '
                '--trigger and --error-like; nothing was changed')
        begin = parsed_args.from_step, parsed_args.from_start
        with self.storage(parsed_args) as storage:
            if parsed_args.id:
                self._tell(parsed_args, storage.run(
                    _retry, parsed_args.id, *begin, parsed_args.dry_run))
                return
            count = 0
            for ids in _failed(storage, *filters):
                done = storage.run(_retry_those_left, ids, *begin,
                                   parsed_args.dry_run)
                count += len(done)
                self._tell(parsed_args, done)
        self.app.stdout.write(f'{count} instances.\n')

    def _tell(self, parsed_args, ids):
        verb = 'would be' if parsed_args.dry_run else 'is'
        for instance_id in ids:
            self.app.stdout.write(
                f'Instance {instance_id} {verb} ready to be worked on.\n')


class Delete(config.ConfiguredCommand):
    """Delete a trigger instance, its event list and its journal.

    Its events stay. An instance that a worker holds is not deleted.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('id', type=config.number, nargs='+',
                            help='id of the instance')
        return parser

    def take_action(self, parsed_args):
        """Delete the instances, all or none."""
        with self.storage(parsed_args) as storage:
            storage.run(_delete, parsed_args.id)
        for instance_id in parsed_args.id:
            self.app.stdout.write(f'Instance {instance_id} was deleted.\n')


def _add_filters(parser):
    parser.add_argument(
        '--state', choices=[state.value for state in State
                            if state is not State.DELETED],
        help='only those in this state')
    parser.add_argument('--trigger', metavar='NAME',
                        help='only those of this trigger definition')


def _state(parsed_args):
    return None if parsed_args.state is None else State(parsed_args.state)


def _find(tx, ids, lock=False):
    found = {one.id: one for one in tx.get_instances(ids, lock=lock)}
    for instance_id in ids:
        if instance_id not in found:
            raise exceptions.NotFound(f'there is no instance {instance_id}')
    return [found[instance_id] for instance_id in dict.fromkeys(ids)]


def _load(tx, instance_id):
    instance, = _find(tx, [instance_id])
    return (instance, tx.instance_events([instance_id])[instance_id],
            tx.journal(instance_id))


def _failed(storage, state, name, error_like):
    """Yield the ids of failed instances, a group at a time."""
    for wanted in _RETRIED if state is None else [State(state)]:
        after = 0
        while True:
            found = storage.run(
                lambda tx, wanted=wanted, after=after: tx.list_instances(
                    state=wanted, name=name, after=after, limit=_GROUP),
                write=False)
            yield [one.id for one in found
                   if error_like is None or error_like in (one.error or '')]
            if len(found) < _GROUP:
                break
            after = found[-1].id


def _retry_those_left(tx, ids, from_step, from_start, dry_run):
    """Retry those that are failed still, and have that step.

    :returns: their ids
    """
    ids = [one.id for one in tx.get_instances(ids, lock=not dry_run)
           if one.state in _RETRIED and (
               from_step is None or from_step in tx.journal(one.id))]
    return _retry(tx, ids, from_step, from_start, dry_run)


def _retry(tx, ids, from_step, from_start, dry_run=False):
    now = tx.now()
    found = _find(tx, ids, lock=not dry_run)
    for one in found:
        target = _RETRIED.get(one.state)
        if target is None:
            raise exceptions.TriggerlibError(
                f'instance {one.id} is {one.state}; only one that is ERROR '
                f'or EXPIRE_ERROR can be retried. Nothing was changed.')
        position = 0
        if from_step is not None:
            position = _position(tx, one, from_step)
        if dry_run:
            continue
        if from_start or from_step is not None:
            tx.forget_steps(one.id, position)
        tx.transition([one.id], one.state, target, deadline=now, attempts=0)
    return [one.id for one in found]


def _position(tx, instance, step):
    journal = tx.journal(instance.id)
    if step not in journal:
        raise exceptions.NotFound(
            f'the journal of instance {instance.id} has no step {step!r}; it '
            f'has {", ".join(sorted(journal)) or "none"}. Nothing was '
            f'changed.')
    return journal[step].position


def _delete(tx, ids):
    for one in _find(tx, ids, lock=True):
        if one.state in (State.FIRING, State.EXPIRING):
            raise exceptions.TriggerlibError(
                f'instance {one.id} is {one.state}: a worker holds it. Try '
                f'again when it is done. Nothing was deleted.')
        tx.transition([one.id], one.state, State.DELETED)


def _key(instance):
    return json.dumps({
        name: encoding.isoformat(value) if hasattr(value, 'isoformat')
        else value
        for name, value in encoding.load_traits(instance.key).items()})


def _time(moment):
    return None if moment is None else encoding.isoformat(moment)
