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

"""``triggerlib deadletter``: what could not be handled."""

import json

from cliff import lister
from cliff import show

from triggerlib import clock
from triggerlib.cmd import config
from triggerlib.cmd import db
from triggerlib.event import encoding
from triggerlib import exceptions

#: Dead letters looked at in one transaction.
_PAGE = 500


class List(config.ConfiguredCommand, lister.Lister):
    """List dead letters, the oldest first."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        config.add_paging(parser)
        return parser

    def take_action(self, parsed_args):
        """Return the dead letters as columns and rows."""
        with self.storage(parsed_args) as storage:
            found = storage.run(lambda tx: tx.list_dead_letters(
                parsed_args.after, parsed_args.limit), write=False)
        return (('id', 'kind', 'message_id', 'created_at', 'reason'),
                [(one.id, one.kind, one.message_id,
                  encoding.isoformat(one.created_at), one.reason)
                 for one in found])


class Show(config.ConfiguredCommand, show.ShowOne):
    """Show a dead letter with what arrived."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('id', type=config.number,
                            help='id of the dead letter')
        return parser

    def take_action(self, parsed_args):
        """Return the dead letter as columns and values."""
        with self.storage(parsed_args) as storage:
            one = storage.run(_load, parsed_args.id, write=False)
        row = {'id': one.id, 'kind': one.kind, 'message_id': one.message_id,
               'created_at': encoding.isoformat(one.created_at),
               'reason': one.reason, 'body': one.body}
        return tuple(row), tuple(row.values())


class Replay(config.ConfiguredCommand):
    """Hand notifications among the dead letters in once more.

    One that is stored this time is no dead letter any more; one that is
    known by its message_id by now counts as stored. The others stay. What
    the storage or a receiver refused is not handed in by this command.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument('id', type=config.number, nargs='*', default=[],
                           help='id of the dead letter')
        which.add_argument('--all', action='store_true',
                           help='all notifications among them')
        return parser

    def take_action(self, parsed_args):
        """Hand them in one by one, and say what became of each."""
        # Only this command needs the definitions.
        from triggerlib.trigger import manager as manager_module

        conf = self.conf(parsed_args)
        left = 0
        with self.storage(parsed_args) as storage:
            manager = manager_module.TriggerManager.from_conf(conf, storage)
            manager.register_traits()
            ids = parsed_args.id or (
                one.id for one in _all(storage)
                if one.kind == 'notification')
            for letter_id in ids:
                try:
                    became = storage.run(_replay, letter_id, manager)
                except (exceptions.NotificationError, exceptions.EventError,
                        exceptions.NotFound, _NotWhole) as error:
                    left += 1
                    became = f'stays: {error}'
                self.app.stdout.write(f'Dead letter {letter_id} {became}\n')
        if left:
            raise exceptions.TriggerlibError(
                f'{left} dead letters were not handed in')


class Purge(config.ConfiguredCommand):
    """Delete dead letters."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument('id', type=config.number, nargs='*', default=[],
                           help='id of the dead letter')
        which.add_argument(
            '--days', type=float,
            help='those that were put there longer ago than so many days')
        return parser

    def take_action(self, parsed_args):
        """Delete them, and say how many."""
        days = parsed_args.days
        # No comparison with NaN is true.
        if days is not None and not 0 <= days <= db.LONGEST:
            raise exceptions.TriggerlibError(
                f'--days is 0 to {db.LONGEST}')
        with self.storage(parsed_args) as storage:
            if days is None:
                gone = storage.run(
                    lambda tx: tx.delete_dead_letters(parsed_args.id))
            else:
                gone = _purge(storage, days)
        self.app.stdout.write(f'{gone} dead letters were deleted.\n')


class _NotWhole(exceptions.TriggerlibError):
    """What is kept of it cannot be handed in."""


def _load(tx, letter_id):
    found = tx.list_dead_letters(letter_id - 1, 1)
    if not found or found[0].id != letter_id:
        raise exceptions.NotFound(f'there is no dead letter {letter_id}')
    return found[0]


def _all(storage):
    """Yield all dead letters, a page a transaction."""
    after = 0
    while True:
        page = storage.run(
            lambda tx, after=after: tx.list_dead_letters(after, _PAGE),
            write=False)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def _replay(tx, letter_id, manager):
    letter = _load(tx, letter_id)
    if letter.kind != 'notification':
        raise _NotWhole(
            'the storage refused it as it is' if letter.kind == 'event'
            else 'a receiver refused it; send the event to that one again '
                 'when it takes it')
    try:
        body = json.loads(letter.body)
    except (ValueError, RecursionError) as error:
        raise _NotWhole(
            f'what is kept of it is no JSON document: {error}') from error
    event = manager.converter.to_event(body)
    if not tx.delete_dead_letters([letter_id]):
        # Another command was faster.
        raise exceptions.NotFound(f'there is no dead letter {letter_id}')
    if event is None:
        return 'is dropped: the event definitions do not want it'
    report = manager.add_events_in(tx, [event])
    return (f'is stored as event {event.message_id}' if report.stored
            else f'was known: event {event.message_id} is stored already')


def _purge(storage, days):
    before = clock.after(
        storage.run(lambda tx: tx.now(), write=False), -days * 24 * 3600)
    gone = 0
    old = []
    for one in _all(storage):
        if one.created_at < before:
            old.append(one.id)
        if len(old) == _PAGE:
            gone += storage.run(lambda tx: tx.delete_dead_letters(old))
            old.clear()
    return gone + storage.run(lambda tx: tx.delete_dead_letters(old))
