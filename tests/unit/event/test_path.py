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

"""Field paths lead where jsonpath-rw leads."""

import contextlib
import functools
import io

import hypothesis
from hypothesis import strategies
from jsonpath_rw_ext import parser

from tests import base
from triggerlib.event import path
from triggerlib.event import path_syntax
from triggerlib import exceptions

BODY = {
    'publisher_id': 'compute.host.example.com',
    'payload': {
        'host': 'h1', 'a.b': 1, 'x y': [{'z': 2}], 'none': None,
        'image_meta': {'org.openstack__1__architecture': 'x64'},
        'glance_metadata': [
            {'key': 'min_ram', 'value': '5'},
            {'key': 'image_id', 'value': 'i-1'}, 'odd', None],
        'volume_attachment': [{'server_id': 's-1'}, {'server_id': 's-2'}],
    },
}


@functools.lru_cache(maxsize=1000)
def reference(text):
    """Return jsonpath-rw's parse tree, None where it refuses."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return parser.parse(text)
    except Exception:
        return None


class TestPath(base.TestCase):

    def assertFinds(self, text, *matches, read=True):
        """Check what a path finds, and that the library agrees.

        :param read: whether the text is read without the library
        """
        found = path.compile(text)
        self.assertEqual(list(matches), found.find(BODY), text)
        self.assertEqual(
            [(str(one.full_path), one.value)
             for one in reference(text).find(BODY)], found.find(BODY), text)
        values = [value for _, value in matches if value is not None]
        self.assertEqual(values, found.values(BODY), text)
        self.assertEqual(values[0] if values else None, found.first(BODY))
        self.assertEqual(
            read, path_syntax._Reader(text).read() is not None, text)

    def test_fields(self):
        self.assertFinds('publisher_id',
                         ('publisher_id', 'compute.host.example.com'))
        for text in ('payload.host', 'payload[host]', "payload['host']",
                     'payload["host"]', '$.payload.host', ' payload . host ',
                     "payload.'host'", '(payload).host', '@.payload.host'):
            self.assertFinds(text, ('payload.host', 'h1'))
        for text in ('absent', 'payload.absent.host', 'publisher_id.host',
                     'payload.volume_attachment.host'):
            self.assertFinds(text)
        self.assertFinds('payload.none', ('payload.none', None))

    def test_quotes(self):
        self.assertFinds("payload.'a.b'", ('payload.a.b', 1))
        self.assertFinds(
            "payload.image_meta.'org.openstack__1__architecture'",
            ('payload.image_meta.org.openstack__1__architecture', 'x64'))
        self.assertFinds('payload."x y"[0]["z"]', ('payload.x y.[0].z', 2))

    def test_indexes(self):
        self.assertFinds('payload.volume_attachment[0].server_id',
                         ('payload.volume_attachment.[0].server_id', 's-1'))
        self.assertFinds('payload.volume_attachment[-1].server_id',
                         ('payload.volume_attachment.[-1].server_id', 's-2'))
        self.assertFinds('payload.volume_attachment[2].server_id')
        self.assertFinds(
            'payload.volume_attachment[*].server_id',
            ('payload.volume_attachment.[0].server_id', 's-1'),
            ('payload.volume_attachment.[1].server_id', 's-2'))
        self.assertFinds('payload.volume_attachment[1:].server_id',
                         ('payload.volume_attachment.[1].server_id', 's-2'))
        self.assertFinds('payload.host[*]', ('payload.host.[0]', 'h1'))

    def test_wildcards_and_unions(self):
        self.assertFinds("payload.'x y'[0].*", ('payload.x y.[0].z', 2))
        self.assertFinds('payload.host,none', ('payload.host', 'h1'),
                         ('payload.none', None))
        self.assertFinds(
            '(payload.host)|(publisher_id)', ('payload.host', 'h1'),
            ('publisher_id', 'compute.host.example.com'))

    def test_split(self):
        self.assertFinds('publisher_id.`split(., 1, 1)`',
                         ('`this`', 'host.example.com'))
        self.assertFinds('publisher_id.`split(., 0, -1)`',
                         ('`this`', 'compute'))
        self.assertFinds('publisher_id.`split(., 9, -1)`')
        self.assertFinds("payload.'a.b'.`split(., 0, -1)`")

    def test_filter(self):
        self.assertFinds('payload.glance_metadata[?key=image_id].value',
                         ('payload.glance_metadata.[1].value', 'i-1'))
        self.assertFinds('payload.glance_metadata[?value>4].key',
                         ('payload.glance_metadata.[0].key', 'min_ram'))
        self.assertFinds('payload.glance_metadata[?key~min].value',
                         ('payload.glance_metadata.[0].value', '5'))
        self.assertFinds(
            'payload.glance_metadata[?key=min_ram & value=5].value',
            ('payload.glance_metadata.[0].value', '5'))
        self.assertFinds('payload.host[?key=image_id].value')

    def test_what_only_the_library_knows(self):
        self.assertFinds('payload.glance_metadata.`len`',
                         ('`len`', 4), read=False)
        self.assertFinds('$..server_id',
                         ('payload.volume_attachment.[0].server_id', 's-1'),
                         ('payload.volume_attachment.[1].server_id', 's-2'),
                         read=False)
        self.assertFinds('payload.volume_attachment.\n[0].server_id',
                         ('payload.volume_attachment.[0].server_id', 's-1'),
                         read=False)

    def test_substitution_prints_nothing(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            found = path.compile('publisher_id.`sub(/compute/, c)`')
        self.assertEqual('', out.getvalue())
        self.assertEqual('c.host.example.com', found.first(BODY))
        self.assertEqual([], found.find({'publisher_id': 5}))

    def test_where_the_library_raises(self):
        body = {'n': None, 'f': 1.5, 'd': {'a': 1}, 'l': []}
        for text in ('n[0]', 'n[*]', 'f[1:]', 'd[0]', 'l[-1]', 'f.`len`[0]',
                     'd[?a[0]=1]', 'n.`parent`.`parent`.`parent`.x',
                     'd.`sorted`.a', 'n.`sorted`[0]', 'd.a&d'):
            found = path.compile(text)
            self.assertEqual([], found.find(body), text)
            self.assertIsNone(found.first(body), text)

    def test_refused(self):
        for text in ('', '  ', 'payload.', '.payload', 'payload[', 'a.0',
                     'payload..', "payload.'x", 'a.é', 'a.`split(., 1)`',
                     'a.`nonsense`', 'a[?b~"("]', 'a[?b~5]', 'a.true',
                     '(' * 3000 + 'a' + ')' * 3000, 'a[' + '9' * 5000 + ']'):
            error = self.assertRaises(
                exceptions.PathError, path.compile, text)
            self.assertNotEqual('', str(error))

    def test_equal_paths_are_one_object(self):
        self.assertIs(path.compile('payload.xyz'),
                      path.compile('payload.xyz'))

    def test_keys_and_roots(self):
        for text, keys, roots in (
                ("payload.'a.b'.c", ('payload', 'a.b', 'c'), {'payload'}),
                ('$.payload.a', ('payload', 'a'), {'payload'}),
                ('ctxt.`split(., 0, 1)`', None, {'ctxt'}),
                ('(a.b)|(c[0])', None, {'a', 'c'}),
                ('a,b.c', None, {'a', 'b'}),
                ('*.a', None, None), ('$', None, None),
                ('a.$.b', None, None), ('$..a', None, None)):
            found = path.compile(text)
            self.assertEqual(keys, found.keys, text)
            self.assertEqual(roots, found.roots, text)

    def test_name(self):
        self.assertEqual('payload.a.b.[0].c',
                         path.compile("payload['a.b'][0].c").name)
        self.assertEqual('payload.*', path.compile('payload.*').name)


SCALARS = strategies.sampled_from(
    (None, True, False, 0, 1, 3, -2, 2.5, '', 'a', 'a.b', 'b.c.d', '3'))
KEYS = strategies.sampled_from(('a', 'b', 'key', 'x y', ''))
VALUES = strategies.recursive(
    SCALARS, lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=3),
        strategies.dictionaries(KEYS, inner, max_size=4)), max_leaves=20)
BODIES = strategies.dictionaries(KEYS, VALUES, max_size=4)

NAMES = strategies.sampled_from(('a', 'b', 'key', "'x y'", '"x y"', "''"))
TARGETS = strategies.sampled_from(('a', 'key', 'a.b', '*', 'a[0]', '@'))


@strategies.composite
def paths(draw, depth=2):
    """Draw the text of a path of the shapes that are compiled."""
    text = draw(atoms(depth))
    for _ in range(draw(strategies.integers(0, 3))):
        if draw(strategies.booleans()):
            text += draw(BRACKETS)
        else:
            text += draw(strategies.sampled_from('..|')) + draw(atoms(depth))
    return text


def atoms(depth):
    shapes = [
        NAMES, NAMES, strategies.sampled_from(
            ('*', '$', '@', '`this`', '`split(., 0, -1)`',
             '`split(., 1, 1)`')),
        strategies.tuples(NAMES, NAMES).map(','.join)]
    if depth:
        shapes.append(paths(depth - 1).map('({})'.format))
    return strategies.one_of(shapes)


BRACKETS = strategies.one_of(
    strategies.sampled_from(
        ('[0]', '[1]', '[-1]', '[*]', '[:]', '[1:]', '[:-1]', '[0:2]')),
    NAMES.map('[{}]'.format),
    TARGETS.map('[?{}]'.format),
    strategies.tuples(
        TARGETS, strategies.sampled_from(
            ('=', '==', '!=', '<', '<=', '>', '>=')),
        strategies.sampled_from(('3', '-2', '2.5', 'a', 'true', "'b.c.d'")),
    ).map(lambda parts: f'[?{"".join(parts)}]'))


class TestAgainstTheLibrary(base.TestCase):

    @hypothesis.given(paths(), strategies.lists(BODIES, max_size=5))
    @hypothesis.settings(
        deadline=None, max_examples=120,
        suppress_health_check=[hypothesis.HealthCheck.too_slow])
    def test_paths_lead_to_the_same(self, text, bodies):
        tree = reference(text)
        read = path_syntax._Reader(text).read()
        if tree is None:
            self.assertIsNone(read, text)
            return
        found = path.compile(text)
        for body in bodies:
            matches = found.find(body)
            values = [value for _, value in matches if value is not None]
            self.assertEqual(values, found.values(body))
            self.assertEqual(values[0] if values else None,
                             found.first(body))
            try:
                wanted = [(str(one.full_path), one.value)
                          for one in tree.find(body)]
            except Exception:
                # The library gives up; what the path leads to elsewhere in
                # the body is found all the same.
                continue
            self.assertEqual(wanted, matches, (text, body))
