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

"""The source: notifications sent to a broker, come what may."""

import json
import queue
import threading

import kombu
import kombu.exceptions

#: Seconds before another try while the broker is away.
PAUSE = 0.2


class Source:
    """Sends notifications as OpenStack services do, in a thread of its own.

    Each is sent until the broker has confirmed it, and so maybe twice.

    :param url: transport URL of the broker
    :param exchange: the control exchange
    :param topic: the topic of the notifications
    :param priority: returns the priority of a notification
    """

    def __init__(self, url, exchange, topic, priority=lambda body: 'info'):
        self._url = url.replace('rabbit://', 'amqp://', 1) + '/'
        self._topic = topic
        self._priority = priority
        self._exchange = kombu.Exchange(
            exchange, 'topic', durable=True, auto_delete=False)
        self._waiting = queue.SimpleQueue()
        self._pause = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._left = 0
        self._lock = threading.Lock()
        self._thread.start()

    def send(self, bodies):
        """Have flat bodies sent, in this order; it does not wait."""
        bodies = list(bodies)
        with self._lock:
            self._left += len(bodies)
        for body in bodies:
            self._waiting.put(body)

    @property
    def left(self):
        """How many are not confirmed yet."""
        with self._lock:
            return self._left

    def close(self):
        """Send no more."""
        self._pause.set()
        self._waiting.put(None)
        self._thread.join()

    def _run(self):
        body = self._waiting.get()
        while body is not None and not self._pause.is_set():
            try:
                with kombu.Connection(
                        self._url, connect_timeout=5, transport_options={
                            'confirm_publish': True}) as connection:
                    producer = connection.Producer()
                    while body is not None and not self._pause.is_set():
                        self._publish(producer, body)
                        with self._lock:
                            self._left -= 1
                        body = self._waiting.get()
            except (OSError, kombu.exceptions.KombuError,
                    *connection.connection_errors,
                    *connection.channel_errors):
                self._pause.wait(PAUSE)

    def _publish(self, producer, body):
        priority = self._priority(body)
        name = f'{self._topic}.{priority}'
        message = {**body, 'priority': priority.upper()}
        producer.publish(
            {'oslo.version': '2.0', 'oslo.message': json.dumps(message)},
            exchange=self._exchange, routing_key=name, serializer='json',
            delivery_mode=2, timeout=5,
            declare=[kombu.Queue(name, self._exchange, routing_key=name,
                                 durable=True, auto_delete=False)])
