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

"""The inventory: the tenants, hosts, flavors and images that a cloud has."""

import dataclasses
import random

from triggerlib.testing.lifecycle import draw
from triggerlib.testing.lifecycle import message
from triggerlib.testing.lifecycle import moments

_USERS_PER_TENANT = 3
_GLANCE = 'http://glance.example.org:9292/images'

# name, memory in MiB, root disk in GiB, ephemeral disk in GiB, cpus
_FLAVORS = (
    ('m1.tiny', 512, 1, 0, 1),
    ('m1.small', 2048, 20, 0, 1),
    ('m1.medium', 4096, 40, 0, 2),
    ('m1.large', 8192, 80, 0, 4),
    ('m1.xlarge', 16384, 160, 40, 8),
)

# name, distribution, version, architecture
_IMAGES = (
    ('cirros-0.3.1-x86_64', 'cirros', '0.3.1', 'x86_64'),
    ('Ubuntu 12.04 LTS', 'ubuntu', '12.04', 'x86_64'),
    ('Ubuntu 13.04', 'ubuntu', '13.04', 'x86_64'),
    ('Debian 7 (wheezy)', 'debian', '7', 'x86_64'),
    ('Fedora 19', 'fedora', '19', 'i686'),
    ('Windows Server 2012 – Übersee', 'windows', '2012', 'x86_64'),
)

_ZONES = ('nova', 'az-east', 'az-west')


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """Somebody who asks for things, and the tenant that pays."""

    user_id: str
    user_name: str
    tenant_id: str
    tenant_name: str
    address: str

    def context(self, rng: random.Random, moment: int) -> message.Context:
        """Return the context of a new request, made at ``moment``."""
        return message.Context({
            'request_id': f'req-{draw.uuid(rng)}',
            'tenant': self.tenant_id,
            'project_id': self.tenant_id,
            'project_name': self.tenant_name,
            'user': self.user_id,
            'user_id': self.user_id,
            'user_name': self.user_name,
            'is_admin': False,
            'read_deleted': 'no',
            'roles': ['_member_'],
            'remote_address': self.address,
            'timestamp': moments.stamp(moment),
        })


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A machine that runs servers."""

    name: str
    node: str
    zone: str
    publisher_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A size of server; ``facts`` is what a payload says of it."""

    name: str
    facts: dict


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """What a server starts from; ``meta`` is what a payload says of it."""

    name: str
    image_id: str
    url: str
    meta: dict


class Inventory:
    """What there is in the cloud.

    :param rng: where ids are drawn from
    :param tenants: how many tenants
    :param hosts: how many hosts that run servers
    """

    def __init__(self, rng: random.Random, tenants: int, hosts: int):
        self.users = tuple(_users(rng, tenants))
        self.hosts = tuple(
            Host(f'host-{number:02d}', f'host-{number:02d}.example.org',
                 _ZONES[number % len(_ZONES)], f'compute.host-{number:02d}')
            for number in range(1, hosts + 1))
        self.flavors = tuple(
            _flavor(number, *flavor)
            for number, flavor in enumerate(_FLAVORS, 1))
        self.images = tuple(_image(rng, *image) for image in _IMAGES)


def periodic_context(rng: random.Random, moment: int) -> message.Context:
    """Return the context of a service's own task: it is nobody's request."""
    return message.Context({
        'request_id': f'req-{draw.uuid(rng)}',
        'tenant': None,
        'project_id': None,
        'user': None,
        'user_id': None,
        'is_admin': True,
        'read_deleted': 'no',
        'roles': ['admin'],
        'remote_address': None,
        'timestamp': moments.stamp(moment),
    })


def _users(rng, tenants):
    for tenant in range(1, tenants + 1):
        tenant_id = draw.hex_id(rng)
        for user in range(1, _USERS_PER_TENANT + 1):
            yield User(draw.hex_id(rng), f'user-{user}',
                       tenant_id, f'tenant-{tenant}',
                       f'10.{tenant >> 8 & 255}.{tenant & 255}.{user}')


def _flavor(number, name, memory_mb, root_gb, ephemeral_gb, vcpus):
    return Flavor(name, {
        'instance_type': name,
        'instance_type_id': number,
        'instance_flavor_id': str(number),
        'memory_mb': memory_mb,
        'disk_gb': root_gb + ephemeral_gb,
        'root_gb': root_gb,
        'ephemeral_gb': ephemeral_gb,
        'vcpus': vcpus,
    })


def _image(rng, name, distro, version, architecture):
    image_id = draw.uuid(rng)
    return Image(name, image_id, f'{_GLANCE}/{image_id}', {
        'org.openstack__1__architecture': architecture,
        'org.openstack__1__os_distro': distro,
        'org.openstack__1__os_version': version,
        'base_image_ref': image_id,
        'container_format': 'bare',
        'disk_format': 'qcow2',
        'min_disk': '1',
        'min_ram': '0',
    })
