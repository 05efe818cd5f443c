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

"""Agents as processes, with a clock of their own."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys

import fixtures
import psutil

import tests

#: Seconds in which an agent that is asked to end has ended.
PATIENCE = 60
_ROOT = pathlib.Path(tests.__file__).parent.parent


class Agent(fixtures.Fixture):
    """A ``triggerlib-agent``: a parent and its processes.

    It runs when the fixture is set up, and is gone when that is cleaned up.

    :param conf_path: its configuration file
    :param log_path: what it writes
    :param folder: where it keeps what it needs
    """

    def __init__(self, conf_path, log_path, folder):
        super().__init__()
        self._conf_path = conf_path
        self._log_path = log_path
        self._clock = pathlib.Path(folder, 'clock')

    def _setUp(self):
        self._process = None
        self.move_clock(0)
        self.addCleanup(self.kill)
        self.start()

    def start(self):
        """Start it; one that runs is left alone."""
        if self.runs():
            return
        self.kill()
        with open(self._log_path, 'ab') as log:
            self._process = subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-m',
                 'tests.chaos.wrong_clock', str(self._clock),
                 '--config-file', self._conf_path], cwd=_ROOT,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)

    def runs(self):
        """Tell whether the parent is there."""
        return self._process is not None and self._process.poll() is None

    def kill(self):
        """End all its processes at once."""
        if self._process is None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait(PATIENCE)
        self._process = None

    def kill_child(self, dice=random):
        """End one of its processes at once; the parent starts another."""
        children = self._children()
        if children:
            with contextlib.suppress(psutil.NoSuchProcess):
                dice.choice(children).kill()

    def kill_parent(self):
        """End the parent at once, and leave its processes to themselves."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self):
        """Ask it to end, and return its exit status.

        :raises subprocess.TimeoutExpired: it does not end in time
        """
        self._process.terminate()
        code = self._process.wait(PATIENCE)
        self.kill()
        return code

    def reload(self):
        """Have it load its files again."""
        self._process.send_signal(signal.SIGHUP)

    def pause(self, dice=None):
        """Freeze it, or one of its processes.

        :param dice: which one; None for all of it
        :returns: has it go on
        """
        if dice is None:
            self._signal(signal.SIGSTOP)
            return lambda: self._signal(signal.SIGCONT)
        children = self._children()
        if not children:
            return lambda: None
        child = dice.choice(children)

        def send(method):
            with contextlib.suppress(psutil.NoSuchProcess):
                method()

        send(child.suspend)
        return lambda: send(child.resume)

    def move_clock(self, seconds):
        """Let its host's clock be wrong.

        :param seconds: by how much it is fast, or slow if negative
        """
        # It may be read at any moment.
        new = self._clock.with_suffix('.new')
        new.write_text(str(seconds))
        new.rename(self._clock)

    def _children(self):
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children()
        return []

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
