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

"""A broker, a database and agents, for a test that watches over them."""

import textwrap
import time

import fixtures
import sqlalchemy as sa

from triggerlib.cmd import config
from triggerlib import storage
from triggerlib.storage.sql import models

from tests.chaos import agents as agents_module
from tests.chaos import nodes
from tests.chaos import source as source_module

#: Seconds in which everything has come to its end, or some of it has.
PATIENCE = 240
EXCHANGE = 'nova'

CONF = """
    [DEFAULT]
    transport_url = {broker}
    control_exchange = {exchange}
    [oslo_messaging_rabbit]
    amqp_durable_queues = true
    rabbit_interval_max = 2
    kombu_reconnect_delay = 0.2
    [triggerlib]
    connection = {database}
    event_definitions_cfg_file = events.yaml
    trigger_definitions_cfg_file = triggers.yaml
    event_pipeline_cfg_file = pipelines.yaml
    """


def priority_of(body):
    """Return the priority that a service gives a notification."""
    return 'error' if body['event_type'].endswith('.error') else 'info'


class Cluster:
    """Mix it with a test case."""

    #: The class of the database's node.
    kind = nodes.PostgreSQLNode

    def build(self, events, triggers, pipelines, patience=PATIENCE,
              **options):
        """Start broker and database, and write the agents' files.

        :param events: text of the event definitions
        :param triggers: text of the trigger definitions
        :param pipelines: text of the pipelines; ``$folder`` is a folder of
            the test's
        :param patience: seconds in which everything has come to its end, or
            some of it has
        :param options: options of ``[triggerlib]``
        """
        self.patience = patience
        self.agents = []
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.database = self.useFixture(self.kind())
        self.broker = self.useFixture(nodes.RabbitMQNode())
        self.write('events.yaml', events)
        self.write('triggers.yaml', triggers)
        self.write('pipelines.yaml', pipelines)
        self.write('triggerlib.conf', textwrap.dedent(CONF).format(
            broker=self.broker.url, database=self.database.url,
            exchange=EXCHANGE) + ''.join(
                f'{name} = {value}\n' for name, value in options.items()))
        self.conf_path = f'{self.folder}/triggerlib.conf'
        self.conf = config.load([self.conf_path])
        self.storage = storage.get_driver(self.conf)
        self.addCleanup(self.storage.close)
        self.storage.upgrade()
        self.source = source_module.Source(
            self.broker.url, EXCHANGE, 'notifications', priority_of)
        self.addCleanup(self.source.close)

    def write(self, name, text):
        """Write a file into the test's folder."""
        with open(f'{self.folder}/{name}', 'w', encoding='utf-8') as stream:
            stream.write(textwrap.dedent(text).replace(
                '$folder', self.folder))

    def start_agents(self, count):
        """Start agents; they have ended when the test has."""
        for _ in range(count):
            number = len(self.agents)
            self.agents.append(self.useFixture(agents_module.Agent(
                self.conf_path, f'{self.folder}/agent{number}.log',
                self.useFixture(fixtures.TempDir()).path)))

    def stop_agents(self):
        """End the agents, which must go well."""
        for agent in self.agents:
            self.assertEqual(0, agent.stop(), self.log())

    def ask(self, work):
        """Return what a transaction says that only reads."""
        return self.storage.run(work, write=False)

    def count_stored(self):
        """Return how many of the notifications sent are stored."""
        with self.storage.engine.connect() as connection:
            return connection.execute(
                sa.select(sa.func.count()).where(sa.not_(
                    models.event.c.event_type.startswith('test.')))
            ).scalar_one()

    def open_instances(self):
        """Return how many instances there are, by trigger and state."""
        return {
            f'{name} {state}': count for (name, state), count
            in self.ask(lambda tx: tx.count_instances()).items()}

    def progress(self):
        """Return how far it is, for people and to be compared."""
        return (f'{self.source.left} to be sent, {self.count_stored()} '
                f'stored, {self.open_instances()} open')

    def wait_until(self, condition, otherwise):
        """Wait for something, and start agents that have ended meanwhile.

        A busy machine may need longer, as long as there is progress.

        :raises AssertionError: it does not come; what the agents wrote says
            why
        """
        progress = self.progress()
        deadline = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > deadline:
                before, progress = progress, self.progress()
                if before == progress:
                    self.fail(f'{otherwise}: {progress}\n{self.log()}')
                deadline = time.monotonic() + self.patience
            for agent in self.agents:
                agent.start()
            time.sleep(0.25)

    def log(self):
        """Return the end of what the agents wrote."""
        texts = []
        for number in range(len(self.agents)):
            path = f'{self.folder}/agent{number}.log'
            with open(path, encoding='utf-8', errors='replace') as stream:
                texts.append(f'--- agent {number}\n{stream.read()[-4000:]}')
        return '\n'.join(texts)
