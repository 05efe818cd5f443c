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

"""``file:///path``: a line of JSON for each event, at the end of a file."""

import contextlib
import fcntl
import os
import urllib.parse

from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.publisher import publisher

_CHUNK = 64 * 1024


class FilePublisher(publisher.Publisher):
    """Appends events to a file that several processes may write to.

    Options: ``max_bytes``, from which on the file is put aside as ``path.1``
    before it grows further (0 for never); ``backup_count``, how many such
    files are kept; ``fsync``, whether a batch is on the disk before it is
    noted as done.
    """

    def __init__(self, conf, url):
        super().__init__(conf, url)
        if self.url.netloc not in ('', 'localhost'):
            raise ValueError('a file has no host; its path is absolute and '
                             'follows three slashes, as in '
                             'file:///var/lib/usage.jsonl')
        self.path = urllib.parse.unquote(self.url.path)
        if not self.path.startswith('/') or self.path.endswith('/'):
            raise ValueError('the path of a file is missing or relative; '
                             'write file:///var/lib/usage.jsonl')
        if '\0' in self.path:
            raise ValueError('the path of a file cannot hold NUL')
        self._max_bytes = self.option('max_bytes', publisher.whole_number, 0)
        self._backups = self.option('backup_count', _backup_count, 5)
        self._fsync = self.option('fsync', publisher.flag, False)
        self.refuse_other_options()

    def publish(self, events, context):
        """Append the events, in one write."""
        if not events:
            return
        data = ''.join(
            encoding.to_json(event) + '\n' for event in events).encode()
        try:
            with self._locked() as descriptor:
                is_new = not os.fstat(descriptor).st_size
                _write(descriptor, data)
                if self._fsync:
                    os.fsync(descriptor)
                    if is_new:
                        self._sync_folder()
        except FileNotFoundError as error:
            raise exceptions.PublishError(
                f'the folder {os.path.dirname(self.path)} of the file '
                f'publisher is not there; create it', retryable=True
            ) from error
        except OSError as error:
            raise exceptions.PublishError(
                f'{self.path} cannot be written: {error}', retryable=True
            ) from error

    @contextlib.contextmanager
    def _locked(self):
        """Open the file and lock it against all other writers."""
        while True:
            descriptor = os.open(
                self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT
                | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # While this process waited for the lock, another one may
                # have put the file aside.
                if not _is_at(descriptor, self.path):
                    continue
                _heal(descriptor)
                if (self._max_bytes and os.fstat(descriptor).st_size
                        >= self._max_bytes):
                    self._put_aside()
                    continue
                yield descriptor
                return
            finally:
                os.close(descriptor)

    def _sync_folder(self):
        """Have the name of a new file on the disk as well."""
        folder = os.open(os.path.dirname(self.path), os.O_RDONLY
                         | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _put_aside(self):
        for number in range(self._backups - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f'{self.path}.{number}',
                           f'{self.path}.{number + 1}')
        os.replace(self.path, f'{self.path}.1')


def _is_at(descriptor, path):
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _heal(descriptor):
    """Cut off a last line that a writer died in the middle of.

    Its step is not noted as done, so the whole batch comes again.
    """
    size = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b'\n':
        return
    end = size
    while end:
        begin = max(end - _CHUNK, 0)
        found = os.pread(descriptor, end - begin, begin).rfind(b'\n')
        if found >= 0:
            end = begin + found + 1
            break
        end = begin
    os.ftruncate(descriptor, end)


def _write(descriptor, data):
    size = os.fstat(descriptor).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view):]
    except OSError:
        # A full disk takes part of a batch; the whole of it comes again.
        # What cannot be cut off now, the next writer cuts off.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _backup_count(text):
    number = publisher.whole_number(text)
    if not number:
        raise ValueError('is less than 1: a full file would be thrown away')
    return number
