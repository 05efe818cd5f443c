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

"""What holds for messaging on every transport."""

import threading
import uuid

import oslo_messaging

from triggerlib.cmd import config
from triggerlib import exceptions
from triggerlib import messaging
from triggerlib.messaging import rpc
from triggerlib import opts
from triggerlib import storage
from triggerlib import transport as transport_module
from triggerlib.trigger import manager as manager_module

#: Seconds after which a message is taken for lost.
PATIENCE = 30


class Manager:
    """Remembers notifications, and refuses as many batches as it is told."""

    def __init__(self, wanted, refuse=0, error=None):
        self.storage = None
        self._error = error or exceptions.StorageBusy('deadlock')
        self.seen = []
        self.batches = 0
        self.refused = 0
        self.done = threading.Event()
        self._wanted = wanted
        self._refuse = refuse

    def add_notifications(self, bodies):
        self.batches += 1
        if self.refused < self._refuse:
            self.refused += 1
            raise self._error
        self.seen.extend(bodies)
        if len({self.id_of(body) for body in self.seen}) == self._wanted:
            self.done.set()
        return manager_module.Report()

    @staticmethod
    def id_of(body):
        return body['metadata']['message_id']


class Worker:
    """Remembers what was cast."""

    def __init__(self, wanted):
        self.seen = []
        self.done = threading.Event()
        self._wanted = wanted

    def fire_trigger(self, trigger_id):
        self._see('fire', trigger_id)

    def expire_trigger(self, trigger_id):
        self._see('expire', trigger_id)

    def _see(self, kind, trigger_id):
        self.seen.append((kind, trigger_id))
        if len(self.seen) == self._wanted:
            self.done.set()


class MessagingRules:
    """The rules; a subclass gives ``transport_url``, None for the default."""

    transport_url = None

    def setUp(self):
        super().setUp()
        self.servers = []
        name = uuid.uuid4().hex
        self.topic = f'test-{name}'
        self.conf = config.load([], overrides={
            'notification_topics': [self.topic], 'batch_size': 10,
            'batch_timeout': 0.05})
        transport_module.get_notification_transport(self.conf)
        self.conf.set_override('control_exchange', f'test-{name}')
        if self.transport_url is not None:
            self.conf.set_override('transport_url', self.transport_url)

    def serve(self, server):
        def end():
            if server in self.servers:
                server.stop()
                server.wait()
        server.start()
        self.servers.append(server)
        self.addCleanup(end)

    def notify(self, count):
        transport = transport_module.get_notification_transport(self.conf)
        notifier = oslo_messaging.Notifier(
            transport, 'compute.host-1', driver='messagingv2',
            topics=[self.topic])
        for number in range(count):
            (notifier.info, notifier.error, notifier.audit)[number % 3](
                {'project_id': 'p'}, 'compute.instance.update',
                {'number': number})

    def manager_by_events(self, wanted):
        self.conf.set_override('expiry_clock', 'event', opts.GROUP)
        self.conf.set_override('connection', 'memory://', opts.GROUP)
        manager = Manager(wanted)
        manager.storage = storage.get_driver(self.conf)
        return manager

    def test_casts_reach_a_worker(self):
        worker = Worker(20)
        self.serve(messaging.get_rpc_server(self.conf, worker, 'here'))
        client = messaging.Client.from_conf(self.conf)
        for number in range(10):
            client.fire_trigger(number)
            client.expire_trigger(number)
        self.assertTrue(worker.done.wait(PATIENCE))
        self.assertEqual(
            {(kind, number) for kind in ('fire', 'expire')
             for number in range(10)}, set(worker.seen))

    def test_nothing_else_is_exposed(self):
        worker = Worker(1)
        self.serve(messaging.get_rpc_server(self.conf, worker, 'here'))
        transport = transport_module.get_rpc_transport(self.conf)
        client = oslo_messaging.get_rpc_client(
            transport, oslo_messaging.Target(
                topic=rpc.TOPIC, version=rpc.VERSION), timeout=PATIENCE)
        for method in ('_see', '__init__', 'target'):
            self.assertRaises(
                (oslo_messaging.RemoteError, oslo_messaging.rpc.dispatcher
                 .NoSuchMethod), client.call, {}, method)
        self.assertEqual([], worker.seen)

    def test_notifications_of_every_priority_arrive_in_batches(self):
        manager = Manager(30)
        self.serve(messaging.get_listener(self.conf, manager))
        self.notify(30)
        self.assertTrue(manager.done.wait(PATIENCE))
        self.assertEqual(
            set(range(30)),
            {body['payload']['number'] for body in manager.seen})
        body = manager.seen[0]
        self.assertEqual('compute.instance.update', body['event_type'])
        self.assertEqual('compute.host-1', body['publisher_id'])

    def test_queues_that_are_kept_together(self):
        manager = self.manager_by_events(30)
        self.serve(messaging.get_listener(self.conf, manager))
        self.notify(30)
        self.assertTrue(manager.done.wait(PATIENCE))
        self.assertEqual(
            set(range(30)),
            {body['payload']['number'] for body in manager.seen})

    def test_what_waits_for_other_queues_does_not_hold_up_the_end(self):
        manager = self.manager_by_events(3)
        self.notify(3)
        server = messaging.get_listener(self.conf, manager)
        server.start()
        server.stop()
        server.wait()
        self.conf.set_override('expiry_clock', 'wall', opts.GROUP)
        self.serve(messaging.get_listener(self.conf, manager))
        self.assertTrue(manager.done.wait(PATIENCE))

    def test_a_batch_of_several_priorities_is_one(self):
        manager = Manager(9)
        self.notify(9)
        self.serve(messaging.get_listener(self.conf, manager))
        self.assertTrue(manager.done.wait(PATIENCE))
        self.assertEqual({'INFO', 'ERROR', 'AUDIT'},
                         {body['priority'] for body in manager.seen})
        # All were there before the listener was.
        self.assertLess(manager.batches, 3)

    def test_an_unknown_priority_is_no_reason_to_lose_it(self):
        manager = Manager(1)
        self.serve(messaging.get_listener(self.conf, manager))
        transport = transport_module.get_notification_transport(self.conf)
        transport._send_notification(
            oslo_messaging.Target(topic=f'{self.topic}.info'), {},
            {'message_id': 'odd', 'priority': 'URGENT', 'event_type': 't',
             'publisher_id': 'p', 'payload': {},
             'timestamp': '2026-01-01 00:00:00'}, 2.0)
        self.assertTrue(manager.done.wait(PATIENCE))
        self.assertEqual('odd', manager.id_of(manager.seen[0]))

    def test_a_failure_of_any_kind_requeues(self):
        manager = Manager(1, refuse=1, error=ZeroDivisionError('a mistake'))
        self.serve(messaging.get_listener(self.conf, manager))
        self.notify(1)
        self.assertTrue(manager.done.wait(PATIENCE))
        self.assertEqual(1, manager.refused)
        self.assertIn('a mistake', self.logger.output)

    def test_a_server_that_stops_begins_nothing_more(self):
        worker = Worker(1)
        endpoint = rpc.Endpoint(worker)
        endpoint.fire_trigger({}, 1)
        endpoint.close()
        endpoint.fire_trigger({}, 2)
        endpoint.expire_trigger({}, 3)
        self.assertEqual([('fire', 1)], worker.seen)

    def test_a_batch_that_cannot_be_stored_comes_again(self):
        manager = Manager(10, refuse=3)
        self.serve(messaging.get_listener(self.conf, manager))
        self.notify(10)
        self.assertTrue(manager.done.wait(PATIENCE))
        self.assertEqual(3, manager.refused)
