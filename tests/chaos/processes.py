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

"""The processes that work in a folder: a server with all its children.

Servers put their children into sessions and process groups of their own, and
these outlive a server that was killed. Their working directory stays.
"""

import os
import signal
import time

#: Seconds in which a process that was killed is gone.
PATIENCE = 30


def inside(folder):
    """Return the ids of living processes that work in a folder.

    :param folder: a path, without symbolic links
    :returns: a set of process ids, without this one
    """
    found = set()
    for name in os.listdir('/proc'):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            path = os.readlink(f'/proc/{name}/cwd')
        except OSError:
            # It is another user's, or has ended.
            continue
        # The folder may have been removed under it.
        path = path.removesuffix(' (deleted)')
        if path == folder or path.startswith(folder + os.sep):
            found.add(int(name))
    return found


def send(pids, number):
    """Send a signal to processes, of which some may have ended."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def freeze(folder):
    """Stop all processes that work in a folder, as they are.

    :returns: their ids
    """
    frozen = set()
    # One that is not stopped yet may start another.
    while new := inside(folder) - frozen:
        send(new, signal.SIGSTOP)
        frozen |= new
    return frozen


def kill(folder):
    """End all processes that work in a folder, at one stroke.

    :raises AssertionError: some do not end
    """
    deadline = time.monotonic() + PATIENCE
    send(freeze(folder), signal.SIGKILL)
    while left := inside(folder):
        if time.monotonic() > deadline:
            raise AssertionError(f'processes {left} do not end')
        time.sleep(0.01)
