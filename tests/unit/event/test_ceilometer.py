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

"""Ceilometer's own event definitions, unchanged."""

import datetime

from tests import base
from triggerlib.event import Converter
from triggerlib.event import definitions

UTC = datetime.timezone.utc


def notification(event_type, payload, publisher_id='compute.host.example.org'):
    return {
        'ctxt': {'project_id': 'p-ctxt', 'request_id': 'req-1',
                 'user_id': 'u-ctxt'},
        'publisher_id': publisher_id, 'event_type': event_type,
        'priority': 'INFO', 'payload': payload,
        'metadata': {'message_id': 'm-1',
                     'timestamp': '2026-03-01 12:00:00.123456'}}


class TestCeilometersDefinitions(base.TestCase):

    def setUp(self):
        super().setUp()
        self.converter = Converter(definitions.EventDefinitions.load(
            self.shared_path('data', 'ceilometer-event_definitions.yaml')))

    def assertTraits(self, wanted, *arguments):
        event = self.converter.to_event(notification(*arguments))
        self.assertEqual(
            {'message_id': 'm-1', 'request_id': 'req-1', **wanted},
            event.traits)
        self.assertEqual(
            {name: type(value) for name, value in wanted.items()},
            {name: type(event.traits[name]) for name in wanted})

    def test_compute(self):
        self.assertTraits({
            'tenant_id': 't-1', 'user_id': 'u-1', 'instance_id': 'i-1',
            'resource_id': 'i-1', 'display_name': 'büro', 'cell_name': '',
            'host': 'host.example.org', 'service': 'compute',
            'memory_mb': 512, 'disk_gb': 20, 'vcpus': 1,
            'instance_type_id': '2', 'state': 'active',
            'os_architecture': 'x64', 'os_distro': 'ubuntu',
            'launched_at': datetime.datetime(2012, 3, 12, 16, 57, 29,
                                             tzinfo=UTC),
            'old_state': 'building',
        }, 'compute.instance.update', {
            'tenant_id': 't-1', 'user_id': 'u-1', 'instance_id': 'i-1',
            'display_name': 'büro', 'cell_name': '', 'memory_mb': 512,
            'disk_gb': '20', 'vcpus': 1.0, 'instance_type_id': 2,
            'state': 'active', 'old_state': 'building', 'root_gb': None,
            'image_meta': {'org.openstack__1__architecture': 'x64',
                           'org.openstack__1__os_distro': 'ubuntu',
                           'org.openstack__1__os_version': None},
            'launched_at': '2012-03-12 16:57:29', 'deleted_at': '',
            'audit_period_beginning': 'not asked for here'})

    def test_volume(self):
        payload = {
            'user_id': 'u-1', 'tenant_id': 't-1', 'volume_id': 'v-1',
            'host': 'h@lvm#pool', 'size': 10, 'volume_type': None,
            'status': 'in-use', 'display_name': None,
            'availability_zone': 'nova',
            'created_at': '2026-03-01T11:00:00+00:00',
            'glance_metadata': [
                {'key': 'min_ram', 'value': '0'},
                {'key': 'image_id', 'value': 'image-1'}],
            'volume_attachment': [{'server_id': 's-1'},
                                  {'server_id': 's-2'}]}
        wanted = {
            'user_id': 'u-1', 'tenant_id': 't-1', 'project_id': 't-1',
            'resource_id': 'v-1', 'host': 'h@lvm#pool', 'size': 10,
            'status': 'in-use', 'availability_zone': 'nova',
            'created_at': datetime.datetime(2026, 3, 1, 11, tzinfo=UTC),
            'image_id': 'image-1', 'instance_id': 's-1',
            'service': 'volume.h@lvm'}
        self.assertTraits(wanted, 'volume.attach.end', payload,
                          'volume.h@lvm')
        del wanted['image_id'], wanted['instance_id']
        self.assertTraits(wanted, 'volume.attach.end', {
            **payload, 'glance_metadata': [], 'volume_attachment': None,
        }, 'volume.h@lvm')

    def test_image(self):
        self.assertTraits({
            'project_id': 'o-1', 'user_id': 'o-1', 'resource_id': 'image-1',
            'name': 'cirros', 'status': 'active', 'size': 2 ** 40,
            'created_at': datetime.datetime(2026, 3, 1, 11, tzinfo=UTC),
            'service': 'image.glance-1', 'tenant_id': 'p-ctxt',
        }, 'image.update', {
            'id': 'image-1', 'owner': 'o-1', 'name': 'cirros',
            'status': 'active', 'size': 2 ** 40, 'deleted_at': None,
            'created_at': '2026-03-01T11:00:00Z', 'is_public': True,
        }, 'image.glance-1')

    def test_context(self):
        event = self.converter.to_event(notification(
            'identity.user.created', {'resource_info': 'x'}, 'identity.k'))
        self.assertEqual('p-ctxt', event.traits['tenant_id'])
        event = self.converter.to_event(notification(
            'network.create.end', {'network': {'id': 'n-1'}, 'id': 'other'}))
        self.assertEqual('n-1', event.traits['resource_id'])
        event = self.converter.to_event(notification(
            'network.delete.end', {'id': 'n-2'}))
        self.assertEqual('n-2', event.traits['resource_id'])
