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

"""``triggerlib replay``: notifications from files through everything."""

import codecs
import collections
import json
import logging
import os
import sys
import tempfile
import typing

from cliff import lister

from triggerlib import clock as clock_module
from triggerlib.cmd import config
from triggerlib import exceptions
from triggerlib import state

LOG = logging.getLogger(__name__)

#: Failed instances of a kind whose errors are shown.
SHOWN = 10


class Replay(config.ConfiguredCommand, lister.Lister):
    """Pass notifications through everything, one JSON object a line.

    The clock follows the notifications, and at the end goes on until every
    trigger instance has fired or expired. The storage is a new one that is
    thrown away, unless --connection names one to keep.
    """

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'file', nargs='+',
            help='file of notifications, "-" for standard input')
        parser.add_argument(
            '--connection', metavar='URL',
            help='storage to use and keep; its schema is brought up to date')
        parser.add_argument(
            '--step', type=float, default=60.0, metavar='SECONDS',
            help='how far the scheduler may lag behind the events, in '
                 'seconds of their time (default: 60)')
        parser.add_argument(
            '--open', action='store_true', dest='leave_open',
            help='leave open what has neither fired nor expired when the '
                 'notifications end')
        return parser

    def take_action(self, parsed_args):
        """Replay, and return what happened as columns and rows."""
        with tempfile.TemporaryDirectory(prefix='triggerlib-') as folder:
            url = parsed_args.connection
            overrides = {'connection': url}
            if url is None:
                path = os.path.join(folder, 'replay.sqlite')
                overrides = {'connection': f'sqlite:///{path}',
                             'sqlite_synchronous': 'OFF'}
            conf = self.conf(parsed_args, overrides)
            progress = Progress(sys.stderr)
            replay, left = run(
                conf, _read(parsed_args.file, self.app.stdin), progress,
                step=parsed_args.step, leave_open=parsed_args.leave_open)
            progress.done()
        for one in left.failures:
            LOG.error('Instance %s of %s failed: %s', one.id, one.name,
                      one.error)
        self._failed = bool(left.failures)
        return ('trigger', 'what', 'count'), rows(replay, left)

    def run(self, parsed_args):
        """Replay, and fail when a pipeline did."""
        return super().run(parsed_args) or int(self._failed)


class Left(typing.NamedTuple):
    """The instances that have not ended.

    :param counts: how many, by name and state
    :param failures: some of those whose pipeline failed
    """

    counts: dict
    failures: list


def run(conf, notifications, progress=None, *, step=60.0, leave_open=False):
    """Replay notifications on a storage of its own.

    :param conf: an ``oslo_config.cfg.ConfigOpts`` that names the storage
    :param notifications: an iterable of notifications
    :param progress: called with a report now and then
    :param step: seconds of event time in one transaction at most
    :param leave_open: end with the notifications
    :returns: the :class:`triggerlib.trigger.replay.Replay`, and what is
        :class:`Left`
    :raises DefinitionError: every mistake in the files
    """
    from triggerlib import storage
    from triggerlib.trigger import replay as replay_module

    clock = clock_module.ReplayClock(clock_module.FIRST)
    driver = storage.get_driver(conf, clock)
    try:
        driver.upgrade()
        replay = replay_module.Replay.from_conf(
            conf, driver, clock, step=step)
        replay.feed(notifications, progress)
        if not leave_open:
            replay.run_out(progress=progress)
        return replay, driver.run(_left, write=False)
    finally:
        driver.close()


def rows(replay, left):
    """Return what a replay did as ``(trigger, what, count)`` rows."""
    report = replay.report
    open_ = collections.Counter()
    for (name, where), count in left.counts.items():
        open_[name, 'failed' if where in state.FAILED
              else 'still open'] += count
    return [
        ('-', 'received', report.received),
        ('-', 'stored', report.stored),
        ('-', 'dropped as duplicate', report.duplicates),
        ('-', 'dropped for want of a definition', report.dropped),
        ('-', 'dead letters', report.dead_letters),
    ] + [
        (name, {'fire': 'fired', 'expire': 'expired',
                'source': 'passed through'}[kind], count)
        for (name, kind), count in sorted(replay.ended.items())
    ] + [
        (name, what, count)
        for (name, what), count in sorted(open_.items())]


class Progress:
    """Tells on a terminal how far a replay is.

    :param stream: where to; nothing is written unless it is a terminal
    """

    def __init__(self, stream):
        self._stream = stream if stream.isatty() else None
        self._shown = -1

    def __call__(self, report):
        """Show a report, every thousand notifications."""
        if self._stream is not None and report.received // 1000 > self._shown:
            self._shown = report.received // 1000
            self._stream.write(f'\r{report.received} notifications')
            self._stream.flush()

    def done(self):
        """Clear the line."""
        if self._stream is not None and self._shown >= 0:
            self._stream.write('\r\033[K')


def _left(tx):
    return Left(tx.count_instances(), [
        one for failed in state.FAILED
        for one in tx.list_instances(state=failed, limit=SHOWN)])


def _read(paths, stdin):
    for path in paths:
        if path == '-':
            yield from _lines(getattr(stdin, 'buffer', stdin), '-')
            continue
        try:
            with open(path, 'rb') as stream:
                yield from _lines(stream, path)
        except OSError as error:
            raise exceptions.TriggerlibError(
                f'{path} cannot be read: {error}') from error


def _lines(stream, path):
    for number, line in enumerate(stream, 1):
        if number == 1:
            # Some editors begin a file with a mark of its encoding.
            line = line.removeprefix(
                codecs.BOM_UTF8 if isinstance(line, bytes) else '\ufeff')
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            LOG.error('%s:%d is not JSON: %s', path, number, error)
            # The text itself goes on, and ends as a dead letter.
            yield (line.decode('utf-8', 'backslashreplace')
                   if isinstance(line, bytes) else line)
