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

"""The processes of an agent: started, watched and ended together.

Each part has as many processes as the options say. One that dies is started
again; those whose parent dies finish what they have begun, and end.
"""

import threading

import cotyledon
import cotyledon.oslo_config_glue
from oslo_log import log as logging

from triggerlib.cmd import parts as parts_module
from triggerlib.cmd import report
from triggerlib import opts
from triggerlib import transport

LOG = logging.getLogger(__name__)

_PROCESSES = {
    parts_module.LISTENER: 'listener_processes',
    parts_module.SCHEDULER: 'scheduler_processes',
    parts_module.WORKER: 'worker_processes',
}


class Process(cotyledon.Service):
    """One process of an agent.

    :param worker_id: number among the processes of the same parts, from 0
    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param parts: names of the parts that it runs
    :param files: a :class:`triggerlib.cmd.parts.Files`, loaded by the parent:
        a process that is started again has what the others have
    """

    name = 'triggerlib-agent'

    def __init__(self, worker_id, conf, parts, files):
        super().__init__(worker_id)
        self._conf = conf
        self._ended = threading.Event()
        self._parts = parts_module.Parts(conf, parts, files)
        report.set_up(conf, self._parts)

    def run(self):
        """Work until :meth:`terminate`.

        Where that cannot begin the process ends, and is started anew.
        """
        try:
            self._parts.run()
        except parts_module.NotStarted as error:
            LOG.error('%s', error)
            LOG.debug('no start', exc_info=True)
            raise SystemExit(1) from error
        finally:
            self._ended.set()

    def terminate(self):
        """Finish what was begun."""
        self._parts.stop()
        self._ended.wait()

    def reload(self):
        """Load the definition files, and the options that may change."""
        self._conf.mutate_config_files()
        self._parts.reload()


def plan(conf, parts=()):
    """Return which processes to start.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param parts: names of parts; with none, those that the options ask for
    :returns: pairs of the parts of a process and how many of it there are
    :raises PluginError: the transport cannot be had
    :raises ValueError: they ask for what cannot be
    """
    group = conf[opts.GROUP]
    transport.check(conf)
    wanted = {}
    for part in parts_module.ALL:
        count = group[_PROCESSES[part]]
        if parts:
            count = max(count, 1) if part in parts else 0
        if count:
            wanted[part] = count
    if not wanted:
        raise ValueError(
            'listener_processes, scheduler_processes and worker_processes '
            'are 0: there is nothing to run')
    if parts_module.LISTENER in wanted and not any(group.notification_topics):
        raise ValueError('notification_topics names no topic to listen on')
    alone = _why_alone(conf)
    if alone is None:
        return [((part,), count) for part, count in wanted.items()]
    for part, count in wanted.items():
        if count > 1:
            raise ValueError(
                f'{_PROCESSES[part]} is {count}, but {alone}')
    return [(tuple(wanted), 1)]


def run(conf, parts, files) -> None:
    """Start the processes, and watch them until the agent is to end.

    It does not return: the process exits with status 0 after SIGTERM, or
    with 1 where something took longer than ``shutdown_timeout``.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param parts: what :func:`plan` gave
    :param files: a :class:`triggerlib.cmd.parts.Files`
    """
    manager = cotyledon.ServiceManager(
        graceful_shutdown_timeout=conf[opts.GROUP].shutdown_timeout)
    # A process that is started later has what was loaded last.
    manager.register_hooks(on_reload=files.reload)
    for names, count in parts:
        manager.add(Process, workers=count, args=(conf, names, files))
    report.set_up(conf)
    manager.run()


def _why_alone(conf):
    """Return why everything has to be in one process, or None."""
    if transport.is_in_process(conf):
        return ('without a transport_url the casts stay in one process; '
                'give one, or start several agents')
    if conf[opts.GROUP].connection.startswith('memory:'):
        return ('the storage is in the memory of one process; choose '
                'another connection')
    return None
