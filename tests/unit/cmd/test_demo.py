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

"""The demo's figures against what its generator knows."""

import json

import fixtures

from triggerlib.cmd import demo

from tests import base
from tests import command


class TestDemo(base.TestCase):
    """Record by record."""

    def setUp(self):
        super().setUp()
        self.folder = f'{self.useFixture(fixtures.TempDir()).path}/demo'

    def records(self, name):
        with open(f'{self.folder}/{name}.jsonl',
                  encoding='utf-8') as stream:
            return [json.loads(line) for line in stream]

    def test_every_record_is_right(self):
        generator = demo.notifications(5, 60, 3, record=True)
        demo.prepare(self.folder)
        replay, left = demo.run(self.folder, generator)
        truth = generator.truth
        self.assertEqual(({}, []), left)

        created = {one.instance_id: one for one in truth.created()}
        records = self.records('create_time')
        self.assertEqual(len(created), len(records))
        self.assertEqual(
            {name: (one.create_seconds, one.create_end.timestamp.isoformat(
                timespec='microseconds')) for name, one in created.items()},
            {record['traits']['instance_id']:
             (record['traits']['seconds'], record['timestamp'])
             for record in records})

        failed = {one.instance_id for one in truth.unended()}
        records = self.records('create_failed')
        self.assertGreater(len(failed), 0)
        self.assertEqual(len(failed), len(records))
        self.assertEqual(
            failed, {record['traits']['instance_id'] for record in records})

        days = truth.days()
        records = self.records('usage')
        self.assertEqual(len(days), len(records))
        self.assertEqual(
            {(name, day.isoformat()): len(events)
             for (name, day), events in days.items()},
            {(record['traits']['instance_id'], record['timestamp'][:10]):
             record['traits']['events'] for record in records})

        self.assertEqual(
            {('create_time', 'fire'): len(created),
             ('create_time', 'expire'): len(failed),
             ('usage', 'expire'): len(days)}, dict(replay.ended))
        self.assertEqual(sum(truth.counts.values()), replay.report.stored)
        self.assertEqual(truth.repeats, replay.report.duplicates)
        self.assertGreater(truth.repeats, 0)
        self.assertEqual(0, replay.report.dead_letters)
        ids = [record['message_id'] for name in demo.RESULTS
               for record in self.records(name)]
        self.assertEqual(len(ids), len(set(ids)))

    def test_the_command_says_what_happened(self):
        run = self.useFixture(command.Command())
        status, out, err = run(
            'demo', '--servers', '10', '--days', '1',
            '--output', self.folder)
        self.assertEqual(0, status, err)
        for word in ('stored as events', 'dropped as duplicate',
                     'create_time', 'usage.jsonl', self.folder,
                     'event_pipeline.yaml'):
            self.assertIn(word, out)
        rows = run.json('--config-file', f'{self.folder}/triggerlib.conf',
                        'status')
        self.assertIn({'trigger': '-', 'what': 'dead letters', 'count': 0,
                       'oldest': ''}, rows)

    def test_a_folder_in_use_is_refused(self):
        demo.prepare(self.folder)
        status, _, err = self.useFixture(command.Command())(
            'demo', '--output', self.folder)
        self.assertEqual(1, status)
        self.assertIn('not empty', err)
        self.assertNotIn('Traceback', err)
