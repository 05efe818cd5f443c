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

"""The listener: notifications from the message bus, batch by batch."""

import collections
import functools
import itertools
import logging
import threading

import oslo_messaging
from oslo_messaging.notify import dispatcher as dispatcher_module
from oslo_messaging.notify import listener as listener_module

from triggerlib import clock
from triggerlib.event import envelope
from triggerlib import exceptions
from triggerlib.messaging import alignment as alignment_module
from triggerlib.messaging import server as server_module
from triggerlib import opts
from triggerlib import transport as transport_module

LOG = logging.getLogger(__name__)

#: Seconds before a batch that could not be stored is given back, at first
#: and at most: the message bus hands it out again at once.
PAUSE = 0.5
PAUSE_MAX = 30.0

PRIORITIES = tuple(dispatcher_module.PRIORITIES)


class Dispatcher:
    """Hands batches of notifications to the trigger manager.

    The dispatchers of oslo.messaging make one call a priority, in another
    order than that of arrival, and take what has an unknown priority for
    handled. This one makes one call a batch, and leaves it to the manager
    to keep what cannot be read.

    :param manager: a :class:`triggerlib.trigger.TriggerManager`
    :param priorities: which priorities it is for
    :param portions: ``portions(bodies)`` yields how many further
        notifications to hand on in one batch; None for all of them
    """

    def __init__(self, manager, priorities=PRIORITIES, portions=None):
        self._manager = manager
        self.supported_priorities = priorities
        self._portions = portions or (lambda bodies: (len(bodies),))
        self._stop = threading.Event()
        self._pause = PAUSE

    def dispatch(self, incoming):
        """Store a batch.

        :param incoming: messages of oslo.messaging
        :returns: those to be requeued: all of them when the batch could not
            be stored. What was stored of it after all is dropped as
            duplicate when it comes again.
        """
        bodies = [_body(one) for one in incoming]
        done = 0
        try:
            for count in self._portions(bodies):
                self._manager.add_notifications(bodies[done:done + count])
                done += count
        except alignment_module.GiveBack:
            return set(incoming[done:])
        except Exception as error:
            # Whatever it is, only what is stored may be acknowledged.
            LOG.error(
                'A batch of %d notifications could not be stored and is '
                'requeued: %s', len(incoming) - done, error,
                exc_info=not isinstance(error, exceptions.StorageError))
            self._stop.wait(self._pause)
            self._pause = min(self._pause * 2, PAUSE_MAX)
            return set(incoming[done:])
        self._pause = PAUSE
        return set()

    def close(self):
        """Wait no longer before a batch is given back."""
        self._stop.set()


class _Server(listener_module.BatchNotificationServer):
    """Takes a notification that comes again like any other.

    oslo.messaging never acknowledges one whose sender sent it again, where
    it remembers the first. It would take one of the places of the prefetch
    for as long as the connection lasts, and a few of them all places. The
    storage knows which are duplicates.
    """

    def _create_listener(self):
        listener = super()._create_listener()
        poller = getattr(listener, '_poll_style_listener', None)
        if hasattr(poller, 'msg_id_cache'):
            poller.msg_id_cache.prev_msgids = collections.deque(maxlen=0)
        return listener


def get_listener(conf, manager, transport=None):
    """Return a listener that feeds a trigger manager, not started.

    A batch is acknowledged after its transaction was committed, and requeued
    when it could not be stored. On RabbitMQ no more than twice the
    ``batch_size`` is taken from a queue ahead, unless
    ``[oslo_messaging_rabbit] rabbit_qos_prefetch_count`` says otherwise.
    With ``expiry_clock = event`` each queue has a connection of its own, and
    waits for what is behind, here and at all other listeners.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param manager: a :class:`triggerlib.trigger.TriggerManager`
    :param transport: from ``conf`` unless given
    :returns: a :class:`triggerlib.messaging.server.Server`, with start, stop
        and wait
    """
    group = conf[opts.GROUP]
    if transport is None:
        transport = transport_module.get_notification_transport(
            conf, prefetch=2 * group.batch_size)
    targets = [
        oslo_messaging.Target(topic=topic, exchange=exchange)
        for topic in filter(None, group.notification_topics)
        for exchange in group.notification_exchanges or [None]]

    def serve(targets, dispatcher):
        # One batch at a time: more would store what is in one queue out of
        # order. Processes are the way to have more.
        return server_module.Server(
            _Server(
                transport, targets, dispatcher, executor='threading',
                allow_requeue=True, pool=group.notification_pool,
                batch_size=group.batch_size,
                batch_timeout=group.batch_timeout),
            dispatcher.close, threads=1)

    if group.expiry_clock != 'event':
        return serve(targets, Dispatcher(manager))
    # The other half is for what is late by itself.
    alignment = alignment_module.Alignment(
        manager.storage, group.allowed_lateness / 2,
        transport_module.prefetch(conf) or 2 * group.batch_size)
    return server_module.Servers(
        [serve([target], Dispatcher(
            manager, (priority,), functools.partial(
                _aligned, alignment, _name(target, priority))))
         for target, priority in itertools.product(targets, PRIORITIES)],
        alignment)


def _aligned(alignment, queue, bodies):
    return alignment.portions(queue, _moments(bodies))


def _name(target, priority):
    # Long names differ in their ends.
    return f'{target.exchange or ""}/{target.topic}.{priority}'[-255:]


def _moments(bodies):
    """Return when notifications were sent; what cannot be read waits not."""
    moments = []
    for body in bodies:
        try:
            moments.append(envelope.open(body).timestamp())
        except exceptions.NotificationError:
            moments.append(moments[-1] if moments else clock.FIRST)
    return moments


def _body(incoming):
    """Return a notification as an endpoint of oslo.messaging sees it."""
    message = incoming.message
    if not isinstance(message, dict):
        return message
    return {
        'ctxt': incoming.ctxt,
        'publisher_id': message.get('publisher_id'),
        'event_type': message.get('event_type'),
        'priority': message.get('priority'),
        'payload': message.get('payload'),
        'metadata': {'message_id': message.get('message_id'),
                     'timestamp': message.get('timestamp')},
    }
