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

"""The README's walk-through, done as it is written there."""

import os
import re
import subprocess
import sys

import fixtures

from tests import base

FOLDER = '/tmp/first-steps'
BLOCK = re.compile(r'^(?P<lead>.*)::\n\n(?P<body>(?:    .*\n|\n)+)', re.M)
NAME = re.compile(r'^``(?P<name>[\w.]+)``$')


class TestReadme(base.TestCase):
    """Files are written and commands run, and print what is shown."""

    def test_the_walk_through(self):
        folder = self.useFixture(fixtures.TempDir()).path
        text = (base.ROOT / 'README.rst').read_text(encoding='utf-8')
        _, _, text = text.partition('\nYour own triggers\n')
        path = os.pathsep.join(
            [os.path.dirname(sys.executable), os.environ['PATH']])
        files, commands = 0, 0
        for block in BLOCK.finditer(text):
            body = re.sub('^    ', '', block['body'], flags=re.M)
            body = body.strip('\n').replace(FOLDER, folder) + '\n'
            name = NAME.match(block['lead'])
            if name is not None:
                with open(f'{folder}/{name["name"]}', 'w',
                          encoding='utf-8') as stream:
                    stream.write(body)
                files += 1
            elif body.startswith('$ '):
                command, _, shown = body[2:].partition('\n')
                done = subprocess.run(
                    ['sh', '-c', command], cwd=folder, text=True,
                    capture_output=True, timeout=120,
                    env={**os.environ, 'PATH': path})
                self.assertEqual(shown, done.stdout, done.stderr)
                self.assertEqual(0, done.returncode, done.stderr)
                commands += 1
        self.assertEqual((5, 3), (files, commands))
