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

"""Between the package's objects and the rows of the tables."""

import datetime
import json

from triggerlib.event import encoding
from triggerlib.event import event as event_module
from triggerlib import state as state_module
from triggerlib.storage import driver as driver_module
from triggerlib.storage.sql import models

_TIMES = ('first_event', 'last_event', 'expire_timestamp', 'fire_timestamp',
          'deadline', 'not_before', 'created_at', 'updated_at')

#: Columns of an instance, in the order in which :func:`to_instance` takes
#: them.
INSTANCE = [models.instance.c[name] for name in (
    'name', 'key', 'active_key', 'fingerprint', 'first_event', 'last_event',
    'expire_timestamp', 'fire_timestamp', 'counts', 'event_count', 'state',
    'id', 'version', 'owner', 'deadline', 'not_before', 'attempts', 'error',
    'created_at', 'updated_at')]

#: Columns of an event, in the order in which :func:`to_event` takes them.
EVENT = [models.event.c[name] for name in (
    'message_id', 'event_type', 'timestamp', 'traits')]


def micros(moment):
    """Return a datetime as microseconds; None stays None."""
    return None if moment is None else encoding.to_micros(moment)


def moment(number):
    """Return microseconds as a datetime; None stays None."""
    return None if number is None else encoding.from_micros(number)


def clean(text):
    """Return a text for people without what some backend cannot hold."""
    if text is None:
        return None
    return text.replace('\0', '\\0').encode(
        'utf-8', 'backslashreplace').decode()


def to_event(message_id, event_type, timestamp, traits):
    """Return the event of a row."""
    return event_module.Event(
        message_id, event_type, encoding.from_micros(timestamp),
        encoding.load_traits(traits))


def to_instance(row):
    """Return the instance of a row."""
    (name, key, active_key, fingerprint, first_event, last_event,
     expire_timestamp, fire_timestamp, counts, event_count, state, id_,
     version, owner, deadline, not_before, attempts, error, created_at,
     updated_at) = row
    return driver_module.Instance(
        name, key, active_key, fingerprint, moment(first_event),
        moment(last_event), moment(expire_timestamp),
        moment(fire_timestamp), json.loads(counts), event_count,
        state_module.State(state), id_, version, owner, moment(deadline),
        moment(not_before), attempts, error, moment(created_at),
        moment(updated_at))


def of_template(template, now):
    """Return the row of a new instance."""
    return {
        'name': template.name, 'key': template.key,
        'active_key': template.active_key,
        'fingerprint': template.fingerprint,
        'state': str(state_module.State.ACTIVE),
        'first_event': micros(template.first_event),
        'last_event': micros(template.last_event),
        'expire_timestamp': micros(template.expire_timestamp),
        'fire_timestamp': micros(template.fire_timestamp),
        'counts': json.dumps(template.counts),
        'event_count': template.event_count, 'version': 0, 'attempts': 0,
        'created_at': now, 'updated_at': now,
    }


def of_event(event, now):
    """Return the row of an event."""
    return {
        'message_id': event.message_id, 'event_type': event.event_type,
        'timestamp': encoding.to_micros(event.timestamp), 'stored_at': now,
        'traits': encoding.dump_traits(event.traits),
    }


def index_value(value) -> str:
    """Return the text that stands for a value in the trait index.

    Values of different types differ. It is ASCII, and what is long is cut,
    so that equal texts may stand for different values, and never the other
    way round.
    """
    if isinstance(value, datetime.datetime):
        text = f't{encoding.to_micros(value)}'
    elif isinstance(value, str):
        text = 's' + json.dumps(value)
    elif isinstance(value, float):
        # Zero and minus zero are equal.
        text = f'f{value + 0.0!r}'
    else:
        text = f'i{value}'
    return text[:models.VALUE_LENGTH]
