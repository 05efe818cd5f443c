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

"""Everything between events and publishers, on a clock that stands still."""

import datetime
import textwrap
import uuid

import fixtures

from triggerlib import clock as clock_module
from triggerlib.cmd import config
from triggerlib.event import event as event_module
from triggerlib import opts
from triggerlib.publisher import test as test_publisher
from triggerlib import storage
from triggerlib.trigger import catalog as catalog_module
from triggerlib.trigger import expiry
from triggerlib.trigger import manager as manager_module
from triggerlib.trigger import scheduler as scheduler_module
from triggerlib.trigger import worker as worker_module

UTC = datetime.timezone.utc
START = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(seconds):
    """Return a moment so many seconds after the start."""
    return START + datetime.timedelta(seconds=seconds)


def event(message_id, event_type, seconds, **traits):
    """Return an event so many seconds after the start."""
    return event_module.Event(message_id, event_type, at(seconds), traits)


class Casts(list):
    """A caster that remembers and does nothing."""

    def fire_trigger(self, trigger_id):
        self.append(('fire', trigger_id))

    def expire_trigger(self, trigger_id):
        self.append(('expire', trigger_id))


class Engine(fixtures.Fixture):
    """Manager, scheduler and worker over one storage.

    :param triggers: text of a trigger definitions file
    :param pipelines: text of a pipelines file; ``$NAME`` in a publisher's
        URL stands for a name of this engine's own, see :meth:`published`
    :param url: the storage
    :param shared: another engine, whose storage and clock to use
    :param own_driver: have a driver of its own over the shared storage, as
        another process would
    :param start: what the clock shows first
    :param overrides: options of ``[triggerlib]``
    """

    def __init__(self, triggers, pipelines, url='memory://', *,
                 shared=None, own_driver=False, start=START, **overrides):
        self._texts = (triggers, pipelines)
        self._url = url
        self._overrides = overrides
        self._shared = shared
        self._own_driver = own_driver
        self._start = start

    def _setUp(self):
        self.name = (f'e{uuid.uuid4().hex}' if self._shared is None
                     else self._shared.name)
        folder = self.useFixture(fixtures.TempDir()).path
        triggers, pipelines = map(textwrap.dedent, self._texts)
        paths = {}
        for name, text in (
                ('trigger_definitions_cfg_file', triggers),
                ('event_pipeline_cfg_file',
                 pipelines.replace('$NAME', self.name))):
            paths[name] = f'{folder}/{name}.yaml'
            with open(paths[name], 'w', encoding='utf-8') as stream:
                stream.write(text)
        self.paths = paths
        conf_path = f'{folder}/triggerlib.conf'
        with open(conf_path, 'w', encoding='utf-8') as stream:
            stream.write('[triggerlib]\n')
        self.conf = config.load([conf_path], overrides={
            'connection': self._url, **paths, **self._overrides})
        self.addCleanup(test_publisher.reset, self.name)
        if self._shared is None:
            self.clock = clock_module.ReplayClock(self._start)
            self.storage = storage.get_driver(self.conf, self.clock)
            self.storage.upgrade()
            self.addCleanup(self.storage.close)
        else:
            self.clock = self._shared.clock
            self.storage = self._shared.storage
            if self._own_driver:
                self.storage = storage.get_driver(self.conf, self.clock)
                self.addCleanup(self.storage.close)
        self.catalog = catalog_module.Catalog.from_conf(self.conf)
        self.manager = manager_module.TriggerManager(
            self.storage, self.catalog, None,
            expiry.ExpiryClock.from_conf(self.conf),
            self.conf[opts.GROUP].indexed_traits)
        self.casts = Casts()
        self.scheduler = scheduler_module.Scheduler.from_conf(
            self.conf, self.storage, self.casts, self.catalog)
        self.worker = worker_module.Worker.from_conf(
            self.conf, self.storage, self.manager, self.catalog)

    def add(self, *events):
        """Put a batch of events in."""
        return self.manager.add_events(events)

    def instances(self, **filters):
        """Return all instances."""
        return self.storage.run(
            lambda tx: tx.list_instances(**filters), write=False)

    def instance(self):
        """Return the only instance."""
        one, = self.instances()
        return one

    def ids_of(self, instance):
        """Return the message_ids on an instance's list, in order."""
        events = self.storage.run(
            lambda tx: tx.instance_events([instance.id]), write=False)
        return [each.message_id for each in events[instance.id]]

    def work(self):
        """Do what was cast, and return what the worker answered."""
        casts, self.casts[:] = list(self.casts), []
        return [getattr(self.worker, f'{kind}_trigger')(instance_id)
                for kind, instance_id in casts]

    def settle(self):
        """Sweep and work until nothing is due at this moment."""
        while self.scheduler.run_once():
            self.work()

    def published(self):
        """Return what was published, oldest first."""
        return test_publisher.published(self.name)
