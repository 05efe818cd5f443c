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

"""Agents on a real broker and database, and everything that can go wrong.

A run is repeated with the TRIGGERLIB_SEED that its failure names;
TRIGGERLIB_FAULTS says how many faults there are.
"""

import collections
import datetime
import json
import os
import random
import time

from testtools import content

from triggerlib import criteria
from triggerlib.testing import generator

from tests import base
from tests.chaos import cluster
from tests.chaos import nodes

AGENTS = 3
#: Servers in the cloud for each fault.
SERVERS = 15
SPREAD = 20
LEASE = 3
END = datetime.datetime(2013, 10, 3, tzinfo=datetime.timezone.utc)

EVENTS = """
    - event_type: compute.instance.*
      traits:
        instance_id: {fields: payload.instance_id}
        sent: {type: datetime, fields: metadata.timestamp}
    """

TRIGGERS = """
    - name: create
      distinguished_by: [instance_id]
      expiration: first + 1h
      match_criteria:
        - event_type: [compute.instance.create.start,
                       compute.instance.create.end]
      fire_criteria:
        - event_type: compute.instance.create.start
        - event_type: compute.instance.create.end
      fire_pipeline: fired
      expire_pipeline: expired
    - name: usage
      distinguished_by: [instance_id, {timestamp: day}]
      expiration: first + 1d
      match_criteria: [{event_type: compute.instance.*}]
      fire_criteria: []
      expire_pipeline: used
    - name: chain
      distinguished_by: [server]
      expiration: first + 1d
      match_criteria: [{event_type: test.fired}]
      fire_criteria: [{event_type: test.fired}]
      fire_pipeline: chained
    """

PIPELINES = """
    sinks:
      - name: fired
        transformers:
          - name: aggregate
            checkpoint: true
            parameters:
              event_type: test.fired
              traits: {server: {first: instance_id}, events: count}
        publishers: ['file://$folder/fired.jsonl', 'event://']
      - name: expired
        transformers:
          - name: aggregate
            parameters:
              event_type: test.expired
              traits: {server: {first: instance_id}, events: count}
        publishers: ['event://', 'file://$folder/expired.jsonl']
      - name: used
        transformers:
          - name: aggregate
            parameters:
              event_type: test.used
              traits:
                server: {first: instance_id}
                events: count
                begin: {first: sent}
        publishers: ['event://']
      - name: chained
        transformers:
          - name: aggregate
            parameters:
              event_type: test.chained
              traits: {server: {first: server}}
        publishers: ['event://', 'file://$folder/chained.jsonl']
    """


def notifications(faults):
    """Return the cloud that a run is about."""
    return generator.Generator(
        7, servers=SERVERS * faults, volumes=0, images=0, days=1,
        updates_per_day=1, failure_share=0.2, spread=SPREAD,
        duplicates=0.05, record=True)


class FaultRules(cluster.Cluster):
    """What is sent comes out, once; a subclass gives the :attr:`kind`."""

    kind = None
    #: Sorts of faults, in the order in which a run begins with them.
    faults = ('kill_agent', 'freeze_process', 'kill_process',
              'restart_broker', 'freeze_agent', 'kill_database',
              'move_clock', 'stop_agent', 'kill_parent', 'kill_broker',
              'reload', 'restart_database', 'freeze_database',
              'freeze_broker')
    #: What a longer run chooses from: most of it are kills.
    further = faults + 4 * ('kill_agent', 'kill_process', 'kill_parent')

    def setUp(self):
        super().setUp()
        seed = int(os.environ.get('TRIGGERLIB_SEED',
                                  random.randrange(10 ** 6)))
        self.addDetail('seed', content.text_content(
            f'TRIGGERLIB_SEED={seed}'))
        self.dice = random.Random(seed)
        self.count = int(os.environ.get('TRIGGERLIB_FAULTS',
                                        len(self.faults)))
        self.history = []
        self.addCleanup(lambda: self.addDetail(
            'faults', content.text_content('\n'.join(self.history))))
        self.build(
            EVENTS, TRIGGERS, PIPELINES, expiry_clock='event',
            allowed_lateness=43200, idle_timeout=86400, batch_size=20,
            batch_timeout=0.1, scheduler_interval=0.1, scheduler_batch=20,
            ready_timeout=2, lease=LEASE, max_attempts=1000,
            retry_delay=0.1, retry_delay_max=1, shutdown_timeout=20)

    def test_everything_comes_out_once(self):
        count = self.count
        self.start_agents(AGENTS)
        cloud = notifications(count)
        bodies = list(cloud)
        self.truth = cloud.truth
        begun = time.monotonic()
        for number in range(count):
            share = len(bodies) // (count - number)
            now, bodies = bodies[:share], bodies[share:]
            # Some of them again: a service that had no answer.
            now += self.dice.sample(now, len(now) // 20)
            self.source.send(now)
            name = (self.faults[number] if number < len(self.faults)
                    else self.dice.choice(self.further))
            self.history.append(
                f'{time.monotonic() - begun:.1f} s: {name}')
            getattr(self, name)()
            time.sleep(self.dice.uniform(0, 1))
            for agent in self.agents:
                agent.start()
        self.wait_until(lambda: not self.source.left, 'not all is sent')
        # What had begun before the last fault is stored first.
        self.wait_until(lambda: self.count_stored() >= len(self.truth),
                        'not all is stored')
        self.source.send([{
            'message_id': 'the-end', 'event_type': 'test.end',
            'publisher_id': 'test', 'payload': {},
            'timestamp': str((END + datetime.timedelta(days=9)).replace(
                tzinfo=None))}])
        self.wait_until(self.the_end, 'instances are open')
        self.history.append(f'{time.monotonic() - begun:.1f} s: all done')
        self.stop_agents()
        self.referee()

    def any_agent(self):
        return self.dice.choice(self.agents)

    # Faults

    def kill_agent(self):
        self.any_agent().kill()

    def kill_process(self):
        self.any_agent().kill_child(self.dice)

    def kill_parent(self):
        self.any_agent().kill_parent()

    def stop_agent(self):
        # The status is not looked at: it may be that it had just begun.
        self.any_agent().stop()

    def freeze_agent(self):
        go_on = self.any_agent().pause()
        time.sleep(LEASE + self.dice.uniform(0.5, 2))
        go_on()

    def freeze_process(self):
        go_on = self.any_agent().pause(self.dice)
        time.sleep(LEASE + self.dice.uniform(0.5, 2))
        go_on()

    def move_clock(self):
        self.any_agent().move_clock(
            self.dice.choice([-1, 1]) * self.dice.randrange(60, 10 ** 6))

    def reload(self):
        self.any_agent().reload()

    def restart_broker(self):
        self.broker.restart()

    def kill_broker(self):
        self.broker.restart(kill=True)

    def freeze_broker(self):
        self.broker.pause()
        time.sleep(self.dice.uniform(1, 4))
        self.broker.resume()

    def restart_database(self):
        self.database.restart()

    def kill_database(self):
        self.database.restart(kill=True)

    def freeze_database(self):
        self.database.pause()
        time.sleep(LEASE + self.dice.uniform(0.5, 2))
        self.database.resume()

    # What has become of it

    def the_end(self):
        return (self.ask(lambda tx: tx.get_events(['the-end']))
                and not self.open_instances())

    # What must have become of it

    def referee(self):
        truth = self.truth
        self.assertEqual(0, self.ask(lambda tx: tx.count_dead_letters()))
        found = collections.defaultdict(list)
        for event in self.ask(lambda tx: list(tx.find_events(
                criteria.EventQuery(None, None, None, {})))):
            found[event.event_type].append(event)
        self.assertEqual(
            dict(truth.counts),
            {name: len(found[name]) for name in truth.counts})
        created = {one.instance_id for one in truth.created()}
        unended = {one.instance_id for one in truth.unended()}
        self.assertGreater(len(created), 0)
        self.assertGreater(len(unended), 0)
        days = truth.days()
        self.assertEqual(
            sorted((one, 2) for one in created),
            sorted((event.traits['server'], event.traits['events'])
                   for event in found['test.fired']))
        self.assertEqual(
            sorted((one, 1) for one in unended),
            sorted((event.traits['server'], event.traits['events'])
                   for event in found['test.expired']))
        self.assertEqual(
            sorted((server, day, len(events))
                   for (server, day), events in days.items()),
            sorted((event.traits['server'], event.traits['begin'].date(),
                    event.traits['events']) for event in found['test.used']))
        self.assertEqual(
            sorted(created),
            sorted(event.traits['server']
                   for event in found['test.chained']))
        for kind in ('fired', 'expired', 'chained'):
            # A file is written at least once, always under the same ids.
            with open(f'{self.folder}/{kind}.jsonl',
                      encoding='utf-8') as stream:
                lines = [json.loads(line) for line in stream]
            self.assertEqual(
                {event.message_id for event in found[f'test.{kind}']},
                {line['message_id'] for line in lines})


class TestPostgreSQL(FaultRules, base.TestCase):
    """Agents on PostgreSQL."""

    kind = nodes.PostgreSQLNode


class TestMariaDB(FaultRules, base.TestCase):
    """Agents on MariaDB."""

    kind = nodes.MariaDBNode
