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

"""The notification generator: a cloud's notifications, made to measure.

::

    generator = Generator(seed=1, servers=1000, spread=30, duplicates=0.01,
                          record=True)
    for notification in generator:
        manager.add_notification(notification)
    generator.truth.created()   # what must have fired

It takes no more memory than the servers, volumes and images alive at once
need (a deleted one is held until its last audit period has been reported),
whatever the number of notifications. The same arguments give the same
notifications, byte for byte, on each run and each Python.
"""

import collections.abc
import dataclasses
import datetime
import random

from triggerlib.testing import delivery
from triggerlib.testing.lifecycle import agenda as agenda_
from triggerlib.testing.lifecycle import audit
from triggerlib.testing.lifecycle import cloud as cloud_
from triggerlib.testing.lifecycle import image
from triggerlib.testing.lifecycle import inventory
from triggerlib.testing.lifecycle import moments
from triggerlib.testing.lifecycle import server
from triggerlib.testing.lifecycle import volume
from triggerlib.testing import notification as notification_
from triggerlib.testing import truth as truth_

MAX_CREATE_SECONDS = server.MAX_CREATE_SECONDS
MAX_DELETE_SECONDS = server.MAX_DELETE_SECONDS
MAX_RESIZE_SECONDS = server.MAX_RESIZE_SECONDS
MAX_CONFIRM_SECONDS = server.MAX_CONFIRM_SECONDS
MAX_EXISTS_DELAY_SECONDS = audit.MAX_EXISTS_DELAY_SECONDS
MAX_VOLUME_SECONDS = volume.MAX_VOLUME_SECONDS
MAX_UPLOAD_SECONDS = image.MAX_UPLOAD_SECONDS

#: no timestamp is further past the end than this: a request may wait some
#: seconds before its action begins
MAX_OVERRUN_SECONDS = MAX_RESIZE_SECONDS + 60

_PERIODS = {'hour': moments.HOUR, 'day': moments.DAY}
_VOLUMES_PER_SERVER = 0.2
_IMAGES_PER_SERVER = 0.05
_DEFAULT_DAYS = 3
_SHARES = ('failure_share', 'delete_failure_share', 'resize_share',
           'unconfirmed_share', 'duplicates')


@dataclasses.dataclass(eq=False)
class Generator:
    """Yields the notifications of a cloud, in the order of their delivery.

    Each iteration starts anew and yields the same. Servers, volumes and
    images are created throughout the time; those that are alive at its end
    stay alive. No action begins after the end, but one that has begun is
    ended, and the last audit periods are reported: that takes up to
    :data:`MAX_OVERRUN_SECONDS`. The ``MAX_*_SECONDS`` of this module say how
    long an action takes at the most.

    The values inside the payloads and contexts are shared between
    notifications: who wants to change one copies it first.

    :param seed: which of all the possible histories
    :param servers: how many servers are ever created; None for no limit
    :param volumes: how many volumes; None for one to five servers
    :param images: how many images; None for one to twenty servers
    :param start: when it begins, an aware datetime
    :param days: how long it goes on; None for three days, or, with
        ``servers=None``, for ever
    :param arrivals_per_hour: with ``servers=None``, how many servers are
        created in an hour
    :param tenants: how many tenants there are
    :param hosts: how many hosts run servers
    :param failure_share: the share of servers (and volumes) whose creation
        never ends, most with, some without a ``create.error``
    :param delete_failure_share: the share of servers whose first deletion
        never ends; it is asked for again within a day, and then ends
    :param resize_share: the share of servers (and volumes) that are resized
    :param unconfirmed_share: the share of resizes that nobody confirms
    :param updates_per_day: how many ``compute.instance.update`` a server
        sends in a day apart from those in actions
    :param lifetime_hours: mean time from creation to deletion; the longest
        is three times as long
    :param audit_period: 'hour' or 'day': what ``exists`` is sent for, once
        for each server and volume that lived in the period, within
        :data:`MAX_EXISTS_DELAY_SECONDS` of the period's end
    :param form: 'flat', 'endpoint' or 'wire'
    :param spread: up to how many seconds a notification is late
    :param duplicates: the share of notifications that are delivered twice
    :param record: whether to keep the :attr:`truth`, whose memory grows
        with the notifications
    :raises ValueError: when an argument is out of its bounds
    """

    seed: int | str
    _: dataclasses.KW_ONLY
    servers: int | None = 100
    volumes: int | None = None
    images: int | None = None
    start: datetime.datetime = datetime.datetime(
        2013, 10, 1, tzinfo=datetime.timezone.utc)
    days: float | None = None
    arrivals_per_hour: float = 100.0
    tenants: int = 10
    hosts: int = 20
    failure_share: float = 0.05
    delete_failure_share: float = 0.02
    resize_share: float = 0.15
    unconfirmed_share: float = 0.3
    updates_per_day: float = 2.0
    lifetime_hours: float = 24.0
    audit_period: str = 'day'
    form: str = 'flat'
    spread: float = 0.0
    duplicates: float = 0.0
    record: bool = False
    #: what was delivered in the latest iteration so far; None unless
    #: ``record`` is set
    truth: truth_.Truth | None = dataclasses.field(
        default=None, init=False, repr=False)

    def __post_init__(self):
        if self.start.tzinfo is None:
            raise ValueError(f'start is {self.start!r}; it must be aware, '
                             f'for instance with tzinfo=timezone.utc')
        for name in _SHARES:
            self._check(name, 0 <= getattr(self, name) <= 1,
                        'a share, from 0 to 1')
        for name in ('servers', 'volumes', 'images'):
            count = getattr(self, name)
            self._check(name, count is None or count >= 0, '0 or more')
        for name in ('tenants', 'hosts'):
            self._check(name, getattr(self, name) >= 1, '1 or more')
        for name in ('arrivals_per_hour', 'lifetime_hours'):
            self._check(name, getattr(self, name) > 0, 'more than 0')
        self._check('days', self.days is None or self.days > 0,
                    'more than 0')
        for name in ('updates_per_day', 'spread'):
            self._check(name, getattr(self, name) >= 0, '0 or more')
        self._check('audit_period', self.audit_period in _PERIODS,
                    f'one of {", ".join(_PERIODS)}')
        self._check('form', self.form in notification_.FORMS,
                    f'one of {", ".join(notification_.FORMS)}')

    def __iter__(self) -> collections.abc.Iterator[dict]:
        """Start anew."""
        self.truth = truth_.Truth() if self.record else None
        return self._notifications(self.truth)

    def _check(self, name, right, bounds):
        if not right:
            raise ValueError(
                f'{name} is {getattr(self, name)!r}; it must be {bounds}')

    def _notifications(self, truth):
        form = notification_.FORMS[self.form]
        messages = self._cloud().agenda.run()
        if self.spread or self.duplicates:
            messages = delivery.deliver(
                ((message.moment, message) for message in messages),
                self.spread, self.duplicates, self._random('delivery'))
        for message in messages:
            if truth is not None:
                truth.add_facts(notification_.Facts(
                    moments.to_datetime(message.moment), message.message_id,
                    message.event_type, message.payload))
            yield form(message)

    def _cloud(self):
        """Return a new cloud whose agenda has everything on it."""
        start = moments.from_datetime(self.start)
        days = self.days
        if days is None and self.servers is not None:
            days = _DEFAULT_DAYS
        end = moments.NEVER
        if days is not None:
            end = start + int(days * moments.DAY)
        cloud = cloud_.Cloud(
            agenda=agenda_.Agenda(),
            inventory=inventory.Inventory(
                self._random('inventory'), self.tenants, self.hosts),
            habits=cloud_.Habits(
                failure_share=self.failure_share,
                delete_failure_share=self.delete_failure_share,
                resize_share=self.resize_share,
                unconfirmed_share=self.unconfirmed_share,
                updates_per_day=self.updates_per_day,
                lifetime_hours=self.lifetime_hours),
            end=end,
            period=_PERIODS[self.audit_period])
        for kind, count, per_server in (
                (server.Server, self.servers, 1),
                (volume.Volume, self.volumes, _VOLUMES_PER_SERVER),
                (image.Image, self.images, _IMAGES_PER_SERVER)):
            self._populate(cloud, start, kind, count, per_server)
        return cloud

    def _populate(self, cloud, start, kind, count, per_server):
        """Have things of a kind arrive from ``start`` on."""
        if count is None and self.servers is not None:
            count = int(self.servers * per_server)
        if count == 0:
            return
        if self.servers is None:
            interval = moments.HOUR / (self.arrivals_per_hour * per_server)
        else:
            interval = (cloud.end - start) / count
        cloud.agenda.start(_arrivals(
            cloud, self._random(kind.__name__), kind, start, count,
            interval))

    def _random(self, purpose):
        # Each kind of thing draws from its own source, so that having more
        # or fewer volumes leaves the servers as they are.
        return random.Random(f'{self.seed}/{purpose}')


def _arrivals(cloud, rng, kind, start, count, interval):
    """Start ``count`` life cycles, one in each ``interval``."""
    number = 0
    while count is None or number < count:
        moment = start + int((number + rng.random()) * interval)
        if moment >= cloud.end:
            return
        yield moment
        cloud.agenda.start(kind(cloud, rng, moment).live(moment))
        number += 1
