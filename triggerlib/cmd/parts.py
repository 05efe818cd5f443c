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

"""The parts of an agent, as one process runs them."""

import socket
import threading

from oslo_log import log as logging

from triggerlib.event import converter as converter_module
from triggerlib import exceptions
from triggerlib import messaging
from triggerlib import storage
from triggerlib import trigger
from triggerlib.trigger import catalog as catalog_module

LOG = logging.getLogger(__name__)

LISTENER = 'listener'
SCHEDULER = 'scheduler'
WORKER = 'worker'
ALL = (LISTENER, SCHEDULER, WORKER)


#: Seconds before a process that the message bus does not let in ends.
PAUSE = 5.0


class NotStarted(exceptions.TriggerlibError):
    """A server of this process could not be started."""


class Files:
    """What the definition files say, loaded as one.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :raises DefinitionError: every mistake in any of the files
    """

    def __init__(self, conf):
        self._conf = conf
        problems = []
        try:
            self.converter = converter_module.Converter.from_conf(conf)
        except exceptions.DefinitionError as error:
            problems += error.problems
        try:
            self.catalog = catalog_module.Catalog.from_conf(conf)
        except exceptions.DefinitionError as error:
            problems += error.problems
        if problems:
            raise exceptions.DefinitionError(problems)

    def reload(self) -> bool:
        """Load them again; what was loaded stays when one has a mistake.

        :returns: whether they were loaded
        """
        try:
            converter = converter_module.Converter.from_conf(self._conf)
            self.catalog.reload()
        except exceptions.DefinitionError as error:
            LOG.error('What was loaded stays in force: %s', error)
            return False
        self.converter = converter
        return True


class Parts:
    """Runs parts of an agent in threads of this process.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param parts: which of :data:`ALL` to run
    :param files: loaded from ``conf`` unless given
    :raises DefinitionError: every mistake in the definition files
    """

    def __init__(self, conf, parts=ALL, files=None):
        self.names = tuple(parts)
        self.files = files or Files(conf)
        self._stop = threading.Event()
        self._reload = threading.Event()
        self._storage = storage.get_driver(conf)
        catalog = self.files.catalog
        self._manager = trigger.TriggerManager.from_conf(
            conf, self._storage, catalog, self.files.converter)
        self._servers = []
        self._loops = []
        if WORKER in parts:
            self._servers.append(messaging.get_rpc_server(
                conf, trigger.Worker.from_conf(
                    conf, self._storage, self._manager, catalog),
                socket.gethostname()))
        if SCHEDULER in parts:
            scheduler = trigger.Scheduler.from_conf(
                conf, self._storage, messaging.Client.from_conf(conf),
                catalog)
            self._loops.append(threading.Thread(
                target=scheduler.run, args=(self._stop,), name='scheduler'))
        if LISTENER in parts:
            self._servers.append(
                messaging.get_listener(conf, self._manager))

    def run(self) -> None:
        """Work until :meth:`stop`; then finish what was begun.

        :raises NotStarted: the message bus does not let this process in
        """
        started = [_Start(server) for server in self._servers]
        for loop in self._loops:
            loop.start()
        LOG.info('The agent is working: %s.', ', '.join(self.names))
        while not self._stop.wait(0.2):
            try:
                for start in started:
                    start.check()
            except NotStarted:
                # Whoever starts it anew does not do so without a pause.
                self._stop.wait(PAUSE)
                raise
            if self._reload.is_set():
                self._reload.clear()
                if self.files.reload():
                    self._manager.converter = self.files.converter
        LOG.info('The agent finishes what it has begun: %s.',
                 ', '.join(self.names))
        for start in reversed(started):
            start.end()
        for loop in self._loops:
            loop.join()
        self.files.catalog.current.pipelines.close()
        self._storage.close()

    def stop(self) -> None:
        """Have :meth:`run` come to its end."""
        self._stop.set()

    def reload(self) -> None:
        """Have the definition files loaded again, all or nothing."""
        self._reload.set()


class _Start:
    """A server that is being started, in a thread of its own.

    A broker that cannot be reached holds a start up for as long as it is
    away, and is not to keep the agent from ending.

    :param server: a server with start, stop and wait
    """

    def __init__(self, server):
        self._server = server
        self._error = None
        self._thread = threading.Thread(
            target=self._run, name='start', daemon=True)
        self._thread.start()

    def check(self):
        """Look whether it could be started.

        :raises NotStarted: it could not
        """
        if self._error is not None:
            raise NotStarted(
                f'The message bus does not let this process in: '
                f'{type(self._error).__name__}: {self._error}'
            ) from self._error

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
