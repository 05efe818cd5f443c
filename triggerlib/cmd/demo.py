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

"""``triggerlib demo``: the whole way, on generated notifications."""

import importlib.resources
import itertools
import json
import os
import string
import sys
import tempfile
import time

from cliff import command

from triggerlib.cmd import config
from triggerlib.cmd import replay as replay_command
from triggerlib import exceptions

FILES = ('event_definitions.yaml', 'trigger_definitions.yaml',
         'event_pipeline.yaml')
RESULTS = ('create_time', 'usage', 'create_failed')
EXAMPLES = 3


class Demo(command.Command):
    """Watch some days of a small cloud go by.

    Generates the notifications of some hundred servers, replays them on
    SQLite, and shows what came out. Everything it used and wrote stays in a
    folder, to be looked at and changed.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--servers', type=int, default=200,
                            help='servers of the cloud (default: 200)')
        parser.add_argument('--days', type=int, default=3,
                            help='days that go by (default: 3)')
        parser.add_argument('--seed', type=int, default=1,
                            help='another number gives another cloud')
        parser.add_argument('--output', metavar='DIR',
                            help='folder to write to; a new one by default')
        return parser

    def take_action(self, parsed_args):
        """Run the demo and print what happened."""
        folder = prepare(parsed_args.output)
        generator = notifications(
            parsed_args.seed, parsed_args.servers, parsed_args.days)
        write = self.app.stdout.write
        write(f'Servers: {parsed_args.servers}, days: {parsed_args.days}, '
              f'out of order and with duplicates ...\n')
        begin = time.perf_counter()
        progress = replay_command.Progress(sys.stderr)
        replay, left = run(folder, generator, progress)
        progress.done()
        seconds = time.perf_counter() - begin
        report = replay.report
        write(f'\n{report.received} notifications in {seconds:.1f} s:\n')
        for label, count in (
                ('stored as events', report.stored),
                ('dropped as duplicate', report.duplicates),
                ('kept as dead letter', report.dead_letters)):
            write(f'  {count:8} {label}\n')
        write('\ntrigger            fired  expired\n')
        names = sorted({name for name, _ in replay.ended})
        for name in names:
            write(f'{name:16} {replay.ended[name, "fire"]:7} '
                  f'{replay.ended[name, "expire"]:8}\n')
        for name in RESULTS:
            self._show(os.path.join(folder, f'{name}.jsonl'))
        write(f'\nWhat drove it, and all that came out, is in {folder}\n'
              f'  {", ".join(FILES)}, triggerlib.conf\n'
              f'  {", ".join(f"{name}.jsonl" for name in RESULTS)}\n'
              f'Look into its database: triggerlib --config-file '
              f'{os.path.join(folder, "triggerlib.conf")} status\n')
        if left.failures:
            raise exceptions.TriggerlibError(
                f'pipelines failed, one of them so: '
                f'{left.failures[0].error}')

    def _show(self, path):
        write = self.app.stdout.write
        lines, count = [], 0
        if os.path.exists(path):
            with open(path, encoding='utf-8') as stream:
                lines = list(itertools.islice(stream, EXAMPLES))
                count = len(lines) + sum(1 for _ in stream)
        write(f'\n{os.path.basename(path)}, {count} records')
        write(', the first of them:\n' if lines else '\n')
        for line in lines:
            record = json.loads(line)
            traits = ' '.join(
                f'{name}={value}' for name, value in
                sorted(record['traits'].items()))
            write(f'  {record["timestamp"]} {record["event_type"]} '
                  f'{traits}\n')


def notifications(seed, servers, days, record=False):
    """Return the demo's generator of notifications.

    :param seed: a number; the same one gives the same notifications
    :param servers: how many servers there are
    :param days: how many days go by
    :param record: whether the generator keeps the truth about them
    """
    from triggerlib.testing import generator

    return generator.Generator(
        seed, servers=servers, days=days, spread=30, duplicates=0.02,
        record=record)


def prepare(folder=None):
    """Write the demo's files to a folder and return its path.

    :param folder: the folder; a new one by default
    :raises TriggerlibError: it is not empty
    """
    if folder is None:
        folder = tempfile.mkdtemp(prefix='triggerlib-demo-')
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise exceptions.TriggerlibError(
            f'{folder} is not empty; name a new folder')
    data = importlib.resources.files('triggerlib.cmd') / 'demo_data'
    for name in FILES:
        text = (data / name).read_text(encoding='utf-8')
        _write(folder, name,
               string.Template(text).substitute(output=folder))
    _write(folder, 'triggerlib.conf', ''.join([
        '[triggerlib]\n',
        f'connection = sqlite:///{folder}/triggerlib.sqlite\n',
        # The demo's database is not worth an fsync a batch.
        'sqlite_synchronous = OFF\n']))
    return folder


def run(folder, generator, progress=None):
    """Replay notifications by the files of a folder.

    :param folder: what :func:`prepare` returned
    :param generator: an iterable of notifications
    :param progress: called with a report now and then
    :returns: see :func:`triggerlib.cmd.replay.run`
    """
    conf = config.load([os.path.join(folder, 'triggerlib.conf')])
    return replay_command.run(conf, generator, progress)


def _write(folder, name, text):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as stream:
        stream.write(text)
