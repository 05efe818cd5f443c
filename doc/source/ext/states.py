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
