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

"""``http://`` and ``https://``: batches of events, each posted as JSON."""

import base64
import dataclasses
import functools
import importlib.metadata
import json
import ssl
import threading
import urllib.parse
import uuid

import urllib3

from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib.publisher import http_answer
from triggerlib.publisher import publisher

#: Connections that are kept open for the next batch; there may be more.
_KEPT = 64
#: Characters of a path that stand for themselves, beside letters and digits.
_PATH = "/%:@!$&'()*+,;=~-._"
_LONGEST = 24 * 3600


class HttpPublisher(publisher.Publisher):
    """Posts events in batches, each under a key that a retry repeats.

    The URL's query holds options, as with every publisher: ``batch_size``,
    ``timeout``, ``connect_timeout``, ``cacert``, ``clientcert`` and
    ``clientkey``, and ``query``, which is the query that the receiver gets,
    percent-encoded once more. Ceilometer's ``max_retries`` and ``poolsize``
    are accepted and mean nothing; its ``verify_ssl`` is always true.
    """

    def __init__(self, conf, url):
        super().__init__(conf, url)
        self._batch_size = self.option('batch_size', _count, 100)
        self._timeout = urllib3.Timeout(
            connect=self.option('connect_timeout', _seconds, 10.0),
            read=self.option('timeout', _seconds, 30.0))
        self._files = _Files(
            self.option('cacert', _path), self.option('clientcert', _path),
            self.option('clientkey', _path))
        self.option('verify_ssl', _true)
        for name in ('max_retries', 'poolsize'):
            self.option(name)
        query = self.option('query', default='')
        try:
            self.refuse_other_options()
        except ValueError as error:
            raise ValueError(
                f'{error}; what the receiver is to get as its own query goes '
                f'into the option query, percent-encoded') from None
        self._is_tls = self.url.scheme == 'https'
        self._files.check(self._is_tls)
        self._target = _target(self.url.path, query)
        self._host, self._port = self._address()
        self._place = (f'{self.url.scheme}://{self._host}'
                       f'{f":{self._port}" if self._port else ""}')
        self._headers = {
            'Content-Type': 'application/json', 'Accept': 'application/json',
            **_authorization(self.url.username, self.url.password)}
        self._lock = threading.Lock()
        self._pool = None

    def publish(self, events, context):
        """Post the events, and yield each batch that the receiver has.

        The last one is noted together with the step.
        """
        for begin in range(0, len(events), self._batch_size):
            end = begin + self._batch_size
            self._deliver(events[begin:end], context)
            if end < len(events):
                yield events[begin:end]

    def close(self):
        """Close the connections that nobody uses at the moment."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _address(self):
        try:
            host, port = self.url.hostname, self.url.port
        except ValueError:
            raise ValueError(
                'the port in the URL is a number up to 65535') from None
        if not host:
            raise ValueError('the URL has no host; write '
                             f'{self.url.scheme}://host/path')
        if not host.isascii() or not host.isprintable() or ' ' in host:
            raise ValueError('the host in the URL is written in ASCII, a name '
                             'with other letters as xn--...')
        return f'[{host}]' if ':' in host else host, port

    def _deliver(self, batch, context):
        """Post a batch, without what the receiver names as wrong in it.

        One that answers with an error has taken nothing, so that the rest
        goes out again.
        """
        while batch:
            rejected = self._post(batch, context)
            left = []
            for event in batch:
                reason = rejected.reasons.get(event.message_id)
                if reason is None:
                    left.append(event)
                else:
                    context.dead_letter(
                        event, f'{self._place} rejected it: {reason}')
            if rejected.rest_is_taken:
                return
            batch = left

    def _post(self, batch, context):
        ids = [event.message_id for event in batch]
        body = f'[{",".join(map(encoding.to_json, batch))}]'.encode()
        headers = {
            **self._headers,
            'User-Agent': _user_agent(),
            'Idempotency-Key': _key(context, ids),
            'Triggerlib-Trigger': urllib.parse.quote(context.trigger),
            'Triggerlib-Kind': context.kind,
        }
        try:
            status, reason, answered, answer = self._exchange(body, headers)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            files = f'; {self._files}' if _is_about_tls(error) else ''
            raise exceptions.PublishError(
                f'{self._place} did not take a batch of {len(batch)}: '
                f'{type(error).__name__}: '
                f'{http_answer.printable(str(error))}{files}',
                retryable=True) from error
        return http_answer.read(
            self._place, status, reason, answered, answer, set(ids))

    def _exchange(self, body, headers):
        response = self._connected().urlopen(
            'POST', self._target, body=body, headers=headers,
            timeout=self._timeout, retries=False, redirect=False,
            preload_content=False, enforce_content_length=True)
        try:
            answer = _begin_of(response)
        finally:
            # One that was read to its end is back in the pool already, and
            # not closed by this.
            response.close()
            response.release_conn()
        return response.status, response.reason, response.headers, answer

    def _connected(self):
        with self._lock:
            if self._pool is None:
                self._pool = self._connect()
            return self._pool

    def _connect(self):
        if not self._is_tls:
            return urllib3.HTTPConnectionPool(
                self._host, self._port, maxsize=_KEPT)
        files = self._files
        return urllib3.HTTPSConnectionPool(
            self._host, self._port, maxsize=_KEPT, cert_reqs='CERT_REQUIRED',
            ca_certs=files.cacert, cert_file=files.clientcert,
            # Of what is named as key, urllib3 sees whether it needs a
            # password. For the other, OpenSSL would ask on the terminal.
            key_file=files.clientkey or files.clientcert)


@dataclasses.dataclass(frozen=True, slots=True)
class _Files:
    """What TLS needs from the disk, read whenever a connection is opened.

    What is not given is None.

    :param cacert: the authorities that may vouch for the receiver, in place
        of the system's
    :param clientcert: the certificate that is shown to the receiver
    :param clientkey: its key, where it is not in the same file
    """

    cacert: str | None
    clientcert: str | None
    clientkey: str | None

    def __str__(self):
        return ', '.join(f'{name}={getattr(self, name)}'
                         for name in self.given) or "the system's cacert"

    @property
    def given(self):
        """The names of those that are given."""
        return [each.name for each in dataclasses.fields(self)
                if getattr(self, each.name) is not None]

    def check(self, is_tls):
        """Refuse what cannot be meant.

        :raises ValueError: it says what
        """
        if self.given and not is_tls:
            raise ValueError(f'{", ".join(self.given)} is for https')
        if self.clientkey is not None and self.clientcert is None:
            raise ValueError('clientkey needs a clientcert')


def _begin_of(response):
    """Return an answer, or as much of it as is looked at."""
    answer = b''
    # Only the read behind the last byte tells whether some are missing.
    while part := response.read(
            http_answer.SIZE_LIMIT + 1 - len(answer)):
        answer += part
    return answer


def _is_about_tls(error):
    return isinstance(error, (urllib3.exceptions.SSLError, ssl.SSLError)) or (
        isinstance(error.__cause__ or error.__context__, ssl.SSLError))


def _key(context, ids):
    """Return the key of a batch, the same whenever these events are sent."""
    return str(uuid.uuid5(
        context.identity, json.dumps([context.step, *ids])))


@functools.cache
def _user_agent():
    return f'triggerlib/{importlib.metadata.version("triggerlib")}'


def _target(path, query):
    if not all('!' <= one <= '~' and one != '#' for one in query):
        raise ValueError(
            'the option query is percent-encoded twice, since what the '
            'receiver gets is percent-encoded itself')
    target = urllib.parse.quote(path, safe=_PATH) or '/'
    return f'{target}?{query}' if query else target


def _authorization(username, password):
    if username is None:
        return {}
    username = urllib.parse.unquote(username)
    if ':' in username:
        raise ValueError('the user in the URL cannot hold a colon')
    pair = f'{username}:{urllib.parse.unquote(password or "")}'
    return {'Authorization':
            f'Basic {base64.b64encode(pair.encode()).decode()}'}


def _count(text):
    number = publisher.whole_number(text)
    if not number:
        raise ValueError('is less than 1')
    return number


def _seconds(text):
    number = float(text)
    if not 0 < number <= _LONGEST:
        raise ValueError(f'is not above 0 and at most {_LONGEST}')
    return number


def _path(text):
    if not text.startswith('/') or '\0' in text:
        raise ValueError('is no absolute path of a file')
    return text


def _true(text):
    if not publisher.flag(text):
        raise ValueError('certificates are always verified; name your own '
                         'authority with cacert')
    return True
