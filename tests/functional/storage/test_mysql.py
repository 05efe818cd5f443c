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

"""The SQL storage driver on a real MariaDB."""

from triggerlib import exceptions
from triggerlib.testing import storage_contract

from tests import base
from tests import servers
from tests import sql


class TestMySQL(sql.ServerRules, storage_contract.StorageContract,
                base.TestCase):
    """``mysql://``, on MariaDB or MySQL."""

    def setUp(self):
        self.url = servers.mysql_url(self)
        super().setUp()

    def kill(self, tx):
        """End a transaction's connection from outside."""
        number = tx._connection.exec_driver_sql(
            'SELECT CONNECTION_ID()').scalar_one()
        self.execute(f'KILL {number}')

    def test_the_session_is_the_drivers(self):
        with self.driver.begin() as tx:
            def ask(name):
                return tx._connection.exec_driver_sql(
                    f"SHOW VARIABLES LIKE '{name}'").one()[1]

            try:
                level = ask('tx_isolation')
            except Exception:
                level = ask('transaction_isolation')
            self.assertEqual('READ-COMMITTED', level)
            self.assertIn('STRICT_ALL_TABLES', ask('sql_mode'))
            self.assertEqual('utf8mb4', ask('character_set_client'))

    def test_an_event_that_fills_a_packet_is_refused(self):
        (packet,), = self.execute('SELECT @@max_allowed_packet')
        if packet > 64 * 1024 * 1024:
            self.skipTest(f'this server takes packets of {packet} bytes')
        fits = storage_contract.event('a', text='"' * (packet // 5))
        self.assertEqual([True], self.store(fits))
        found = self.read(lambda tx: tx.get_events(['a']))
        self.assertEqual({'a': fits}, found)
        error = self.assertRaises(
            exceptions.EventError, self.store,
            storage_contract.event('b', text='"' * (packet // 2)))
        self.assertIn('max_allowed_packet', str(error))

    def test_large_events_make_no_packet_too_large(self):
        events = [storage_contract.event(f'm{number}', text='x' * 1_000_000)
                  for number in range(40)]
        self.assertEqual([True] * 40, self.store(*events))
        self.assertEqual(40, len(self.find()))
