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

"""Runs the examples of the page on time expressions."""

import doctest
import io

from tests import base

PAGE = base.ROOT / 'doc' / 'source' / 'timex.rst'


class PageTestCase(base.TestCase):

    def test_the_examples_show_what_comes_out(self):
        text = PAGE.read_text(encoding='utf-8')
        examples = doctest.DocTestParser().get_doctest(
            text, {}, PAGE.name, str(PAGE), 0)
        output = io.StringIO()
        outcome = doctest.DocTestRunner(verbose=False).run(
            examples, out=output.write)
        self.assertEqual(0, outcome.failed, output.getvalue())
        self.assertEqual(text.count('>>> '), outcome.attempted)
        self.assertGreater(outcome.attempted, 20)
