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

import json
import logging
import operator

from triggerlib.event import coercion
from triggerlib.event import definitions as definitions_module
from triggerlib.event import event as event_module
from triggerlib.event import timestamps
from triggerlib import exceptions
from triggerlib import opts

LOG = logging.getLogger(__name__)

#: Longest message_id and event_type, in characters.
ID_LENGTH = 255

#: Event types come from outside, so what is remembered of them is bounded.
CACHE_SIZE = 10000

#: Characters of a value that a warning shows.
_SHOWN = 100

_CONTEXT = '_context_'


class Converter:
    """Turns notifications into events, as event definitions say.

    :param definitions: a
        :class:`triggerlib.event.definitions.EventDefinitions`
    :param allow_dropping: whether a notification that no definition is for
        is dropped; else it becomes an event with the default traits
    :param keep_raw: whether an event keeps the notification it came from
    """

    def __init__(self, definitions, allow_dropping=False, keep_raw=False):
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
                'The event definitions file %s was not found; all events '
                'get the default traits.', group.event_definitions_cfg_file)
            definitions = definitions_module.EventDefinitions()
        else:
            definitions = definitions_module.EventDefinitions.load(path)
        return cls(definitions, group.allow_dropping_of_notifications)

    def to_event(self, notification) -> event_module.Event | None:
        """Convert a notification.

        :param notification: a mapping: the flat body, with ``_context_*``
            keys; what an oslo.messaging endpoint sees, with ``metadata``;
            or the form on the wire, with ``oslo.message``
        :returns: the event, or None where it is dropped
        :raises NotificationError: it can never become an event
        """
        body = _unwrap(notification)
        metadata = body.get('metadata')
        if 'message_id' not in body and isinstance(metadata, dict):
            message_id = metadata.get('message_id')
            timestamp = metadata.get('timestamp', body.get('timestamp'))
            endpoint = True
        else:
            message_id = body.get('message_id')
            timestamp = body.get('timestamp')
            endpoint = False
        if type(message_id) is not str or not (
                0 < len(message_id) <= ID_LENGTH):
            _refuse(message_id, f'message_id is not a text of 1 to '
                                f'{ID_LENGTH} characters')
        event_type = body.get('event_type')
        if type(event_type) is not str or not (
                0 < len(event_type) <= ID_LENGTH):
            _refuse(message_id, f'event_type is not a text of 1 to '
                                f'{ID_LENGTH} characters')
        try:
            moment = timestamps.parse(timestamp)
        except ValueError as error:
            raise exceptions.NotificationError(
                message_id, f'timestamp: {error}') from error
        plan = self._plans.get(event_type)
        if plan is None:
            plan = self._remember(event_type)
        if plan is _DROP:
            return None
        if endpoint:
            body = {**body, 'message_id': message_id, 'timestamp': timestamp}
        traits = plan.traits(body, message_id)
        return event_module.Event(
            message_id, event_type, moment, traits,
            notification if self._keep_raw else None)

    def _remember(self, event_type):
        definition = self._definitions.find(event_type)
        if definition is None and self._allow_dropping:
            plan = _DROP
        else:
            plan = _Plan({} if definition is None else definition.traits)
        if len(self._plans) >= CACHE_SIZE:
            self._plans.clear()
        self._plans[event_type] = plan
        return plan


def _unwrap(notification):
    """Return the body of a notification in any form."""
    if not isinstance(notification, dict):
        _refuse(None, f'a notification is a mapping, not '
                      f'{type(notification).__name__}')
    if 'oslo.message' not in notification:
        return notification
    body = notification['oslo.message']
    if isinstance(body, (str, bytes)):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise exceptions.NotificationError(
                None, f'oslo.message is not JSON: {error}') from error
    if not isinstance(body, dict):
        _refuse(None, f'oslo.message is a mapping, not '
                      f'{type(body).__name__}')
    return body


def _refuse(message_id, reason):
    shown = message_id if isinstance(message_id, str) else None
    raise exceptions.NotificationError(
        shown if shown is None or len(shown) <= ID_LENGTH
        else shown[:ID_LENGTH], reason)


def _of_context(*names):
    """Return a function that finds a fact in the context, in any form."""
    flat = [_CONTEXT + name for name in names]

    def find(body):
        for name in flat:
            value = body.get(name)
            if value is not None:
                return value
        context = body.get('ctxt')
        if isinstance(context, dict):
            for name in names:
                value = context.get(name)
                if value is not None:
                    return value
        return None
    return find


_of_tenant = _of_context('tenant', 'project_id', 'tenant_id')


def _tenant(body):
    payload = body.get('payload')
    if isinstance(payload, dict):
        value = payload.get('tenant_id')
        if value is not None:
            return value
    return _of_tenant(body)


#: Traits that every event gets unless its definition has one of that name.
_DEFAULTS = {
    'message_id': operator.methodcaller('get', 'message_id'),
    'service': operator.methodcaller('get', 'publisher_id'),
    'tenant_id': _tenant,
    'request_id': _of_context('request_id'),
}

_DROP = object()


class _Plan:
    """What to do for events of one type, worked out once.

    :param traits: trait definitions by name
    """

    def __init__(self, traits):
        self._defaults = [(name, find) for name, find in _DEFAULTS.items()
                          if name not in traits]
        roots = {path.root for one in traits.values() for path in one.paths}
        unknown = None in roots
        self._wants_ctxt = unknown or 'ctxt' in roots
        self._wants_flat = unknown or any(
            root.startswith(_CONTEXT) for root in roots if root)
        self._wants_metadata = unknown or 'metadata' in roots
        self._rest = []
        inside = {}
        for one in traits.values():
            keys = one.paths[0].keys if len(one.paths) == 1 else None
            if one.call is None and keys is not None and len(keys) == 2:
                inside.setdefault(keys[0], []).append(
                    (one.name, keys[1], coercion.TYPES[one.type],
                     one.type != 'text'))
            else:
                self._rest.append((one, coercion.TYPES[one.type]))
        self._inside = list(inside.items())

    def traits(self, body, message_id):
        """Return the traits of a notification."""
        body = self._complete(body)
        traits = {}
        for name, find in self._defaults:
            value = find(body)
            if value is not None:
                self._set(traits, name, coercion.to_text, value, message_id)
        for root, entries in self._inside:
            fields = body.get(root)
            if type(fields) is not dict:
                continue
            for name, key, coerce, empty_is_null in entries:
                value = fields.get(key)
                if value is None or value == '' and empty_is_null:
                    continue
                self._set(traits, name, coerce, value, message_id)
        for one, coerce in self._rest:
            value = self._value(one, body, message_id)
            if value is not None:
                self._set(traits, one.name, coerce, value, message_id)
        return traits

    def _complete(self, body):
        """Give a body those keys that its form has in another place."""
        more = {}
        if self._wants_metadata and 'metadata' not in body:
            more['metadata'] = {'message_id': body.get('message_id'),
                                'timestamp': body.get('timestamp')}
        if self._wants_ctxt and 'ctxt' not in body:
            more['ctxt'] = {
                name[len(_CONTEXT):]: value for name, value in body.items()
                if isinstance(name, str) and name.startswith(_CONTEXT)}
        if self._wants_flat and isinstance(body.get('ctxt'), dict):
            for name, value in body['ctxt'].items():
                more.setdefault(f'{_CONTEXT}{name}', value)
        return {**more, **body} if more else body

    def _value(self, one, body, message_id):
        empty_is_null = one.type != 'text'
        if one.call is None:
            for path in one.paths:
                for _, value in path.find(body):
                    if value is not None and not (
                            empty_is_null and value == ''):
                        return value
            return None
        matches = [
            (path, value) for each in one.paths
            for path, value in each.find(body)
            if value is not None and not (empty_is_null and value == '')]
        try:
            return one.call(matches)
        except Exception as error:
            # A plugin is code of others; whatever it raises costs this one
            # trait and not the event.
            _warn(message_id, one.name, matches, error)
            return None

    def _set(self, traits, name, coerce, value, message_id):
        try:
            traits[name] = coerce(value)
        except (ValueError, TypeError, OverflowError,
                RecursionError) as error:
            _warn(message_id, name, value, error)


def _warn(message_id, name, value, error):
    try:
        shown = repr(value)
    except RecursionError:
        shown = type(value).__name__
    if len(shown) > _SHOWN:
        shown = f'{shown[:_SHOWN]}...'
    LOG.warning('Notification %s: the trait %s is left out, its value %s '
                'cannot be used: %s', message_id, name, shown, error)
