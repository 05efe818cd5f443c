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

"""Tests of the truth that the generator keeps."""

import collections
import datetime
import itertools

from tests import base
from triggerlib import testing
from triggerlib.testing import truth

UTC = datetime.timezone.utc


def moment(value):
    return datetime.datetime.fromisoformat(value).replace(tzinfo=UTC)


class TruthTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.generator = testing.Generator(
            9, servers=150, spread=120, duplicates=0.1, failure_share=0.2,
            record=True)
        self.delivered = list(self.generator)
        self.truth = self.generator.truth
        self.distinct = {body['message_id']: body for body in self.delivered}

    def of_type(self, event_type):
        return [body for body in self.distinct.values()
                if body['event_type'] == event_type]

    def test_counts(self):
        self.assertEqual(
            collections.Counter(body['event_type']
                                for body in self.distinct.values()),
            self.truth.counts)
        self.assertEqual(len(self.distinct), len(self.truth))
        self.assertEqual(len(self.delivered) - len(self.distinct),
                         self.truth.repeats)
        self.assertGreater(self.truth.repeats, 0)

    def test_creates(self):
        starts, ends, errors = (
            {body['payload']['instance_id']: body for body in self.of_type(
                f'compute.instance.create.{step}')}
            for step in ('start', 'end', 'error'))
        created = {server.instance_id: server
                   for server in self.truth.created()}
        self.assertEqual(set(ends), set(created))
        for instance_id, server in created.items():
            for body, sent in ((starts[instance_id], server.create_start),
                               (ends[instance_id], server.create_end)):
                self.assertEqual(moment(body['timestamp']), sent.timestamp)
                self.assertEqual(body['message_id'], sent.message_id)
            self.assertEqual(
                (moment(ends[instance_id]['timestamp'])
                 - moment(starts[instance_id]['timestamp'])).total_seconds(),
                server.create_seconds)
        unended = {server.instance_id: server
                   for server in self.truth.unended()}
        self.assertEqual(set(starts) - set(ends), set(unended))
        self.assertTrue(unended)
        for instance_id, server in unended.items():
            self.assertIsNone(server.create_seconds)
            self.assertEqual(instance_id in errors,
                             server.create_error is not None)

    def test_days(self):
        expected = collections.defaultdict(list)
        for body in self.distinct.values():
            if body['event_type'].startswith('compute.instance.'):
                key = (body['payload']['instance_id'],
                       datetime.date.fromisoformat(body['timestamp'][:10]))
                expected[key].append((moment(body['timestamp']),
                                      body['message_id'],
                                      body['event_type']))
        for events in expected.values():
            events.sort()
        self.assertEqual(expected, self.truth.days())

    def test_days_of_some_types(self):
        kinds = ('compute.instance.exists', 'compute.instance.update')
        days = self.truth.days(*kinds)
        self.assertEqual(
            sum(len(self.of_type(kind)) for kind in kinds),
            sum(len(events) for events in days.values()))
        self.assertTrue(all(days.values()))

    def test_exists(self):
        expected = {}
        for body in self.of_type('compute.instance.exists'):
            payload = body['payload']
            expected[payload['instance_id'], (
                moment(payload['audit_period_beginning']),
                moment(payload['audit_period_ending']))] = (
                    body['message_id'])
        self.assertTrue(expected)
        self.assertEqual(expected, {
            key: sent.message_id
            for key, sent in self.truth.exists().items()})

    def test_deletes(self):
        starts = collections.Counter(
            body['payload']['instance_id'] for body in self.of_type(
                'compute.instance.delete.start'))
        ends = {body['payload']['instance_id'] for body in self.of_type(
            'compute.instance.delete.end')}
        self.assertTrue(ends)
        for server in self.truth.servers.values():
            self.assertEqual(starts[server.instance_id],
                             len(server.delete_starts))
            self.assertEqual(server.instance_id in ends,
                             server.delete_end is not None)

    def test_events_of_a_server(self):
        for server in self.truth.servers.values():
            times = [sent.timestamp for sent in server.events()]
            self.assertEqual(sorted(times), times)
        self.assertEqual(
            sum(count for kind, count in self.truth.counts.items()
                if kind.startswith('compute.')),
            sum(len(server.events())
                for server in self.truth.servers.values()))

    def test_each_form_gives_the_same_truth(self):
        for form in ('flat', 'endpoint', 'wire'):
            own = truth.Truth()
            for body in testing.Generator(
                    9, servers=150, spread=120, duplicates=0.1,
                    failure_share=0.2, form=form):
                own.add(body)
            self.assertEqual(self.truth.servers, own.servers)
            self.assertEqual(self.truth.counts, own.counts)
            self.assertEqual(self.truth.repeats, own.repeats)

    def test_tells_only_what_was_delivered(self):
        drawn = list(itertools.islice(self.generator, 500))
        # The new iteration has a truth of its own.
        self.assertIsNot(self.truth, self.generator.truth)
        self.assertEqual(len({body['message_id'] for body in drawn}),
                         len(self.generator.truth))

    def test_kept_only_when_asked_for(self):
        generator = testing.Generator(9, servers=5)
        list(generator)
        self.assertIsNone(generator.truth)
