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

"""``notifier://`` over RabbitMQ, that comes and goes."""

import contextlib
import json
import socket
import threading
import uuid

import fixtures
import kombu
import sqlalchemy as sa

from tests import base
from tests import engine
from tests import servers
from triggerlib import transport as transport_module

TRIGGERS = """
    - name: pair
      distinguished_by: [server]
      expiration: first + 1h
      match_criteria: [{event_type: a.*}]
      fire_criteria: [{event_type: a.end}]
      fire_pipeline: out
    """


class Gate(fixtures.Fixture):
    """A port that leads to a server while it is open.

    :param address: the server's host and port
    """

    def __init__(self, address):
        self._address = address
        self._socket = None
        self._pairs = []

    def _setUp(self):
        self._bind(0)
        self.port = self._socket.getsockname()[1]
        self.addCleanup(self.shut)

    def _bind(self, port):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(('127.0.0.1', port))

    def open(self):
        """Let connections through from now on."""
        if self._socket is None:
            self._bind(self.port)
        self._socket.listen()
        _start(self._accept, self._socket)

    def shut(self):
        """Break off all connections, and refuse new ones."""
        if self._socket is not None:
            _shut(self._socket)
            self._socket.close()
            self._socket = None
        while self._pairs:
            for one in self._pairs.pop():
                _shut(one)

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._address)
                self._pairs.append((near, far))
                _start(self._carry, near, far)
                _start(self._carry, far, near)

    def _carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        _shut(source)
        _shut(target)


def _start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def _shut(one):
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


class TestNotifier(base.TestCase):
    """A broker that is away."""

    def setUp(self):
        super().setUp()
        self.broker = sa.make_url(servers.rabbitmq_url(self))
        self.name = f'test-{uuid.uuid4().hex}'
        self.gate = self.useFixture(
            Gate((self.broker.host, self.broker.port or 5672)))
        url = self.broker.set(
            drivername='notifier', host='127.0.0.1', port=self.gate.port,
            query={'topic': self.name, 'retry': '0'})
        self.on = self.useFixture(engine.Engine(TRIGGERS, f"""
    sinks:
      - name: out
        publishers: ["{url.render_as_string(hide_password=False)}"]
    """, retry_delay=10))
        # The first call registers the option.
        transport_module.get_notification_transport(self.on.conf)
        self.on.conf.set_override('control_exchange', self.name)
        self.addCleanup(self.on.catalog.current.pipelines.close)

    def add(self, name):
        self.on.add(*[
            engine.event(f'{name}{number}', event_type, number, server=name)
            for number, event_type in enumerate(('a.start', 'a.end'))])
        self.on.settle()

    def attempt(self):
        self.on.clock.advance(20)
        self.on.settle()

    def arrived(self):
        """Take what has arrived, and return the message_ids."""
        found = []
        with kombu.Connection(self.broker.set(
                drivername='amqp').render_as_string(
                    hide_password=False)) as connection:
            channel = connection.default_channel
            queue = f'{self.name}.info'
            while message := channel.basic_get(queue, no_ack=True):
                body = json.loads(message.body)
                found.append(json.loads(body['oslo.message'])['message_id'])
            channel.queue_delete(queue)
            channel.exchange_delete(self.name)
        return found

    def test_it_comes_back_by_itself(self):
        self.add('a')
        self.assertEqual(1, self.on.instance().attempts)
        self.assertIn('did not take a notification',
                      self.on.instance().error)
        self.gate.open()
        self.attempt()
        self.assertEqual([], self.on.instances())
        # It goes, and is there again under a publisher that knew it before.
        self.gate.shut()
        self.add('b')
        self.assertEqual(1, self.on.instance().attempts)
        self.gate.open()
        self.attempt()
        self.assertEqual([], self.on.instances())
        self.assertEqual(['a0', 'a1', 'b0', 'b1'], self.arrived())
