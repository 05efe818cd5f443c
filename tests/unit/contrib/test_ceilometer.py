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

"""The publisher for Ceilometer, with events of its shape."""

import collections
import datetime
import urllib.parse

import fixtures
from oslo_config import cfg

from triggerlib.contrib import ceilometer
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import storage

from tests import base

Event = collections.namedtuple(
    'Event', 'message_id event_type generated traits raw')
Trait = collections.namedtuple('Trait', 'name dtype value')

UTC = datetime.timezone.utc


class TestTriggersPublisher(base.TestCase):
    """From Ceilometer's models to stored events."""

    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        with open(f'{folder}/c.conf', 'w', encoding='utf-8') as stream:
            stream.write('[triggerlib]\n'
                         f'connection = sqlite:///{folder}/t.sqlite\n'
                         'trigger_definitions_cfg_file = t.yaml\n')
        with open(f'{folder}/t.yaml', 'w', encoding='utf-8') as stream:
            stream.write('- name: t\n'
                         '  distinguished_by: [host]\n'
                         '  expiration: first + 100y\n'
                         '  match_criteria: [{event_type: x}]\n')
        # Ceilometer's own configuration knows nothing of triggerlib.
        self.conf = cfg.ConfigOpts()
        self.conf(['--config-file', f'{folder}/c.conf'])
        self.url = urllib.parse.urlsplit('triggers://')

    def upgrade(self):
        conf = self.conf
        opts.register_opts(conf)
        driver = storage.get_driver(conf)
        self.addCleanup(driver.close)
        driver.upgrade()
        return driver

    def event(self, message_id='m'):
        moment = datetime.datetime(2026, 3, 1, 12)
        return Event(message_id, 'x', moment, [
            Trait('host', 1, 'h'), Trait('vcpus', 2, 4),
            Trait('load', 3, 0.5), Trait('launched_at', 4, moment)], {})

    def test_events_are_stored_and_collected(self):
        driver = self.upgrade()
        publisher = ceilometer.TriggersPublisher(self.conf, self.url)
        publisher.publish_events([self.event(), self.event('m2')])
        publisher.publish_events([self.event()])
        noon = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)
        found = driver.run(lambda tx: tx.get_events(['m']))
        self.assertEqual(
            {'host': 'h', 'vcpus': 4, 'load': 0.5, 'launched_at': noon},
            found['m'].traits)
        self.assertEqual(noon, found['m'].timestamp)
        one, = driver.run(lambda tx: tx.list_instances())
        self.assertEqual(2, one.event_count)

    def test_a_storage_that_fails_raises(self):
        self.upgrade()
        publisher = ceilometer.TriggersPublisher(self.conf, self.url)

        def busy(write=True):
            raise exceptions.StorageBusy('down')

        publisher._storage.begin = busy
        publisher._storage.retries = 0
        self.assertRaises(exceptions.StorageError,
                          publisher.publish_events, [self.event()])

    def test_it_does_not_start_without_a_schema(self):
        self.assertRaises(exceptions.SchemaError,
                          ceilometer.TriggersPublisher, self.conf, self.url)

    def test_samples_are_refused(self):
        self.upgrade()
        publisher = ceilometer.TriggersPublisher(self.conf, self.url)
        self.assertRaises(NotImplementedError, publisher.publish_samples, [])
