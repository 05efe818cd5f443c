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

"""Runs an agent on a host whose clock is wrong, and is moved.

``python -m tests.chaos.wrong_clock FILE ...``: the file says by how many
seconds the clock is fast; the rest are arguments of ``triggerlib-agent``.
"""

import pathlib
import sys
import time

from triggerlib import clock
from triggerlib.cmd import agent

_time = time.time
_time_ns = time.time_ns
_now = clock.SystemClock.now


def install(path):
    """Have this process's clock be fast by what a file says."""
    def offset():
        return int(path.read_text())

    time.time = lambda: _time() + offset()
    time.time_ns = lambda: _time_ns() + offset() * 10 ** 9
    # The one place from which the package takes the host's time.
    clock.SystemClock.now = lambda self: clock.after(_now(self), offset())


if __name__ == '__main__':
    install(pathlib.Path(sys.argv[1]))
    sys.exit(agent.main(sys.argv[2:]))
