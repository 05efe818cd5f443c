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

"""Notifications in the three forms in which they are met.

``flat`` is the body as the services publish it, its context spread over
``_context_*`` keys; ``endpoint`` is what an oslo.messaging endpoint sees;
``wire`` is oslo.messaging's envelope, with the flat body in it as JSON.
"""

import collections.abc
import datetime
import json
import typing

from triggerlib.testing.lifecycle import message as message_
from triggerlib.testing.lifecycle import moments

_JSON = json.JSONEncoder(separators=(',', ':'))

Form = typing.Callable[[message_.Message], dict]


class Facts(typing.NamedTuple):
    """What a notification says, in whatever form.

    :param timestamp: an aware UTC datetime
    """

    timestamp: datetime.datetime
    message_id: str
    event_type: str
    payload: dict


def flat(message: message_.Message) -> dict:
    """Return the notification in its flat form."""
    return {
        **message.context.flat,
        # As long as nova's, but the same for a notification sent twice.
        '_unique_id': message.message_id.replace('-', ''),
        'message_id': message.message_id,
        'publisher_id': message.publisher_id,
        'event_type': message.event_type,
        'priority': message.priority,
        'timestamp': moments.stamp(message.moment),
        'payload': message.payload,
    }


def endpoint(message: message_.Message) -> dict:
    """Return the notification as an oslo.messaging endpoint sees it."""
    return {
        'ctxt': message.context.plain,
        'publisher_id': message.publisher_id,
        'event_type': message.event_type,
        'priority': message.priority,
        'payload': message.payload,
        'metadata': {'message_id': message.message_id,
                     'timestamp': moments.stamp(message.moment)},
    }


def wire(message: message_.Message) -> dict:
    """Return the notification in oslo.messaging's envelope."""
    return {'oslo.version': '2.0',
            'oslo.message': _JSON.encode(flat(message))}


#: the forms by name
FORMS: dict[str, Form] = {'flat': flat, 'endpoint': endpoint, 'wire': wire}


def read(notification: collections.abc.Mapping) -> Facts:
    """Return what a notification says.

    :param notification: a notification in any of the three forms, its
        timestamp in ISO 8601 and, where it names no zone, in UTC
    :raises KeyError: when it has none of the three forms
    :raises ValueError: when its timestamp, or its JSON, cannot be read
    """
    if 'oslo.message' in notification:
        notification = json.loads(notification['oslo.message'])
    head = notification.get('metadata', notification)
    timestamp = datetime.datetime.fromisoformat(head['timestamp'])
    if timestamp.tzinfo is None:
        timestamp = timestamp.replace(tzinfo=datetime.timezone.utc)
    return Facts(timestamp, head['message_id'], notification['event_type'],
                 notification['payload'])


def write_jsonl(notifications: collections.abc.Iterable[dict],
                stream: typing.TextIO) -> int:
    """Write notifications as JSON, one a line.

    :param notifications: in any form; an endless iterable is written
        endlessly
    :param stream: a text stream open for writing
    :return: how many were written
    """
    written = 0
    encode = _JSON.encode
    for notification in notifications:
        stream.write(encode(notification) + '\n')
        written += 1
    return written
