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

"""Configuration files on the command line, before or after the command."""

import argparse
import contextlib

from cliff import command
from oslo_config import cfg

from triggerlib import opts


def add_arguments(parser, dest_prefix=''):
    """Add ``--config-file`` and ``--config-dir`` to a parser."""
    parser.add_argument(
        '--config-file', action='append', metavar='FILE',
        dest=f'{dest_prefix}config_file', default=[],
        help='configuration file; may be given several times')
    parser.add_argument(
        '--config-dir', action='append', metavar='DIR',
        dest=f'{dest_prefix}config_dir', default=[],
        help='folder of configuration files; may be given several times')


def load(files=(), dirs=(), overrides=None):
    """Return a ``ConfigOpts`` that has read the files.

    :param files: configuration files; with none, those where oslo.config
        looks by itself
    :param dirs: folders of configuration files
    :param overrides: values of options of ``[triggerlib]``, by name
    """
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    args = []
    for path in files:
        args += ['--config-file', path]
    for path in dirs:
        args += ['--config-dir', path]
    conf(args, project='triggerlib')
    opts.check(conf)
    for name, value in (overrides or {}).items():
        conf.set_override(name, value, group=opts.GROUP)
    return conf


def number(text):
    """Return a whole number of 0 or more that every storage can compare."""
    value = int(text)
    if not 0 <= value < 2 ** 63:
        raise argparse.ArgumentTypeError(
            f'{text} is not a number of 0 to {2 ** 63 - 1}')
    return value


def add_paging(parser):
    """Add ``--limit`` and ``--after`` to the parser of a list by ids."""
    parser.add_argument('--limit', type=number, default=100,
                        help='how many at most (default: 100)')
    parser.add_argument('--after', type=number, default=0, metavar='ID',
                        help='only those with a greater id')


class ConfiguredCommand(command.Command):
    """A command that reads the configuration."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        add_arguments(parser, dest_prefix='command_')
        return parser

    def conf(self, parsed_args, overrides=None):
        """Return the configuration that the command line names."""
        before = self.app.options
        return load(
            before.config_file + parsed_args.command_config_file,
            before.config_dir + parsed_args.command_config_dir, overrides)

    @contextlib.contextmanager
    def storage(self, parsed_args):
        """Give the storage that the configuration names, and close it.

        :raises SchemaError: its schema is not the one needed
        """
        # Only commands that need a database pay for importing it.
        from triggerlib import storage

        driver = storage.get_driver(self.conf(parsed_args))
        try:
            driver.check()
            yield driver
        finally:
            driver.close()
