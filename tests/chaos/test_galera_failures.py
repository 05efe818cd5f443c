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

"""Servers of a Galera cluster that come and go."""

import uuid

from triggerlib import exceptions
from triggerlib import storage
from triggerlib.testing import storage_contract

from tests import base
from tests.chaos import galera
from tests import sql

event = storage_contract.event


class TestFailures(base.TestCase):
    """Servers of a cluster that come and go."""

    def test_one_goes_on_while_the_other_is_away(self):
        cluster = self.useFixture(galera.GaleraNodes())
        first, second = [
            storage.get_driver(sql.load(url, storage_retries=0))
            for url in cluster.new_database()]
        for driver in (first, second):
            self.addCleanup(driver.close)
        first.upgrade()
        second.run(lambda tx: tx.add_events([event('a')]))
        cluster.nodes[1].kill()
        self.assertRaises(
            exceptions.StorageBusy, second.run, lambda tx: tx.now())
        # It takes the first some seconds to know that it is alone.
        first.retries = 10
        self.assertEqual([False, True], first.run(
            lambda tx: tx.add_events([event('a'), event('b')])))
        cluster.nodes[1].start()
        self.assertEqual([False, True], second.run(
            lambda tx: tx.add_events([event('b'), event('c')])))
        # The second alone is not more than half of the cluster.
        cluster.nodes[0].kill()
        for _ in range(1000):
            error = self.assertRaises(
                exceptions.StorageBusy, second.run, lambda tx: tx.add_events(
                    [event(uuid.uuid4().hex)]))
            if 'WSREP has not yet prepared' in str(error):
                return
        self.fail(f'it says only {error}')
