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

"""An outage of hours, and what agents make of the backlog.

TRIGGERLIB_BACKLOG says how many notifications have piled up.
"""

import collections
import datetime
import os

from testtools import content

from triggerlib import clock as clock_module
from triggerlib.cmd import config
from triggerlib import criteria
from triggerlib import storage
from triggerlib.testing import generator
from triggerlib.trigger import replay

from tests import base
from tests.chaos import cluster

BACKLOG = int(os.environ.get('TRIGGERLIB_BACKLOG', 4000))
HOURS = 6
START = datetime.datetime(2013, 10, 1, tzinfo=datetime.timezone.utc)

EVENTS = """
    - event_type: compute.instance.*
      traits:
        instance_id: {fields: payload.instance_id}
    """

TRIGGERS = """
    - name: create
      distinguished_by: [instance_id]
      expiration: first + 1h
      match_criteria: [{event_type: 'compute.instance.create.*'}]
      fire_criteria:
        - event_type: compute.instance.create.start
        - event_type: compute.instance.create.end
      fire_delay: 60
      fire_pipeline: fired
      expire_pipeline: expired
    - name: window
      distinguished_by: [instance_id, {timestamp: hour}]
      expiration: first + 1h @ 0m 0s + 5m
      match_criteria: [{event_type: compute.instance.*}]
      fire_criteria: []
      expire_pipeline: window
    """

SINK = """
      - name: {name}
        transformers:
          - name: aggregate
            parameters:
              event_type: test.{name}
              traits: {{server: {{first: instance_id}}, events: count}}
        publishers: ['event://']
"""

PIPELINES = 'sinks:' + ''.join(
    SINK.format(name=name) for name in ('fired', 'expired', 'window'))

_OUT = criteria.EventQuery(
    ('test.fired', 'test.expired', 'test.window'), None, None, {})


def end():
    """Return a notification long after all others."""
    return {'message_id': 'the-end', 'event_type': 'test.end',
            'publisher_id': 'test', 'payload': {},
            'timestamp': str((START + datetime.timedelta(days=9)).replace(
                tzinfo=None))}


class OutageCase(cluster.Cluster, base.TestCase):
    """What piled up while no agent was there."""

    def pile_up(self, count, **options):
        """Start everything but the agents, and send notifications."""
        self.build(EVENTS, TRIGGERS, PIPELINES, patience=120 + count / 200,
                   batch_timeout=0.1, scheduler_interval=0.1,
                   worker_processes=2, **options)
        # Some 15 of each server.
        self.cloud = generator.Generator(
            3, servers=max(count // 14, 10), volumes=0, images=0,
            start=START, days=HOURS / 24, updates_per_day=72,
            lifetime_hours=4, failure_share=0.1, spread=20,
            duplicates=0.02, record=True)
        self.bodies = list(self.cloud)
        self.addDetail('backlog', content.text_content(
            f'{len(self.bodies)} notifications'))
        self.source.send(self.bodies)
        self.wait_until(lambda: not self.source.left, 'not all is sent')

    def catch_up(self):
        """Start the agents, and return what they published, by id."""
        self.start_agents(2)
        self.wait_until(
            lambda: self.count_stored() >= len(self.cloud.truth),
            'not all is stored')
        self.source.send([end()])
        self.wait_until(
            lambda: self.ask(lambda tx: tx.get_events(['the-end']))
            and not self.open_instances(), 'instances are open')
        self.stop_agents()
        return self.published(self.storage)

    def published(self, driver):
        return driver.run(lambda tx: {
            event.message_id: (event.event_type, event.traits)
            for event in tx.find_events(_OUT)}, write=False)

    def without_outage(self):
        """Return what comes out when everything comes at its own time."""
        conf = config.load([self.conf_path], overrides={
            'connection': f'sqlite:///{self.folder}/replay.sqlite',
            'sqlite_synchronous': 'OFF'})
        clock = clock_module.ReplayClock(START)
        driver = storage.get_driver(conf, clock)
        self.addCleanup(driver.close)
        driver.upgrade()
        run = replay.Replay.from_conf(conf, driver, clock, step=10.0)
        run.feed([*self.bodies, end()])
        run.run_out()
        return self.published(driver)

    def kinds(self, published):
        return collections.Counter(kind for kind, _ in published.values())


class TestEventClock(OutageCase):
    """With ``expiry_clock = event``."""

    def test_it_is_as_if_there_had_been_no_outage(self):
        self.pile_up(BACKLOG, expiry_clock='event', allowed_lateness=600,
                     idle_timeout=86400)
        found = self.catch_up()
        expected = self.without_outage()
        self.assertEqual(self.kinds(expected), self.kinds(found))
        self.assertEqual(expected, found)
        truth = self.cloud.truth
        self.assertEqual(len(truth.created()),
                         self.kinds(found)['test.fired'])
        self.assertEqual(
            len(truth), sum(traits['events'] for kind, traits
                            in found.values() if kind == 'test.window'))


class TestWallClock(OutageCase):
    """With ``expiry_clock = wall``."""

    def test_each_event_comes_too_late_for_the_one_before(self):
        self.pile_up(min(BACKLOG, 1000), expiry_clock='wall')
        found = self.catch_up()
        kinds = self.kinds(found)
        self.assertEqual(0, kinds['test.fired'])
        self.assertEqual(len(self.cloud.truth), kinds['test.window'])
        self.assertEqual({1}, {traits['events']
                               for _, traits in found.values()})
