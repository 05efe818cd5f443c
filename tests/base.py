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

"""What the tests have in common."""

import os
import pathlib

import fixtures
import testtools

ROOT = pathlib.Path(__file__).resolve().parent.parent


class TestCase(testtools.TestCase):
    """The base class of triggerlib's own tests."""

    def setUp(self):
        super().setUp()
        # What is logged belongs to the test that failed, and is shown there.
        self.logger = self.useFixture(fixtures.FakeLogger())

    def shared_path(self, *parts):
        """Return a path in the design's data, or skip where it is absent."""
        base = pathlib.Path(
            os.environ.get('TRIGGERLIB_SHARED', ROOT.parent / 'shared'))
        path = base.joinpath(*parts)
        if not path.exists():
            self.skipTest(
                f'{path} is not there; set TRIGGERLIB_SHARED to the folder '
                f'that holds the blueprints and data')
        return path
