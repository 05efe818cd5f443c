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

"""A proxy before a database, which loses what a test wants to be lost."""

import contextlib
import select
import socket
import threading

import fixtures

#: How each of the databases' clients asks for a commit.
COMMIT = b'COMMIT'
#: Seconds in which a server has answered to a commit.
PATIENCE = 30
_CHUNK = 65536


class Proxy(fixtures.Fixture):
    """Passes on what clients and a server on the loopback say.

    :param port: where the server listens
    :ivar port: where the proxy listens
    :ivar commits: how many commits clients have asked for
    """

    def __init__(self, port):
        super().__init__()
        self._server_port = port
        self._lock = threading.Lock()
        self._cut = None
        self.commits = 0

    def _setUp(self):
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = [self._listener]
        self.addCleanup(self._close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _close(self):
        for one in self._sockets:
            # A thread may wait for it, which a close does not end.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def lose_commit(self, after=0):
        """Cut the connection when the server was not asked to commit yet.

        :param after: how many commits go through before
        """
        self._cut = [after, False]

    def lose_answer(self, after=0):
        """Cut the connection when the server has committed.

        :param after: how many commits go through before
        """
        self._cut = [after, True]

    @property
    def armed(self):
        """Whether a connection is still to be cut."""
        return self._cut is not None

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            threading.Thread(
                target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError), client:
            server = socket.create_connection(
                ('127.0.0.1', self._server_port))
            self._sockets.append(server)
            with server:
                while self._pass_on(client, server):
                    pass

    def _pass_on(self, client, server):
        """Pass on what one of the two says; False when that was the last."""
        for source in select.select([client, server], [], [])[0]:
            data = source.recv(_CHUNK)
            if not data:
                return False
            if source is client and COMMIT in data:
                cut = self._count()
                if cut is not None:
                    if cut:
                        server.sendall(data)
                        select.select([server], [], [], PATIENCE)
                    return False
            (server if source is client else client).sendall(data)
        return True

    def _count(self):
        """Return how to cut at this commit, None where it goes through."""
        with self._lock:
            self.commits += 1
            if self._cut is None:
                return None
            if self._cut[0] > 0:
                self._cut[0] -= 1
                return None
            cut, self._cut = self._cut[1], None
            return cut
