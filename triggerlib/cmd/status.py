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

"""``triggerlib status``: is everything moving?"""

from cliff import lister

from triggerlib.cmd import config
from triggerlib.event import encoding
from triggerlib.state import State
from triggerlib.storage import driver as storage_module


class Status(config.ConfiguredCommand, lister.Lister):
    """Count instances by trigger and state, and tell what waits longest.

    Rows with "-" as trigger speak of the whole storage.
    """

    def take_action(self, parsed_args):
        """Return the counts as columns and rows."""
        with self.storage(parsed_args) as storage:
            rows = storage.run(_rows, write=False)
        return ('trigger', 'what', 'count', 'oldest'), rows


def _rows(tx):
    now = tx.now()
    rows = [(name, str(state), count, '')
            for (name, state), count in sorted(tx.count_instances().items())]
    for what, label in (
            (storage_module.Due.TO_FIRE, 'waits to be made ready to fire'),
            (storage_module.Due.TO_EXPIRE, 'waits to be made ready to '
                                           'expire'),
            (storage_module.Due.READY, 'waits for another cast'),
            (storage_module.Due.LEASED, 'lease ran out')):
        backlog, oldest = tx.backlog(what, now)
        rows.append(('-', label, backlog,
                     '' if oldest is None else encoding.isoformat(oldest)))
    newest = tx.newest_event()
    rows += [
        ('-', 'failed', sum(
            count for (_, state), count in tx.count_instances().items()
            if state in (State.ERROR, State.EXPIRE_ERROR)), ''),
        ('-', 'dead letters', tx.count_dead_letters(), ''),
        ('-', 'events stored', tx.count_events(),
         '' if newest is None
         else f'newest {encoding.isoformat(newest.timestamp)}'),
    ]
    return rows
