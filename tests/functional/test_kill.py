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

"""Three processes on one database, two of them killed again and again."""

import collections
import contextlib
import datetime
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading

import fixtures
from testtools import content

from triggerlib.cmd import config
from triggerlib import criteria
from triggerlib.event import event as event_module
from triggerlib import storage
from triggerlib.testing import generator
from triggerlib.trigger import manager

from tests import base
from tests import servers

SERVERS = 150
SPREAD = 20
END = datetime.datetime(2013, 10, 3, tzinfo=datetime.timezone.utc)
KILLS = 10
#: Seconds in which everything has to be over; it takes some twenty.
PATIENCE = 240

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
    """

PIPELINES = """
    sinks:
      - name: fired
        transformers:
          - name: aggregate
            parameters:
              event_type: test.fired
              traits: {server: {first: instance_id}}
        publishers: ['file://$folder/fired.jsonl', 'event://']
      - name: expired
        transformers:
          - name: aggregate
            parameters:
              event_type: test.expired
              traits: {server: {first: instance_id}}
        publishers: ['event://', 'file://$folder/expired.jsonl']
    """

EVENTS = """
    - event_type: compute.instance.*
      traits: {instance_id: {fields: payload.instance_id}}
    """


def notifications(record=False):
    """Return the cloud that every process of the test knows."""
    return generator.Generator(
        7, servers=SERVERS, volumes=0, images=0, days=1, updates_per_day=1,
        failure_share=0.2, spread=SPREAD, duplicates=0.05, record=record)


def feed(conf_path):
    """Put all notifications in; this is the process that feeds."""
    conf = config.load([conf_path])
    driver = storage.get_driver(conf)
    feeder = manager.TriggerManager.from_conf(conf, driver)
    batch = []
    for notification in notifications():
        batch.append(notification)
        if len(batch) == 25:
            feeder.add_notifications(batch)
            batch = []
    feeder.add_notifications(batch)
    # Time goes by the events. What has not ended by now, a day later never
    # will.
    feeder.add_event(event_module.Event(
        'the-end', 'test.end', END + datetime.timedelta(days=1)))
    driver.close()


class KillRules:
    """Every instance ends, and ends once, whoever dies at what moment.

    A subclass gives the ``connection``.
    """

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        for name, text in (('triggers.yaml', TRIGGERS),
                           ('pipelines.yaml', PIPELINES),
                           ('events.yaml', EVENTS)):
            with open(f'{self.folder}/{name}', 'w',
                      encoding='utf-8') as stream:
                stream.write(textwrap.dedent(text).replace(
                    '$folder', self.folder))
        self.conf_path = f'{self.folder}/triggerlib.conf'
        with open(self.conf_path, 'w', encoding='utf-8') as stream:
            stream.write(textwrap.dedent(f"""
                [triggerlib]
                connection = {self.connection()}
                trigger_definitions_cfg_file = triggers.yaml
                event_pipeline_cfg_file = pipelines.yaml
                event_definitions_cfg_file = events.yaml
                expiry_clock = event
                allowed_lateness = {SPREAD}
                idle_timeout = 86400
                scheduler_interval = 0.05
                scheduler_batch = 10
                ready_timeout = 1
                lease = 2
                max_attempts = 100
                """))
        self.storage = storage.get_driver(config.load([self.conf_path]))
        self.addCleanup(self.storage.close)
        self.storage.upgrade()

    def start(self):
        log = open(f'{self.folder}/agent.log', 'ab')
        self.addCleanup(log.close)
        agent = subprocess.Popen(
            [sys.executable, '-m', 'triggerlib.cmd.agent', '--config-file',
             self.conf_path, '--scheduler', '--worker'],
            stdout=log, stderr=log, start_new_session=True)

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()
        self.addCleanup(end)
        return agent

    def test_every_instance_ends_once(self):
        seed = int(os.environ.get('TRIGGERLIB_SEED', random.randrange(10**6)))
        self.addDetail('seed', content.text_content(
            f'TRIGGERLIB_SEED={seed}'))
        dice = random.Random(seed)
        pause = threading.Event()
        feeder = multiprocessing.get_context('spawn').Process(
            target=feed, args=(self.conf_path,))
        agents = [self.start(), self.start()]
        feeder.start()
        self.addCleanup(feeder.join)
        self.addCleanup(feeder.kill)
        for _ in range(KILLS):
            pause.wait(dice.uniform(0.5, 3))
            victim = dice.randrange(2)
            os.killpg(agents[victim].pid, signal.SIGKILL)
            agents[victim].wait()
            agents[victim] = self.start()
            self.assertAlive(agents)
        waited = 0
        while feeder.is_alive() or self.open_instances():
            pause.wait(0.25)
            waited += 0.25
            self.assertAlive(agents)
            if waited > PATIENCE:
                self.fail(f'still open: {self.open_instances()}')
        self.assertEqual(0, feeder.exitcode)
        for agent in agents:
            agent.terminate()
            # One that was started last may not have got so far as to
            # handle the signal.
            self.assertIn(agent.wait(30), (0, -signal.SIGTERM))
        self.referee()

    def assertAlive(self, agents):
        for agent in agents:
            if agent.poll() is not None:
                with open(f'{self.folder}/agent.log') as log:
                    self.fail(f'an agent ended: {log.read()[-5000:]}')

    def open_instances(self):
        return self.storage.run(
            lambda tx: tx.count_instances(), write=False)

    def referee(self):
        cloud = notifications(record=True)
        sent = sum(1 for _ in cloud)
        truth = cloud.truth
        expected = {
            'test.fired': {one.instance_id for one in truth.created()},
            'test.expired': {one.instance_id for one in truth.unended()}}
        self.assertGreater(len(expected['test.expired']), 0)
        self.assertGreater(sent, sum(truth.counts.values()))
        events = self.storage.run(lambda tx: list(tx.find_events(
            criteria.EventQuery(tuple(expected), None, None, {}))),
            write=False)
        for event_type, names in expected.items():
            found = collections.Counter(
                event.traits['server'] for event in events
                if event.event_type == event_type)
            self.assertEqual(dict.fromkeys(names, 1), dict(found))
            # A file is written at least once, always under the same ids.
            ids = {event.message_id for event in events
                   if event.event_type == event_type}
            path = f'{self.folder}/{event_type.removeprefix("test.")}.jsonl'
            with open(path, encoding='utf-8') as stream:
                lines = [json.loads(line) for line in stream]
            self.assertEqual(ids, {line['message_id'] for line in lines})
        self.assertEqual(
            sum(truth.counts.values()) + len(events) + 1,
            self.storage.run(lambda tx: tx.count_events(), write=False))


class TestSQLite(KillRules, base.TestCase):
    """Three processes on one file."""

    def connection(self):
        return f'sqlite:///{self.folder}/t.sqlite'


class TestPostgreSQL(KillRules, base.TestCase):
    """Three processes on one server."""

    def connection(self):
        return servers.postgresql_url(self)


class TestMariaDB(KillRules, base.TestCase):
    """Three processes on one server."""

    def connection(self):
        return servers.mysql_url(self)
