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

"""The storage driver is chosen by the URL's scheme."""

from triggerlib import exceptions
from triggerlib import storage
from triggerlib.storage import memory
from triggerlib.storage.sql import driver as sql_driver

from tests import base
from tests import sql


class TestGetDriver(base.TestCase):
    """``storage.get_driver``."""

    def test_schemes(self):
        for url, cls in (
                ('memory://', memory.MemoryDriver),
                ('sqlite://', sql_driver.SQLDriver),
                ('sqlite+pysqlite://', sql_driver.SQLDriver),
                ('postgresql://host/name', sql_driver.SQLDriver),
                ('postgresql+psycopg://host/name', sql_driver.SQLDriver),
                ('mysql://host/name', sql_driver.SQLDriver),
                ('mysql+pymysql://host/name', sql_driver.SQLDriver)):
            driver = storage.get_driver(sql.load(url))
            self.addCleanup(driver.close)
            self.assertIs(cls, type(driver))
            self.assertIsInstance(driver, storage.Driver)

    def test_an_unknown_scheme_names_the_drivers(self):
        error = self.assertRaises(
            exceptions.PluginError, storage.get_driver,
            sql.load('oracle://user:sekret@host/name'))
        for name in ('oracle', 'memory', 'mysql', 'postgresql', 'sqlite'):
            self.assertIn(name, str(error))
        self.assertNotIn('sekret', str(error))

    def test_what_is_no_url_is_not_shown(self):
        for text in ('sekret', 'user:sekret@host', 'sekret@host:5432/name',
                     'sekret@host://name', '://sekret', 'sek ret://host'):
            error = self.assertRaises(
                exceptions.PluginError, storage.get_driver, sql.load(text))
            self.assertNotIn('sek', str(error))
            self.assertIn('postgresql', str(error))

    def test_a_file_or_database_that_is_not_named(self):
        for url, text in (
                ('sqlite://triggerlib.sqlite', 'sqlite:///relative/path'),
                ('sqlite://user:sekret@host/x', 'sqlite:////absolute/path'),
                ('mysql://user:sekret@host', 'no database'),
                ('mysql+pymysql://user:sekret@host/', 'no database')):
            error = self.assertRaises(
                exceptions.PluginError, storage.get_driver, sql.load(url))
            self.assertIn(text, str(error))
            self.assertNotIn('sekret', str(error))

    def test_retries_are_an_option(self):
        driver = storage.get_driver(sql.load('sqlite://', storage_retries=3))
        self.addCleanup(driver.close)
        self.assertEqual(3, driver.retries)
