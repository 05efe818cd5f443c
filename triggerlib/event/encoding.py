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

"""Events as JSON: the object that is published, and back again.

There is one form, everywhere: ``message_id``, ``event_type``, ``timestamp``
(ISO 8601, UTC, microseconds) and ``traits`` (datetimes likewise).
"""

import datetime
import json

from triggerlib.event import event as event_module

UTC = datetime.timezone.utc
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def isoformat(moment):
    """Return an aware datetime as ``2012-03-12T17:00:24.156710+00:00``."""
    return moment.astimezone(UTC).isoformat(timespec='microseconds')


def to_micros(moment):
    """Return an aware datetime as whole microseconds since 1970, UTC."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros):
    """Return the aware UTC datetime of :func:`to_micros`."""
    return _EPOCH + datetime.timedelta(microseconds=micros)


def as_dict(event):
    """Return the JSON object of an event, as a dict."""
    return {
        'message_id': event.message_id,
        'event_type': event.event_type,
        'timestamp': isoformat(event.timestamp),
        'traits': {
            name: isoformat(value)
            if isinstance(value, datetime.datetime) else value
            for name, value in event.traits.items()},
    }


def to_json(event):
    """Return the JSON object of an event as one line of text."""
    return json.dumps(as_dict(event), sort_keys=True)


def dump_traits(traits):
    """Return traits as a JSON document that keeps their types.

    A datetime stands as ``{"t": microseconds}``; no other trait value is an
    object.
    """
    return json.dumps(traits, default=_dump_datetime, separators=(',', ':'))


def _dump_datetime(value):
    if isinstance(value, datetime.datetime):
        return {'t': to_micros(value)}
    raise TypeError(
        f'a trait is text, int, float or datetime, not '
        f'{type(value).__name__}')


def load_traits(document):
    """Return the traits that :func:`dump_traits` wrote."""
    traits = json.loads(document)
    for name, value in traits.items():
        if type(value) is dict:
            traits[name] = from_micros(value['t'])
    return traits


def dump_events(events):
    """Return a list of events as one JSON document that keeps the types."""
    return json.dumps(
        [[event.message_id, event.event_type, to_micros(event.timestamp),
          event.traits] for event in events],
        default=_dump_datetime, separators=(',', ':'))


def load_events(document):
    """Return the events that :func:`dump_events` wrote."""
    return [
        event_module.Event(
            message_id, event_type, from_micros(micros),
            {name: from_micros(value['t']) if type(value) is dict else value
             for name, value in traits.items()})
        for message_id, event_type, micros, traits in json.loads(document)]
