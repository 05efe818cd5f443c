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

"""The life of an image, as glance tells it."""

import random

from triggerlib.testing.lifecycle import agenda
from triggerlib.testing.lifecycle import cloud as cloud_
from triggerlib.testing.lifecycle import draw
from triggerlib.testing.lifecycle import message
from triggerlib.testing.lifecycle import moments

#: seconds from image.create to image.upload, at the most
MAX_UPLOAD_SECONDS = 900

_FORMATS = ('qcow2', 'raw', 'vmdk')


class Image:
    """An image: what is known of it now, and what it does with its life.

    :param cloud: where it lives
    :param rng: what its fate is drawn from
    :param moment: when its creation is asked for
    """

    __slots__ = ('_cloud', '_rng', '_user', '_publisher', '_payload')

    def __init__(self, cloud: cloud_.Cloud, rng: random.Random, moment: int):
        self._cloud = cloud
        self._rng = rng
        self._user = draw.pick(rng, cloud.inventory.users)
        self._publisher = f'image.glance-{draw.number(rng, 1, 4):02d}'
        image_id = draw.uuid(rng)
        self._payload = {
            'id': image_id,
            'name': f'snapshot-{image_id[:8]}',
            'status': 'queued',
            'created_at': f'{moments.iso(moment)}Z',
            'updated_at': f'{moments.iso(moment)}Z',
            'deleted_at': None,
            'deleted': False,
            'min_disk': 0,
            'min_ram': 0,
            'protected': False,
            'is_public': False,
            'visibility': 'private',
            'checksum': None,
            'owner': self._user.tenant_id,
            'disk_format': draw.pick(rng, _FORMATS),
            'container_format': 'bare',
            'size': None,
            'virtual_size': None,
            'tags': [],
            'properties': {'image_type': 'snapshot',
                           'user_id': self._user.user_id},
        }

    def live(self, moment: int) -> agenda.LifeCycle:
        """Live through it all, from the request to create it."""
        rng = self._rng
        payload = self._payload
        yield moment
        self._send('image.create', moment)
        took = draw.long_tailed(rng, 2, MAX_UPLOAD_SECONDS - 1)
        start = moment
        moment = start + took // 10
        yield moment
        payload['status'] = 'saving'
        self._send('image.update', moment)
        moment = start + took
        yield moment
        payload['status'] = 'active'
        payload['size'] = draw.number(rng, 10**7, 10**10)
        payload['checksum'] = draw.hex_id(rng)
        self._send('image.upload', moment)
        moment += draw.wait(rng, 0.1, 1)
        yield moment
        self._send('image.update', moment)
        moment += draw.long_tailed(
            rng, 60, self._cloud.habits.lifetime_hours * 10800)
        if moment < self._cloud.end:
            yield moment
            payload['status'] = 'deleted'
            payload['deleted'] = True
            payload['deleted_at'] = f'{moments.iso(moment)}Z'
            self._send('image.delete', moment)

    def _send(self, event_type, moment):
        self._payload['updated_at'] = f'{moments.iso(moment)}Z'
        self._cloud.agenda.send(message.Message(
            moment, draw.uuid(self._rng), event_type, self._publisher,
            'INFO', self._user.context(self._rng, moment),
            self._payload.copy()))
