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

"""What is kept of an error."""

from triggerlib import error_text

from tests import base


class TestDescribe(base.TestCase):
    """What people are shown of an error."""

    def of(self, text):
        try:
            raise ValueError(text)
        except ValueError as error:
            return error_text.describe(error)

    def test_it_has_the_traceback(self):
        text = self.of('boom')
        self.assertIn('test_error_text.py', text)
        self.assertTrue(text.endswith('ValueError: boom\n'), text)

    def test_secrets_are_masked(self):
        for text in ('http://user:sesame@host/x',
                     'rabbit://a:b@h1,c:sesame@h2:5672//',
                     'postgresql+psycopg://u:se@sesame@host/db?x=1',
                     "connect(password='sesame')",
                     '{"auth_token": "sesame"}',
                     'https://host/x?token=sesame',
                     "{'Authorization': 'Bearer sesame'}",
                     'Authorization: Basic sesame'):
            found = self.of(text)
            self.assertNotIn('sesame', found.splitlines()[-1], text)
            self.assertIn('***', found)

    def test_what_is_no_secret_stays(self):
        text = 'https://host:80/a@b said 500 to m1@host'
        self.assertIn(text, self.of(text))

    def test_it_is_bounded(self):
        text = self.of('x' * 10 * error_text.LIMIT + 'the end')
        self.assertLessEqual(len(text), error_text.LIMIT)
        self.assertTrue(text.startswith('Traceback'), text[:100])
        self.assertTrue(text.endswith('the end\n'), text[-100:])
