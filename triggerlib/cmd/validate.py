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

"""``triggerlib validate``: are the definition files right?"""

import os

from triggerlib.cmd import config
from triggerlib import exceptions
from triggerlib import opts


class Validate(config.ConfiguredCommand):
    """Check event definitions, trigger definitions and pipelines.

    All mistakes are listed, each with its file and line. The files are those
    that the configuration names, or the ones given.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        for option, what in (
                ('event_definitions_cfg_file', 'event definitions'),
                ('trigger_definitions_cfg_file', 'trigger definitions'),
                ('event_pipeline_cfg_file', 'event pipelines')):
            parser.add_argument(
                '--' + what.replace(' ', '-'), dest=option, metavar='FILE',
                help=f'file of {what}, in place of the configured one')
        return parser

    def take_action(self, parsed_args):
        """Load everything, and report."""
        from triggerlib.event import converter
        from triggerlib.trigger import catalog

        overrides = {
            name: os.path.abspath(getattr(parsed_args, name))
            for name in ('event_definitions_cfg_file',
                         'trigger_definitions_cfg_file',
                         'event_pipeline_cfg_file')
            if getattr(parsed_args, name) is not None}
        conf = self.conf(parsed_args, overrides)
        for name, path in overrides.items():
            if not os.path.exists(path):
                raise exceptions.TriggerlibError(
                    f'{path} was not found ({name})')
        problems = []
        for load in (converter.Converter.from_conf,
                     catalog.Catalog.from_conf):
            try:
                load(conf)
            except exceptions.DefinitionError as error:
                problems.extend(error.problems)
        if problems:
            raise exceptions.DefinitionError(problems)
        group = conf[opts.GROUP]
        for name in ('event_definitions_cfg_file',
                     'trigger_definitions_cfg_file',
                     'event_pipeline_cfg_file'):
            path = catalog.find_file(conf, group[name])
            self.app.stdout.write(
                f'{path}: right\n' if path is not None
                else f'{group[name]}: not found, taken as empty\n')
