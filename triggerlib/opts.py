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

"""The options of triggerlib, all in the group ``[triggerlib]``."""

import copy
import math

from oslo_config import cfg
from oslo_config import types

GROUP = 'triggerlib'

#: The longest time that an option can be, in seconds: ten years.
LONGEST = 10 * 365 * 24 * 3600


class _Seconds(types.Float):
    """A number of seconds, which no infinity and no NaN is."""

    def __call__(self, value):
        number = super().__call__(value)
        if not math.isfinite(number):
            raise ValueError('Should be a finite number')
        return number


def _seconds(name, *, min=0, max=LONGEST, **kwargs):
    return cfg.Opt(name, type=_Seconds(min=min, max=max), **kwargs)


STORAGE_OPTS = [
    cfg.StrOpt(
        'connection', default='sqlite:///triggerlib.sqlite', secret=True,
        help='URL of the storage. Its scheme chooses the storage driver: '
             'sqlite, postgresql, mysql or memory.'),
    cfg.ListOpt(
        'indexed_traits', default=[],
        help='Traits that get rows in the trait index beside those that a '
             'trigger definition distinguishes by. Load criteria that '
             'compare an indexed trait with a constant are answered from '
             'the index.'),
    cfg.IntOpt(
        'storage_retries', default=10, min=0, max=100,
        help='How often a transaction is tried again after a deadlock, a '
             'serialization failure, a busy database or a lost connection '
             'before the error is raised to the caller.'),
    _seconds(
        'sqlite_busy_timeout', default=30.0, min=0, max=3600,
        help='Seconds to wait for another process that writes to the same '
             'SQLite file.'),
    cfg.StrOpt(
        'sqlite_synchronous', default='FULL',
        choices=[('FULL', 'a commit survives a power failure'),
                 ('NORMAL', 'a commit survives the end of the process, not '
                            'always a power failure'),
                 ('OFF', 'for databases that are thrown away')],
        help='How carefully SQLite writes a commit to the disk.'),
]

DEFINITION_OPTS = [
    cfg.StrOpt(
        'event_definitions_cfg_file', default='event_definitions.yaml',
        help='File of event definitions, looked for where oslo.config looks '
             'for configuration files.'),
    cfg.BoolOpt(
        'allow_dropping_of_notifications', default=False,
        help='Drop notifications that no event definition is for. By '
             'default they become events with the default traits.'),
    cfg.StrOpt(
        'trigger_definitions_cfg_file', default='trigger_definitions.yaml',
        help='File of trigger definitions, looked for where oslo.config '
             'looks for configuration files.'),
    cfg.StrOpt(
        'event_pipeline_cfg_file', default='event_pipeline.yaml',
        help='File of event pipelines (sources and sinks), looked for where '
             'oslo.config looks for configuration files.'),
]

INTAKE_OPTS = [
    cfg.IntOpt(
        'batch_size', default=200, min=1, max=10000,
        help='Notifications that are handled in one transaction at most.'),
    _seconds(
        'batch_timeout', default=1.0, min=0.01, max=60,
        help='Seconds to wait for a batch of notifications to fill.'),
    cfg.StrOpt(
        'expiry_clock', default='wall',
        choices=[('wall', 'time is that of the clock of the database'),
                 ('event', 'time goes no further than the newest event '
                           'stored')],
        help='The time by which instances expire, and by which a fire_delay '
             'passes. With "event" a backlog after an outage gives the '
             'results that it would have given without the outage.'),
    _seconds(
        'allowed_lateness', default=60.0, min=0,
        help='With expiry_clock = event: seconds by which an event may '
             'arrive after a newer one. Expiry is as much later.'),
    _seconds(
        'idle_timeout', default=300.0, min=0,
        help='With expiry_clock = event: seconds without any new event '
             'after which time follows the wall clock again.'),
]

NOTIFICATION_OPTS = [
    cfg.MultiStrOpt(
        'notification_topics', default=['notifications'],
        help='Topics on which notifications arrive. May be given several '
             'times.'),
    cfg.MultiStrOpt(
        'notification_exchanges', default=[],
        help='Exchanges that the topics belong to; by default the control '
             'exchange of oslo.messaging. May be given several times.'),
    cfg.StrOpt(
        'notification_pool', default=None,
        help='Listener pool: every pool gets each notification once.'),
]

SCHEDULER_OPTS = [
    _seconds(
        'scheduler_interval', default=1.0, min=0.01, max=3600,
        help='Seconds that the scheduler sleeps when nothing was due.'),
    cfg.IntOpt(
        'scheduler_batch', default=100, min=1, max=10000,
        help='Instances that the scheduler makes ready in one transaction '
             'at most.'),
    _seconds(
        'ready_timeout', default=60.0, min=0.01,
        help='Seconds after which an instance that waits for a worker is '
             'cast again.'),
    cfg.IntOpt(
        'cast_limit', default=1000, min=1, max=1000000,
        help='Instances that have been cast and not been taken by a worker, '
             'at most. What is ready beyond them is cast when their number '
             'has gone down.'),
]

WORKER_OPTS = [
    cfg.IntOpt(
        'workers', default=2, min=1, max=64,
        help='Instances that one process works on at the same time.'),
    _seconds(
        'lease', default=300.0, min=1,
        help='Seconds for which a claim holds without being renewed. A '
             'worker renews it while its pipeline runs.'),
    cfg.IntOpt(
        'max_attempts', default=5, min=1,
        help='How often an instance is worked on in all, before an error '
             'that could be retried is final.'),
    _seconds(
        'retry_delay', default=10.0, min=0,
        help='Seconds before the second attempt; each further one waits '
             'twice as long as the one before, with jitter.'),
    _seconds(
        'retry_delay_max', default=3600.0, min=0,
        help='The longest wait between two attempts, in seconds.'),
    cfg.IntOpt(
        'journal_chunk', default=100, min=1, max=10000,
        help='Items that share a row of the journal, where a step yields '
             'them one by one. Each is noted at once whatever this is; a '
             'row is written again with each item, and more rows are more '
             'to keep and to read.'),
]

AGENT_OPTS = [
    cfg.IntOpt(
        'listener_processes', default=1, min=0, max=256,
        help='Processes of an agent that take notifications from the message '
             'bus; 0 for none.'),
    cfg.IntOpt(
        'scheduler_processes', default=1, min=0, max=16,
        help='Processes of an agent that look for what is due; 0 for none. '
             'One is enough for a host; several are there for each other.'),
    cfg.IntOpt(
        'worker_processes', default=1, min=0, max=256,
        help='Processes of an agent that run pipelines, each on as many '
             'instances at once as "workers" says; 0 for none.'),
    cfg.IntOpt(
        'shutdown_timeout', default=60, min=1, max=3600,
        help='Seconds that an agent has, when it is to end, to finish what '
             'it has begun. What takes longer is left to the other agents '
             'when its lease runs out.'),
]

_ALL_OPTS = (STORAGE_OPTS + DEFINITION_OPTS + INTAKE_OPTS
             + NOTIFICATION_OPTS + SCHEDULER_OPTS + WORKER_OPTS
             + AGENT_OPTS)


def register_opts(conf):
    """Register all options of triggerlib.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    """
    conf.register_opts(_ALL_OPTS, group=GROUP)


def check(conf):
    """Refuse values that an option cannot have.

    oslo.config looks at a value when it is first asked for, which may be
    long after the start.

    :param conf: an ``oslo_config.cfg.ConfigOpts`` that has read its files
    :raises oslo_config.cfg.Error: it names file, option and value
    """
    for option in _ALL_OPTS:
        conf[GROUP][option.dest]


def list_opts():
    """Return the options for ``oslo-config-generator``."""
    return [(GROUP, copy.deepcopy(_ALL_OPTS))]
