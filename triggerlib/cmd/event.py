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

"""``triggerlib event``: the stored events."""

import argparse
import itertools

from cliff import lister
from cliff import show

from triggerlib.cmd import config
from triggerlib import criteria
from triggerlib.event import encoding
from triggerlib.event import timestamps
from triggerlib import exceptions


class List(config.ConfiguredCommand, lister.Lister):
    """List stored events, in order of their timestamps."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--event-type', action='append',
                            help='events of this type only; may be given '
                                 'several times')
        parser.add_argument('--begin', type=_moment, metavar='TIME',
                            help='events at or after this time only')
        parser.add_argument('--end', type=_moment, metavar='TIME',
                            help='events before this time only')
        parser.add_argument('--newest', action='store_true',
                            help='begin with the newest')
        parser.add_argument('--limit', type=config.number, default=100,
                            help='how many at most (default: 100)')
        return parser

    def take_action(self, parsed_args):
        """Return the events as columns and rows."""
        types = parsed_args.event_type
        query = criteria.EventQuery(
            event_types=tuple(types) if types else None,
            begin=parsed_args.begin, end=parsed_args.end, traits={})
        with self.storage(parsed_args) as storage:
            events = storage.run(
                lambda tx: list(itertools.islice(
                    tx.find_events(query, newest_first=parsed_args.newest),
                    parsed_args.limit)), write=False)
        return (('message_id', 'event_type', 'timestamp'),
                [(event.message_id, event.event_type,
                  encoding.isoformat(event.timestamp)) for event in events])


class Show(config.ConfiguredCommand, show.ShowOne):
    """Show a stored event with its traits."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('message_id', help='id of the event')
        return parser

    def take_action(self, parsed_args):
        """Return the event as columns and values."""
        message_id = parsed_args.message_id
        with self.storage(parsed_args) as storage:
            found = storage.run(
                lambda tx: tx.get_events([message_id]), write=False)
        if message_id not in found:
            raise exceptions.NotFound(
                f'there is no event {message_id!r}')
        row = encoding.as_dict(found[message_id])
        return tuple(row), tuple(row.values())


def _moment(text):
    try:
        return timestamps.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
