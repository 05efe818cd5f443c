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

"""``notifier://``, over oslo.messaging's transport in the process."""

import gc
import threading
import uuid

from oslo_config import cfg
import oslo_messaging

from tests import base
from tests.unit.pipeline import stage
from triggerlib.cmd import config
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.publisher import notifier
from triggerlib import transport as transport_module

#: Seconds after which a notification is taken for lost.
PATIENCE = 30


class Endpoint:
    """Remembers what arrives, by priority."""

    def __init__(self, wanted):
        self.seen = []
        self.done = threading.Event()
        self._wanted = wanted

    def _take(self, priority, publisher_id, event_type, payload, metadata):
        self.seen.append(
            (priority, publisher_id, event_type, payload, metadata))
        if len(self.seen) == self._wanted:
            self.done.set()

    def info(self, ctxt, *notification):
        self._take('info', *notification)

    def sample(self, ctxt, *notification):
        self._take('sample', *notification)


class TestNotifier(base.TestCase):
    """What arrives, and what goes wrong."""

    def setUp(self):
        super().setUp()
        self.conf = config.load([])
        self.topic = uuid.uuid4().hex
        # The first call registers the option.
        transport_module.get_notification_transport(self.conf)
        self.conf.set_override('control_exchange', self.topic)
        self.transport = transport_module.get_notification_transport(
            self.conf)

    def publisher(self, url):
        one = notifier.NotifierPublisher(self.conf, url)
        self.addCleanup(one.close)
        return one

    def publish(self, url, events):
        """Publish, and return how many events are noted at a time."""
        return self.publish_with(self.publisher(url), events)

    def publish_with(self, one, events):
        return [len(noted) for noted in one.publish(events, None)]

    def listen(self, topic, wanted):
        endpoint = Endpoint(wanted)
        listener = oslo_messaging.get_notification_listener(
            self.transport, [oslo_messaging.Target(topic=topic)], [endpoint],
            executor='threading')
        listener.start()
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        return endpoint

    def test_each_event_is_a_notification_that_keeps_its_id(self):
        endpoint = self.listen(self.topic, 2)
        events = [stage.event(1, 'a.b', size=4, moment=stage.START),
                  stage.event(2, 'c')]
        self.assertEqual(
            [], self.publish(f'notifier://?topic={self.topic}', events))
        self.assertTrue(endpoint.done.wait(PATIENCE))
        self.assertEqual(
            [('info', 'triggerlib', each.event_type, encoding.as_dict(each),
              {'message_id': each.message_id,
               'timestamp': encoding.isoformat(each.timestamp)})
             for each in events], endpoint.seen)

    def test_the_topic_and_the_priority(self):
        endpoint = self.listen(notifier.TOPIC, 1)
        self.publish('notifier://?priority=SAMPLE', [stage.event(1)])
        self.assertTrue(endpoint.done.wait(PATIENCE))
        self.assertEqual('sample', endpoint.seen[0][0])

    def test_nothing_connects_to_nothing(self):
        # There is nobody on that port.
        self.publish('notifier://127.0.0.1:1/', [])

    def test_a_retry_need_not_begin_anew(self):
        endpoint = self.listen(self.topic, 250)
        events = [stage.event(number) for number in range(250)]
        self.assertEqual([100, 100], self.publish(
            f'notifier://?topic={self.topic}', events))
        self.assertTrue(endpoint.done.wait(PATIENCE))
        self.assertEqual(
            [each.message_id for each in events],
            [payload['message_id']
             for _, _, _, payload, _ in endpoint.seen])

    def test_a_broker_that_is_away_is_tried_again_later(self):
        error = self.assertRaises(
            exceptions.PublishError, self.publish,
            'notifier://user:s3cr3t@127.0.0.1:1/?retry=0', [stage.event(1)])
        self.assertTrue(error.retryable)
        self.assertIn('127.0.0.1', str(error))
        self.assertNotIn('s3cr3t', str(error))

    def test_closing_takes_nothing_from_anyone_else(self):
        endpoint = self.listen(self.topic, 2)
        one = self.publisher(f'notifier://?topic={self.topic}')
        one.close()
        for number in range(2):
            self.publish_with(one, [stage.event(number)])
            one.close()
        self.assertTrue(endpoint.done.wait(PATIENCE))

    def test_what_is_refused_of_a_url(self):
        for url, part in (
                ('notifier://?priority=loud', 'is none of'),
                ('notifier://?retry=-1', 'less than 0'),
                ('notifier://?tpoic=x', 'unknown options: tpoic'),
                ('notifier://host:port/', 'host cannot be read')):
            error = self.assertRaises(
                ValueError, notifier.NotifierPublisher, self.conf, url)
            self.assertIn(part, str(error), url)


class _Transport:
    """A transport that only remembers that it was cleaned up."""

    def __init__(self, cleaned):
        self._driver = self._url = self
        self.transport = 'rabbit'
        self._cleaned = cleaned

    def cleanup(self):
        self._cleaned.append(True)


class TestDisconnect(base.TestCase):
    """A connection does not outlive the publisher that opened it."""

    def connected(self, cleaned):
        conf = cfg.ConfigOpts()
        opened = notifier.NotifierPublisher(conf, 'notifier://')
        opened._connect = lambda: _Transport(cleaned)
        opened._connected()
        return opened

    def test_closing(self):
        cleaned = []
        opened = self.connected(cleaned)
        opened.close()
        opened.close()
        self.assertEqual([True], cleaned)

    def test_a_publisher_that_nobody_uses_any_more(self):
        cleaned = []
        opened = self.connected(cleaned)
        self.assertEqual([], cleaned)
        del opened
        gc.collect()
        self.assertEqual([True], cleaned)
