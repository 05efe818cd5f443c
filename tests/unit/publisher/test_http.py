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

"""``http://`` and ``https://``, against a real server."""

import base64
from concurrent import futures
import functools
import importlib.metadata
import json
import logging
import os
import tracemalloc
import uuid

import fixtures
import trustme

from tests import base
from tests import engine
from tests.unit.pipeline import stage
from tests.unit.publisher import receiver as receiver_module
from triggerlib.cmd import config
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib import pipeline
from triggerlib.publisher import http as http_publisher
from triggerlib.publisher import http_answer

Answer = receiver_module.Answer
Receiver = receiver_module.Receiver
rejecting = receiver_module.rejecting
reset = receiver_module.reset


def events(number):
    """Return so many events."""
    return [stage.event(each) for each in range(number)]


class HttpCase(base.TestCase):
    """With a receiver, and what a publisher tells the runner."""

    def setUp(self):
        super().setUp()
        self.letters = []

    def receiver(self, *script, **kwargs):
        return self.useFixture(Receiver(*script, **kwargs))

    def publisher(self, url):
        one = http_publisher.HttpPublisher(None, url)
        self.addCleanup(one.close)
        return one

    def context(self, trigger='t', step='s.0.http',
                identity=stage.IDENTITY):
        return pipeline.Context(
            trigger, 'fire', {}, 1, 1, step, identity, None, 0,
            lambda event, reason: self.letters.append(
                (event.message_id, reason)))

    def publish(self, to, given, context=None):
        """Publish, and return the message_ids of each batch to note."""
        one = to if isinstance(
            to, http_publisher.HttpPublisher) else self.publisher(to)
        return [[each.message_id for each in batch] for batch in one.publish(
            given, context or self.context())]

    def refused(self, to, given, **kwargs):
        return self.assertRaises(
            exceptions.PublishError, self.publish, to, given, **kwargs)


class TestRequest(HttpCase):
    """What the receiver gets."""

    def test_a_batch_is_an_array_of_events(self):
        it = self.receiver()
        given = [stage.event(1, 'a.b', text='ä\n"', size=4,
                             moment=stage.START), stage.event(2)]
        self.publish(it.url('/in'), given)
        request, = it.requests
        self.assertEqual([encoding.as_dict(each) for each in given],
                         request.events)
        self.assertEqual('/in', request.target)
        headers = request.headers
        version = importlib.metadata.version('triggerlib')
        self.assertEqual(
            ('application/json', f'triggerlib/{version}', 't', 'fire', None),
            tuple(headers[name] for name in (
                'Content-Type', 'User-Agent', 'Triggerlib-Trigger',
                'Triggerlib-Kind', 'Authorization')))
        uuid.UUID(headers['Idempotency-Key'])

    def test_no_events_are_no_request(self):
        it = self.receiver()
        self.assertEqual([], self.publish(it.url(), []))
        self.assertEqual([], it.requests)

    def test_batches_share_a_connection(self):
        it = self.receiver()
        one = self.publisher(it.url(options='?batch_size=2'))
        cut = [['m0', 'm1'], ['m2', 'm3'], ['m4']]
        # The last one is noted with the step.
        self.assertEqual(cut[:-1], self.publish(one, events(5)))
        self.publish(one, events(1))
        self.assertEqual([*cut, ['m0']], it.batches)
        self.assertEqual(
            1, len({request.connection for request in it.requests}))
        one.close()
        one.close()
        self.publish(one, events(1))
        self.assertEqual(
            2, len({request.connection for request in it.requests}))

    def test_the_receivers_own_query(self):
        it = self.receiver()
        for url, target in (
                ('', '/'), ('/a/b', '/a/b'), ('/a%20%C3%A4', '/a%20%C3%A4'),
                ('/ä b', '/%C3%A4%20b'),
                ('?query=', '/'),
                ('/x?query=a%3D1%26b%3Dc%2526%252Bd', '/x?a=1&b=c%26%2Bd')):
            self.publish(it.url('', url), events(1))
            self.assertEqual(target, it.requests[-1].target)

    def test_the_user_of_the_url(self):
        it = self.receiver()
        for user, sent in (('me:s3%40%C3%A4@', 'me:s3@ä'), ('me@', 'me:')):
            self.publish(it.url(user=user), events(1))
            self.assertEqual(
                'Basic ' + base64.b64encode(sent.encode()).decode(),
                it.requests[-1].headers['Authorization'])

    def test_a_trigger_of_any_name(self):
        it = self.receiver()
        self.publish(it.url(), events(1), self.context('ä b%\u20ac'))
        self.assertEqual('%C3%A4%20b%25%E2%82%AC',
                         it.requests[0].headers['Triggerlib-Trigger'])

    def test_an_address_of_ipv6(self):
        try:
            it = self.receiver(host='::1')
        except OSError as error:
            self.skipTest(f'no ::1 here: {error}')
        self.publish(it.url(), events(1))
        self.assertEqual(f'[::1]:{it.port}', it.requests[0].headers['Host'])

    def test_ten_thousand_events_in_the_memory_of_a_batch(self):
        it = self.receiver()
        given = [stage.event(each, text='x' * 1000)
                 for each in range(10_000)]
        it.requests = _Sum()
        one = self.publisher(it.url())
        self.publish(one, given[:100])
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for _ in one.publish(given, self.context()):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        self.assertGreater(it.requests.bytes, 10_000_000)
        self.assertLess(peak, 3_000_000)

    def test_threads_share_a_publisher(self):
        it = self.receiver()
        one = self.publisher(it.url(options='?batch_size=1'))
        with futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(
                lambda number: self.publish(one, [stage.event(number)] * 5),
                range(16)))
        self.assertEqual(sorted([f'm{number}' for number in range(16)] * 5),
                         sorted(one for one, in it.batches))
        self.assertLessEqual(
            len({request.connection for request in it.requests}), 8)


class _Sum:
    """Counts the bytes of requests in place of keeping them."""

    bytes = 0

    def append(self, request):
        self.bytes += len(request.body)


class TestKey(HttpCase):
    """The ``Idempotency-Key``."""

    def keys(self, given, **kwargs):
        it = self.receiver()
        self.publish(it.url(options='?batch_size=2'), given,
                     self.context(**kwargs))
        return it.keys

    def test_it_is_that_of_the_batch(self):
        keys = self.keys(events(6))
        self.assertEqual(3, len(set(keys)))
        self.assertEqual(keys, self.keys(events(6)))
        # Another attempt is not given what was handed on.
        self.assertEqual(keys[1:], self.keys(events(6)[2:]))

    def test_it_is_that_of_the_step_and_of_the_instance(self):
        self.assertEqual(3, len({
            *self.keys(events(1)), *self.keys(events(1), step='s.1.http'),
            *self.keys(events(1), identity=uuid.uuid4())}))


class TestErrors(HttpCase):
    """What makes a batch come again, and what does not."""

    def test_statuses(self):
        for status, retryable in (
                (400, False), (401, False), (403, False), (404, False),
                (409, False), (410, False), (413, False), (422, False),
                (408, True), (429, True), (500, True), (502, True),
                (503, True), (504, True), (599, True)):
            it = self.receiver(Answer(), Answer(status, b'not\ntoday'))
            error = self.refused(
                it.url(options='?batch_size=1'), events(3))
            self.assertEqual(retryable, error.retryable, status)
            self.assertIsNone(error.retry_after)
            self.assertIn(f'http://127.0.0.1:{it.port} answered {status} ',
                          str(error))
            self.assertIn('not today', str(error))
            self.assertEqual([['m0'], ['m1']], it.batches)

    def test_success(self):
        for status in (200, 201, 202, 204, 207):
            it = self.receiver(Answer(status))
            self.publish(it.url(), events(1))
            self.assertEqual([['m0']], it.batches)

    def test_a_redirect_is_not_followed(self):
        other = self.receiver()
        for status in (301, 302, 303, 307, 308):
            it = self.receiver(Answer(status, headers={
                'Location': other.url('/there', '?token=s3cr3t',
                                      user='me:s3cr3t@')}))
            error = self.refused(it.url(), events(1))
            self.assertFalse(error.retryable)
            self.assertIn(f'points to http://127.0.0.1:{other.port}/there;',
                          str(error))
            self.assertNotIn('s3cr3t', str(error))
        self.assertEqual([], other.requests)

    def test_when_to_come_back(self):
        now = 'Sun, 01 Mar 2026 12:00:00 GMT'
        for status, headers, wait in (
                (503, {'Retry-After': '120'}, 120),
                (429, {'retry-after': ' 0 '}, 0),
                (429, {'Retry-After': '9' * 5000}, float('inf')),
                (503, {'Retry-After': 'Sun, 01 Mar 2026 12:01:30 GMT',
                       'Date': now}, 90),
                (503, {'Retry-After': 'Sunday, 01-Mar-26 12:01:30 GMT',
                       'Date': now}, 90),
                (503, {'Retry-After': 'Sun Mar  1 12:01:30 2026',
                       'Date': now}, 90),
                (503, {'Retry-After': 'Sun, 01 Mar 2026 11:00:00 GMT',
                       'Date': now}, 0),
                (503, {'Retry-After': 'Sun, 01 Mar 1970 12:01:30 GMT'}, 0),
                (503, {'Retry-After': 'soon'}, None),
                (503, {'Retry-After': '-5'}, None),
                (503, {'Retry-After': '1.5'}, None),
                (503, {'Retry-After': 'Sun, 99 Mar 2026 12:01:30 GMT'}, None),
                (503, {'Retry-After': '\u0663'.encode().decode('latin-1')},
                 None),
                # Whoever says when does not mean never.
                (409, {'Retry-After': '5'}, 5)):
            it = self.receiver(Answer(status, headers=headers))
            error = self.refused(it.url(), events(1))
            self.assertEqual((True, wait),
                             (error.retryable, error.retry_after), headers)

    def test_a_receiver_that_is_not_there_yet(self):
        it = self.receiver(listen=False)
        one = self.publisher(it.url('/s3cr3t', '?query=token%3Ds3cr3t',
                                    user='me:s3cr3t@'))
        error = self.refused(one, events(1))
        self.assertTrue(error.retryable)
        self.assertIn(f'http://127.0.0.1:{it.port} did not take a batch ',
                      str(error))
        self.assertNotIn('s3cr3t', str(error))
        it.listen()
        self.publish(one, events(1))
        self.assertEqual([['m0']], it.batches)

    def test_a_name_that_is_not_there(self):
        error = self.refused('http://nowhere.invalid/', events(1))
        self.assertTrue(error.retryable)
        self.assertIn('nowhere.invalid', str(error))

    def test_a_reset_in_the_middle(self):
        it = self.receiver(Answer(), reset)
        one = self.publisher(it.url(options='?batch_size=1'))
        error = self.refused(one, events(3))
        self.assertTrue(error.retryable)
        self.publish(one, events(3)[1:])
        self.assertEqual([['m0'], ['m1'], ['m1'], ['m2']], it.batches)
        self.assertEqual(it.keys[1], it.keys[2])

    def test_an_answer_that_breaks_off(self):
        for status in (200, 400):
            it = self.receiver(Answer(status, b'{"reje', promised=90))
            self.assertTrue(self.refused(it.url(), events(1)).retryable)

    def test_an_answer_that_is_none(self):
        for raw in (
                b'', b'garbage\r\n\r\n', b'HTTP/1.1 x\r\n\r\n',
                b'HTTP/1.1 100 Continue\r\n\r\n',
                b'HTTP/1.1 200 OK\r\n' + b'X: y\r\n' * 300 + b'\r\n',
                b'HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nx',
                b'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nxyz',
                b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
                b'5\r\nab'):
            it = self.receiver(Answer(raw=raw))
            self.assertTrue(
                self.refused(it.url(), events(1)).retryable, raw)

    def test_a_slow_answer(self):
        it = self.receiver()
        it.script.append(it.hang)
        one = self.publisher(it.url(options='?timeout=0.2'))
        error = self.refused(one, events(1))
        self.assertTrue(error.retryable)
        self.assertIn('Read timed out', str(error))
        # What was asked for is not answered on the same connection.
        self.publish(one, events(1))
        self.assertEqual(
            2, len({request.connection for request in it.requests}))
        self.assertEqual(1, len(set(it.keys)))

    def test_no_secret_is_logged(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        it = self.receiver(Answer(404), rejecting(200, 'm0'))
        one = self.publisher(it.url('/s3cr3t', '?query=token%3Ds3cr3t',
                                    user='me:s3cr3t@'))
        self.assertNotIn('s3cr3t', str(self.refused(one, events(1))))
        self.publish(one, events(1))
        self.assertNotIn('s3cr3t', f'{logger.output} {self.letters}')

    def test_only_the_begin_of_an_answer_is_kept(self):
        it = self.receiver(Answer(400, b'\xff\0x' * 10_000_000))
        error = self.refused(it.url(), events(1))
        self.assertLess(len(str(error)), 1000)
        self.assertIn('answered 400 Bad Request: \ufffd x\ufffd', str(error))


class TestRejected(HttpCase):
    """One bad event does not take its batch along."""

    def test_the_rest_is_delivered_where_the_receiver_took_it(self):
        for status in (200, 202, 207):
            self.letters.clear()
            it = self.receiver(
                Answer(), rejecting(status, 'm3', {'message_id': 'm4'}))
            self.assertEqual(
                [['m0', 'm1', 'm2'], ['m3', 'm4', 'm5']],
                self.publish(it.url(options='?batch_size=3'), events(7)))
            self.assertEqual(
                [['m0', 'm1', 'm2'], ['m3', 'm4', 'm5'], ['m6']], it.batches)
            place = f'http://127.0.0.1:{it.port} rejected it'
            self.assertEqual([('m3', f'{place}: bad m3'),
                              ('m4', f'{place}: it gave no reason')],
                             self.letters)

    def test_the_rest_is_sent_again_where_it_took_nothing(self):
        for status in (400, 422):
            self.letters.clear()
            it = self.receiver(
                Answer(), rejecting(status, 'm3'), rejecting(status, 'm5'))
            self.publish(it.url(options='?batch_size=3'), events(7))
            self.assertEqual(
                [['m0', 'm1', 'm2'], ['m3', 'm4', 'm5'], ['m4', 'm5'],
                 ['m4'], ['m6']], it.batches)
            self.assertEqual(5, len(set(it.keys)))
            self.assertEqual(['m3', 'm5'], [one for one, _ in self.letters])

    def test_all_of_a_batch(self):
        for status in (200, 422):
            self.letters.clear()
            it = self.receiver(rejecting(status, 'm0', 'm1'))
            self.publish(it.url(), events(2))
            self.assertEqual([['m0', 'm1']], it.batches)
            self.assertEqual(['m0', 'm1'], [one for one, _ in self.letters])

    def test_names_alone(self):
        it = self.receiver(Answer(200, b' {"rejected": ["m1"]}'))
        self.publish(it.url(), events(2))
        self.assertEqual(['m1'], [one for one, _ in self.letters])

    def test_a_reason_of_any_form(self):
        for reason, text in (
                ({'code': 7}, '{"code": 7}'), ('a\0b\n\ud800', 'a b  '),
                ('x' * 600, 'x' * 500 + '...'), ('', 'it gave no reason'),
                (None, 'it gave no reason')):
            self.letters.clear()
            it = self.receiver(
                rejecting(200, {'message_id': 'm0', 'reason': reason}))
            self.publish(it.url(), events(1))
            (_, given), = self.letters
            self.assertTrue(given.endswith(f'rejected it: {text}'), given)

    def test_nothing_is_rejected(self):
        for body in (b'', b'ok', b'{', b'{}', b'{"rejected": []}',
                     b'{"rejected": null}', b'{"rejected": 0}', b'["m0"]',
                     b'"rejected"', b'\xff', b'{"a":' * 100_000,
                     b'<p>' * 3_000_000):
            it = self.receiver(Answer(200, body))
            self.publish(it.url(), events(1))
            self.assertEqual((1, []), (len(it.requests), self.letters))

    def test_it_cannot_be_told_which(self):
        size = http_answer.SIZE_LIMIT
        for body, part in (
                (b'{"rejected": 3}', 'sent: 3'),
                (b'{"rejected": ["m0", "m7"]}', 'sent: "m7"'),
                (b'{"rejected": [{"id": "m0"}]}', 'sent: {"id": "m0"}'),
                (b'{"rejected": {"m0": "x"}}', 'sent: {"m0": "x"}'),
                (b'{"rejected": [{"message_id": 5}]}', 'sent:'),
                (b'{"x": "' + b'x' * size + b'"}', f'longer than {size}')):
            it = self.receiver(Answer(200, body))
            error = self.refused(it.url(), events(1))
            self.assertFalse(error.retryable)
            self.assertIn(part, str(error))
            self.assertEqual([], self.letters)

    def test_an_error_that_names_nobody_takes_the_batch(self):
        for body in (b'{"rejected": 3}', b'{"rejected": []}', b'm0',
                     b'{"rejected": ["m7"]}', b'{"x": "' + b'x' * 5_000_000):
            it = self.receiver(Answer(422, body))
            error = self.refused(it.url(), events(2))
            self.assertFalse(error.retryable)
            self.assertIn('answered 422', str(error))
            self.assertEqual((1, []), (len(it.requests), self.letters))

    def test_an_error_that_passes_rejects_nothing(self):
        for status in (408, 429, 500, 503):
            it = self.receiver(rejecting(status, 'm0'))
            self.assertTrue(self.refused(it.url(), events(1)).retryable)
            self.assertEqual([], self.letters)


class TestTLS(HttpCase):
    """``https``, with authorities that the test makes."""

    @functools.cached_property
    def authority(self):
        return trustme.CA()

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def write(self, name, *blobs):
        path = f'{self.folder}/{name}'
        with open(path, 'wb') as stream:
            stream.write(b''.join(blob.bytes() for blob in blobs))
        return path

    def cacert(self, authority=None):
        return self.write(
            'ca.pem', (authority or self.authority).cert_pem)

    def tls_receiver(self, name='127.0.0.1', clients=None, **kwargs):
        return self.receiver(context=receiver_module.server_context(
            self.authority.issue_cert(name), clients), **kwargs)

    def test_an_authority_of_ones_own(self):
        it = self.tls_receiver()
        self.publish(
            it.url(options=f'?cacert={self.cacert()}&verify_ssl=true'),
            events(1))
        self.assertEqual([['m0']], it.batches)

    def test_one_that_nobody_vouches_for_gets_nothing(self):
        it = self.tls_receiver()
        for options in ('', f'?cacert={self.cacert(trustme.CA())}'):
            error = self.refused(it.url(options=options), events(1))
            self.assertTrue(error.retryable)
            self.assertIn('certificate verify failed', str(error))
        self.assertEqual([], it.requests)

    def test_one_of_another_name_gets_nothing(self):
        it = self.tls_receiver('example.org')
        error = self.refused(
            it.url(options=f'?cacert={self.cacert()}'), events(1))
        self.assertIn("'127.0.0.1'", str(error))
        self.assertEqual([], it.requests)

    def test_a_client_certificate(self):
        clients = trustme.CA()
        it = self.tls_receiver(clients=clients)
        one = clients.issue_cert('billing.example.org')
        chain = self.write('cert.pem', *one.cert_chain_pems)
        key = self.write('key.pem', one.private_key_pem)
        both = self.write('both.pem', one.private_key_and_cert_chain_pem)
        ca = f'?cacert={self.cacert()}'
        for options in (f'&clientcert={chain}&clientkey={key}',
                        f'&clientcert={both}'):
            self.publish(it.url(options=ca + options), events(1))
            self.assertIn(
                (('DNS', 'billing.example.org'),),
                [it.requests[-1].peer['subjectAltName']])
        self.assertTrue(self.refused(it.url(options=ca), events(1)).retryable)
        self.assertEqual(2, len(it.requests))

    def test_files_that_are_mended_are_read_again(self):
        it = self.tls_receiver()
        path = f'{self.folder}/ca.pem'
        one = self.publisher(it.url(options=f'?cacert={path}'))
        error = self.refused(one, events(1))
        self.assertTrue(error.retryable)
        self.assertIn('No such file', str(error))
        self.assertIn(f'; cacert={path}', str(error))
        with open(path, 'w') as stream:
            stream.write('no certificate')
        self.assertIn(f'; cacert={path}',
                      str(self.refused(one, events(1))))
        self.cacert(trustme.CA())
        self.assertIn('verify failed', str(self.refused(one, events(1))))
        self.cacert()
        self.publish(one, events(1))
        self.assertEqual([['m0']], it.batches)

    def test_a_key_that_needs_a_password_asks_nobody(self):
        from cryptography.hazmat.primitives import serialization

        one = self.authority.issue_cert('x')
        key = serialization.load_pem_private_key(
            one.private_key_pem.bytes(), None)
        path = f'{self.folder}/key.pem'
        with open(path, 'wb') as stream:
            stream.write(key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b'secret')))
        chain = self.write('cert.pem', *one.cert_chain_pems)
        with open(path, 'rb') as stream:
            both = self.write('both.pem', trustme.Blob(stream.read()),
                              *one.cert_chain_pems)
        it = self.tls_receiver()
        ca = f'?cacert={self.cacert()}'
        for options in (f'&clientcert={chain}&clientkey={path}',
                        f'&clientcert={both}'):
            error = self.refused(it.url(options=ca + options), events(1))
            self.assertIn('password', str(error))
            self.assertIn(options.split('&')[-1], str(error))

    def test_plain_http_to_a_port_of_tls_and_the_other_way_round(self):
        it = self.tls_receiver()
        plain = self.receiver()
        for url in (it.url().replace('https', 'http'),
                    plain.url().replace('http', 'https')):
            self.assertTrue(self.refused(url, events(1)).retryable)
        self.assertEqual([], it.requests + plain.requests)


class TestRunner(HttpCase):
    """Over attempts, with the journal."""

    def setUp(self):
        super().setUp()
        self.on = self.useFixture(stage.Stage(config.load(
            [], overrides={'connection': 'memory://'})))

    def sink(self, it, options='?batch_size=2'):
        return stage.pipelines_module.Sink('s', (
            stage.pipelines_module.Step(
                's.0.http', self.publisher(it.url(options=options)), True),))

    def test_a_retry_goes_on_behind_what_was_delivered(self):
        for answer in (Answer(503), reset):
            self.on = self.useFixture(stage.Stage(config.load(
                [], overrides={'connection': 'memory://'})))
            it = self.receiver(Answer(), Answer(), answer)
            sinks = [self.sink(it)]
            error = self.assertRaises(exceptions.PipelineError, self.on.run,
                                      sinks, events(7))
            self.assertTrue(error.retryable)
            self.on.claim_again()
            self.on.run(sinks, events(7))
            self.assertEqual(
                [['m0', 'm1'], ['m2', 'm3'], ['m4', 'm5'], ['m4', 'm5'],
                 ['m6']], it.batches)
            self.assertEqual(it.keys[2], it.keys[3])
            self.assertEqual(4, len(set(it.keys)))
            self.assertIsNone(self.on.instance())

    def test_a_batch_repeats_its_key_when_the_worker_died(self):
        def die(request):
            # The lease goes while the receiver has the batch.
            self.on.claim_again()
            return Answer()

        it = self.receiver(Answer(), die)
        sinks = [self.sink(it)]
        self.assertRaises(
            exceptions.LeaseLost, self.on.run, sinks, events(5))
        self.on.run(sinks, events(5))
        self.assertEqual([['m0', 'm1'], ['m2', 'm3'], ['m2', 'm3'], ['m4']],
                         it.batches)
        self.assertEqual(it.keys[1], it.keys[2])

    def test_a_rejected_event_is_a_dead_letter_once(self):
        it = self.receiver(Answer(), rejecting(422, 'm3'), Answer(503),
                           rejecting(422, 'm3'), Answer(),
                           rejecting(200, 'm4'))
        sinks = [self.sink(it)]
        self.assertRaises(
            exceptions.PipelineError, self.on.run, sinks, events(5))
        self.on.claim_again()
        self.on.run(sinks, events(5))
        self.assertEqual(
            [['m0', 'm1'], ['m2', 'm3'], ['m2'], ['m2', 'm3'], ['m2'],
             ['m4']], it.batches)
        self.assertEqual(it.keys[1:3], it.keys[3:5])
        letters = self.on.storage.run(lambda tx: tx.list_dead_letters())
        self.assertEqual(['m3', 'm4'], [one.message_id for one in letters])

    def test_a_single_batch_costs_two_transactions(self):
        it = self.receiver()
        with self.on.counted():
            self.on.run([self.sink(it)], events(2))
        self.assertEqual((1, 2), (len(it.requests), self.on.transactions))

    def test_what_a_dead_letter_says(self):
        it = self.receiver(rejecting(207, 'm1'))
        self.on.run([self.sink(it)], events(2))
        letter, = self.on.storage.run(lambda tx: tx.list_dead_letters())
        self.assertEqual(
            ('published', 'm1', encoding.as_dict(events(2)[1]),
             f"step 's.0.http' of trigger instance {self.on.instance_id} "
             f'(t): http://127.0.0.1:{it.port} rejected it: bad m1'),
            (letter.kind, letter.message_id, json.loads(letter.body),
             letter.reason))


TRIGGERS = """
    - name: pair
      distinguished_by: [server]
      expiration: first + 1h
      match_criteria: [{event_type: a.*}]
      fire_criteria: [{event_type: a.end}]
      fire_pipeline: out
    """


class TestEngine(HttpCase):
    """With a worker."""

    def ready(self, it, *url):
        on = self.useFixture(engine.Engine(TRIGGERS, f"""
    sinks:
      - name: out
        publishers: ["{it.url(*url)}"]
    """, retry_delay=10, max_attempts=3))
        on.add(engine.event('e1', 'a.start', 0, server=1),
               engine.event('e2', 'a.end', 1, server=1))
        on.clock.advance(10)
        return on

    def test_a_receiver_that_is_down_at_start_comes_back(self):
        it = self.receiver(listen=False)
        on = self.ready(
            it, '/s3cr3t', '?query=token%3Ds3cr3t', 'me:s3cr3t@')
        on.settle()
        self.assertEqual(1, on.instance().attempts)
        self.assertIn(f'127.0.0.1:{it.port}', on.instance().error)
        self.assertIn(f'127.0.0.1:{it.port}', self.logger.output)
        self.assertNotIn(
            's3cr3t', on.instance().error + self.logger.output)
        it.listen()
        on.clock.advance(10)
        on.settle()
        self.assertEqual([], on.instances())
        self.assertEqual([['e1', 'e2']], it.batches)

    def test_retry_after_is_the_least_wait(self):
        it = self.receiver(Answer(429, headers={'Retry-After': '100'}))
        on = self.ready(it)
        on.settle()
        on.clock.advance(99)
        on.settle()
        self.assertEqual(1, len(it.requests))
        on.clock.advance(1)
        on.settle()
        self.assertEqual([['e1', 'e2']] * 2, it.batches)
        self.assertEqual(1, len(set(it.keys)))

    def test_what_will_not_pass_stays_to_be_seen(self):
        it = self.receiver(Answer(403, b'no such account'))
        on = self.ready(it)
        on.settle()
        one = on.instance()
        self.assertEqual('ERROR', str(one.state))
        self.assertIn('answered 403 Forbidden: no such account', one.error)


class TestURL(base.TestCase):
    """What is refused of a URL."""

    def test_what_is_refused(self):
        for url, part in (
                ('http://', 'has no host'), ('http:///x', 'has no host'),
                ('http://:80/', 'has no host'),
                ('http://h:x/', 'port'), ('http://h:99999/', 'port'),
                ('http://ä/', 'xn--'), ('http://a b/', 'ASCII'),
                ('http://a%3Ab:c@h/', 'colon'), ('http://h/#x', '%23'),
                ('http://h/?batch_size=0', 'less than 1'),
                ('http://h/?batch_size=x', 'batch_size=x'),
                ('http://h/?timeout=0', 'not above 0'),
                ('http://h/?timeout=nan', 'not above 0'),
                ('http://h/?timeout=1e9', 'at most'),
                ('http://h/?connect_timeout=-1', 'not above 0'),
                ('http://h/?query=a%20b', 'twice'),
                ('http://h/?query=a%23', 'twice'),
                ('http://h/?query=%C3%A4', 'twice'),
                ('http://h/?timeot=1', "did you mean 'timeout'?"),
                ('http://h/?token=x', 'into the option query'),
                ('http://h/?query=a=1&b=2', 'unknown options: b'),
                ('http://h/?cacert=/x', 'cacert is for https'),
                ('http://h/?clientcert=/x&clientkey=/y', 'is for https'),
                ('https://h/?clientkey=/y', 'needs a clientcert'),
                ('https://h/?cacert=x', 'no absolute path'),
                ('https://h/?cacert=', 'no absolute path'),
                ('https://h/?verify_ssl=false', 'always verified'),
                ('https://h/?timeout=1&timeout=2', 'twice')):
            error = self.assertRaises(
                ValueError, http_publisher.HttpPublisher, None, url)
            self.assertIn(part, str(error), url)

    def test_what_ceilometer_has_is_accepted(self):
        http_publisher.HttpPublisher(
            None, 'https://h/x?timeout=1&max_retries=2&poolsize=10&'
            'verify_ssl=True')

    def test_nothing_is_opened_before_it_is_used(self):
        missing = os.path.join(os.sep, 'nope', 'ca.pem')
        http_publisher.HttpPublisher(
            None, f'https://nowhere.invalid/?cacert={missing}').close()
