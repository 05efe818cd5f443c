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

"""``triggerlib``: the operator's command."""

import sys

from cliff import app
from cliff import commandmanager
import pbr.version

from triggerlib.cmd import config

NAMESPACE = 'triggerlib.command'


class TriggerlibApp(app.App):
    """Gives every command the options that name configuration files."""

    # What goes right is said by the commands themselves.
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(self, **streams):
        super().__init__(
            description='Triggers over OpenStack notifications.',
            version=pbr.version.VersionInfo('triggerlib').release_string(),
            command_manager=commandmanager.CommandManager(NAMESPACE),
            deferred_help=True, **streams)

    def interact(self):
        """Show the help: without a command there is nothing to do."""
        return self.run_subcommand(['help'])

    def build_option_parser(self, description, version, argparse_kwargs=None):
        """Return the parser of the options before the command's name."""
        parser = super().build_option_parser(
            description, version, argparse_kwargs)
        config.add_arguments(parser)
        return parser


def main(argv=None):
    """Run one command and return its exit status."""
    return TriggerlibApp().run(sys.argv[1:] if argv is None else argv)


if __name__ == '__main__':
    sys.exit(main())
