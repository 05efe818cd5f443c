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

"""What is declared twice about the package is declared alike."""

import configparser

from tests import base


def lines(text):
    """Return the requirements of a file or a value, in one order."""
    return sorted(line for line in text.split('\n') if line)


class TestExtras(base.TestCase):
    """The extras are those that the requirement files name."""

    def setUp(self):
        super().setUp()
        self.setup = configparser.ConfigParser()
        self.setup.read(base.ROOT / 'setup.cfg', encoding='utf-8')

    def assertExtra(self, name, path):
        text = (base.ROOT / path).read_text(encoding='utf-8')
        self.assertEqual(lines(text), lines(self.setup['extras'][name]))

    def test_test(self):
        self.assertExtra('test', 'test-requirements.txt')

    def test_doc(self):
        self.assertExtra('doc', 'doc/requirements.txt')
