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

"""The forms in which a notification is met, and what all have in common.

They are the flat body with ``_context_*`` keys, what an oslo.messaging
endpoint sees (``ctxt``, ``metadata``), and oslo.messaging's envelope on the
wire (``oslo.message``). A mixture of the first two is read as what it has.
"""

import collections.abc
import dataclasses
import datetime
import json

from triggerlib.event import timestamps
from triggerlib import exceptions

#: What the keys of the context begin with in the flat form.
CONTEXT = '_context_'

#: Longest message_id and event_type, in characters.
ID_LENGTH = 255

#: How deep mappings and lists may be nested. No service comes near, and
#: beyond, code that follows the nesting may run out of stack.
MAX_DEPTH = 500

#: How many envelopes may be in each other.
_MAX_ENVELOPES = 5

_CONTAINERS = frozenset({dict, list, tuple})


@dataclasses.dataclass(slots=True)
class Notification:
    """A notification out of its envelope.

    :param body: the body, flat or as an endpoint sees it
    :param message_id: its id, 1 to 255 characters
    :param event_type: its type, 1 to 255 characters
    :param sent: its timestamp, as the body has it
    """

    body: dict
    message_id: str
    event_type: str
    sent: object

    def timestamp(self) -> datetime.datetime:
        """Return the timestamp, an aware UTC datetime.

        :raises NotificationError: there is none, or it is unreadable
        """
        if self.sent is None:
            raise self._error('there is no timestamp')
        if not isinstance(self.sent, (str, datetime.datetime)):
            raise self._error(f'timestamp is a text, not '
                              f'{type(self.sent).__name__}')
        try:
            return timestamps.parse(self.sent)
        except ValueError as error:
            raise self._error(f'timestamp: {error}') from error

    def check_depth(self) -> None:
        """Refuse a body that is nested too deep.

        :raises NotificationError: it is
        """
        level = [self.body]
        for _ in range(MAX_DEPTH):
            level = [
                inner for outer in level
                for inner in (
                    outer.values() if isinstance(outer, dict) else outer)
                if type(inner) in _CONTAINERS]
            if not level:
                return
            if len(level) > 1000:
                # What is there many times (not from JSON) counts once.
                level = list({id(one): one for one in level}.values())
        raise self._error(f'is nested deeper than {MAX_DEPTH}')

    def context(self) -> dict:
        """Return the context of the request, by plain names."""
        context = self.body.get('ctxt')
        if isinstance(context, dict):
            return context
        cut = len(CONTEXT)
        return {key[cut:]: value for key, value in self.body.items()
                if isinstance(key, str) and key.startswith(CONTEXT)}

    def _error(self, reason):
        return exceptions.NotificationError(self.message_id, reason)


def open(notification) -> Notification:
    """Take a notification out of its envelope.

    :param notification: a mapping in any form
    :raises NotificationError: it has no form, no message_id or no event_type
    """
    body = notification
    if type(body) is not dict:
        body = _as_dict(body, 'a notification')
    if 'oslo.message' in body:
        body = _unwrap(body)
    message_id = body.get('message_id')
    sent = body.get('timestamp')
    if message_id is None or sent is None:
        metadata = body.get('metadata')
        if isinstance(metadata, dict):
            if message_id is None:
                message_id = metadata.get('message_id')
            if sent is None:
                sent = metadata.get('timestamp')
    event_type = body.get('event_type')
    if not isinstance(message_id, str) or not 0 < len(message_id) <= ID_LENGTH:
        _refuse(message_id, 'message_id', message_id)
    if not isinstance(event_type, str) or not 0 < len(event_type) <= ID_LENGTH:
        _refuse(message_id, 'event_type', event_type)
    return Notification(body, message_id, event_type, sent)


def _unwrap(body):
    for _ in range(_MAX_ENVELOPES):
        body = body['oslo.message']
        if isinstance(body, (str, bytes)):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise exceptions.NotificationError(
                    None, f'oslo.message is not JSON: {error}') from error
        body = _as_dict(body, 'oslo.message')
        if 'oslo.message' not in body:
            return body
    raise exceptions.NotificationError(
        None, f'there are more than {_MAX_ENVELOPES} envelopes in each other')


def _as_dict(value, what):
    if isinstance(value, dict):
        return value
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    raise exceptions.NotificationError(
        None, f'{what} is a mapping, not {type(value).__name__}')


def _refuse(message_id, key, value):
    """Refuse a notification for its message_id or event_type."""
    shown = message_id[:ID_LENGTH] if isinstance(message_id, str) else None
    if value is None:
        reason = f'there is no {key}'
    elif not isinstance(value, str):
        reason = f'{key} is a text, not {type(value).__name__}'
    elif not value:
        reason = f'{key} is empty'
    else:
        reason = (f'{key} has {len(value)} characters, and no more than '
                  f'{ID_LENGTH} are allowed')
    raise exceptions.NotificationError(shown or None, reason)
