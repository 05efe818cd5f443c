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

import logging

import oslo_messaging

from triggerlib import exceptions
from triggerlib import opts
from triggerlib import transport as transport_module

LOG = logging.getLogger(__name__)


class Endpoint:
    """Hands batches of notifications to the trigger manager.

    A batch is acknowledged after its transaction was committed. When it
    could not be stored, the whole batch is requeued: what was stored of it
    after all is dropped as duplicate when it comes again.

    :param manager: a :class:`triggerlib.trigger.TriggerManager`
    """

    def __init__(self, manager):
        self._manager = manager

    def _handle(self, messages):
        try:
            self._manager.add_notifications(messages)
        except exceptions.StorageError as error:
            LOG.error('A batch of %d notifications could not be stored and '
                      'is requeued: %s', len(messages), error)
            return oslo_messaging.NotificationResult.REQUEUE
        return oslo_messaging.NotificationResult.HANDLED

    audit = debug = info = warn = error = critical = sample = _handle


def get_listener(conf, manager, transport=None):
    """Return a listener that feeds a trigger manager, not started.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param manager: a :class:`triggerlib.trigger.TriggerManager`
    :param transport: from ``conf`` unless given
    :returns: an ``oslo_messaging`` server with start, stop and wait
    """
    group = conf[opts.GROUP]
    if transport is None:
        transport = transport_module.get_notification_transport(conf)
    targets = [
        oslo_messaging.Target(topic=topic, exchange=exchange)
        for topic in group.notification_topics
        for exchange in group.notification_exchanges or [None]]
    return oslo_messaging.get_batch_notification_listener(
        transport, targets, [Endpoint(manager)], executor='threading',
        allow_requeue=True, pool=group.notification_pool,
        batch_size=group.batch_size, batch_timeout=group.batch_timeout)
