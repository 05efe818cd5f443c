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

"""Pipelines files written by tests."""

import textwrap

import fixtures

from triggerlib.cmd import config
from triggerlib import exceptions
from triggerlib.pipeline import pipelines
from triggerlib import yamlfile


class Definitions(fixtures.Fixture):
    """A folder for pipelines files, and a configuration."""

    def _setUp(self):
        self.conf = config.load([])
        self.path = f'{self.useFixture(fixtures.TempDir()).path}/p.yaml'

    def load(self, text):
        """Return the pipelines of a file."""
        with open(self.path, 'w', encoding='utf-8') as stream:
            stream.write(textwrap.dedent(text))
        return pipelines.Pipelines.load(self.path, self.conf)

    def problems(self, text):
        """Return the mistakes of a file, each as (line, key, message)."""
        try:
            self.load(text)
        except exceptions.DefinitionError as error:
            return [(one.line, one.key, one.message)
                    for one in error.problems]
        return []


def transformer(cls, parameters):
    """Return a transformer built from YAML text."""
    document = yamlfile.parse(textwrap.dedent(parameters), 'p.yaml')
    problems = []
    built = cls.load(document, (), problems, 'sink')
    if problems:
        raise exceptions.DefinitionError(problems)
    return built
