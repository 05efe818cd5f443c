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

"""Tests of the three forms of a notification."""

import io
import json
import re

from tests import base
from triggerlib import testing
from triggerlib.testing import notification

FORMS = ('flat', 'endpoint', 'wire')


class FormsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.streams = {
            form: list(testing.Generator(5, servers=20, form=form))
            for form in FORMS}

    def test_same_facts(self):
        flat, endpoint, wire = (
            [notification.read(each) for each in self.streams[form]]
            for form in FORMS)
        self.assertGreater(len(flat), 200)
        self.assertEqual(flat, endpoint)
        self.assertEqual(flat, wire)

    def test_wire_holds_the_flat_form(self):
        self.assertEqual(
            self.streams['flat'],
            [json.loads(each['oslo.message'])
             for each in self.streams['wire']])
        for each in self.streams['wire']:
            self.assertEqual({'oslo.version', 'oslo.message'}, set(each))
            self.assertEqual('2.0', each['oslo.version'])

    def test_endpoint_holds_the_same_context(self):
        for flat, endpoint in zip(self.streams['flat'],
                                  self.streams['endpoint']):
            self.assertEqual(
                {key.removeprefix('_context_'): value
                 for key, value in flat.items()
                 if key.startswith('_context_')},
                endpoint['ctxt'])
            self.assertEqual({'message_id', 'timestamp'},
                             set(endpoint['metadata']))
            for key in ('publisher_id', 'event_type', 'priority'):
                self.assertEqual(flat[key], endpoint[key])

    def test_written_as_nova_does(self):
        for each in self.streams['flat']:
            self.assertRegex(
                each['timestamp'],
                r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$')
            self.assertRegex(each['_context_request_id'], '^req-')
            self.assertRegex(
                each['message_id'],
                '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}'
                '-[0-9a-f]{12}$')

    def assertRegex(self, text, pattern):
        self.assertIsNotNone(re.search(pattern, text), text)


class ReadTest(base.TestCase):

    def test_not_a_notification(self):
        self.assertRaises(KeyError, notification.read, {'payload': {}})
        self.assertRaises(ValueError, notification.read,
                          {'timestamp': 'noon', 'message_id': 'm'})

    def test_zones(self):
        body = {'message_id': 'm', 'event_type': 't', 'payload': {}}
        naive, aware = (
            notification.read({**body, 'timestamp': text}).timestamp
            for text in ('2012-03-12 17:01:29.5',
                         '2012-03-12 19:01:29.5+02:00'))
        self.assertEqual(naive, aware)


class WriteJsonlTest(base.TestCase):

    def test_one_a_line(self):
        given = list(testing.Generator(5, servers=10))
        stream = io.StringIO()
        self.assertEqual(len(given), testing.write_jsonl(given, stream))
        lines = stream.getvalue().splitlines()
        self.assertTrue(stream.getvalue().endswith('\n'))
        self.assertEqual(given, [json.loads(line) for line in lines])

    def test_nothing(self):
        stream = io.StringIO()
        self.assertEqual(0, testing.write_jsonl([], stream))
        self.assertEqual('', stream.getvalue())
