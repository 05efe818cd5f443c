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

"""``notifier://``: notifications over oslo.messaging."""

import threading
import urllib.parse
import weakref

import oslo_messaging

from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.publisher import publisher
from triggerlib import transport as transport_module

_IN_PROCESS = urllib.parse.urlsplit(transport_module.IN_PROCESS).scheme

TOPIC = 'event'
#: Events after which it is noted how far a step is.
_NOTED = 100
PRIORITIES = ('audit', 'debug', 'info', 'warn', 'error', 'critical', 'sample')


class NotifierPublisher(publisher.Publisher):
    """Sends each event as a notification, with the event as payload.

    The notification has the event's message_id, type and timestamp.
    ``notifier://`` goes over the transport of the configuration,
    ``notifier://user:password@host:port/virtual_host`` over RabbitMQ there.
    Options: ``topic``, ``priority``, and ``retry``, how often a lost
    connection is tried again before the step is. Ceilometer's ``driver``,
    ``per_meter_topic``, ``policy`` and ``max_queue_length`` are accepted and
    mean nothing: there is one form of message, and nothing is queued or
    dropped, since a step that fails comes again.
    """

    def __init__(self, conf, url):
        super().__init__(conf, url)
        self._topic = self.option('topic', default=TOPIC)
        self._priority = self.option('priority', _priority, 'info')
        self._retry = self.option('retry', publisher.whole_number, 3)
        for name in ('driver', 'per_meter_topic', 'policy',
                     'max_queue_length'):
            self.option(name)
        self.refuse_other_options()
        if self.url.netloc:
            self._check_host()
        self._lock = threading.Lock()
        self._transport = None
        self._disconnect = None

    def publish(self, events, context):
        """Send the events, and yield them a hundred at a time.

        The last ones are noted together with the step.
        """
        for begin in range(0, len(events), _NOTED):
            end = begin + _NOTED
            self._send(events[begin:end])
            if end < len(events):
                yield events[begin:end]

    def _send(self, events):
        target = oslo_messaging.Target(
            topic=f'{self._topic}.{self._priority}')
        notifications = [self._notification(event) for event in events]
        try:
            transport = self._connected()
            for notification in notifications:
                # oslo.messaging's Notifier logs what goes wrong and says
                # nothing, and makes ids of its own. What it is built on does
                # neither.
                transport._send_notification(
                    target, {}, notification, version=2.0,
                    retry=self._retry)
        except Exception as error:
            # Drivers let the errors of their libraries through: where
            # RabbitMQ is away, it is one of kombu's, of no class of
            # oslo.messaging's or Python's.
            raise exceptions.PublishError(
                f'{self.url.hostname or "the configured transport"} did not '
                f'take a notification: {error}', retryable=True) from error

    def close(self):
        """Close the connection."""
        with self._lock:
            self._transport = None
            if self._disconnect is not None:
                self._disconnect()
                self._disconnect = None

    def _check_host(self):
        try:
            oslo_messaging.TransportURL.parse(self.conf, self._transport_url())
        except (oslo_messaging.MessagingException, ValueError):
            # What it says may quote a password.
            raise ValueError(
                'the host cannot be read: it is user:password@host:port, '
                'with special characters percent-encoded') from None

    def _transport_url(self):
        return urllib.parse.urlunsplit(
            ('rabbit', self.url.netloc, self.url.path, '', ''))

    def _notification(self, event):
        body = encoding.as_dict(event)
        return {
            'message_id': event.message_id,
            'publisher_id': 'triggerlib',
            'event_type': event.event_type,
            'priority': self._priority.upper(),
            'payload': body,
            'timestamp': body['timestamp'],
        }

    def _connected(self):
        with self._lock:
            if self._transport is None:
                self._transport = self._connect()
                # Also when the pipelines are loaded again, and no run uses
                # this publisher any more.
                self._disconnect = weakref.finalize(
                    self, _clean_up, self._transport)
            return self._transport

    def _connect(self):
        if not self.url.netloc:
            return transport_module.get_notification_transport(self.conf)
        return oslo_messaging.get_notification_transport(
            self.conf, url=self._transport_url())


def _clean_up(transport):
    # The transport in the process has no connection, and cleaning it up
    # would take the messages of everyone else's.
    if transport._driver._url.transport != _IN_PROCESS:
        transport.cleanup()


def _priority(text):
    if text.lower() not in PRIORITIES:
        raise ValueError(f'is none of {", ".join(PRIORITIES)}')
    return text.lower()
