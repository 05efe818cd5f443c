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

"""What doc/source/pipelines.rst shows works, and leaves nothing out."""

import contextlib
import io
import re
import textwrap

import yaml

from tests import base
from tests.unit.pipeline import definition
from tests.unit.pipeline import stage
from triggerlib.cmd import config
from triggerlib import plugins


class TestDocumentation(base.TestCase):
    """The page on pipelines."""

    def setUp(self):
        super().setUp()
        self.text = (base.ROOT / 'doc/source/pipelines.rst').read_text()
        blocks = re.findall(r'::\n\n((?:(?:    .*)?\n)+)', self.text)
        self.blocks = [textwrap.dedent(block) for block in blocks]
        self.files = self.useFixture(definition.Definitions())

    def block(self, begin):
        one, = [block for block in self.blocks if block.startswith(begin)]
        return one

    def sink(self, transformers, publisher='log://'):
        return yaml.safe_dump({'sinks': [{
            'name': 's', 'transformers': transformers,
            'publishers': [publisher]}]})

    def test_the_whole_file_loads(self):
        loaded = self.files.load(self.block('sources:'))
        self.assertEqual({'audit', 'usage'}, loaded.names)

    def test_transformers_load(self):
        for name in plugins.names(plugins.TRANSFORMER):
            self.files.load(self.sink(
                [yaml.safe_load(self.block(f'name: {name}\n'))]))

    def test_the_publishers_urls_load(self):
        for scheme in ('file', 'https'):
            url, *_ = self.block(f'{scheme}://').split()
            self.files.load(self.sink([], url))

    def test_every_publisher_is_there(self):
        for name in plugins.names(plugins.PUBLISHER):
            self.assertIn(f'``{name}://', self.text)

    def test_ones_own_run(self):
        names = {}
        for block in self.blocks:
            if block.startswith('from triggerlib'):
                exec(compile(block, 'pipelines.rst', 'exec'), names)
        on = self.useFixture(stage.Stage(config.load(
            [], overrides={'connection': 'memory://'})))
        heads = stage.pipelines_module.Step(
            's.0.heads', names['Heads'](), False, True)
        shown = stage.pipelines_module.Step(
            's.1.print', names['Print'](None, 'print://?end=;'), True)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            on.run([stage.pipelines_module.Sink('s', (heads, shown))],
                   [stage.event(1), stage.event(2)])
        self.assertEqual('heads;', out.getvalue())
        self.assertIsNone(on.instance())
