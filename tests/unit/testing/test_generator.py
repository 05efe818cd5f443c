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

"""Tests of the notification generator as a whole."""

import collections
import datetime
import hashlib
import io
import itertools
import os
import subprocess
import sys
import tracemalloc

import hypothesis
from hypothesis import strategies

from tests import base
from triggerlib import testing
from triggerlib.testing import generator
from triggerlib.testing import notification

START = datetime.datetime(2013, 10, 1, tzinfo=datetime.timezone.utc)

SCRIPT = '''
import hashlib, io
from triggerlib import testing
stream = io.StringIO()
testing.write_jsonl(testing.Generator(
    3, servers=40, spread=20, duplicates=0.1), stream)
print(hashlib.sha256(stream.getvalue().encode()).hexdigest())
'''


def text(stream):
    result = io.StringIO()
    testing.write_jsonl(stream, result)
    return result.getvalue()


def read(stream):
    return [notification.read(each) for each in stream]


class ReproducibleTest(base.TestCase):

    def test_same_seed_same_bytes(self):
        for arguments in ({}, {'form': 'wire'},
                          {'spread': 30, 'duplicates': 0.1}):
            first, again = (text(testing.Generator(3, servers=30,
                                                   **arguments))
                            for _ in range(2))
            self.assertEqual(first, again)

    def test_each_iteration_starts_anew(self):
        stream = testing.Generator(3, servers=30, spread=10)
        self.assertEqual(text(stream), text(stream))

    def test_two_iterations_at_once(self):
        stream = testing.Generator(3, servers=10)
        for one, other in zip(stream, stream, strict=True):
            self.assertEqual(one, other)

    def test_other_seed_other_bytes(self):
        ids = [{facts.message_id for facts in read(
            testing.Generator(seed, servers=30))} for seed in (3, 4)]
        self.assertEqual(set(), ids[0] & ids[1])

    def test_does_not_depend_on_hashes(self):
        digests = set()
        for hash_seed in ('1', '2'):
            environment = dict(os.environ, PYTHONHASHSEED=hash_seed)
            digests.add(subprocess.run(
                [sys.executable, '-c', SCRIPT], env=environment, check=True,
                capture_output=True, text=True).stdout.strip())
        own = text(testing.Generator(
            3, servers=40, spread=20, duplicates=0.1))
        digests.add(hashlib.sha256(own.encode()).hexdigest())
        self.assertEqual(1, len(digests))

    def test_volumes_leave_servers_as_they_are(self):
        def servers(volumes):
            return [facts for facts in read(testing.Generator(
                3, servers=30, volumes=volumes))
                if facts.event_type.startswith('compute.')]
        self.assertEqual(servers(0), servers(50))

    def test_delivery_leaves_facts_as_they_are(self):
        plain = read(testing.Generator(3, servers=30))
        disordered = read(testing.Generator(
            3, servers=30, spread=600, duplicates=0.3))
        self.assertNotEqual(plain, disordered)
        unique = {facts.message_id: facts for facts in disordered}
        self.assertEqual(
            {facts.message_id: facts for facts in plain}, unique)


class OrderTest(base.TestCase):

    @hypothesis.settings(deadline=None, max_examples=25)
    @hypothesis.given(
        seed=strategies.integers(0, 10**6),
        share=strategies.sampled_from((0, 0.5, 1)),
        lifetime=strategies.sampled_from((0.01, 0.5, 24)),
        period=strategies.sampled_from(('hour', 'day')))
    def test_ordered_and_within_bounds(self, seed, share, lifetime, period):
        days = 1.3
        times = [facts.timestamp for facts in read(testing.Generator(
            seed, servers=15, volumes=15, images=5, start=START, days=days,
            failure_share=share / 2, delete_failure_share=share,
            resize_share=share, unconfirmed_share=share / 2,
            lifetime_hours=lifetime, audit_period=period))]
        self.assertEqual(sorted(times), times)
        self.assertGreaterEqual(times[0], START)
        self.assertLessEqual(times[-1], START + datetime.timedelta(
            days=days, seconds=generator.MAX_OVERRUN_SECONDS))

    def test_spread_bounds_disorder(self):
        latest = START
        worst = 0
        for facts in read(testing.Generator(3, servers=200, spread=45,
                                            duplicates=0.05)):
            lag = (latest - facts.timestamp).total_seconds()
            worst = max(worst, lag)
            latest = max(latest, facts.timestamp)
        self.assertLessEqual(worst, 45)
        self.assertGreater(worst, 20)

    def test_share_of_duplicates(self):
        ids = collections.Counter(facts.message_id for facts in read(
            testing.Generator(3, servers=300, duplicates=0.1)))
        self.assertEqual({1, 2}, set(ids.values()))
        share = sum(count - 1 for count in ids.values()) / len(ids)
        self.assertTrue(0.08 < share < 0.12, share)

    def test_message_ids_are_unique(self):
        ids = [facts.message_id
               for facts in read(testing.Generator(3, servers=300))]
        self.assertEqual(len(ids), len(set(ids)))

    def test_life_cycles_are_interleaved(self):
        servers = [facts.payload['instance_id'] for facts in read(
            testing.Generator(3, servers=300, volumes=0, images=0,
                              days=0.5))]
        changes = sum(a != b for a, b in zip(servers, servers[1:]))
        self.assertGreater(changes, len(servers) / 3)


class AmountTest(base.TestCase):

    def test_counts(self):
        counts = collections.Counter(facts.event_type for facts in read(
            testing.Generator(3, servers=70, volumes=11, images=4)))
        self.assertEqual(70, counts['compute.instance.create.start'])
        self.assertEqual(11, counts['volume.create.start'])
        self.assertEqual(4, counts['image.create'])

    def test_nothing(self):
        self.assertEqual([], list(testing.Generator(3, servers=0)))

    def test_endless_arrivals(self):
        end = START + datetime.timedelta(hours=20)
        stream = (notification.read(each) for each in testing.Generator(
            3, servers=None, arrivals_per_hour=30, start=START))
        kinds = collections.Counter(
            facts.event_type for facts in itertools.takewhile(
                lambda facts: facts.timestamp < end, stream))
        self.assertTrue(
            598 <= kinds['compute.instance.create.start'] <= 600)
        self.assertTrue(119 <= kinds['volume.create.start'] <= 120)
        self.assertTrue(29 <= kinds['image.create'] <= 30)

    def test_days_end_a_stream_without_limit(self):
        facts = read(testing.Generator(
            3, servers=None, arrivals_per_hour=20, days=0.5, start=START))
        starts = [each for each in facts
                  if each.event_type == 'compute.instance.create.start']
        self.assertEqual(240, len(starts))

    def test_constant_memory(self):
        stream = iter(testing.Generator(
            3, servers=None, arrivals_per_hour=200, lifetime_hours=1,
            audit_period='hour', delete_failure_share=0, spread=60,
            duplicates=0.05))
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        held = []
        for count in (10000, 20000, 20000):
            for _ in itertools.islice(stream, count):
                pass
            held.append(tracemalloc.get_traced_memory()[0])
            if len(held) == 1:
                tracemalloc.reset_peak()
        self.assertLess(max(held), 1.3 * min(held))
        self.assertLess(tracemalloc.get_traced_memory()[1], 2 * held[0])

    def test_memory_is_for_what_is_alive(self):
        cloud = testing.Generator(
            3, servers=100_000, days=30, lifetime_hours=1)._cloud()
        sizes = []
        for _ in itertools.islice(cloud.agenda.run(), 30000):
            sizes.append(len(cloud.agenda))
        # 139 servers an hour, each alive for an hour and audited to the end
        # of its day.
        self.assertLess(max(sizes), 24 * 139 * 2)
        self.assertGreater(max(sizes), 100)


class ArgumentsTest(base.TestCase):

    def test_bounds(self):
        for arguments in (
                {'failure_share': 1.5}, {'duplicates': -0.1},
                {'servers': -1}, {'volumes': -1}, {'tenants': 0},
                {'hosts': 0}, {'days': 0}, {'arrivals_per_hour': 0},
                {'spread': -1}, {'updates_per_day': -1},
                {'lifetime_hours': 0}, {'audit_period': 'week'},
                {'form': 'xml'}, {'start': datetime.datetime(2013, 10, 1)}):
            error = self.assertRaises(
                ValueError, testing.Generator, 1, **arguments)
            self.assertIn(next(iter(arguments)), str(error))

    def test_no_updates_apart_from_actions(self):
        facts = read(testing.Generator(
            3, servers=20, updates_per_day=0, delete_failure_share=0))
        idle = [each for each in facts
                if each.event_type == 'compute.instance.update'
                and each.payload['old_state'] == each.payload['state']
                and each.payload['new_task_state'] is None]
        self.assertEqual([], idle)
