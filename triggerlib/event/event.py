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

"""The event: what a notification becomes."""

import dataclasses
import datetime
import typing

TraitValue: typing.TypeAlias = str | int | float | datetime.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, once.

    :param message_id: unique id, the notification's
    :param event_type: dotted type, ``compute.instance.create.end``
    :param timestamp: when it happened, an aware UTC datetime
    :param traits: typed facts by name; datetimes are aware UTC
    :param raw: the notification it came from, where a host wants to keep it;
        not stored and not compared
    """

    message_id: str
    event_type: str
    timestamp: datetime.datetime
    traits: dict[str, TraitValue] = dataclasses.field(default_factory=dict)
    raw: typing.Any = dataclasses.field(
        default=None, compare=False, repr=False)


def sort_key(event):
    """Order events by time, and those of one moment by message_id."""
    return (event.timestamp, event.message_id)
