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

"""``triggerlib db``: the schema of the storage."""

from triggerlib import clock
from triggerlib.cmd import config
from triggerlib import exceptions


#: Days to the beginning of time.
LONGEST = 1_000_000


class Upgrade(config.ConfiguredCommand):
    """Bring the storage's schema to what this release needs."""

    def take_action(self, parsed_args):
        """Upgrade, and say so."""
        from triggerlib import storage

        driver = storage.get_driver(self.conf(parsed_args))
        try:
            driver.upgrade()
        finally:
            driver.close()
        self.app.stdout.write('The schema is up to date.\n')


class Check(config.ConfiguredCommand):
    """Tell whether the storage's schema is what this release needs."""

    def take_action(self, parsed_args):
        """Check, and fail with what to do where it is not."""
        with self.storage(parsed_args):
            self.app.stdout.write('The schema is up to date.\n')


class Purge(config.ConfiguredCommand):
    """Delete old events that no trigger instance holds.

    It goes in small steps, so that everything else goes on meanwhile. An
    event that is gone is no longer known by its message_id: should its
    notification come once more, it counts as new.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--days', type=float, required=True,
            help='delete events whose timestamp is older than so many days')
        parser.add_argument(
            '--batch', type=int, default=500,
            help='events in one transaction at most (default: 500)')
        return parser

    def take_action(self, parsed_args):
        """Purge, and say how much."""
        # No comparison with NaN is true.
        if not 0 <= parsed_args.days <= LONGEST or parsed_args.batch < 1:
            raise exceptions.TriggerlibError(
                f'--days is 0 to {LONGEST}, and --batch is 1 or more')
        gone = 0
        with self.storage(parsed_args) as storage:
            before = storage.run(lambda tx: tx.now(), write=False)
            before = clock.after(before, -parsed_args.days * 24 * 3600)
            while True:
                done = storage.run(lambda tx: tx.purge_events(
                    before, parsed_args.batch))
                gone += done
                if not done:
                    break
        self.app.stdout.write(f'{gone} events were deleted.\n')


class Reindex(config.ConfiguredCommand):
    """Put events stored earlier into the trait index.

    Needed once after a trigger definition distinguishes by a trait that was
    not indexed before, or indexed_traits names one more.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--batch', type=int, default=500,
            help='events in one transaction at most (default: 500)')
        return parser

    def take_action(self, parsed_args):
        """Register the traits of the configuration, and backfill."""
        # Only this command needs the definitions.
        from triggerlib.trigger import manager

        conf = self.conf(parsed_args)
        with self.storage(parsed_args) as storage:
            manager.TriggerManager.from_conf(conf, storage).register_traits()
            after = 0
            while after is not None:
                after = storage.run(
                    lambda tx, after=after: tx.index_events(
                        after, max(parsed_args.batch, 1)))
        self.app.stdout.write('All events are in the trait index.\n')
