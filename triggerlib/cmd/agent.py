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

"""``triggerlib-agent``: listener, scheduler and workers, or some of them."""

import argparse
import logging as std_logging
import signal
import socket
import sys
import threading

from oslo_config import cfg
from oslo_log import log as logging

from triggerlib.event import converter as converter_module
from triggerlib import exceptions
from triggerlib import messaging
from triggerlib import opts
from triggerlib import storage
from triggerlib import trigger
from triggerlib.trigger import catalog as catalog_module

LOG = logging.getLogger(__name__)

PARTS = ('listener', 'scheduler', 'worker')


class Agent:
    """Runs the parts that make a host.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param parts: which of :data:`PARTS` to run
    :raises DefinitionError: every mistake in the definition files
    :raises SchemaError: the storage's schema is not the one needed
    """

    def __init__(self, conf, parts=PARTS):
        self._stop = threading.Event()
        self._reload = threading.Event()
        self._conf = conf
        self._catalog = catalog_module.Catalog.from_conf(conf)
        self._storage = storage.get_driver(conf)
        self._storage.check()
        self._manager = trigger.TriggerManager.from_conf(
            conf, self._storage, self._catalog)
        self._servers = []
        self._loops = []
        host = socket.gethostname()
        if 'worker' in parts:
            self._servers.append(messaging.get_rpc_server(
                conf, trigger.Worker.from_conf(
                    conf, self._storage, self._manager, self._catalog),
                host))
            # As many instances at once as there are rpc threads; the option
            # is there once a server is, and is read when that starts.
            conf.set_override('executor_thread_pool_size',
                              conf[opts.GROUP].workers)
        if 'scheduler' in parts:
            scheduler = trigger.Scheduler.from_conf(
                conf, self._storage, messaging.Client.from_conf(conf),
                self._catalog)
            self._loops.append(threading.Thread(
                target=scheduler.run, args=(self._stop,), name='scheduler'))
        if 'listener' in parts:
            self._servers.append(
                messaging.get_listener(conf, self._manager))

    def run(self) -> None:
        """Work until :meth:`stop`; then finish what was begun."""
        started = [_Start(server) for server in self._servers]
        for loop in self._loops:
            loop.start()
        LOG.info('The agent is working.')
        while not self._stop.wait(0.2):
            for start in started:
                start.check()
            if self._reload.is_set():
                self._reload.clear()
                self._load_again()
        LOG.info('The agent finishes what it has begun.')
        for start in reversed(started):
            start.end()
        for loop in self._loops:
            loop.join()
        self._catalog.current.pipelines.close()
        self._storage.close()

    def stop(self) -> None:
        """Have :meth:`run` come to its end."""
        self._stop.set()

    def reload(self) -> None:
        """Have the definition files loaded again, all or nothing."""
        self._reload.set()

    def _load_again(self):
        try:
            converter = converter_module.Converter.from_conf(self._conf)
            self._catalog.reload()
        except exceptions.DefinitionError as error:
            LOG.error('What was loaded stays in force: %s', error)
            return
        self._manager.converter = converter


class _Start:
    """A server that is being started, in a thread of its own.

    A broker that cannot be reached holds a start up for as long as it is
    away, and is not to keep the agent from ending.

    :param server: a server of oslo.messaging
    """

    def __init__(self, server):
        self._server = server
        self._error = None
        self._thread = threading.Thread(
            target=self._run, name='start', daemon=True)
        self._thread.start()

    def check(self):
        """Raise what the start failed with."""
        if self._error is not None:
            raise self._error

    def end(self):
        """Stop the server, and wait for what it has begun."""
        if not self._thread.is_alive() and self._error is None:
            self._server.stop()
            self._server.wait()

    def _run(self):
        try:
            self._server.start()
        except Exception as error:
            # It is raised where the agent waits.
            self._error = error


def main(argv=None):
    """Run an agent until SIGTERM or SIGINT; return its exit status."""
    parser = argparse.ArgumentParser(
        prog='triggerlib-agent',
        description='Collects events into triggers and runs their '
                    'pipelines. With no part named, it does all of it.')
    parser.add_argument('--config-file', action='append', default=[],
                        metavar='FILE')
    parser.add_argument('--config-dir', action='append', default=[],
                        metavar='DIR')
    for part in PARTS:
        parser.add_argument(
            f'--{part}', action='append_const', dest='parts', const=part,
            help=f'run the {part}')
    options = parser.parse_args(argv)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
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
        agent = Agent(conf, options.parts or PARTS)
    except (exceptions.TriggerlibError, cfg.Error) as error:
        std_logging.getLogger(__name__).debug('no start', exc_info=True)
        sys.stderr.write(f'triggerlib-agent: {error}\n')
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    signal.signal(signal.SIGHUP, lambda *_: agent.reload())
    agent.run()
    return 0


if __name__ == '__main__':
    sys.exit(main())
