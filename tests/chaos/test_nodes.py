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

"""The private servers do to their data what real ones would."""

import os
import socket
import threading
import unittest
from unittest import mock

import fixtures
import kombu
import sqlalchemy as sa

from tests import base
from tests.chaos import nodes
from tests.chaos import processes

PATIENCE = 60
#: Seconds in which a server that runs has answered.
MOMENT = 0.5


class NodeTestCase(base.TestCase):
    """Looks for what a node leaves behind."""

    def assert_gone(self, node):
        """Fail if anything of a node is left."""
        self.assertEqual(set(), processes.inside(node.folder))
        self.assertFalse(os.path.exists(node.folder))
        with socket.socket() as probe:
            self.assertNotEqual(
                0, probe.connect_ex(('127.0.0.1', node.port)))


class Shell(nodes.Node):
    """A server that is a script.

    :param script: what it does
    """

    programs = ('sh', 'setsid')

    def __init__(self, script):
        super().__init__()
        self._script = script

    def _launch(self):
        return self._spawn([self.programs['sh'], '-c', self._script])

    def _ask(self):
        with open(f'{self.folder}/answer', encoding='utf-8') as stream:
            self.answer = stream.read()


class TestNode(NodeTestCase):

    #: A server with a child in another session.
    SCRIPT = 'setsid sleep 1000 & echo yes > answer; wait'

    def test_children_in_other_sessions_end_with_it(self):
        with Shell(self.SCRIPT) as node:
            self.assertEqual('yes\n', node.answer)
            self.assertEqual(2, len(processes.inside(node.folder)))
            node.stop()
            self.assertEqual(set(), processes.inside(node.folder))
            node.start()
            node.kill()
            self.assertEqual(set(), processes.inside(node.folder))
            node.kill()
            node.start()
        self.assert_gone(node)

    def test_what_cannot_be_done(self):
        node = self.useFixture(Shell(self.SCRIPT))
        self.assertRaises(AssertionError, node.start)
        node.stop()
        self.assertRaises(AssertionError, node.stop)

    def test_one_that_is_paused_can_be_stopped_and_killed(self):
        node = self.useFixture(Shell(self.SCRIPT))
        for kill in (False, True):
            node.pause()
            node.restart(kill)
        node.resume()

    def failure(self, node):
        """Return why a node cannot be set up."""
        errors = self.assertRaises(fixtures.MultipleExceptions, node.setUp)
        return str(errors.args[0][1])

    def test_one_that_ends_as_it_starts(self):
        node = Shell('echo too bad >&2; exit 3')
        text = self.failure(node)
        self.assertIn('ended with 3', text)
        self.assertIn('too bad', text)
        self.assert_gone(node)

    def test_one_that_does_not_answer(self):
        self.useFixture(fixtures.MonkeyPatch(
            'tests.chaos.nodes.PATIENCE', MOMENT))
        node = Shell('setsid sleep 1000 & echo still busy; wait')
        text = self.failure(node)
        self.assertIn('does not answer', text)
        self.assertIn('still busy', text)
        self.assert_gone(node)

    def test_one_that_does_not_end(self):
        with Shell('trap "" TERM; ' + self.SCRIPT) as node:
            with mock.patch.object(nodes, 'PATIENCE', MOMENT):
                error = self.assertRaises(AssertionError, node.stop)
            self.assertIn('does not end', str(error))
        self.assert_gone(node)

    def test_without_its_programs(self):
        for kind in (nodes.PostgreSQLNode, nodes.MariaDBNode,
                     nodes.RabbitMQNode):
            with (mock.patch('shutil.which', return_value=None),
                  mock.patch.dict(os.environ)):
                os.environ.pop('TRIGGERLIB_REQUIRE_SERVERS', None)
                self.assertRaises(unittest.SkipTest, kind)
                os.environ['TRIGGERLIB_REQUIRE_SERVERS'] = '1'
                error = self.assertRaises(AssertionError, kind)
            self.assertIn('not installed', str(error))


class ServerRules:
    """Mix it with a test case; :attr:`kind` is the class of the node."""

    kind = None

    def setUp(self):
        super().setUp()
        self.node = self.kind()
        self.node.setUp()
        self.addCleanup(self.assert_gone, self.node)
        self.addCleanup(self.node.cleanUp)
        self.prepare()

    def prepare(self):
        """Make a place for texts."""

    def put(self, text):
        """Store a text so that it is there for good."""
        raise NotImplementedError

    def texts(self):
        """Return the texts that are stored."""
        raise NotImplementedError

    def test_what_was_committed_survives(self):
        self.put('first')
        self.node.restart(kill=True)
        self.put('second')
        self.node.restart()
        self.put('third')
        self.assertEqual(['first', 'second', 'third'], self.texts())

    def test_one_that_is_paused_goes_on_where_it_was(self):
        self.put('first')
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(self.texts()), daemon=True)
        self.node.pause()
        thread.start()
        thread.join(MOMENT)
        self.assertTrue(thread.is_alive())
        self.node.resume()
        thread.join(PATIENCE)
        self.assertEqual([['first']], answers)
        # Paused, it is cleaned up.
        self.node.pause()


class DatabaseRules(ServerRules):
    """For a node that holds a database."""

    def prepare(self):
        self.engine = sa.create_engine(
            self.node.url, poolclass=sa.pool.NullPool)
        with self.engine.begin() as connection:
            connection.exec_driver_sql(
                'CREATE TABLE note (id INT PRIMARY KEY, text VARCHAR(80))')

    def put(self, text):
        with self.engine.begin() as connection:
            connection.execute(sa.text(
                'INSERT INTO note SELECT count(*), :text FROM note'),
                {'text': text})

    def texts(self):
        with self.engine.begin() as connection:
            return connection.execute(sa.text(
                'SELECT text FROM note ORDER BY id')).scalars().all()


class TestPostgreSQLNode(DatabaseRules, NodeTestCase):

    kind = nodes.PostgreSQLNode


class TestMariaDBNode(DatabaseRules, NodeTestCase):

    kind = nodes.MariaDBNode


class TestRabbitMQNode(ServerRules, NodeTestCase):

    kind = nodes.RabbitMQNode

    def connect(self):
        return kombu.Connection(
            f'amqp://guest:guest@127.0.0.1:{self.node.port}//',
            transport_options={'confirm_publish': True})

    def put(self, text):
        # Queue and message are durable, if not told otherwise.
        with (self.connect() as connection,
              connection.SimpleQueue('notes') as queue):
            queue.put(text)

    def texts(self):
        with (self.connect() as connection,
              connection.SimpleQueue('notes') as queue):
            # They stay in the queue, as they are not acknowledged.
            return [queue.get(timeout=PATIENCE).payload
                    for _ in range(queue.qsize())]
