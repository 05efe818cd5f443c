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

"""The ``triggerlib`` command in this process, with its output kept."""

import io
import json
import logging
import os

import fixtures

from triggerlib.cmd import main


class Command(fixtures.Fixture):
    """Runs commands; each run gives ``(status, stdout, stderr)``."""

    def _setUp(self):
        root = logging.getLogger()
        # cliff sets the root logger up anew at every run.
        self.addCleanup(root.setLevel, root.level)
        self.addCleanup(setattr, root, 'handlers', list(root.handlers))

    def __call__(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', err))
        logging.getLogger().handlers = []
        try:
            status = main.TriggerlibApp(
                stdin=io.StringIO(), stdout=out, stderr=err).run(
                    [os.fspath(word) for word in argv])
        except SystemExit as end:
            # argparse ends the process for words it does not know.
            status = end.code
        return status, out.getvalue(), err.getvalue()

    def json(self, *argv):
        """Run a command that must succeed, and return what it printed."""
        status, out, err = self(*argv, '-f', 'json')
        if status:
            raise AssertionError(f'{argv} failed: {err}')
        return json.loads(out)
