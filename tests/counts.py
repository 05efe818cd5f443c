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

"""Counts the results in a subunit stream: N passed, N failed, N skipped."""

import collections
import sys

import subunit
import testtools

PASSED = ('success', 'xfail')
FAILED = ('fail', 'uxsuccess', 'inprogress', 'unknown')


def main():
    """Print the counts; fail without tests, and with failures."""
    counts = collections.Counter()

    def count(test):
        counts[test['status']] += 1

    result = testtools.StreamToDict(count)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(sys.stdin.buffer).run(result)
    result.stopTestRun()
    passed = sum(counts[status] for status in PASSED)
    failed = sum(counts[status] for status in FAILED)
    sys.stdout.write(
        f'{passed} passed, {failed} failed, {counts["skip"]} skipped\n')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
