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

"""The life of a server, as nova tells it.

Each action (create, resize, confirm, delete) is one request: its
notifications have the request id in common. An action that has begun before
the cloud's end is told to its end; after that, none begins. Nova's further
``exists`` in the midst of a period, at a resize, is left out, so that there
is exactly one for each server and period.
"""

import random

from triggerlib.testing.lifecycle import agenda
from triggerlib.testing.lifecycle import audit
from triggerlib.testing.lifecycle import cloud as cloud_
from triggerlib.testing.lifecycle import draw
from triggerlib.testing.lifecycle import inventory as inventory_
from triggerlib.testing.lifecycle import message
from triggerlib.testing.lifecycle import moments

#: seconds from create.start to create.end or create.error, at the most
MAX_CREATE_SECONDS = 600
#: seconds from delete.start to delete.end, at the most
MAX_DELETE_SECONDS = 300
#: seconds from resize.prep.start to finish_resize.end, at the most
MAX_RESIZE_SECONDS = 1800
#: seconds from resize.confirm.start to resize.confirm.end, at the most
MAX_CONFIRM_SECONDS = 300

# Of the creations that fail, those that nova does not even report.
_SILENT_SHARE = 0.3
# Of the servers that failed to come up, those that their user deletes.
_CLEANUP_SHARE = 0.5
# A deletion that failed is tried again after so many seconds.
_RETRY_DELETE = (3600, 86400)
_CLEANUP_AFTER = (600, 6 * 3600)
_CONFIRM_AFTER = (30, 3600)

_API = 'api.nova-api-01'
_NAMES = ('web', 'db', 'cache', 'worker', 'build', 'büro', 'データ')
_ROLES = ('web', 'db', 'batch')


class Server:
    """A server: what is known of it now, and what it does with its life.

    :param cloud: where it lives
    :param rng: what its fate is drawn from
    :param moment: when its creation is asked for
    """

    __slots__ = ('_cloud', '_rng', '_user', '_host', '_image', '_flavor',
                 '_payload', 'deleted')

    def __init__(self, cloud: cloud_.Cloud, rng: random.Random, moment: int):
        inventory = cloud.inventory
        self._cloud = cloud
        self._rng = rng
        self._user = draw.pick(rng, inventory.users)
        self._host = draw.pick(rng, inventory.hosts)
        self._image = draw.pick(rng, inventory.images)
        self._flavor = draw.pick(rng, inventory.flavors)
        self.deleted = None
        serial = draw.number(rng, 1, 10000)
        name = f'{draw.pick(rng, _NAMES)}-{serial:04d}'
        meta = self._image.meta
        self._payload = {
            'tenant_id': self._user.tenant_id,
            'user_id': self._user.user_id,
            'instance_id': draw.uuid(rng),
            'display_name': name,
            'hostname': f'server-{serial:04d}',
            'reservation_id': f'r-{rng.getrandbits(40):010x}',
            **self._flavor.facts,
            'architecture': meta['org.openstack__1__architecture'],
            'os_type': None,
            'kernel_id': '',
            'ramdisk_id': '',
            'host': None,
            'node': None,
            'availability_zone': None,
            'cell_name': '',
            'state': 'building',
            'state_description': 'scheduling',
            'progress': '',
            'created_at': moments.second(moment),
            # Nova writes '' for a time that has not come.
            'launched_at': '',
            'terminated_at': '',
            'deleted_at': '',
            'access_ip_v4': None,
            'access_ip_v6': None,
            'image_ref_url': self._image.url,
            'image_meta': meta,
            'metadata': {'role': draw.pick(rng, _ROLES)},
        }

    @property
    def instance_id(self) -> str:
        """The server's id."""
        return self._payload['instance_id']

    @property
    def host_name(self) -> str:
        """The name of the host that it runs on."""
        return self._host.name

    @property
    def user(self) -> inventory_.User:
        """Who owns it."""
        return self._user

    def live(self, moment: int) -> agenda.LifeCycle:
        """Live through it all, from the request to create it."""
        habits = self._cloud.habits
        if self._rng.random() < habits.failure_share:
            moment = yield from self._create_in_vain(moment)
            if self._rng.random() < _CLEANUP_SHARE:
                moment += draw.wait(self._rng, *_CLEANUP_AFTER)
                if moment < self._cloud.end:
                    yield moment
                    yield from self._delete(moment)
            return
        moment = yield from self._create(moment)
        self._cloud.newest_servers.append(self)
        moment = yield from self._serve(moment)
        if moment is None:
            return
        if self._rng.random() < habits.delete_failure_share:
            moment = yield from self._delete_in_vain(moment)
            moment += draw.wait(self._rng, *_RETRY_DELETE)
            if moment >= self._cloud.end:
                return
            yield moment
        yield from self._delete(moment)

    def exists(self, moment: int, beginning: int, ending: int) -> None:
        """Send ``compute.instance.exists`` of that audit period."""
        rng = self._rng
        self._send('compute.instance.exists', moment,
                   inventory_.periodic_context(rng, moment), {
                       'audit_period_beginning': moments.second(beginning),
                       'audit_period_ending': moments.second(ending),
                       'bandwidth': {
                           'public': {'bw_in': draw.number(rng, 0, 10**8),
                                      'bw_out': draw.number(rng, 0, 10**9)},
                           'private': {'bw_in': 0, 'bw_out': 0}},
                   })

    def _create(self, moment):
        """Come up; return when that was done."""
        rng = self._rng
        context, start = yield from self._build(moment)
        took = draw.long_tailed(rng, 8, MAX_CREATE_SECONDS - 1)
        moment = start + took * 3 // 10
        yield moment
        self._update(moment, context, 'building', 'spawning')
        moment = start + took * 19 // 20
        yield moment
        launched = moment - moment % moments.SECOND
        self._payload['launched_at'] = moments.second(launched)
        self._update(moment, context, 'active', None)
        self._cloud.agenda.start(
            audit.audit(self._cloud, rng, self, launched))
        moment = start + took
        yield moment
        self._send('compute.instance.create.end', moment, context, {
            'fixed_ips': self._addresses(), 'message': 'Success'})
        return moment

    def _create_in_vain(self, moment):
        """Fail to come up; return when that was clear."""
        context, start = yield from self._build(moment)
        took = draw.long_tailed(self._rng, 8, MAX_CREATE_SECONDS - 1)
        silent = self._rng.random() < _SILENT_SHARE
        moment = start + took // 2
        yield moment
        self._update(moment, context, 'building', 'spawning')
        if silent:
            return moment
        moment = start + took * 19 // 20
        yield moment
        self._update(moment, context, 'error', None)
        moment = start + took
        yield moment
        self._send('compute.instance.create.error', moment, context, {
            'code': 500,
            'message': 'Failed to spawn: the hypervisor gave up',
            'exception': {'kwargs': {'instance_uuid': self.instance_id}},
        }, priority='ERROR')
        return moment

    def _build(self, moment):
        """Be scheduled to a host; return the context and when it began."""
        rng = self._rng
        context = self._user.context(rng, moment)
        yield moment
        self._update(moment, context, 'building', 'scheduling', _API)
        start = moment = moment + draw.wait(rng, 0.1, 3)
        yield moment
        self._move(self._host)
        self._send('compute.instance.create.start', moment, context,
                   {'image_name': self._image.name})
        moment = start + draw.wait(rng, 0.1, 2)
        yield moment
        self._update(moment, context, 'building', 'networking')
        return context, start

    def _serve(self, moment):
        """Be up; return when to be deleted, or None if never."""
        rng = self._rng
        habits = self._cloud.habits
        # The square of a share of 0 to 1 is a third in the mean.
        lifetime = draw.long_tailed(rng, 60, habits.lifetime_hours * 10800)
        delete_at = moment + lifetime
        resize_at = moments.NEVER
        if rng.random() < habits.resize_share:
            resize_at = moment + int(rng.random() * lifetime)
        update_at = self._next_update(moment)
        while True:
            moment = min(update_at, resize_at, delete_at)
            if moment >= self._cloud.end:
                return None
            yield moment
            if moment == delete_at:
                return moment
            if moment == update_at:
                self._update(moment, self._user.context(rng, moment),
                             self._payload['state'], None, _API)
                update_at = self._next_update(moment)
            else:
                done = yield from self._resize(moment)
                resize_at = moments.NEVER
                update_at = max(update_at, done + moments.SECOND)
                delete_at = max(delete_at, done + moments.MINUTE)

    def _next_update(self, moment):
        rate = self._cloud.habits.updates_per_day
        if not rate:
            return moments.NEVER
        return moment + int(2 * self._rng.random() * moments.DAY / rate) + 1

    def _resize(self, moment):
        """Change the flavor, and the host; return when that was done."""
        rng = self._rng
        inventory = self._cloud.inventory
        context = self._user.context(rng, moment)
        flavor = draw.pick(rng, inventory.flavors)
        target = draw.pick(rng, inventory.hosts)
        source = self._host
        wanted = {'new_instance_type': flavor.name,
                  'new_instance_type_id': flavor.facts['instance_type_id']}
        took = draw.long_tailed(rng, 20, MAX_RESIZE_SECONDS - 1)
        self._update(moment, context, 'active', 'resize_prep', _API)
        start = moment = moment + self._cast()
        yield moment
        self._send('compute.instance.resize.prep.start', moment, context,
                   publisher=target.publisher_id)
        moment = start + took // 20
        yield moment
        self._send('compute.instance.resize.prep.end', moment, context,
                   wanted, publisher=target.publisher_id)
        moment = start + took // 10
        yield moment
        self._update(moment, context, 'active', 'resize_migrating')
        moment = start + took // 8
        yield moment
        self._send('compute.instance.resize.start', moment, context)
        moment = start + took // 2
        yield moment
        self._update(moment, context, 'active', 'resize_migrated')
        moment = start + took // 10 * 6
        yield moment
        self._send('compute.instance.resize.end', moment, context)
        moment = start + took // 10 * 7
        yield moment
        self._move(target)
        self._flavor = flavor
        self._payload.update(flavor.facts)
        self._update(moment, context, 'active', 'resize_finish')
        moment = start + took // 10 * 8
        yield moment
        self._send('compute.instance.finish_resize.start', moment, context)
        moment = start + took // 10 * 9
        yield moment
        self._update(moment, context, 'resized', None)
        moment = start + took
        yield moment
        self._send('compute.instance.finish_resize.end', moment, context,
                   {'fixed_ips': self._addresses()})
        if rng.random() < self._cloud.habits.unconfirmed_share:
            return moment
        asked = moment + draw.long_tailed(rng, *_CONFIRM_AFTER)
        if asked >= self._cloud.end:
            return moment
        yield asked
        return (yield from self._confirm(asked, source))

    def _confirm(self, moment, source):
        """Have the resize confirmed; return when that was done."""
        context = self._user.context(self._rng, moment)
        self._send('compute.instance.resize.confirm.start', moment, context,
                   publisher=source.publisher_id)
        took = draw.wait(self._rng, 1, MAX_CONFIRM_SECONDS - 1)
        start = moment
        moment = start + took * 9 // 10
        yield moment
        self._update(moment, context, 'active', None)
        moment = start + took
        yield moment
        self._send('compute.instance.resize.confirm.end', moment, context,
                   publisher=source.publisher_id)
        return moment

    def _delete_in_vain(self, moment):
        """Have a deletion begin that never ends; return when it stopped."""
        context = self._user.context(self._rng, moment)
        self._update(moment, context, self._payload['state'], 'deleting',
                     _API)
        moment += self._cast()
        yield moment
        self._send('compute.instance.delete.start', moment, context)
        moment += draw.wait(self._rng, 1, MAX_DELETE_SECONDS - 1)
        yield moment
        self._send('compute.instance.shutdown.start', moment, context)
        return moment

    def _delete(self, moment):
        """Be deleted."""
        rng = self._rng
        context = self._user.context(rng, moment)
        self._update(moment, context, self._payload['state'], 'deleting',
                     _API)
        took = draw.long_tailed(rng, 2, MAX_DELETE_SECONDS - 1)
        start = moment = moment + self._cast()
        yield moment
        self._send('compute.instance.delete.start', moment, context)
        moment = start + took // 10
        yield moment
        self._send('compute.instance.shutdown.start', moment, context)
        moment = start + took // 2
        yield moment
        self._send('compute.instance.shutdown.end', moment, context)
        moment = start + took * 9 // 10
        yield moment
        self.deleted = moment - moment % moments.SECOND
        self._payload['terminated_at'] = moments.second(self.deleted)
        self._payload['deleted_at'] = moments.second(self.deleted)
        self._update(moment, context, 'deleted', None)
        moment = start + took
        yield moment
        self._send('compute.instance.delete.end', moment, context)

    def _cast(self):
        """Return how long a request takes from the API to the host."""
        return draw.wait(self._rng, 0.01, 0.5)

    def _move(self, host):
        self._host = host
        self._payload['host'] = host.name
        self._payload['node'] = host.node
        self._payload['availability_zone'] = host.zone

    def _addresses(self):
        rng = self._rng
        fourth = draw.number(rng, 2, 255)
        return [
            {'label': 'private', 'type': 'fixed', 'version': 4,
             'address': f'10.{draw.number(rng, 0, 256)}.0.{fourth}',
             'vif_mac': f'fa:16:3e:00:00:{fourth:02x}',
             'floating_ips': [], 'meta': {}},
            {'label': 'private', 'type': 'fixed', 'version': 6,
             'address': f'fe80::f816:3eff:fe00:{fourth:x}',
             'vif_mac': f'fa:16:3e:00:00:{fourth:02x}',
             'floating_ips': [], 'meta': {}},
        ]

    def _update(self, moment, context, state, task, publisher=None):
        """Go over to ``state`` and ``task``, and send that."""
        payload = self._payload
        old_state = payload['state']
        old_task = payload['state_description']
        payload['state'] = state
        payload['state_description'] = task or ''
        self._send('compute.instance.update', moment, context, {
            'old_state': old_state,
            'old_task_state': old_task or None,
            'new_task_state': task,
            'audit_period_beginning': moments.second(
                self._cloud.period_begin(moment)),
            'audit_period_ending': moments.second(moment),
            'bandwidth': {},
        }, publisher)

    def _send(self, event_type, moment, context, more=None, publisher=None,
              priority='INFO'):
        payload = self._payload.copy()
        if more:
            payload.update(more)
        self._cloud.agenda.send(message.Message(
            moment, draw.uuid(self._rng), event_type,
            publisher or self._host.publisher_id, priority, context,
            payload))
