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

"""The agent: everything at once in one process, and as a service."""

import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import uuid

import fixtures
import oslo_messaging
import psutil
import sqlalchemy as sa

from triggerlib.cmd import config
from triggerlib.cmd import parts as parts_module
from triggerlib.cmd import processes
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import storage
from triggerlib import transport

from tests import base
from tests import servers

#: Seconds after which something that should have happened has not.
PATIENCE = 60

EVENTS = """
    - event_type: compute.instance.*
      traits: {instance_id: {fields: payload.instance_id}}
    """

TRIGGERS = """
    - name: create
      distinguished_by: [instance_id]
      expiration: first + 100y
      match_criteria: [{event_type: compute.instance.create.*}]
      fire_criteria:
        - event_type: compute.instance.create.start
        - event_type: compute.instance.create.end
      fire_pipeline: fired
    """

PIPELINES = """
    sinks:
      - name: fired
        transformers:
          - name: aggregate
            parameters:
              event_type: test.fired
              traits: {server: {key: instance_id}, events: count}
        publishers: ['file://$folder/fired.jsonl']
    """


class AgentCase(base.TestCase):
    """A folder with all that an agent needs."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.pause = threading.Event()
        self.topic = f'test-{uuid.uuid4().hex}'
        self.path = f'{self.folder}/triggerlib.conf'
        for name, text in (('events.yaml', EVENTS),
                           ('triggers.yaml', TRIGGERS),
                           ('pipelines.yaml', PIPELINES)):
            self.write(name, text)

    def write(self, name, text):
        with open(f'{self.folder}/{name}', 'w', encoding='utf-8') as stream:
            stream.write(textwrap.dedent(text).replace(
                '$folder', self.folder))

    def configure(self, transport_url='', upgrade=True, more=''):
        line = f'transport_url = {transport_url}' if transport_url else ''
        self.write('triggerlib.conf', f"""
            [DEFAULT]
            control_exchange = {self.topic}
            {line}
            [triggerlib]
            connection = sqlite:///{self.folder}/t.sqlite
            event_definitions_cfg_file = events.yaml
            trigger_definitions_cfg_file = triggers.yaml
            event_pipeline_cfg_file = pipelines.yaml
            notification_topics = {self.topic}
            batch_timeout = 0.05
            scheduler_interval = 0.05
            {more.strip()}
            """)
        self.conf = config.load([self.path])
        if upgrade:
            driver = storage.get_driver(self.conf)
            driver.upgrade()
            driver.close()

    def notify(self, *servers_):
        notifier = oslo_messaging.Notifier(
            transport.get_notification_transport(self.conf), 'compute.h',
            driver='messagingv2', topics=[self.topic])
        for server in servers_:
            for kind in ('end', 'start'):
                notifier.info({}, f'compute.instance.create.{kind}',
                              {'instance_id': server})

    def wait_for(self, *servers_):
        path = f'{self.folder}/fired.jsonl'
        for _ in range(PATIENCE * 10):
            if os.path.exists(path):
                with open(path, encoding='utf-8') as stream:
                    found = [json.loads(line)['traits'] for line in stream]
                if len(found) >= len(servers_):
                    self.assertEqual(
                        [{'server': one, 'events': 2}
                         for one in sorted(servers_)],
                        sorted(found, key=lambda one: one['server']))
                    return
            self.pause.wait(0.1)
        self.fail(f'{servers_} have not fired')


class TestInProcess(AgentCase):
    """All parts in this process, over the transport in it."""

    def setUp(self):
        super().setUp()
        self.configure()

    def start(self):
        conf = config.load([self.path])
        agent = parts_module.Parts(conf)
        thread = threading.Thread(target=agent.run)
        thread.start()

        def stop():
            agent.stop()
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.addCleanup(stop)
        return agent

    def test_notifications_go_through_everything(self):
        self.start()
        self.notify('a', 'b', 'c')
        self.wait_for('a', 'b', 'c')

    def test_files_are_loaded_again_all_or_nothing(self):
        agent = self.start()
        self.notify('a')
        self.wait_for('a')
        before = agent.files.catalog.current
        self.write('triggers.yaml', '- name: broken\n')
        agent.reload()
        for _ in range(PATIENCE * 10):
            if 'stays in force' in self.logger.output:
                break
            self.pause.wait(0.1)
        self.assertIn('stays in force', self.logger.output)
        self.assertIn('triggers.yaml', self.logger.output)
        self.assertIs(before, agent.files.catalog.current)
        self.notify('b')
        self.wait_for('a', 'b')
        self.write('triggers.yaml', TRIGGERS.replace('name: create',
                                                     'name: other'))
        agent.reload()
        for _ in range(PATIENCE * 10):
            if agent.files.catalog.current is not before:
                break
            self.pause.wait(0.1)
        self.assertIsNotNone(
            agent.files.catalog.current.definitions.get('other'))

    def test_a_file_that_is_gone_does_not_take_its_triggers_along(self):
        agent = self.start()
        before = agent.files.catalog.current
        os.remove(f'{self.folder}/triggers.yaml')
        agent.reload()
        for _ in range(PATIENCE * 10):
            if 'stays in force' in self.logger.output:
                break
            self.pause.wait(0.1)
        self.assertIn('was not found', self.logger.output)
        self.assertIs(before, agent.files.catalog.current)

    def test_mistakes_end_the_start(self):
        self.write('triggers.yaml', '- name: broken\n')
        self.assertRaises(exceptions.DefinitionError, parts_module.Parts,
                          self.conf)


class TestPlan(AgentCase):
    """Which processes an agent has."""

    def plan(self, parts=(), url='', **options):
        self.configure(url, upgrade=False)
        for name, value in options.items():
            self.conf.set_override(name, value, opts.GROUP)
        return processes.plan(self.conf, parts)

    def test_one_for_each_part(self):
        self.assertEqual(
            [(('listener',), 1), (('scheduler',), 1), (('worker',), 1)],
            self.plan(url='rabbit://'))

    def test_as_many_as_the_options_say(self):
        self.assertEqual(
            [(('listener',), 3), (('worker',), 2)],
            self.plan(url='rabbit://', listener_processes=3,
                      scheduler_processes=0, worker_processes=2))

    def test_a_part_that_is_named_runs(self):
        self.assertEqual(
            [(('scheduler',), 1)],
            self.plan(('scheduler',), 'rabbit://', scheduler_processes=0,
                      worker_processes=7))

    def test_one_for_all_where_casts_stay_in_the_process(self):
        self.assertEqual([(('listener', 'scheduler', 'worker'), 1)],
                         self.plan())
        self.assertEqual([(('scheduler', 'worker'), 1)],
                         self.plan(('worker', 'scheduler')))

    def test_one_for_all_where_the_storage_is_in_the_process(self):
        self.assertEqual(
            [(('listener', 'scheduler', 'worker'), 1)],
            self.plan(url='rabbit://', connection='memory://'))

    def test_a_transport_that_cannot_be_had(self):
        for url, text in (('carrier-pigeon://here', 'carrier-pigeon'),
                          ('rabbit//here', 'scheme'),
                          ('rabbit://user:sesame@here:port/', '%40')):
            error = self.assertRaises(
                exceptions.PluginError, self.plan, url=url)
            self.assertIn('transport_url', str(error))
            self.assertIn(text, str(error))
            self.assertNotIn('same', str(error))

    def test_what_cannot_be(self):
        for options, text in (
                ({'notification_topics': ['']}, 'notification_topics'),
                ({'worker_processes': 2}, 'transport_url'),
                ({'listener_processes': 0, 'scheduler_processes': 0,
                  'worker_processes': 0}, 'nothing to run')):
            error = self.assertRaises(ValueError, self.plan, **options)
            self.assertIn(text, str(error))


class TestService(AgentCase):
    """A process of its own, over RabbitMQ."""

    def start(self, *parts):
        log = open(f'{self.folder}/agent.log', 'ab')
        self.addCleanup(log.close)
        agent = subprocess.Popen(
            [sys.executable, '-m', 'triggerlib.cmd.agent', '--config-file',
             self.path, *parts], stdout=log, stderr=log,
            start_new_session=True)

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()
        self.addCleanup(end)
        return agent

    def log(self):
        with open(f'{self.folder}/agent.log', encoding='utf-8') as stream:
            return stream.read()

    def test_three_agents_with_one_part_each(self):
        self.configure(servers.rabbitmq_url(self))
        agents = [self.start(f'--{part}') for part in parts_module.ALL]
        for _ in range(PATIENCE * 10):
            if self.log().count('The agent is working') == 3:
                break
            self.pause.wait(0.1)
        self.notify('a', 'b', 'c')
        self.wait_for('a', 'b', 'c')
        for agent in agents:
            agent.send_signal(signal.SIGTERM)
        self.assertEqual([0, 0, 0],
                         [agent.wait(PATIENCE) for agent in agents])
        self.assertNotIn('Traceback', self.log())

    def test_it_ends_while_the_broker_is_away(self):
        self.configure('rabbit://u:p@127.0.0.1:1/')
        agent = self.start()
        for _ in range(PATIENCE * 10):
            if 'The agent is working' in self.log():
                break
            self.pause.wait(0.1)
        self.pause.wait(2)
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(0, agent.wait(20))

    def wait_for_log(self, text, count=1):
        for _ in range(PATIENCE * 10):
            if self.log().count(text) >= count:
                return
            self.pause.wait(0.1)
        self.fail(f'{text!r} is not {count} times in {self.log()}')

    def children(self, agent):
        return psutil.Process(agent.pid).children()

    def test_a_message_bus_that_refuses_is_told_in_one_line(self):
        url = sa.make_url(servers.rabbitmq_url(self)).set(password='wrong')
        self.configure(url.render_as_string(hide_password=False))
        agent = self.start('--worker')
        self.wait_for_log('The message bus does not let this process in', 2)
        agent.terminate()
        self.assertEqual(0, agent.wait(PATIENCE))
        self.assertNotIn('Traceback', self.log())
        self.assertNotIn('wrong', self.log())

    def test_a_database_that_is_not_there_ends_the_start(self):
        url = sa.make_url(servers.postgresql_url(self))
        for one in (url.set(database='nosuchdatabase'),
                    sa.make_url(servers.mysql_url(self)).set(
                        database='nosuchdatabase')):
            self.configure(upgrade=False, more=f'''
                connection = {one.render_as_string(hide_password=False)}
                ''')
            agent = self.start()
            self.assertEqual(1, agent.wait(PATIENCE))
            line = self.log().splitlines()[-1]
            self.assertIn('has to be created first', line)
            self.assertIn('nosuchdatabase', line)

    def test_several_processes_a_part(self):
        self.configure(servers.rabbitmq_url(self), more='''
            listener_processes = 2
            worker_processes = 2
            ''')
        agent = self.start()
        self.wait_for_log('The agent is working', 5)
        self.assertEqual(5, len(self.children(agent)))
        self.notify('a', 'b', 'c')
        self.wait_for('a', 'b', 'c')
        agent.terminate()
        self.assertEqual(0, agent.wait(PATIENCE))
        self.assertEqual(5, self.log().count('finishes what it has begun'))
        self.assertNotIn('Traceback', self.log())

    def test_a_process_that_dies_is_started_again(self):
        self.configure(servers.rabbitmq_url(self))
        agent = self.start()
        self.wait_for_log('The agent is working', 3)
        # Its files are broken meanwhile; it has what was loaded.
        self.write('triggers.yaml', '- name: broken\n')
        for child in self.children(agent):
            child.kill()
        self.wait_for_log('The agent is working', 6)
        self.notify('a')
        self.wait_for('a')

    def test_processes_end_when_their_parent_dies(self):
        self.configure(servers.rabbitmq_url(self))
        agent = self.start()
        self.wait_for_log('The agent is working', 3)
        children = self.children(agent)
        agent.kill()
        agent.wait()
        _, alive = psutil.wait_procs(children, PATIENCE)
        self.assertEqual([], alive)
        self.assertEqual(3, self.log().count('finishes what it has begun'))

    def test_files_are_loaded_again_by_all_processes(self):
        self.configure(servers.rabbitmq_url(self))
        agent = self.start()
        self.wait_for_log('The agent is working', 3)
        self.write('triggers.yaml', '- name: broken\n')
        agent.send_signal(signal.SIGHUP)
        self.wait_for_log('stays in force', 4)
        self.write('triggers.yaml', TRIGGERS)
        agent.send_signal(signal.SIGHUP)
        self.wait_for_log('were loaded again', 4)
        self.notify('a')
        self.wait_for('a')

    def test_it_waits_for_a_storage_that_is_away(self):
        self.configure()
        url = 'postgresql://root@127.0.0.1:1/none'
        with open(self.path, encoding='utf-8') as stream:
            text = stream.read()
        self.write('triggerlib.conf', text.replace(
            f'sqlite:///{self.folder}/t.sqlite', url))
        agent = self.start()
        self.wait_for_log('The agent waits for the storage')
        self.assertIsNone(agent.poll())

    def test_a_report_is_written_on_request(self):
        self.configure(more='''
            [oslo_reports]
            log_dir = $folder
            ''')
        with open(self.path, 'a', encoding='utf-8') as stream:
            stream.write('[oslo_messaging_notifications]\n'
                         'transport_url = fake://user:sesame@here/\n')
        agent = self.start()
        self.wait_for_log('The agent is working')
        child, = self.children(agent)
        child.send_signal(signal.SIGUSR2)
        for _ in range(PATIENCE * 10):
            found = glob.glob(f'{self.folder}/triggerlib-agent_gurumed*')
            text = ''
            if found:
                with open(found[0], encoding='utf-8') as stream:
                    text = stream.read()
            if 'trigger definitions' in text and 'expiry_clock' in text:
                break
            self.pause.wait(0.1)
        self.assertIn('parts = listener, scheduler, worker', text)
        self.assertIn('create = ', text)
        self.assertIn('expiry_clock = wall', text)
        self.assertIn('transport_url = ***', text)
        self.assertNotIn('sesame', text)

    def test_no_schema(self):
        self.configure(upgrade=False)
        self.assertEqual(1, self.start().wait(PATIENCE))
        self.assertIn('triggerlib db upgrade', self.log())
        self.assertNotIn('Traceback', self.log())

    def test_mistakes_in_files(self):
        self.configure()
        self.write('triggers.yaml', '- name: broken\n')
        self.assertEqual(1, self.start().wait(PATIENCE))
        self.assertIn('triggers.yaml', self.log())
        self.assertIn('nothing was loaded', self.log())
        self.assertNotIn('Traceback', self.log())
