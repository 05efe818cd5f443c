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

"""Plans: what to do for events of one type, worked out once.

Most traits are a plain key of the payload, so fields are fetched from one
mapping after the other, and text that is text already is taken as it is.
"""

from collections import abc as collections_abc
import dataclasses
import logging
import reprlib
import typing

from triggerlib.event import coercion
from triggerlib.event import definitions
from triggerlib.event import envelope

LOG = logging.getLogger(__name__)

#: Characters of a value that a warning shows.
SHOWN = 100

_SPECIAL = ('ctxt', 'metadata', 'message_id', 'timestamp')


def _of_context(*names):
    """Return a function that finds a fact in the context, in any form."""
    flat = [envelope.CONTEXT + name for name in names]

    def find(body):
        context = body.get('ctxt')
        if isinstance(context, dict):
            for name in names:
                value = context.get(name)
                if value is not None:
                    return value
        for name in flat:
            value = body.get(name)
            if value is not None:
                return value
        return None
    return find


# "tenant" comes last: to some services, it is a name and not an id.
_tenant_of_context = _of_context('project_id', 'tenant_id', 'tenant')


def _tenant(body):
    payload = body.get('payload')
    if isinstance(payload, dict):
        value = payload.get('tenant_id')
        if value is not None:
            return value
    return _tenant_of_context(body)


def _service(body):
    return body.get('publisher_id')


#: Traits that every event gets, beside message_id, unless its definition has
#: one of that name.
_DEFAULTS = {
    'service': _service,
    'tenant_id': _tenant,
    'request_id': _of_context('request_id'),
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Fields:
    """Traits that are keys of one mapping.

    :param keys: the way to the mapping
    :param texts: ``(trait, key)`` of text traits
    :param others: ``(trait, key, coerce)`` of the others
    """

    keys: tuple[str, ...]
    texts: list[tuple[str, str]]
    others: list[tuple[str, str, coercion.Coerce]]


class Plan:
    """How to make the traits of one type of events.

    :param traits: its trait definitions
    """

    def __init__(self, traits: collections_abc.Iterable[
            definitions.TraitDefinition] = ()):
        traits = list(traits)
        names = {one.name for one in traits}
        self._message_id = 'message_id' not in names
        self._defaults = [(name, find) for name, find in _DEFAULTS.items()
                          if name not in names]
        self._constants = {}
        self._texts, self._others, self._plugins = [], [], []
        fields = {}
        for one in traits:
            coerce = coercion.TYPES[one.type]
            if one.constant is not None:
                self._constants[one.name] = coerce(one.constant)
            elif one.call is not None:
                self._plugins.append((one, coerce))
            elif len(one.paths) == 1 and one.paths[0].keys is not None:
                *keys, last = one.paths[0].keys
                keys = tuple(keys)
                group = fields.setdefault(keys, _Fields(keys, [], []))
                if one.type == 'text':
                    group.texts.append((one.name, last))
                else:
                    group.others.append((one.name, last, coerce))
            elif one.type == 'text':
                self._texts.append(
                    (one.name, [path.first for path in one.paths]))
            else:
                self._others.append(
                    (one.name, [path.values for path in one.paths], coerce))
        self._fields = [(one.keys, one.texts, one.others)
                        for one in fields.values()]
        self._note_needs(path for one in traits for path in one.paths)

    def _note_needs(self, paths):
        """Note which keys paths need that one of the forms has not."""
        roots = set()
        for path in paths:
            roots |= {None} if path.roots is None else path.roots
        unknown = None in roots
        self._needs = frozenset(
            key for key in _SPECIAL if unknown or key in roots)
        self._needs_flat = unknown or any(
            root.startswith(envelope.CONTEXT) for root in roots)

    def traits(self, notification: envelope.Notification) -> dict[
            str, typing.Any]:
        """Return the traits of a notification.

        A value that a trait's type cannot be made from is left out, with a
        warning.
        """
        body = notification.body
        if self._needs or self._needs_flat:
            body = self._complete(notification)
        traits = dict(self._constants)
        if self._message_id:
            traits['message_id'] = notification.message_id
        for name, find in self._defaults:
            value = find(body)
            if type(value) is str:
                traits[name] = value
            elif value is not None:
                _set(traits, name, coercion.to_text, value, notification)
        for keys, texts, others in self._fields:
            fields = body
            for key in keys:
                fields = fields.get(key)
                if not isinstance(fields, dict):
                    break
            else:
                get = fields.get
                for name, key in texts:
                    value = get(key)
                    if type(value) is str:
                        traits[name] = value
                    elif value is not None:
                        _set(traits, name, coercion.to_text, value,
                             notification)
                for name, key, coerce in others:
                    value = get(key)
                    if value is not None and value != '':
                        _set(traits, name, coerce, value, notification)
        for name, firsts in self._texts:
            for first in firsts:
                value = first(body)
                if value is not None:
                    _set(traits, name, coercion.to_text, value, notification)
                    break
        for name, finds, coerce in self._others:
            for value in (one for find in finds for one in find(body)):
                if value != '':
                    _set(traits, name, coerce, value, notification)
                    break
        for definition, coerce in self._plugins:
            _ask(traits, definition, coerce, body, notification)
        return traits

    def _complete(self, notification):
        """Return a body that also has what other forms have elsewhere."""
        body = dict(notification.body)
        if 'ctxt' in self._needs:
            body['ctxt'] = notification.context()
        if 'metadata' in self._needs:
            if not isinstance(body.get('metadata'), dict):
                body['metadata'] = {'message_id': notification.message_id,
                                    'timestamp': notification.sent}
        body['message_id'] = notification.message_id
        body['timestamp'] = notification.sent
        if self._needs_flat and isinstance(body.get('ctxt'), dict):
            for key, value in body['ctxt'].items():
                body.setdefault(f'{envelope.CONTEXT}{key}', value)
        return body


def _set(traits, name, coerce, value, notification):
    try:
        traits[name] = coerce(value)
    except Exception as error:
        # A value may be of any kind, a plugin's may even be an object of
        # its own; whatever it raises costs this one trait.
        _warn(notification, name, value, error)


def _ask(traits, definition, coerce, body, notification):
    """Set the trait that a plugin makes."""
    is_text = definition.type == 'text'
    matches = [
        match for path in definition.paths for match in path.find(body)
        if match[1] is not None and (is_text or match[1] != '')]
    try:
        value = definition.call(matches)
        if value is None or value == '' and not is_text:
            return
    except Exception as error:
        # A plugin is code of others; whatever it raises costs this one
        # trait.
        _warn(notification, definition.name,
              [value for _, value in matches], error,
              # A value that it refuses is no news; a bug is.
              exc_info=not isinstance(error, ValueError))
        return
    _set(traits, definition.name, coerce, value, notification)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = SHOWN


def _warn(notification, name, value, error, exc_info=False):
    try:
        shown = _SHORT.repr(value)
    except (ValueError, RecursionError):
        # An int of too many digits to show, or nested too deep.
        shown = type(value).__name__
    if len(shown) > SHOWN:
        shown = f'{shown[:SHOWN]}...'
    LOG.warning('Notification %s: the trait %s is left out, its value %s '
                'cannot be used: %s', notification.message_id, name, shown,
                _said(error), exc_info=exc_info)


def _said(error):
    text = f'{type(error).__name__}: {error}'
    return text if len(text) <= 2 * SHOWN else f'{text[:2 * SHOWN]}...'
