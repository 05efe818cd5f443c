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

"""A directive that draws the state machine from its declaration."""

from docutils import nodes
from docutils import statemachine
from sphinx.util import docutils

from triggerlib import state


class States(docutils.SphinxDirective):
    """Makes a table of the transitions of :mod:`triggerlib.state`."""

    def run(self):
        """Return the table."""
        lines = ['.. list-table::', '   :header-rows: 1', '',
                 '   * - from', '     - by', '     - to', '     - when']
        for way in state.TRANSITIONS:
            lines += [f'   * - {way.source}', f'     - {way.event}',
                      f'     - {way.target}', f'     - {way.when}']
        container = nodes.container()
        self.state.nested_parse(
            statemachine.StringList(lines, source='triggerlib.state'),
            self.content_offset, container)
        return container.children


def setup(app):
    """Register the directive."""
    app.add_directive('triggerlib-states', States)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
