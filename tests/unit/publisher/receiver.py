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

"""A receiver of batches: a real HTTP server that remembers them."""

import dataclasses
import http.server
import json
import socket
import ssl
import struct
import threading

import fixtures


@dataclasses.dataclass
class Answer:
    """What the receiver answers.

    :param promised: bytes that Content-Length promises, beyond those sent
    :param raw: what is sent in place of an answer
    """

    status: int = 200
    body: bytes = b''
    headers: dict = dataclasses.field(default_factory=dict)
    promised: int = 0
    raw: bytes | None = None


@dataclasses.dataclass
class Request:
    """What the receiver was sent.

    :param connection: the sender's port, which tells connections apart
    :param peer: the sender's certificate
    """

    target: str
    headers: dict
    body: bytes
    connection: int
    peer: dict | None = None

    @property
    def events(self):
        """The events in it, as JSON objects."""
        return json.loads(self.body)

    @property
    def ids(self):
        """The message_ids of the events in it."""
        return [event['message_id'] for event in self.events]


def rejecting(status, *rejected):
    """Return an answer that rejects events: message_ids, or what it says."""
    return Answer(status, json.dumps({'rejected': [
        {'message_id': one, 'reason': f'bad {one}'}
        if isinstance(one, str) else one for one in rejected]}).encode())


def reset(request):
    """Break the connection off: the sender sees a reset."""
    raise ConnectionResetError


class Receiver(fixtures.Fixture):
    """A server on the loopback interface.

    :param script: the answers to give, one after the other, each an
        :class:`Answer` or what makes one of the :class:`Request`; after the
        last, everything is accepted
    :param context: an ``ssl.SSLContext``, for https
    :param listen: whether it listens from the start; see :meth:`listen`
    :param host: the address it is at
    """

    def __init__(self, *script, context=None, listen=True, host='127.0.0.1'):
        self.script = list(script)
        self.requests = []
        self.released = threading.Event()
        self._context = context
        self._listens = listen
        self._host = host

    def _setUp(self):
        family = socket.AF_INET6 if ':' in self._host else socket.AF_INET
        server_class = type('Server', (_Server,), {'address_family': family})
        self._server = server_class(
            (self._host, 0), _Handler, bind_and_activate=False)
        self.addCleanup(self._server.server_close)
        # It has a port now, and refuses connections until it listens.
        self._server.server_bind()
        self._server.receiver = self
        self.port = self._server.server_address[1]
        if self._context is not None:
            self._server.socket = self._context.wrap_socket(
                self._server.socket, server_side=True,
                do_handshake_on_connect=False)
        if self._listens:
            self.listen()

    def listen(self):
        """Accept connections from now on."""
        self._server.server_activate()
        thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self._server.shutdown)
        self.addCleanup(self.released.set)

    def url(self, path='/', options='', user='', host=None):
        """Return a URL for the publisher."""
        scheme = 'http' if self._context is None else 'https'
        host = host or self._host
        if ':' in host:
            host = f'[{host}]'
        return f'{scheme}://{user}{host}:{self.port}{path}{options}'

    def hang(self, request):
        """Answer no more, until the test is over."""
        self.released.wait()
        return Answer()

    @property
    def batches(self):
        """The message_ids of all requests."""
        return [request.ids for request in self.requests]

    @property
    def keys(self):
        """The keys of all requests."""
        return [request.headers['Idempotency-Key']
                for request in self.requests]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """What a sender does wrong is seen at the sender."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers['Content-Length']))
        peer = getattr(self.connection, 'getpeercert', lambda: None)()
        request = Request(self.path, self.headers, body,
                          self.client_address[1], peer)
        receiver.requests.append(request)
        answer = receiver.script.pop(0) if receiver.script else Answer()
        if callable(answer):
            try:
                answer = answer(request)
            except ConnectionResetError:
                # Closing throws away what is on its way, and says so.
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack('ii', 1, 0))
                self.close_connection = True
                self.connection.close()
                return
        if answer.raw is not None:
            self.wfile.write(answer.raw)
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header(
            'Content-Length', str(len(answer.body) + answer.promised))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.promised:
            self.close_connection = True

    def send_response(self, code, message=None):
        # Unlike the original, it leaves Date to the test.
        self.send_response_only(code, message)

    def log_message(self, *args):
        """Nothing of this belongs into the output of the tests."""


def server_context(certificate, authority=None):
    """Return a context for a server.

    :param certificate: its ``trustme.LeafCert``
    :param authority: the ``trustme.CA`` that its clients have to show
        certificates of; None for any client
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context
