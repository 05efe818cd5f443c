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

"""The blueprints' notifications, by the blueprints' definitions."""

import datetime
import json
import re

from tests import base
from triggerlib.event import Converter
from triggerlib.event import definitions

DEFINITIONS = base.ROOT / 'tests' / 'data' / 'event_definitions.yaml'


def moment(*parts):
    return datetime.datetime(2012, 3, *parts, tzinfo=datetime.timezone.utc)


class TestExamples(base.TestCase):

    def setUp(self):
        super().setUp()
        text = self.shared_path(
            'blueprints', 'notification-examples.txt').read_text(
                encoding='utf-8')
        bodies = [json.loads(block) for block in re.findall(
            r'<pre><nowiki>\s*(\{.*?\})\s*</nowiki></pre>', text, re.S)]
        self.bodies = {body['event_type']: body for body in bodies}
        self.assertEqual(3, len(self.bodies))
        self.converter = Converter(
            definitions.EventDefinitions.load(DEFINITIONS))

    def assertEvent(self, event_type, message_id, timestamp, traits):
        event = self.converter.to_event(self.bodies[event_type])
        self.assertEqual(message_id, event.message_id)
        self.assertEqual(event_type, event.event_type)
        self.assertEqual(timestamp, event.timestamp)
        self.assertEqual({'message_id': message_id, **traits}, event.traits)
        self.assertIs(int, type(event.traits['instance_type_id']))

    def test_immediate(self):
        self.assertEvent(
            'compute.instance.resize.confirm.start',
            '1234653e-ce46-4a82-979f-a9286cac5258',
            moment(12, 17, 1, 29, 899834), {
                'service': 'compute.compute-1-2-3-4',
                'tenant_id': '12345',
                'user_id': '67890',
                'instance_id': 'abcbd165-fd41-4fd7-96ac-d70639a042c1',
                'host': 'compute-1-2-3-4',
                'service_name': 'compute',
                'instance_type_id': 2,
                'launched_at': moment(12, 16, 57, 29)})
        self.assertEvent(
            'compute.instance.create.end',
            '00004e00-8da5-4c39-8ffb-c94ed0b5278c',
            moment(12, 17, 0, 24, 156710), {
                'service': 'compute.compute-1-5-6-7',
                'tenant_id': '12345',
                'user_id': '67890',
                'instance_id': 'abcdef01-7b76-4b43-9143-fb2385df48a3',
                'host': 'compute-1-5-6-7',
                'service_name': 'compute',
                'instance_type_id': 2,
                'launched_at': moment(12, 17, 0, 23, 998518)})

    def test_periodic(self):
        self.assertEvent(
            'compute.instance.exists',
            '0ab1ac0a-2867-402d-83c7-d7087262470c', moment(13, 17, 1), {
                'service': 'api.node-127-0-1-42',
                'tenant_id': '12345',
                'user_id': '67890',
                'instance_id': '8888eeee-f1d0-4fd7-96ac-d70639a042c1',
                'host': 'node-127-0-1-42',
                'service_name': 'api',
                'instance_type_id': 2,
                'launched_at': moment(12, 16, 57, 29),
                'audit_period_beginning': moment(12, 6),
                'audit_period_ending': moment(13, 6)})
