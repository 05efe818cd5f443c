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

"""``file://``"""

import json
import os
import resource
import subprocess
import sys
import textwrap

import fixtures

from tests import base
from tests.unit.publisher import writer
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.publisher import file as file_publisher


class FileCase(base.TestCase):
    """With a folder."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.path = f'{self.folder}/out.jsonl'
        self.url = f'file://{self.path}'

    def publish(self, events, url=None):
        file_publisher.FilePublisher(None, url or self.url).publish(
            events, None)

    def text(self, path=None):
        with open(path or self.path, encoding='utf-8') as stream:
            return stream.read()

    def write(self, text):
        with open(self.path, 'w', encoding='utf-8') as stream:
            stream.write(text)

    def ids(self, path=None):
        return [json.loads(line)['message_id']
                for line in self.text(path).splitlines()]


class TestWrite(FileCase):
    """What is in the file."""

    def test_a_line_for_each_event(self):
        events = writer.events('a', 0, 3)
        self.publish(events[:2])
        self.publish([])
        self.publish(events[2:])
        self.assertEqual(
            ''.join(f'{encoding.to_json(each)}\n' for each in events),
            self.text())

    def test_nothing_makes_no_file(self):
        self.publish([])
        self.assertEqual([], os.listdir(self.folder))

    def test_a_torn_line_is_cut_off(self):
        events = writer.events('a', 0, 2)
        whole = encoding.to_json(events[0]) + '\n'
        for left in ('', whole, whole * 3):
            for torn in ('', '{', whole[:-1], 'x' * 200_000):
                self.write(left + torn)
                self.publish(events[1:])
                self.assertEqual(
                    left + encoding.to_json(events[1]) + '\n', self.text())

    def test_a_path_is_percent_decoded(self):
        self.publish(writer.events('a', 0, 1),
                     f'file://{self.folder}/a%20b%23%3F')
        self.assertEqual(['a b#?'], os.listdir(self.folder))

    def test_it_can_be_synced(self):
        self.publish(writer.events('a', 0, 1), f'{self.url}?fsync=true')
        self.publish(writer.events('a', 1, 1), f'{self.url}?fsync=true')
        self.assertEqual(['a-0-0', 'a-1-0'], self.ids())


class TestRotation(FileCase):
    """How files are put aside."""

    def test_a_full_file_is_put_aside(self):
        for batch in range(6):
            self.publish(writer.events('a', batch, 1),
                         f'{self.url}?max_bytes=1&backup_count=3')
        self.assertEqual(
            ['out.jsonl', 'out.jsonl.1', 'out.jsonl.2', 'out.jsonl.3'],
            sorted(os.listdir(self.folder)))
        self.assertEqual(
            [['a-5-0'], ['a-4-0'], ['a-3-0'], ['a-2-0']],
            [self.ids(self.path + end) for end in ('', '.1', '.2', '.3')])

    def test_one_that_is_not_full_is_not(self):
        size = len(encoding.to_json(writer.events('a', 0, 1)[0])) + 1
        for batch in range(5):
            self.publish(writer.events('a', batch, 1),
                         f'{self.url}?max_bytes={2 * size}')
        self.assertEqual(
            [['a-4-0'], ['a-2-0', 'a-3-0'], ['a-0-0', 'a-1-0']],
            [self.ids(self.path + end) for end in ('', '.1', '.2')])

    def test_several_processes_lose_and_tear_nothing(self):
        batches, size, names = 60, 3, 'abcd'
        writers = [
            subprocess.Popen(
                [sys.executable, '-m', writer.__name__,
                 f'{self.url}?max_bytes=2000&backup_count=1000', name,
                 str(batches), str(size)], cwd=base.ROOT)
            for name in names]
        self.assertEqual([0] * len(names), [one.wait() for one in writers])
        found = os.listdir(self.folder)
        self.assertGreater(len(found), 20)
        expected = sorted(
            each.message_id for name in names for batch in range(batches)
            for each in writer.events(name, batch, size))
        self.assertEqual(expected, sorted(
            one for name in found
            for one in self.ids(f'{self.folder}/{name}')))
        for name in found:
            # A batch is one write: its lines stand together.
            ids = self.ids(f'{self.folder}/{name}')
            for begin in range(0, len(ids), size):
                first = ids[begin].removesuffix('-0')
                self.assertEqual(
                    [f'{first}-{number}' for number in range(size)],
                    ids[begin:begin + size])

    def test_one_who_waited_for_the_lock_writes_to_the_new_file(self):
        import fcntl

        self.publish(writer.events('a', 0, 1))
        holder = os.open(self.path, os.O_RDWR)
        fcntl.flock(holder, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, '-m', writer.__name__, self.url, 'b', '1', '1'],
            cwd=base.ROOT)
        self.addCleanup(waiting.kill)
        os.replace(self.path, f'{self.path}.1')
        os.close(holder)
        self.assertEqual(0, waiting.wait())
        self.assertEqual((['b-0-0'], ['a-0-0']),
                         (self.ids(), self.ids(f'{self.path}.1')))


class TestFailures(FileCase):
    """What goes wrong."""

    def refused(self, url):
        error = self.assertRaises(
            exceptions.PublishError, self.publish, writer.events('a', 0, 1),
            url)
        self.assertTrue(error.retryable)
        return str(error)

    def test_a_missing_folder_is_named_and_not_made(self):
        folder = f'{self.folder}/nope'
        self.assertIn(f'the folder {folder} of the file publisher is not '
                      f'there', self.refused(f'file://{folder}/x'))
        self.assertFalse(os.path.exists(folder))

    def test_a_folder_is_no_file(self):
        self.assertIn(self.folder, self.refused(f'file://{self.folder}'))

    def test_a_full_disk(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('there is no /dev/full here')
        self.assertIn('No space left', self.refused('file:///dev/full'))

    def test_a_batch_that_fits_in_part_is_taken_back(self):
        # A limit on the size of files takes part of a write, as a full disk
        # does; it holds for a process, so it is another one.
        script = textwrap.dedent("""
            import resource, sys
            from tests.unit.publisher import writer
            from triggerlib import exceptions
            from triggerlib.publisher import file as file_publisher

            publisher = file_publisher.FilePublisher(None, sys.argv[1])
            publisher.publish(writer.events('a', 0, 1), None)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            try:
                publisher.publish(writer.events('a', 1, 50), None)
            except exceptions.PublishError as error:
                sys.exit(0 if error.retryable else 'not retryable')
            sys.exit('it was not refused')
            """)
        done = subprocess.run(
            [sys.executable, '-c', script, self.url], cwd=base.ROOT,
            capture_output=True, text=True)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertEqual(['a-0-0'], self.ids())
        self.assertNotEqual(
            1000, resource.getrlimit(resource.RLIMIT_FSIZE)[0])


class TestURL(base.TestCase):
    """What is refused of a URL."""

    def test_what_is_refused(self):
        for url, part in (
                ('file://', 'missing or relative'),
                ('file:x', 'missing or relative'),
                ('file:///x/', 'missing or relative'),
                ('file://relative/x', 'has no host'),
                ('file:///x%00', 'NUL'), ('file:///x#y', '%23'),
                ('file:///x?max_bytes=-1', 'less than 0'),
                ('file:///x?max_bytes=1k', 'max_bytes=1k'),
                ('file:///x?backup_count=0', 'thrown away'),
                ('file:///x?fsync=perhaps', 'neither true nor false'),
                ('file:///x?maxbytes=1', 'unknown options: maxbytes'),
                ('file:///x?fsync=1&fsync=0', 'twice')):
            error = self.assertRaises(
                ValueError, file_publisher.FilePublisher, None, url)
            self.assertIn(part, str(error), url)

    def test_the_host_may_be_localhost(self):
        self.assertEqual('/x', file_publisher.FilePublisher(
            None, 'file://localhost/x').path)
