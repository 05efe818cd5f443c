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

"""The truth: what was delivered, for a referee who judges an engine by it.

It is worked out from the notifications alone, without the converter or any
other part of the engine that it is to judge.
"""

import collections
import collections.abc
import dataclasses
import datetime
import typing

from triggerlib.testing import notification as notification_


class Sent(typing.NamedTuple):
    """One notification; sorts by time.

    :param timestamp: an aware UTC datetime
    """

    timestamp: datetime.datetime
    message_id: str
    event_type: str


class Period(typing.NamedTuple):
    """An audit period; both are aware UTC datetimes, the end is not in it."""

    beginning: datetime.datetime
    ending: datetime.datetime


@dataclasses.dataclass(slots=True)
class ServerTruth:
    """What was told of one server.

    :param instance_id: its id
    :param tenant_id: whose it is
    :param create_start: the ``compute.instance.create.start``, or None
    :param create_end: the ``compute.instance.create.end``, or None
    :param create_error: the ``compute.instance.create.error``, or None
    :param delete_starts: each ``compute.instance.delete.start``
    :param delete_end: the ``compute.instance.delete.end``, or None
    :param exists: the ``compute.instance.exists`` of each audit period
    :param days: all there is of each UTC day, by the timestamp
    """

    instance_id: str
    tenant_id: str
    create_start: Sent | None = None
    create_end: Sent | None = None
    create_error: Sent | None = None
    delete_starts: list[Sent] = dataclasses.field(default_factory=list)
    delete_end: Sent | None = None
    exists: dict[Period, Sent] = dataclasses.field(default_factory=dict)
    days: dict[datetime.date, list[Sent]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(list))

    @property
    def create_seconds(self) -> float | None:
        """Seconds from create.start to create.end; None without both."""
        if self.create_start is None or self.create_end is None:
            return None
        took = self.create_end.timestamp - self.create_start.timestamp
        return took.total_seconds()

    def events(self) -> list[Sent]:
        """Return all that was told of the server, ordered by time."""
        return sorted(sent for day in self.days.values() for sent in day)


class Truth:
    """Takes down notifications as they are delivered; a repeat counts once.

    Its memory grows with what it takes down.

    ``servers`` holds a :class:`ServerTruth` for each server by id,
    ``counts`` the number of distinct notifications by event type, and
    ``repeats`` how many notifications were ones delivered before.
    """

    def __init__(self):
        self.servers: dict[str, ServerTruth] = {}
        self.counts: collections.Counter[str] = collections.Counter()
        self.repeats = 0
        self._seen = set()

    def __len__(self) -> int:
        """Return the number of distinct notifications."""
        return len(self._seen)

    def add(self, notification: collections.abc.Mapping) -> None:
        """Take down a notification in any of the three forms.

        :raises KeyError: when it has none of the three forms
        :raises ValueError: when a timestamp, or its JSON, cannot be read
        """
        self.add_facts(notification_.read(notification))

    def add_facts(self, facts: notification_.Facts) -> None:
        """Take down what :func:`notification.read` has read."""
        if facts.message_id in self._seen:
            self.repeats += 1
            return
        self._seen.add(facts.message_id)
        self.counts[facts.event_type] += 1
        if facts.event_type.startswith('compute.instance.'):
            self._add_server(facts)

    def created(self) -> list[ServerTruth]:
        """Return the servers of which create.start and create.end came."""
        return [server for server in self.servers.values()
                if server.create_start and server.create_end]

    def unended(self) -> list[ServerTruth]:
        """Return the servers of which create.start came, but no end."""
        return [server for server in self.servers.values()
                if server.create_start and not server.create_end]

    def days(self, *event_types: str
             ) -> dict[tuple[str, datetime.date], list[Sent]]:
        """Return what came of each server and UTC day, ordered by time.

        :param event_types: only of these types; without any, of all
        :return: the lists by server id and day, none of them empty
        """
        found = {}
        for server in self.servers.values():
            for day, events in server.days.items():
                chosen = sorted(sent for sent in events if not event_types
                                or sent.event_type in event_types)
                if chosen:
                    found[server.instance_id, day] = chosen
        return found

    def exists(self) -> dict[tuple[str, Period], Sent]:
        """Return the ``compute.instance.exists`` by server and period."""
        return {(server.instance_id, period): sent
                for server in self.servers.values()
                for period, sent in server.exists.items()}

    def _add_server(self, facts):
        payload = facts.payload
        instance_id = payload['instance_id']
        server = self.servers.get(instance_id)
        if server is None:
            server = self.servers[instance_id] = ServerTruth(
                instance_id, payload['tenant_id'])
        sent = Sent(facts.timestamp, facts.message_id, facts.event_type)
        server.days[facts.timestamp.date()].append(sent)
        match facts.event_type.removeprefix('compute.instance.'):
            case 'create.start':
                server.create_start = sent
            case 'create.end':
                server.create_end = sent
            case 'create.error':
                server.create_error = sent
            case 'delete.start':
                server.delete_starts.append(sent)
            case 'delete.end':
                server.delete_end = sent
            case 'exists':
                server.exists[_period(payload)] = sent


def _period(payload):
    return Period(*(
        datetime.datetime.fromisoformat(payload[key]).replace(
            tzinfo=datetime.timezone.utc)
        for key in ('audit_period_beginning', 'audit_period_ending')))
