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

"""The in-memory storage driver keeps the contract."""

from oslo_config import cfg

from triggerlib import opts
from triggerlib import storage
from triggerlib.storage import memory
from triggerlib.testing import storage_contract

from tests import base


class TestMemoryDriver(storage_contract.StorageContract, base.TestCase):
    """``memory://``."""

    def make_driver(self, clock):
        conf = cfg.ConfigOpts()
        opts.register_opts(conf)
        conf([], default_config_files=[])
        conf.set_override('connection', 'memory://', opts.GROUP)
        driver = storage.get_driver(conf, clock)
        self.assertIsInstance(driver, memory.MemoryDriver)
        return driver

    def test_each_driver_is_a_storage_of_its_own(self):
        self.store(storage_contract.event('a'))
        other = self.make_driver(self.clock)
        self.assertEqual(
            0, other.run(lambda tx: tx.count_events(), write=False))
