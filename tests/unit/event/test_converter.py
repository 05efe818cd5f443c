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

"""The converter: the forms, the traits, and what is poison."""

import datetime
import json
import logging
import os

import fixtures
import hypothesis
from hypothesis import strategies
from oslo_config import cfg

from tests import base
from triggerlib.event import converter
from triggerlib.event import definitions
from triggerlib.event import envelope
from triggerlib.event import trait_plugin
from triggerlib import exceptions
from triggerlib import opts
from triggerlib import plugins

UTC = datetime.timezone.utc

FLAT = {
    'message_id': 'm-1', 'timestamp': '2026-03-01 12:00:00.5',
    'event_type': 'x.y', 'publisher_id': 'svc.host', 'priority': 'INFO',
    '_context_request_id': 'req-1', '_context_tenant': 't-1',
    '_context_roles': ['admin', 'member'],
    'payload': {'a': 'A', 'n': 5},
}
ENDPOINT = {
    'metadata': {'message_id': 'm-1', 'timestamp': '2026-03-01 12:00:00.5'},
    'ctxt': {'request_id': 'req-1', 'tenant': 't-1',
             'roles': ['admin', 'member']},
    'event_type': 'x.y', 'publisher_id': 'svc.host', 'priority': 'INFO',
    'payload': {'a': 'A', 'n': 5},
}


def wire(body):
    return {'oslo.version': '2.0', 'oslo.message': json.dumps(body)}


FORMS = {
    'flat': FLAT, 'endpoint': ENDPOINT, 'wire': wire(FLAT),
    'parsed wire': {'oslo.version': '2.0', 'oslo.message': FLAT},
    'endpoint on the wire': wire(ENDPOINT),
    'wire in bytes': {'oslo.message': json.dumps(FLAT).encode()},
    'wire in wire': wire(wire(FLAT)),
    'mixed': {**ENDPOINT, 'message_id': 'm-1'},
}


class ConverterTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))

    def converter(self, text='', **options):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path,
                            'events.yaml')
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write(text)
        return converter.Converter(
            definitions.EventDefinitions.load(path), **options)

    def traits(self, text, payload, **more):
        """Return the traits that definitions of ``*`` make of a payload."""
        traits = ''.join(f'\n    {line}' for line in text.splitlines())
        event = self.converter(
            f"- event_type: '*'\n  traits:{traits or ' {}'}").to_event(
                {**FLAT, 'payload': payload, **more})
        return {name: value for name, value in event.traits.items()
                if name not in ('message_id', 'service', 'request_id',
                                'tenant_id')}

    def warnings(self):
        return self.log.output.splitlines()


class TestForms(ConverterTestCase):

    def test_event(self):
        for name, body in FORMS.items():
            event = self.converter().to_event(body)
            self.assertEqual('m-1', event.message_id, name)
            self.assertEqual('x.y', event.event_type, name)
            self.assertEqual(
                datetime.datetime(2026, 3, 1, 12, 0, 0, 500000, tzinfo=UTC),
                event.timestamp, name)
            self.assertEqual(
                {'message_id': 'm-1', 'service': 'svc.host',
                 'request_id': 'req-1', 'tenant_id': 't-1'},
                event.traits, name)
            self.assertIsNone(event.raw)

    def test_every_path_in_every_form(self):
        paths = {
            'payload.a': 'A', 'publisher_id': 'svc.host',
            'event_type': 'x.y', 'priority': 'INFO', 'message_id': 'm-1',
            'metadata.message_id': 'm-1',
            'timestamp': '2026-03-01 12:00:00.5',
            'metadata.timestamp': '2026-03-01 12:00:00.5',
            '_context_tenant': 't-1', 'ctxt.tenant': 't-1',
            'ctxt.request_id': 'req-1', '_context_roles[1]': 'member',
            'ctxt.roles[0]': 'admin', 'ctxt[roles][-1]': 'member',
            '$.ctxt.tenant': 't-1', '(absent)|(ctxt.tenant)': 't-1',
            '$..request_id': 'req-1',
            'metadata.timestamp.`split(-, 1, -1)`': '03'}
        for path, wanted in paths.items():
            # Each alone, so that none profits from the needs of another.
            made = self.converter(json.dumps([{
                'event_type': '*', 'traits': {'t': {'fields': path}}}]))
            for name, body in FORMS.items():
                self.assertEqual(
                    wanted, made.to_event(body).traits.get('t'),
                    (path, name))

    def test_notification_is_left_as_it_is(self):
        made = self.converter(
            "[{event_type: '*', traits: {t: {fields: '*.a'}}}]")
        for name, body in FORMS.items():
            before = json.dumps(body, default=str)
            made.to_event(body)
            self.assertEqual(before, json.dumps(body, default=str), name)

    def test_texts_of_another_class(self):
        class Text(str):
            pass

        event = self.converter().to_event({
            **FLAT, 'message_id': Text('m-1'), 'event_type': Text('x.y')})
        self.assertEqual(('m-1', 'x.y'), (event.message_id, event.event_type))

    def test_raw(self):
        made = self.converter(keep_raw=True)
        self.assertIs(FLAT, made.to_event(FLAT).raw)

    def test_default_traits(self):
        for body, wanted in (
                ({'payload': {'tenant_id': 'p'}}, 'p'),
                ({'payload': None}, 't-1'),
                ({'_context_project_id': 'q'}, 'q'),
                ({'payload': {'tenant_id': 5}}, '5'),
                ({'_context_tenant': None}, None)):
            event = self.converter().to_event({**FLAT, **body})
            self.assertEqual(wanted, event.traits.get('tenant_id'))

    def test_default_traits_are_overridden(self):
        made = self.converter('''
- event_type: x.*
  traits:
    message_id: {fields: payload.a}
    service: {fields: "publisher_id.`split(., 0, -1)`"}
    tenant_id: {fields: payload.absent}
''')
        self.assertEqual(
            {'message_id': 'A', 'service': 'svc', 'request_id': 'req-1'},
            made.to_event(FLAT).traits)
        self.assertEqual(
            {'message_id', 'service', 'request_id', 'tenant_id'},
            set(made.to_event({**FLAT, 'event_type': 'z'}).traits))


class TestChoice(ConverterTestCase):

    TEXT = '''
- {event_type: x.*, traits: {one: {fields: payload.a}}}
- {event_type: [x.y, '!x.z'], traits: {two: {fields: payload.a}}}
'''

    def test_dropping(self):
        made = self.converter(self.TEXT, allow_dropping=True)
        self.assertIn('two', made.to_event(FLAT).traits)
        self.assertIn('one', made.to_event(
            {**FLAT, 'event_type': 'x.z'}).traits)
        for _ in range(2):
            self.assertIsNone(made.to_event({**FLAT, 'event_type': 'z'}))

    def test_no_dropping(self):
        made = self.converter(self.TEXT)
        event = made.to_event({**FLAT, 'event_type': 'z'})
        self.assertEqual('z', event.event_type)

    def test_memory_of_types_is_bounded(self):
        made = self.converter(self.TEXT)
        self.useFixture(fixtures.MonkeyPatch(
            'triggerlib.event.converter.CACHE_SIZE', 3))
        for number in range(20):
            made.to_event({**FLAT, 'event_type': f'x.{number}'})
            self.assertLessEqual(len(made._plans), 3)
        self.assertIn('two', made.to_event(FLAT).traits)

    def conf(self, **values):
        folder = self.useFixture(fixtures.TempDir()).path
        conf = cfg.ConfigOpts()
        opts.register_opts(conf)
        conf(['--config-dir', folder], project='triggerlib')
        for name, value in values.items():
            conf.set_override(name, value, group=opts.GROUP)
        return conf, folder

    def test_from_conf(self):
        conf, folder = self.conf(allow_dropping_of_notifications=True)
        with open(os.path.join(folder, 'event_definitions.yaml'), 'w',
                  encoding='utf-8') as stream:
            stream.write(self.TEXT)
        made = converter.Converter.from_conf(conf)
        self.assertEqual('A', made.to_event(FLAT).traits['two'])
        self.assertIsNone(made.to_event({**FLAT, 'event_type': 'z'}))
        self.assertEqual([], self.warnings())

    def test_missing_file(self):
        conf, _ = self.conf(event_definitions_cfg_file='nowhere.yaml')
        made = converter.Converter.from_conf(conf)
        warning, = self.warnings()
        self.assertIn('nowhere.yaml', warning)
        self.assertIn('request_id', made.to_event(FLAT).traits)

    def test_mistaken_file(self):
        conf, folder = self.conf()
        with open(os.path.join(folder, 'event_definitions.yaml'), 'w',
                  encoding='utf-8') as stream:
            stream.write('- 5')
        self.assertRaises(exceptions.DefinitionError,
                          converter.Converter.from_conf, conf)


class TestTraits(ConverterTestCase):

    def test_types(self):
        self.assertEqual(
            {'t': '5', 'i': 5, 'f': 5.0, 'deep': 'x', 'c': 3,
             'd': datetime.datetime(2026, 3, 1, tzinfo=UTC)},
            self.traits(
                't: {fields: payload.n}\n'
                'i: {fields: payload.n, type: int}\n'
                'f: {fields: payload.n, type: float}\n'
                'd: {fields: payload.d, type: datetime}\n'
                'c: {fields: 3, type: int}\n'
                'deep: payload.o.p.q\n'
                'absent: payload.d.p.q',
                {'n': 5, 'd': '2026-03-01', 'o': {'p': {'q': 'x'}}}))

    def test_null(self):
        text = ('t: {fields: payload.v}\n'
                'i: {fields: payload.v, type: int}\n'
                'd: {fields: payload.v, type: datetime}\n'
                's: {fields: [payload.v.`this`, payload.w]}\n'
                'l: {fields: [payload.v, payload.w], type: int}\n'
                'u: {fields: "payload[v,w]", type: float}')
        self.assertEqual({}, self.traits(text, {'v': None}))
        self.assertEqual({}, self.traits(text, {}))
        self.assertEqual({'t': '', 's': ''}, self.traits(text, {'v': ''}))
        # The next field counts where one is null.
        self.assertEqual(
            {'t': '', 's': '', 'l': 4, 'u': 4.0},
            self.traits(text, {'v': '', 'w': 4}))
        self.assertEqual(
            {'s': '4', 'l': 4, 'u': 4.0},
            self.traits(text, {'v': None, 'w': 4}))
        self.assertEqual([], self.warnings())

    def test_payload_of_another_kind(self):
        text = 'a: payload.a\nb: payload.a[0].b\nc: "payload[*].a"'
        for payload in (None, 5, 'x', [], [{'a': 1}], True, 1.5):
            traits = self.traits(text, payload)
            self.assertNotIn('a', traits)
            self.assertNotIn('b', traits)
        self.assertEqual({'c': '1'}, self.traits(text, [{'a': 1}]))

    def test_what_cannot_be_coerced_is_left_out(self):
        for kind, value in (
                ('int', 'n/a'), ('int', 2 ** 63), ('int', [5]),
                ('int', float('nan')), ('float', 'x'),
                ('float', float('inf')), ('datetime', 'soon'),
                ('datetime', 5), ('datetime', {'a': 1}),
                ('int', 'x' * 10000), ('text', 10 ** 5000)):
            self.log = self.useFixture(fixtures.FakeLogger())
            self.assertEqual({'ok': 'A'}, self.traits(
                f'bad: {{fields: payload.v, type: {kind}}}\n'
                f'ok: payload.a', {'v': value, 'a': 'A'}), (kind, value))
            warning, = self.warnings()
            self.assertIn('m-1', warning)
            self.assertIn('bad', warning)
            self.assertLess(len(warning), 600)
        self.log = self.useFixture(fixtures.FakeLogger())
        self.traits('bad: {fields: payload.v, type: int}', {'v': 'n/a'})
        self.assertIn("'n/a'", self.warnings()[0])

    def test_text_is_kept_whole(self):
        for text in ('a\0b', '\ud800', 'x' * 100000):
            self.assertEqual(
                {'t': text}, self.traits('t: payload.v', {'v': text}))


class Asked(trait_plugin.TraitPlugin):
    """Remembers its match lists, and gives or raises what it is told."""

    calls = []
    answer = None

    def trait_value(self, match_list):
        self.calls.append(match_list)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Odd:

    def __str__(self):
        raise RuntimeError('odd')

    __repr__ = __str__


class TestPlugins(ConverterTestCase):

    def setUp(self):
        super().setUp()
        load = plugins.load
        self.useFixture(fixtures.MonkeyPatch(
            'triggerlib.plugins.load', lambda space, name: (
                Asked if name == 'asked' else load(space, name))))

    def ask(self, answer, payload, kind='text',
            fields='[payload.a, payload.b, "payload.l[*]"]'):
        Asked.answer = answer
        Asked.calls = []
        traits = self.traits(
            f't: {{fields: {fields}, type: {kind}, plugin: asked}}', payload)
        matches, = Asked.calls
        return traits, matches

    def test_match_list(self):
        _, matches = self.ask(
            'x', {'a': '', 'b': 5, 'l': [None, {'c': 1}]})
        self.assertEqual(
            [('payload.a', ''), ('payload.b', 5),
             ('payload.l.[1]', {'c': 1})], matches)
        # '' is null to a trait that is no text.
        _, matches = self.ask(5, {'a': '', 'b': 5}, 'int')
        self.assertEqual([('payload.b', 5)], matches)
        self.assertEqual(({'t': 'default'}, []), self.ask('default', {}))

    def test_answer(self):
        for answer, kind, wanted in (
                ('5', 'int', {'t': 5}), (5, 'text', {'t': '5'}),
                (None, 'text', {}), (None, 'int', {}), ('', 'int', {}),
                ('', 'text', {'t': ''}), (0, 'int', {'t': 0}),
                (False, 'text', {'t': 'False'})):
            self.assertEqual(wanted, self.ask(answer, {}, kind)[0])
        self.assertEqual([], self.warnings())

    def test_failures(self):
        for answer, kind in (
                (ValueError('no'), 'text'), (RuntimeError('no'), 'text'),
                (RecursionError('no'), 'int'), (Odd(), 'text'),
                ('n/a', 'int'), (Odd(), 'int'), ([], 'datetime')):
            self.log = self.useFixture(fixtures.FakeLogger())
            traits, _ = self.ask(answer, {'a': 'value'}, kind)
            self.assertEqual({}, traits)
            self.assertEqual(1, self.log.output.count('Notification m-1'))
            self.assertIn('the trait t', self.log.output)
        self.log = self.useFixture(fixtures.FakeLogger(
            format='%(message)s'))
        self.ask(RuntimeError('no'), {'a': 'value'})
        self.assertIn('value', self.warnings()[0])
        self.assertIn('Traceback', self.log.output)

    def test_own_plugins(self):
        self.assertEqual(
            {'state': 'UP', 'bits': 2, 'took': 60.0, 'code': -1,
             'day': datetime.datetime(2026, 2, 28, tzinfo=UTC),
             'odd': '2026-03-01T00:00:00.000000+00:00'},
            self.traits('''
state: {fields: payload.s, plugin: {name: case, parameters: {case: upper}}}
bits:
  type: int
  fields: [payload.s, payload.none]
  plugin:
    name: bitfield
    parameters:
      flags: [{path: payload.s, bit: 1, value: up}, {path: payload.x, bit: 2}]
took: {type: float, fields: [payload.b, payload.e], plugin: timedelta}
left: {type: float, fields: [payload.b, payload.none], plugin: timedelta}
code:
  type: int
  fields: payload.s
  plugin: {name: map, parameters: {values: {down: 0}, default: -1}}
day:
  type: datetime
  fields: timestamp
  plugin: {name: audit_period, parameters: {period: day}}
odd:
  fields: payload.o
  plugin: {name: datetime, parameters: {formats: "%d.%m.%y"}}
'''.strip(), {'s': 'up', 'none': '', 'b': '2026-03-01 11:00',
              'e': '2026-03-01T11:01Z', 'o': '01.03.26'}))
        self.assertEqual([], self.warnings())


def nested(depth, kind=dict):
    inner = 'x'
    for _ in range(depth):
        inner = {'a': inner} if kind is dict else [inner]
    return inner


class TestPoison(ConverterTestCase):

    def assertPoison(self, body, message_id, *words):
        error = self.assertRaises(
            exceptions.NotificationError, self.converter().to_event, body)
        self.assertEqual(message_id, error.message_id)
        for word in words:
            self.assertIn(word, error.reason)

    def test_no_mapping(self):
        for body in (None, 5, 'text', b'{}', [FLAT], [], True):
            self.assertPoison(body, None, type(body).__name__)

    def test_message_id(self):
        for value, word in ((None, 'no message_id'), ('', 'empty'),
                            (5, 'int'), (['m'], 'list')):
            for body in ({**FLAT, 'message_id': value}, wire(
                    {**FLAT, 'message_id': value}), {
                        **ENDPOINT, 'metadata': {
                            **ENDPOINT['metadata'], 'message_id': value}}):
                self.assertPoison(body, None, word)
        self.assertPoison({**FLAT, 'message_id': 'm' * 256}, 'm' * 255,
                          '256')
        self.assertEqual('m' * 255, self.converter().to_event(
            {**FLAT, 'message_id': 'm' * 255}).message_id)
        self.assertPoison({**ENDPOINT, 'metadata': 'x'}, None)

    def test_event_type(self):
        for value in (None, '', 5, {}, 'x' * 256):
            self.assertPoison({**FLAT, 'event_type': value}, 'm-1',
                              'event_type')

    def test_timestamp(self):
        for value in (None, '', 'now', 5, {}, '2026-13-01', [1]):
            self.assertPoison({**FLAT, 'timestamp': value}, 'm-1',
                              'timestamp')
        body = {**FLAT}
        del body['timestamp']
        self.assertPoison(body, 'm-1', 'timestamp')

    def test_wire(self):
        for text in ('', '{', 'nonsense', '\x00', b'\xff', '[1',
                     '[' * 100000):
            self.assertPoison({'oslo.message': text}, None, 'JSON')
        for message in (None, 5, [], '5', 'null', '[]', '"x"'):
            self.assertPoison({'oslo.message': message}, None, 'mapping')
        body = FLAT
        for _ in range(50):
            body = {'oslo.message': body}
        self.assertPoison(body, None, 'envelopes')

    def test_nesting(self):
        for kind in (dict, list):
            for depth in (1000, 5000, 100000):
                self.assertPoison(
                    {**FLAT, 'payload': {'a': nested(depth, kind)}}, 'm-1',
                    'nested')
            event = self.converter().to_event(
                {**FLAT, 'payload': nested(envelope.MAX_DEPTH - 2, kind)})
            self.assertEqual('m-1', event.message_id)

    def test_what_holds_itself(self):
        loop = []
        loop += [loop, loop]
        self.assertPoison({**FLAT, 'payload': {'a': loop}}, 'm-1', 'nested')

    def test_dropped_before_it_is_looked_into(self):
        made = self.converter(allow_dropping=True)
        self.assertIsNone(made.to_event({**FLAT, 'timestamp': 'x'}))


SCALARS = strategies.one_of(
    strategies.none(), strategies.booleans(), strategies.integers(),
    strategies.floats(), strategies.text(max_size=10),
    strategies.sampled_from(
        ('', '2026-03-01 12:00', 'm-1', 'x.y', '{}', '\ud800')))
KEYS = strategies.one_of(
    strategies.text(max_size=5),
    strategies.sampled_from(
        ('message_id', 'timestamp', 'event_type', 'payload', 'ctxt',
         'metadata', 'publisher_id', '_context_tenant', 'a', 'b',
         'tenant_id', 'oslo.message')))
THINGS = strategies.recursive(
    SCALARS, lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=3),
        strategies.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=15)
DEFINITIONS = '''
- event_type: '*'
  traits:
    i: {type: int, fields: payload.a}
    f: {type: float, fields: [payload.b, payload.a]}
    d: {type: datetime, fields: timestamp}
    t: payload
    c: {fields: "ctxt.*", type: int}
    s: publisher_id.`split(., 1, 1)`
    x: {fields: $..a, type: float}
    q: "payload.a[?b>3].a"
    k: {fields: "*.*", plugin: {name: split, parameters: {segment: 1}}}
    p: {fields: [payload.a, payload.b], type: float, plugin: timedelta}
    m: {fields: "*", plugin: {name: map, parameters: {values: {a: b}}}}
'''


class TestAnything(ConverterTestCase):

    def assertConverts(self, made, body):
        try:
            event = made.to_event(body)
        except exceptions.NotificationError as error:
            self.assertTrue(error.reason)
            self.assertTrue(error.message_id is None
                            or isinstance(error.message_id, str))
            return
        self.assertIs(UTC, event.timestamp.tzinfo)
        for value in event.traits.values():
            self.assertIn(type(value), (str, int, float, datetime.datetime))

    @hypothesis.given(THINGS, strategies.dictionaries(
        KEYS, THINGS, max_size=6))
    @hypothesis.settings(
        deadline=None, max_examples=200,
        suppress_health_check=[hypothesis.HealthCheck.too_slow])
    def test_nothing_but_notification_errors(self, thing, more):
        if not hasattr(self, 'made'):
            self.made = self.converter(DEFINITIONS)
        for body in (thing, more, {**FLAT, **more}, {**ENDPOINT, **more},
                     {'oslo.message': thing}, {**FLAT, 'payload': thing},
                     {**FLAT, 'payload': more, 'ctxt': thing},
                     wire({**FLAT, 'payload': thing})):
            self.assertConverts(self.made, body)
