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
import textwrap
import time

import fixtures
from testtools import content

from triggerlib.cmd import config
from triggerlib import criteria
from triggerlib import state as state_module
from triggerlib import storage
from triggerlib.testing import generator

from tests import base
from tests.chaos import agents as agents_module
from tests.chaos import nodes
from tests.chaos import source as source_module

State = state_module.State

AGENTS = 3
#: Servers in the cloud for each fault.
SERVERS = 15
SPREAD = 20
LEASE = 3
END = datetime.datetime(2013, 10, 3, tzinfo=datetime.timezone.utc)
#: Seconds in which everything has come to its end after the last fault.
PATIENCE = 240
EXCHANGE = 'nova'

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


def notifications(faults, record=False):
    """Return the cloud that the run is about."""
    return generator.Generator(
        7, servers=SERVERS * faults, volumes=0, images=0, days=1,
        updates_per_day=1, failure_share=0.2, spread=SPREAD,
        duplicates=0.05, record=record)


def priority_of(body):
    """Return the priority that a service gives a notification."""
    return 'error' if body['event_type'].endswith('.error') else 'info'


class FaultRules:
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
        self.folder = self.useFixture(fixtures.TempDir()).path
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
        self.database = self.useFixture(self.kind())
        self.broker = self.useFixture(nodes.RabbitMQNode())
        self.write('events.yaml', EVENTS)
        self.write('triggers.yaml', TRIGGERS)
        self.write('pipelines.yaml', PIPELINES)
        self.write('triggerlib.conf', f"""
            [DEFAULT]
            transport_url = {self.broker.url}
            control_exchange = {EXCHANGE}
            [oslo_messaging_rabbit]
            amqp_durable_queues = true
            rabbit_interval_max = 2
            kombu_reconnect_delay = 0.2
            [triggerlib]
            connection = {self.database.url}
            event_definitions_cfg_file = events.yaml
            trigger_definitions_cfg_file = triggers.yaml
            event_pipeline_cfg_file = pipelines.yaml
            expiry_clock = event
            allowed_lateness = 43200
            idle_timeout = 86400
            batch_size = 20
            batch_timeout = 0.1
            scheduler_interval = 0.1
            scheduler_batch = 20
            ready_timeout = 2
            lease = {LEASE}
            max_attempts = 1000
            retry_delay = 0.1
            retry_delay_max = 1
            shutdown_timeout = 20
            """)
        self.conf_path = f'{self.folder}/triggerlib.conf'
        self.storage = storage.get_driver(config.load([self.conf_path]))
        self.addCleanup(self.storage.close)
        self.storage.upgrade()

    def write(self, name, text):
        with open(f'{self.folder}/{name}', 'w', encoding='utf-8') as stream:
            stream.write(textwrap.dedent(text).replace(
                '$folder', self.folder))

    def test_everything_comes_out_once(self):
        count = self.count
        self.source = source_module.Source(
            self.broker.url, EXCHANGE, 'notifications', priority_of)
        self.addCleanup(self.source.close)
        self.agents = [self.agent(number) for number in range(AGENTS)]
        bodies = list(notifications(count))
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
        self.wait_until(lambda: self.stored() >= self.sent(),
                        'not all is stored')
        self.source.send([{
            'message_id': 'the-end', 'event_type': 'test.end',
            'publisher_id': 'test', 'payload': {},
            'timestamp': str((END + datetime.timedelta(days=9)).replace(
                tzinfo=None))}])
        self.wait_until(lambda: not self.open_instances(),
                        'instances are open')
        self.history.append(f'{time.monotonic() - begun:.1f} s: all done')
        for agent in self.agents:
            self.assertEqual(0, agent.stop(), self.log())
        self.referee()

    def agent(self, number):
        folder = self.useFixture(fixtures.TempDir()).path
        return self.useFixture(agents_module.Agent(
            self.conf_path, f'{self.folder}/agent{number}.log', folder))

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

    def ask(self, work):
        return self.storage.run(work, write=False)

    def sent(self):
        cloud = notifications(self.count, record=True)
        for _ in cloud:
            pass
        self.truth = cloud.truth
        self.sent = lambda: len(self.truth)
        return len(self.truth)

    def stored(self):
        types = tuple(self.truth.counts) if hasattr(self, 'truth') else ()
        return self.ask(lambda tx: sum(1 for _ in tx.find_events(
            criteria.EventQuery(types or ('none',), None, None, {}))))

    def open_instances(self):
        if self.ask(lambda tx: tx.get_events(['the-end'])) == {}:
            return {'the end has not come': 1}
        return {
            f'{name} {state}': count for (name, state), count
            in self.ask(lambda tx: tx.count_instances()).items()}

    def wait_until(self, condition, otherwise):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f'{otherwise}: {self.source.left} to be sent, '
                          f'{self.stored()} stored, '
                          f'{self.open_instances()}\n{self.log()}')
            for agent in self.agents:
                agent.start()
            time.sleep(0.25)

    def log(self):
        texts = []
        for number in range(AGENTS):
            path = f'{self.folder}/agent{number}.log'
            with open(path, encoding='utf-8', errors='replace') as stream:
                texts.append(f'--- agent {number}\n{stream.read()[-4000:]}')
        return '\n'.join(texts)

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
