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

"""Tests of the life cycles: is what they tell a life that can be?"""

import collections
import datetime
import json

from tests import base
from triggerlib import testing
from triggerlib.testing import generator
from triggerlib.testing import notification

UTC = datetime.timezone.utc
START = datetime.datetime(2013, 10, 1, tzinfo=UTC)
DAYS = 4

# start, end, the longest time between them, whether an end may be missing
ACTIONS = (
    ('compute.instance.create.start', 'compute.instance.create.end',
     generator.MAX_CREATE_SECONDS, True),
    ('compute.instance.resize.prep.start',
     'compute.instance.finish_resize.end',
     generator.MAX_RESIZE_SECONDS, False),
    ('compute.instance.resize.prep.start',
     'compute.instance.resize.prep.end',
     generator.MAX_RESIZE_SECONDS, False),
    ('compute.instance.resize.start', 'compute.instance.resize.end',
     generator.MAX_RESIZE_SECONDS, False),
    ('compute.instance.finish_resize.start',
     'compute.instance.finish_resize.end',
     generator.MAX_RESIZE_SECONDS, False),
    ('compute.instance.resize.confirm.start',
     'compute.instance.resize.confirm.end',
     generator.MAX_CONFIRM_SECONDS, False),
    ('compute.instance.delete.start', 'compute.instance.delete.end',
     generator.MAX_DELETE_SECONDS, True),
    ('compute.instance.shutdown.start', 'compute.instance.shutdown.end',
     generator.MAX_DELETE_SECONDS, True),
    ('volume.create.start', 'volume.create.end',
     generator.MAX_VOLUME_SECONDS, True),
    ('volume.attach.start', 'volume.attach.end',
     generator.MAX_VOLUME_SECONDS, False),
    ('volume.resize.start', 'volume.resize.end',
     generator.MAX_VOLUME_SECONDS, False),
    ('volume.detach.start', 'volume.detach.end',
     generator.MAX_VOLUME_SECONDS, False),
    ('volume.delete.start', 'volume.delete.end',
     generator.MAX_VOLUME_SECONDS, False),
)


def moment(value):
    """Read a time from a payload."""
    result = datetime.datetime.fromisoformat(value)
    return result if result.tzinfo else result.replace(tzinfo=UTC)


class LifeCycleTest(base.TestCase):

    def generate(self, **arguments):
        """Return the notifications and what they say, thing by thing."""
        arguments = {
            'servers': 300, 'volumes': 100, 'images': 40, 'start': START,
            'days': DAYS, 'failure_share': 0.1, 'resize_share': 0.5,
            'delete_failure_share': 0.1, 'lifetime_hours': 16, **arguments}
        bodies = list(testing.Generator(11, **arguments))
        things = collections.defaultdict(list)
        for body in bodies:
            payload = body['payload']
            kind = body['event_type'].split('.')[0]
            key = {'compute': 'instance_id', 'volume': 'volume_id',
                   'image': 'id'}[kind]
            things[kind, payload[key]].append(
                (notification.read(body), body))
        return bodies, things

    def test_each_action_is_one_request(self):
        bodies, things = self.generate()
        for start, end, longest, may_fail in ACTIONS:
            begun = collections.Counter()
            seconds = []
            for life in things.values():
                open_ = {}
                for facts, body in life:
                    request = body['_context_request_id']
                    if facts.event_type == start:
                        self.assertNotIn(request, open_)
                        open_[request] = facts.timestamp
                        begun[request] += 1
                    elif facts.event_type == end:
                        took = facts.timestamp - open_.pop(request)
                        seconds.append(took.total_seconds())
                if not may_fail:
                    self.assertEqual({}, open_)
            self.assertEqual({1}, set(begun.values()), start)
            self.assertTrue(0 < min(seconds), start)
            self.assertLessEqual(max(seconds), longest, start)
            self.assertEqual(may_fail, len(seconds) < len(begun), start)

    def test_each_report_is_a_request_of_its_own(self):
        bodies, _ = self.generate()
        requests = [body['_context_request_id'] for body in bodies
                    if body['event_type'].endswith('.exists')]
        self.assertGreater(len(requests), 100)
        self.assertEqual(len(requests), len(set(requests)))

    def test_states_are_passed_on(self):
        _, things = self.generate()
        for (kind, _), life in things.items():
            if kind != 'compute':
                continue
            state, task = 'building', 'scheduling'
            for facts, _ in life:
                payload = facts.payload
                if facts.event_type == 'compute.instance.update':
                    self.assertEqual(state, payload['old_state'])
                    self.assertEqual(task or None,
                                     payload['old_task_state'])
                    state = payload['state']
                    task = payload['new_task_state'] or ''
                self.assertEqual(state, payload['state'])
                self.assertEqual(task, payload['state_description'])

    def test_order_of_a_servers_life(self):
        _, things = self.generate()
        deleted = 0
        for (kind, _), life in things.items():
            if kind != 'compute':
                continue
            types = [facts.event_type.removeprefix('compute.instance.')
                     for facts, _ in life]
            self.assertEqual(['update', 'create.start', 'update'], types[:3])
            if 'delete.end' in types:
                deleted += 1
                after = types[types.index('delete.end') + 1:]
                self.assertTrue(set(after) <= {'exists'}, after)
            if 'resize.confirm.start' in types:
                self.assertLess(types.index('finish_resize.end'),
                                types.index('resize.confirm.start'))
            facts = life[-1][0]
            launched = facts.payload['launched_at']
            self.assertEqual('create.end' in types, bool(launched))
            self.assertEqual('delete.end' in types,
                             bool(facts.payload['deleted_at']))
        self.assertGreater(deleted, 50)

    def test_exists_is_sent_once_for_each_period_lived_in(self):
        for name, length in (('hour', 3600), ('day', 86400)):
            length = datetime.timedelta(seconds=length)
            _, things = self.generate(audit_period=name, servers=80)
            end = START + datetime.timedelta(days=DAYS)
            for kind, event_type, born_key in (
                    ('compute', 'compute.instance.exists', 'launched_at'),
                    ('volume', 'volume.exists', 'launched_at')):
                reported = 0
                for (own_kind, _), life in things.items():
                    if own_kind != kind:
                        continue
                    reported += self.check_exists(
                        life, event_type, born_key, length, end)
                self.assertGreater(reported, 100)

    def check_exists(self, life, event_type, born_key, length, end):
        """Compare a thing's reports with its life; return their number."""
        born = life[-1][0].payload[born_key]
        dead = None
        for facts, _ in life:
            if facts.event_type == 'compute.instance.delete.end':
                dead = moment(facts.payload['deleted_at'])
            elif facts.event_type == 'volume.delete.end':
                dead = facts.timestamp
        expected = []
        beginning = START
        while born and beginning + length <= end:
            if (moment(born) < beginning + length
                    and (dead is None or dead > beginning)):
                expected.append((beginning, beginning + length))
            beginning += length
        found = []
        for facts, _ in life:
            if facts.event_type != event_type:
                continue
            ending = moment(facts.payload['audit_period_ending'])
            found.append(
                (moment(facts.payload['audit_period_beginning']), ending))
            late = (facts.timestamp - ending).total_seconds()
            self.assertTrue(
                0 < late <= generator.MAX_EXISTS_DELAY_SECONDS, late)
        self.assertEqual(expected, found)
        return len(found)

    def test_failure_shares(self):
        for share in (0, 1):
            bodies, _ = self.generate(failure_share=share)
            counts = collections.Counter(
                body['event_type'] for body in bodies)
            self.assertEqual(300, counts['compute.instance.create.start'])
            self.assertEqual(300 * (1 - share),
                             counts['compute.instance.create.end'])
            self.assertEqual(100 * (1 - share), counts['volume.create.end'])
            errors = counts['compute.instance.create.error']
            if share:
                # Some fail without a word.
                self.assertTrue(150 < errors < 290, errors)
                self.assertEqual(0, counts['compute.instance.exists'])
            else:
                self.assertEqual(0, errors)

    def test_other_shares(self):
        bodies, _ = self.generate(resize_share=0)
        self.assertEqual([], [body for body in bodies
                              if 'resize' in body['event_type']])
        for share in (0, 1):
            bodies, _ = self.generate(unconfirmed_share=share)
            confirmed = [body for body in bodies
                         if 'resize.confirm' in body['event_type']]
            self.assertEqual(bool(share), not confirmed)
        bodies, _ = self.generate(delete_failure_share=0)
        counts = collections.Counter(body['event_type'] for body in bodies)
        self.assertEqual(counts['compute.instance.delete.start'],
                         counts['compute.instance.delete.end'])

    def test_failed_deletion_is_tried_again(self):
        _, things = self.generate(delete_failure_share=1, failure_share=0)
        twice = 0
        for (kind, _), life in things.items():
            types = [facts.event_type for facts, _ in life]
            starts = types.count('compute.instance.delete.start')
            if 'compute.instance.delete.end' in types:
                self.assertEqual(2, starts)
                twice += 1
            else:
                self.assertLessEqual(starts, 1)
        self.assertGreater(twice, 30)

    def test_resize_changes_flavor_and_host(self):
        _, things = self.generate(resize_share=1)
        changed = collections.Counter()
        for life in things.values():
            before = None
            for facts, _ in life:
                payload = facts.payload
                if facts.event_type == 'compute.instance.resize.prep.end':
                    before = payload
                elif (facts.event_type
                        == 'compute.instance.finish_resize.end'):
                    self.assertEqual(before['new_instance_type'],
                                     payload['instance_type'])
                    for key in ('instance_type', 'host', 'memory_mb'):
                        changed[key] += before[key] != payload[key]
        self.assertGreater(changed['instance_type'], 20)
        self.assertGreater(changed['host'], 20)
        self.assertEqual(changed['instance_type'], changed['memory_mb'])

    def test_images(self):
        _, things = self.generate(images=60)
        deleted = 0
        for (kind, _), life in things.items():
            if kind != 'image':
                continue
            types = [facts.event_type for facts, _ in life]
            self.assertEqual(['image.create', 'image.update',
                              'image.upload', 'image.update'], types[:4])
            self.assertTrue(types[4:] in ([], ['image.delete']), types)
            deleted += len(types) - 4
            took = life[2][0].timestamp - life[0][0].timestamp
            self.assertLessEqual(took.total_seconds(),
                                 generator.MAX_UPLOAD_SECONDS)
        self.assertGreater(deleted, 10)

    def test_volumes_are_attached_to_servers_alive(self):
        _, things = self.generate()
        attached = 0
        for (kind, _), life in things.items():
            for facts, _ in life:
                if facts.event_type != 'volume.attach.end':
                    continue
                attached += 1
                server_id = facts.payload['volume_attachment'][0]['server_id']
                server = things['compute', server_id]
                self.assertLess(server[0][0].timestamp, facts.timestamp)
        self.assertGreater(attached, 20)

    def test_shape(self):
        bodies, _ = self.generate()
        for body in bodies:
            size = len(json.dumps(body))
            self.assertTrue(1000 < size < 3500, size)
            if body['event_type'].startswith('compute.instance.'):
                periodic = body['event_type'].endswith('.exists')
                self.assertEqual(
                    None if periodic else body['payload']['tenant_id'],
                    body['_context_tenant'])
                self.assertTrue(body['publisher_id'].startswith(
                    ('compute.host-', 'api.')))
                self.assertEqual(
                    body['payload']['disk_gb'],
                    body['payload']['root_gb']
                    + body['payload']['ephemeral_gb'])
        errors = {body['event_type'] for body in bodies
                  if body['priority'] != 'INFO'}
        self.assertEqual({'compute.instance.create.error'}, errors)
