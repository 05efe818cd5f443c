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

"""The life of a volume, as cinder tells it.

As with servers, an action that has begun before the cloud's end is told to
its end.
"""

import random

from triggerlib.testing.lifecycle import agenda
from triggerlib.testing.lifecycle import audit
from triggerlib.testing.lifecycle import cloud as cloud_
from triggerlib.testing.lifecycle import draw
from triggerlib.testing.lifecycle import inventory as inventory_
from triggerlib.testing.lifecycle import message
from triggerlib.testing.lifecycle import moments

#: seconds from the start to the end of any action on a volume, at the most
MAX_VOLUME_SECONDS = 300

_ATTACH_SHARE = 0.8
_BOOTABLE_SHARE = 0.3
_SIZES = (1, 10, 50, 100, 500)
_TYPES = ('lvm', 'ssd')


class Volume:
    """A volume: what is known of it now, and what it does with its life.

    :param cloud: where it lives
    :param rng: what its fate is drawn from
    :param moment: when its creation is asked for
    """

    __slots__ = ('_cloud', '_rng', '_user', '_publisher', '_payload',
                 'deleted')

    def __init__(self, cloud: cloud_.Cloud, rng: random.Random, moment: int):
        inventory = cloud.inventory
        self._cloud = cloud
        self._rng = rng
        self._user = draw.pick(rng, inventory.users)
        self.deleted = None
        kind = draw.pick(rng, _TYPES)
        host = f'cinder-{draw.number(rng, 1, 5):02d}@{kind}'
        self._publisher = f'volume.{host}'
        volume_id = draw.uuid(rng)
        self._payload = {
            'tenant_id': self._user.tenant_id,
            'host': f'{host}#{kind}',
            'user_id': self._user.user_id,
            'availability_zone': 'nova',
            'volume_id': volume_id,
            'volume_type': kind,
            'display_name': f'volume-{volume_id[:8]}',
            'launched_at': None,
            'created_at': f'{moments.iso(moment)}+00:00',
            'status': 'creating',
            'snapshot_id': None,
            'size': draw.pick(rng, _SIZES),
            'replication_status': None,
            'replication_extended_status': None,
            'replication_driver_data': None,
            'metadata': {'purpose': 'data'},
            'volume_attachment': [],
        }
        if rng.random() < _BOOTABLE_SHARE:
            image = draw.pick(rng, inventory.images)
            self._payload['glance_metadata'] = [
                {'key': 'image_id', 'value': image.image_id},
                {'key': 'image_name', 'value': image.name}]

    def live(self, moment: int) -> agenda.LifeCycle:
        """Live through it all, from the request to create it."""
        rng = self._rng
        habits = self._cloud.habits
        failed = rng.random() < habits.failure_share
        moment = yield from self._create(moment, failed)
        if failed:
            return
        lifetime = draw.long_tailed(rng, 1800, habits.lifetime_hours * 10800)
        delete_at = moment + lifetime
        if rng.random() < habits.resize_share:
            resize_at = moment + int(rng.random() * lifetime / 2)
            if resize_at >= self._cloud.end:
                return
            yield resize_at
            moment = yield from self._resize(resize_at)
        if rng.random() < _ATTACH_SHARE:
            attach_at = moment + draw.long_tailed(rng, 1, 3600)
            detach_at = max(attach_at + draw.wait(rng, 300, 600),
                            delete_at - draw.wait(rng, 300, 3600))
            if attach_at >= self._cloud.end:
                return
            yield attach_at
            moment = attach_at
            server = draw.pick(rng, self._cloud.newest_servers or (None,))
            if server is not None and server.deleted is None:
                yield from self._attach(attach_at, server)
                if detach_at >= self._cloud.end:
                    return
                yield detach_at
                moment = yield from self._detach(detach_at)
        delete_at = max(delete_at, moment + moments.MINUTE)
        if delete_at < self._cloud.end:
            yield delete_at
            yield from self._delete(delete_at)

    def exists(self, moment: int, beginning: int, ending: int) -> None:
        """Send ``volume.exists`` of that audit period."""
        context = inventory_.periodic_context(self._rng, moment)
        self._send('volume.exists', moment, context, {
            'audit_period_beginning': moments.second(beginning),
            'audit_period_ending': moments.second(ending)})

    def _create(self, moment, failed):
        context = self._user.context(self._rng, moment)
        yield moment
        self._send('volume.create.start', moment, context)
        moment += self._took()
        yield moment
        if failed:
            return moment
        launched = moment - moment % moments.SECOND
        self._payload['status'] = 'available'
        self._payload['launched_at'] = f'{moments.iso(launched)}+00:00'
        self._send('volume.create.end', moment, context)
        self._cloud.agenda.start(
            audit.audit(self._cloud, self._rng, self, launched))
        return moment

    def _resize(self, moment):
        context = self._user.context(self._rng, moment)
        self._payload['status'] = 'extending'
        self._send('volume.resize.start', moment, context)
        moment += self._took()
        yield moment
        self._payload['status'] = 'available'
        self._payload['size'] *= 2
        self._send('volume.resize.end', moment, context)
        return moment

    def _attach(self, moment, server):
        context = self._user.context(self._rng, moment)
        self._payload['status'] = 'attaching'
        self._send('volume.attach.start', moment, context)
        moment += self._took()
        yield moment
        self._payload['status'] = 'in-use'
        self._payload['volume_attachment'] = [{
            'id': draw.uuid(self._rng),
            'volume_id': self._payload['volume_id'],
            'server_id': server.instance_id,
            'instance_uuid': server.instance_id,
            'attached_host': server.host_name,
            'mountpoint': '/dev/vdb',
            'attach_status': 'attached',
            'attach_mode': 'rw',
            'attach_time': f'{moments.iso(moment)}+00:00',
        }]
        self._send('volume.attach.end', moment, context)
        return moment

    def _detach(self, moment):
        context = self._user.context(self._rng, moment)
        self._payload['status'] = 'detaching'
        self._send('volume.detach.start', moment, context)
        moment += self._took()
        yield moment
        self._payload['status'] = 'available'
        self._payload['volume_attachment'] = []
        self._send('volume.detach.end', moment, context)
        return moment

    def _delete(self, moment):
        context = self._user.context(self._rng, moment)
        self._payload['status'] = 'deleting'
        self._send('volume.delete.start', moment, context)
        moment += self._took()
        yield moment
        self.deleted = moment
        self._payload['status'] = 'deleted'
        self._send('volume.delete.end', moment, context)

    def _took(self):
        return draw.long_tailed(self._rng, 1, MAX_VOLUME_SECONDS - 1)

    def _send(self, event_type, moment, context, more=None):
        payload = self._payload.copy()
        if more:
            payload.update(more)
        self._cloud.agenda.send(message.Message(
            moment, draw.uuid(self._rng), event_type, self._publisher,
            'INFO', context, payload))
