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

"""Servers of oslo.messaging, as a host starts and stops them."""


class Server:
    """A server of oslo.messaging, and what answers behind it.

    :param server: the server of oslo.messaging
    :param close: called when the server is to stop, before that: the server
        itself would go on with all that it has taken from the bus
    :param threads: calls to have handled at the same time
    """

    def __init__(self, server, close, threads):
        self._server = server
        self._close = close
        self._threads = threads

    def start(self) -> None:
        """Begin to take messages."""
        self._server.start(override_pool_size=self._threads)

    def stop(self) -> None:
        """Take no more; see :meth:`wait`."""
        self._close()
        self._server.stop()

    def wait(self) -> None:
        """Wait until what was begun is finished."""
        self._server.wait()


class Servers:
    """Several servers that are started and stopped as one.

    :param servers: :class:`Server` objects
    :param guard: what they share; it is started before them, and stopped
        before they are
    """

    def __init__(self, servers, guard):
        self._servers = servers
        self._guard = guard

    def start(self) -> None:
        """Begin to take messages."""
        self._guard.start()
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        """Take no more; see :meth:`wait`."""
        self._guard.stop()
        for server in self._servers:
            server.stop()

    def wait(self) -> None:
        """Wait until what was begun is finished."""
        for server in self._servers:
            server.wait()
