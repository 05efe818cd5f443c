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

"""Messaging over a real RabbitMQ."""

import json
import threading

import kombu
import sqlalchemy as sa

from triggerlib import messaging as messaging_module
from triggerlib.messaging import rpc
from triggerlib import opts

from tests import base
from tests import messaging
from tests import servers


class Slow:
    """A manager that does not come to its end before it is told."""

    def __init__(self):
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def add_notifications(self, bodies):
        self.begun.set()
        self.go_on.wait(messaging.PATIENCE)


class TestRabbitMQ(messaging.MessagingRules, base.TestCase):
    """On oslo.messaging's rabbit transport."""

    def setUp(self):
        self.transport_url = servers.rabbitmq_url(self)
        super().setUp()

    def broker_url(self):
        url = sa.make_url(self.transport_url).set(drivername='amqp')
        return url.render_as_string(hide_password=False)

    def waiting(self, queue):
        """Return how many messages of a queue are with no consumer."""
        with kombu.Connection(self.broker_url()) as broker:
            return broker.default_channel.queue_declare(
                queue, passive=True).message_count

    def wait_for(self, count, queue):
        for _ in range(messaging.PATIENCE * 10):
            if self.waiting(queue) == count:
                return
            threading.Event().wait(0.1)
        self.fail(f'{self.waiting(queue)} messages wait, not {count}')

    def test_a_slow_storage_slows_the_intake(self):
        self.notify(300)
        manager = Slow()
        self.serve(messaging_module.get_listener(self.conf, manager))
        self.addCleanup(manager.go_on.set)
        self.assertTrue(manager.begun.wait(messaging.PATIENCE))
        # A hundred of each priority, batches of ten.
        self.wait_for(80, f'{self.topic}.info')
        self.wait_for(80, f'{self.topic}.error')

    def test_the_options_may_ask_for_more(self):
        self.notify(300)
        self.conf.set_override('rabbit_qos_prefetch_count', 50,
                               'oslo_messaging_rabbit')
        manager = Slow()
        self.serve(messaging_module.get_listener(self.conf, manager))
        self.addCleanup(manager.go_on.set)
        self.assertTrue(manager.begun.wait(messaging.PATIENCE))
        self.wait_for(50, f'{self.topic}.info')

    def test_what_was_sent_again_takes_no_place_of_the_prefetch(self):
        self.conf.set_override('batch_size', 1, opts.GROUP)
        manager = messaging.Manager(4)
        self.serve(messaging_module.get_listener(self.conf, manager))
        with kombu.Connection(self.broker_url()) as broker:
            producer = broker.Producer()
            # A sender that had no answer, and did not know of the first.
            for number in (0, 0, 0, 0, 1, 2, 3):
                message = {
                    'message_id': f'm{number}', 'event_type': 'a',
                    'publisher_id': 'p', 'priority': 'INFO', 'payload': {},
                    'timestamp': '2026-03-01 12:00:00',
                    '_unique_id': f'u{number}'}
                producer.publish(
                    {'oslo.version': '2.0',
                     'oslo.message': json.dumps(message)},
                    exchange=self.conf.control_exchange,
                    routing_key=f'{self.topic}.info', serializer='json')
        self.assertTrue(manager.done.wait(messaging.PATIENCE))
        server = self.servers.pop()
        server.stop()
        server.wait()
        self.wait_for(0, f'{self.topic}.info')

    def test_casts_that_nobody_takes_do_not_stay(self):
        worker = messaging.Worker(1)
        self.serve(messaging_module.get_rpc_server(self.conf, worker, 'one'))
        # The server declared the queue; nobody consumes from it now.
        server = self.servers.pop()
        server.stop()
        server.wait()
        self.conf.set_override('ready_timeout', 0.5, opts.GROUP)
        client = messaging_module.Client.from_conf(self.conf)
        for number in range(5):
            client.fire_trigger(number)
        self.wait_for(0, rpc.TOPIC)
