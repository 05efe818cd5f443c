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

"""The SQL storage driver on a real PostgreSQL."""

from triggerlib.testing import storage_contract

from tests import base
from tests import servers
from tests import sql


class TestPostgreSQL(sql.ServerRules, storage_contract.StorageContract,
                     base.TestCase):
    """``postgresql://``."""

    def setUp(self):
        self.url = servers.postgresql_url(self)
        super().setUp()

    def kill(self, tx):
        """End a transaction's connection from outside."""
        number = tx._connection.exec_driver_sql(
            'SELECT pg_backend_pid()').scalar_one()
        self.execute(f'SELECT pg_terminate_backend({number}, 10000)')

    def test_the_isolation_level_is_the_drivers(self):
        database = self.driver.engine.url.database
        self.execute(f"ALTER DATABASE {database} SET "
                     f"default_transaction_isolation = 'serializable'")
        with self.another().begin() as tx:
            self.assertEqual('read committed', tx._connection.exec_driver_sql(
                'SHOW transaction_isolation').scalar_one())
