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

"""The converter: notifications become events."""

import logging

from triggerlib.event import definitions as definitions_module
from triggerlib.event import envelope
from triggerlib.event import event as event_module
from triggerlib.event import plan as plan_module
from triggerlib import exceptions
from triggerlib import opts

LOG = logging.getLogger(__name__)

#: Event types come from outside, so what is remembered of them is bounded.
CACHE_SIZE = 10000

_DROP = object()


class Converter:
    """Turns notifications into events, as event definitions say.

    It keeps no state but what it has worked out about event types, so that
    threads may share one.

    :param definitions: a
        :class:`triggerlib.event.definitions.EventDefinitions`
    :param allow_dropping: whether a notification that no definition is for
        is dropped; else it becomes an event with the default traits
    :param keep_raw: whether an event keeps the notification it came from
    """

    def __init__(self, definitions: definitions_module.EventDefinitions,
                 allow_dropping: bool = False, keep_raw: bool = False):
        self._definitions = definitions
        self._allow_dropping = allow_dropping
        self._keep_raw = keep_raw
        self._plans = {}

    @classmethod
    def from_conf(cls, conf) -> 'Converter':
        """Build one from the options of ``[triggerlib]``.

        A missing file of event definitions is logged, and means that there
        are none.

        :raises DefinitionError: every mistake in the file
        """
        group = conf[opts.GROUP]
        path = conf.find_file(group.event_definitions_cfg_file)
        if path is None:
            LOG.warning(
                'The event definitions file %s was not found; there are no '
                'event definitions.', group.event_definitions_cfg_file)
            definitions = definitions_module.EventDefinitions()
        else:
            definitions = definitions_module.EventDefinitions.load(path)
        return cls(definitions, group.allow_dropping_of_notifications)

    def to_event(self, notification) -> event_module.Event | None:
        """Convert a notification (blueprint configurable-event-definitions).

        :param notification: a mapping: the flat body, with ``_context_*``
            keys; what an oslo.messaging endpoint sees, with ``metadata``;
            or the form on the wire, with ``oslo.message``
        :returns: the event, or None where it is dropped
        :raises NotificationError: it can never become an event
        """
        try:
            opened = envelope.open(notification)
            plan = self._plans.get(opened.event_type)
            if plan is None:
                plan = self._remember(opened.event_type)
            if plan is _DROP:
                LOG.debug('Notification %s is dropped: no event definition '
                          'is for %s.', opened.message_id, opened.event_type)
                return None
            timestamp = opened.timestamp()
            opened.check_depth()
        except RecursionError as error:
            raise exceptions.NotificationError(
                None, 'is nested too deep') from error
        return event_module.Event(
            opened.message_id, opened.event_type, timestamp,
            plan.traits(opened), notification if self._keep_raw else None)

    def _remember(self, event_type):
        definition = self._definitions.find(event_type)
        if definition is not None:
            plan = plan_module.Plan(definition.traits.values())
        elif self._allow_dropping:
            plan = _DROP
        else:
            plan = plan_module.Plan()
        if len(self._plans) >= CACHE_SIZE:
            self._plans.clear()
        self._plans[event_type] = plan
        return plan
