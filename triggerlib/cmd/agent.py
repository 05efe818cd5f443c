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

"""``triggerlib-agent``: listeners, schedulers and workers."""

import argparse
import logging as std_logging
import sys
import time

from oslo_config import cfg
from oslo_log import log as logging

from triggerlib.cmd import parts as parts_module
from triggerlib.cmd import processes
from triggerlib.cmd import report
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import storage

LOG = logging.getLogger(__name__)

#: Seconds between two looks for a storage that does not answer at the start.
PAUSE = 2.0


def main(argv=None):
    """Run an agent until SIGTERM or SIGINT; return its exit status."""
    options = _parser().parse_args(argv)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    report.register_opts(conf)
    logging.register_options(conf)
    logging.set_defaults(default_log_levels=[
        *logging.get_default_log_levels(), 'alembic=WARN'])
    args = []
    for path in options.config_file:
        args += ['--config-file', path]
    for path in options.config_dir:
        args += ['--config-dir', path]
    try:
        conf(args, project='triggerlib')
        opts.check(conf)
        logging.setup(conf, 'triggerlib')
        if not conf.config_file and not conf.config_dir:
            LOG.warning('No configuration file was named or found: all '
                        'options have their defaults.')
        plan = processes.plan(conf, options.parts or ())
        files = parts_module.Files(conf)
        check_storage(conf)
    except (exceptions.TriggerlibError, cfg.Error, ValueError) as error:
        std_logging.getLogger(__name__).debug('no start', exc_info=True)
        sys.stderr.write(f'triggerlib-agent: {error}\n')
        return 1
    processes.run(conf, plan, files)
    return 0


def check_storage(conf, pause=time.sleep) -> None:
    """Wait for the storage, and refuse a schema that is not the one needed.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param pause: called with the seconds to wait
    :raises SchemaError: it says what to do
    """
    driver = storage.get_driver(conf)
    try:
        while True:
            try:
                driver.check()
            except exceptions.StorageBusy as error:
                LOG.warning('The agent waits for the storage: %s', error)
                pause(PAUSE)
            else:
                return
    finally:
        # The processes have connections of their own.
        driver.close()


def _parser():
    parser = argparse.ArgumentParser(
        prog='triggerlib-agent',
        description='Collects events into triggers and runs their '
                    'pipelines. With no part named, it runs those that the '
                    'options ask for.')
    parser.add_argument('--config-file', action='append', default=[],
                        metavar='FILE')
    parser.add_argument('--config-dir', action='append', default=[],
                        metavar='DIR')
    for part in parts_module.ALL:
        parser.add_argument(
            f'--{part}', action='append_const', dest='parts', const=part,
            help=f'run the {part}')
    return parser


if __name__ == '__main__':
    sys.exit(main())
