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

"""The count of results with which a run of CI ends."""

import subprocess
import sys

from subunit import v2

from tests import base


class TestCounts(base.TestCase):
    """``tests/counts.py``, given a stream of results."""

    def count(self, *results):
        script = subprocess.Popen(
            [sys.executable, str(base.ROOT / 'tests' / 'counts.py')],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
        stream = v2.StreamResultToBytes(script.stdin)
        for number, statuses in enumerate(results):
            for status in statuses:
                stream.status(test_id=f'test-{number}', test_status=status)
        out, _ = script.communicate()
        return out.decode(), script.returncode

    def test_each_kind(self):
        self.assertEqual(
            ('3 passed, 0 failed, 1 skipped\n', 0),
            self.count(['inprogress', 'success'], ['success'], ['xfail'],
                       ['inprogress', 'skip']))

    def test_a_failure(self):
        self.assertEqual(('1 passed, 2 failed, 0 skipped\n', 1), self.count(
            ['inprogress', 'fail'], ['success'], ['uxsuccess']))

    def test_a_test_whose_process_died(self):
        self.assertEqual(('1 passed, 1 failed, 0 skipped\n', 1),
                         self.count(['success'], ['inprogress']))

    def test_no_test(self):
        self.assertEqual(('0 passed, 0 failed, 0 skipped\n', 1),
                         self.count())
        self.assertEqual(('0 passed, 0 failed, 1 skipped\n', 1),
                         self.count(['skip']))
