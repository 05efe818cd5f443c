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

from triggerlib.cmd import config


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
