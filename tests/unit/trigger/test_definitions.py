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

"""Trigger definitions: the file, its mistakes, and what it comes to."""

import datetime

import fixtures
import hypothesis
from hypothesis import strategies as st

from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib.storage import driver as storage_module
from triggerlib.trigger import definitions as definitions_module
from triggerlib.trigger import loader
from triggerlib import yamlfile

from tests import base

UTC = datetime.timezone.utc
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)

BLUEPRINT = """
- name: instance_create
  distinguished_by: [instance_id]
  expiration: first+4h
  fire_delay: 30
  match_criteria:
    - event_type: compute.instance.*
      traits:
        memory_mb: "> 10"
  fire_criteria:
    - event_type: compute.instance.create.start
    - event_type: compute.instance.create.end
      number: 1
  load_criteria:
    - event_type: image.*
      timestamp: first@00:00 to last+2h
  fire_pipeline: fired
  expire_pipeline: expired
"""


class TestDefinitions(base.TestCase):
    """From a file on the disk."""

    def load(self, text, pipelines=None):
        folder = self.useFixture(fixtures.TempDir()).path
        with open(f'{folder}/t.yaml', 'w', encoding='utf-8') as stream:
            stream.write(text)
        return definitions_module.TriggerDefinitions.load(
            f'{folder}/t.yaml', pipelines)

    def one(self, text):
        definition, = self.load(text)
        return definition

    def problems(self, text, pipelines=None):
        error = self.assertRaises(
            exceptions.DefinitionError, self.load, text, pipelines)
        return error.problems

    def event(self, event_type='compute.instance.create.start',
              timestamp=NOON, message_id='m', **traits):
        return event_module.Event(message_id, event_type, timestamp, traits)

    def key(self, definition, event):
        return definition.key(event, definition.match_criteria)

    def test_the_blueprints_fields(self):
        one = self.one(BLUEPRINT)
        self.assertEqual('instance_create', one.name)
        self.assertEqual(30, one.fire_delay)
        self.assertEqual('fired', one.fire_pipeline)
        self.assertEqual('expired', one.expire_pipeline)
        self.assertEqual(
            NOON + datetime.timedelta(hours=4),
            one.expire_timestamp(NOON, NOON + datetime.timedelta(hours=1)))
        self.assertEqual(
            ('i',), self.key(one, self.event(instance_id='i', memory_mb=20)))
        self.assertIsNone(
            self.key(one, self.event(instance_id='i', memory_mb=5)))
        self.assertIsNone(self.key(one, self.event(memory_mb=20)))

    def test_keys(self):
        one = self.one(BLUEPRINT)
        document = one.key_document(('i',))
        self.assertEqual('{"instance_id":"i"}', document)
        keys = [one.active_key(key) for key in (('i',), (1,), ('1',), (1.5,),
                                                (NOON,), ('I',), ('i ',))]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(64, len(keys[0]))

    def test_nothing_needs_to_distinguish(self):
        one = self.one("""
- name: all
  distinguished_by: []
  expiration: last + 1h
  match_criteria: [{event_type: x}]
""")
        self.assertEqual((), self.key(one, self.event('x')))
        self.assertEqual('{}', one.key_document(()))

    def test_what_must_not_be_there(self):
        one = self.one(BLUEPRINT.replace('number: 1', 'number: 0'))
        self.assertTrue(one.is_complete([1, 0]))
        self.assertFalse(one.is_complete([1, 1]))
        self.assertFalse(one.is_complete([0, 0]))

    def test_without_fire_criteria_nothing_completes(self):
        one = self.one("""
- name: window
  distinguished_by: [host, {timestamp: hour}]
  expiration: "first + 1h @ 0m 0s + 5m"
  match_criteria: [{event_type: x}]
""")
        self.assertFalse(one.is_complete([]))
        self.assertEqual(NOON + datetime.timedelta(minutes=65),
                         one.expire_timestamp(
                             NOON + datetime.timedelta(minutes=7), NOON))

    def test_counting_over_the_list(self):
        one = self.one("""
- name: near
  distinguished_by: [host]
  expiration: last + 1h
  match_criteria: [{}]
  fire_criteria:
    - event_type: a
    - event_type: b
      timestamp: last
    - event_type: b
      timestamp: "> first"
      number: 2
  fire_pipeline: p
""")
        self.assertTrue(one.needs_list)
        second = datetime.timedelta(seconds=1)
        events = [self.event('a', NOON), self.event('b', NOON + second),
                  self.event('b', NOON + 2 * second)]
        counts = [0, 0, 0]
        for event in events:
            one.count(event, counts)
        self.assertEqual([1, 0, 0], counts)
        one.count_over_list(events, NOON, NOON + 2 * second, counts)
        self.assertEqual([1, 1, 2], counts)
        self.assertTrue(one.is_complete(counts))

    def test_counting(self):
        one = self.one(BLUEPRINT)
        counts = [0, 0]
        self.assertFalse(one.is_complete(counts))
        one.count(self.event(), counts)
        one.count(self.event('other'), counts)
        self.assertEqual([1, 0], counts)
        one.count(self.event('compute.instance.create.end'), counts)
        self.assertTrue(one.is_complete(counts))

    def test_the_earliest_expiration_counts(self):
        one = self.one(BLUEPRINT.replace(
            'first+4h', '[last + 3h, first + 24h]'))
        hour = datetime.timedelta(hours=1)
        self.assertEqual(NOON + 13 * hour,
                         one.expire_timestamp(NOON, NOON + 10 * hour))
        self.assertEqual(NOON + 24 * hour,
                         one.expire_timestamp(NOON, NOON + 22 * hour))

    def test_never_is_the_end_of_all_datetimes(self):
        one = self.one(BLUEPRINT.replace('first+4h', 'first + 9000y'))
        self.assertEqual(9999, one.expire_timestamp(NOON, NOON).year)

    def test_a_window_begins_with_its_period(self):
        one = self.one("""
- name: day
  distinguished_by: [{timestamp: day@6}, host]
  timezone: Europe/Berlin
  expiration: first + 2d
  match_criteria: [{}]
""")
        key = self.key(one, self.event(host='h'))
        self.assertEqual(
            (datetime.datetime(2026, 3, 1, 5, tzinfo=UTC), 'h'), key)

    def test_traits_by_other_names(self):
        one = self.one("""
- name: volume_of_server
  distinguished_by: [instance_id]
  expiration: first + 1h
  match_criteria:
    - event_type: volume.*
      map_distinguished_by: {instance_id: server_id}
    - event_type: compute.*
""")
        self.assertEqual(
            ('i',), self.key(one, self.event('volume.a', server_id='i')))
        definitions = self.load("""
- name: v
  distinguished_by: [instance_id]
  expiration: first + 1h
  match_criteria:
    - event_type: volume.*
      map_distinguished_by: {instance_id: server_id}
    - event_type: compute.*
""")
        self.assertEqual({'instance_id', 'server_id'},
                         definitions.indexed_traits)

    def test_numbers_of_two_types_are_two_keys(self):
        one = self.one("""
- name: n
  distinguished_by: [a]
  expiration: last + 1h
  match_criteria: [{timestamp: first}]
  load_criteria: [{}]
""")
        instance = storage_module.Instance(
            'n', '{"a":1}', 'k', '', NOON, NOON, event_count=1)
        for value, wanted in ((1, True), (1.0, False), ('1', False)):
            event = self.event(a=value)
            self.assertEqual(wanted, one.accepts(event, (1,), instance))
            (query, matches, _), = one.load_queries((1,), NOON, NOON)
            self.assertEqual({'a': 1}, query.traits)
            self.assertEqual(wanted, matches(event))

    def test_what_surely_matches_goes_before_what_may(self):
        one = self.one("""
- name: n
  distinguished_by: [host]
  expiration: last + 1h
  match_criteria:
    - timestamp: first to first + 30s
      map_distinguished_by: {host: source}
    - event_type: x
""")
        both = self.event('x', source='s', host='h')
        self.assertEqual(('h',), self.key(one, both))
        self.assertEqual(
            ('s',), one.key(both, one.match_criteria[:1]))

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        st.sampled_from(['hour', 'hour@30', 'day', 'day@6', 'day + 30h',
                         'month@31', 'year@4', 'hour - 90m']),
        st.sampled_from(['UTC', 'Europe/Berlin', 'Asia/Kolkata',
                         'Australia/Lord_Howe']),
        st.one_of(
            st.datetimes(datetime.datetime(2, 1, 1),
                         datetime.datetime(9998, 1, 1)),
            # Around the changes of the clocks in Berlin and on Lord Howe.
            st.datetimes(datetime.datetime(2026, 10, 24, 20),
                         datetime.datetime(2026, 10, 25, 4)),
            st.datetimes(datetime.datetime(2026, 3, 28, 20),
                         datetime.datetime(2026, 3, 29, 4)),
            st.datetimes(datetime.datetime(2026, 4, 4, 12),
                         datetime.datetime(2026, 4, 4, 18))),
        st.booleans())
    def test_an_event_is_loaded_with_its_own_period(
            self, period, zone, moment, bounded):
        problems = []
        criterion = (
            {'timestamp': 'first to last + 1us'} if bounded else {})
        one, = loader.load(yamlfile.Document('t.yaml', [{
            'name': 'n', 'distinguished_by': [{'timestamp': period}],
            'expiration': 'last + 1h', 'timezone': zone,
            'match_criteria': [{}], 'load_criteria': [criterion]}], None),
            problems)
        self.assertEqual([], problems)
        moment = moment.replace(tzinfo=UTC)
        event = self.event(timestamp=moment)
        key = self.key(one, event)
        hour = datetime.timedelta(hours=1)
        (query, matches, _), = one.load_queries(
            key, moment - hour, moment + hour)
        self.assertTrue(matches(event))
        self.assertLessEqual(query.begin, moment)
        self.assertGreater(query.end, moment)

    def test_load_queries(self):
        one = self.one(BLUEPRINT)
        (query, matches, newest), = one.load_queries(('i',), NOON, NOON)
        self.assertIsNone(newest)
        self.assertIsNone(query.event_types)
        self.assertEqual(NOON.replace(hour=0), query.begin)
        self.assertEqual(NOON.replace(hour=14), query.end)
        self.assertEqual('i', query.traits['instance_id'])
        self.assertTrue(matches(self.event('image.a', instance_id='i')))
        self.assertFalse(matches(self.event('image.a', instance_id='j')))
        self.assertFalse(matches(self.event('x', instance_id='i')))

    def test_list_criteria(self):
        one = self.one("""
- name: near
  distinguished_by: [host]
  expiration: first + 1h
  match_criteria:
    - timestamp: first to first + 30s
""")
        self.assertTrue(one.matches_list)
        late = self.event(timestamp=NOON + datetime.timedelta(seconds=30),
                          host='h')
        self.assertEqual(('h',), self.key(one, late))
        instance = storage_module.Instance(
            'near', '{}', 'k', '', NOON, NOON, event_count=1)
        self.assertFalse(one.accepts(late, ('h',), instance))
        self.assertTrue(one.accepts(self.event(host='h'), ('h',), instance))
        instance.event_count = 0
        self.assertTrue(one.accepts(late, ('h',), instance))

    def test_only_what_can_match_is_looked_at(self):
        definitions = self.load(BLUEPRINT + """
- name: other
  distinguished_by: []
  expiration: last + 1h
  match_criteria: [{event_type: volume.*}]
""")
        found = definitions.for_event_type('volume.create.end')
        self.assertEqual(['other'], [one.name for one, _ in found])
        self.assertIs(
            found, definitions.for_event_type('volume.create.end'))
        self.assertEqual((), definitions.for_event_type('nothing'))

    def test_what_is_remembered_of_event_types_is_bounded(self):
        definitions = self.load(BLUEPRINT)
        self.patch(definitions_module, 'CACHE_SIZE', 3)
        for number in range(10):
            found = definitions.for_event_type(f'compute.instance.{number}')
            self.assertEqual(1, len(found))
            self.assertLessEqual(len(definitions._by_event_type), 3)

    def test_fingerprints(self):
        one = self.one(BLUEPRINT).fingerprint
        for old, new, changed in (
                ('fire_delay: 30', 'fire_delay: 31', True),
                ('first+4h', 'first+5h', True),
                ('"> 10"', '"> 11"', True),
                ('first+4h', '[first+4h]', False),
                ('fire_pipeline: fired', 'fire_pipeline: other', False),
                ('fire_delay: 30', 'fire_delay: 30.0', False),
                ('event_type: compute.instance.*',
                 'event_type: [compute.instance.*]', False),
                ('create.start', 'create.start\n      number: 1\n'
                 '      traits: {}', False),
                ('number: 1', 'number: 2', True),
                ('  fire_delay: 30\n', '  timezone: Asia/Tokyo\n'
                 '  fire_delay: 30\n', True),
                ('  fire_delay: 30\n', '  timezone: UTC\n'
                 '  fire_delay: 30\n', False)):
            other = self.one(BLUEPRINT.replace(old, new)).fingerprint
            self.assertEqual(changed, other != one, (old, new))
        dates = {self.one(BLUEPRINT.replace('"> 10"', text)).fingerprint
                 for text in ('2026-03-01', '"2026-03-01"')}
        self.assertEqual(2, len(dates))
        dates = {self.one(BLUEPRINT.replace('"> 10"', text)).fingerprint
                 for text in ('2026-03-01', '2026-03-01T01:00:00+01:00')}
        self.assertEqual(1, len(dates))

    def test_five_mistakes_at_once(self):
        problems = self.problems("""
- name: one
  distinguished_by: [instance_id]
  expiration: first + 1 fortnight
  match_criteria:
    - event_type: a
      traits: {memory_mb: "> "}
  fire_criteria:
    - event_type: b
  fire_pipeline: wrong
- name: one
  distinguished_by: [host]
  expiration: last + 1h
  match_criterria: []
  match_criteria: [{event_type: x}]
""".lstrip(), pipelines={'right'})
        self.assertEqual([3, 6, 9, 10, 13],
                         sorted(one.line for one in problems))
        text = str(exceptions.DefinitionError(problems))
        for words in ('5 mistakes', 'first + 1 fortnight', 'memory_mb',
                      "no sink 'wrong'", 'known are right',
                      'another definition of that name in line 1',
                      "did you mean 'match_criteria'"):
            self.assertIn(words, text)

    def test_each_mistake(self):
        for change, words in (
                (('- name: instance_create\n ', '-'), 'name is missing'),
                (('name: instance_create', 'name: 5'), 'name is a text'),
                (('name: instance_create', 'name: "source:x"'), 'source'),
                (('name: instance_create', 'name: "a\\0b"'), 'printable'),
                (('name: instance_create', 'name: ""'), 'printable'),
                (('[instance_id]', 'instance_id'), 'distinguished_by is a'),
                (('[instance_id]', '[a, a]'), 'twice'),
                (('[instance_id]', '[timestamp]'), 'needs a period'),
                (('[instance_id]', '[{t: first}]'), 'not a period'),
                (('[instance_id]', '[{t: 5}]'), 'a period is a text'),
                (('[instance_id]', '[{t: day - 1d}]'),
                 'not the period in which'),
                (('[instance_id]', '[{t: timestamp to timestamp + 1h}]'),
                 'not the period in which'),
                (('[instance_id]', '[{t: day($x)}]'), 'not a period'),
                (('first+4h', 'first to last'), 'is a range'),
                (('first+4h', '$timestamp + 1h'), 'refers to timestamp'),
                (('first+4h', '[]'), 'expiration is empty'),
                (('first+4h', '5'), 'expiration is a time expression'),
                (('fire_delay: 30', 'fire_delay: -1'), '0 or more'),
                (('fire_delay: 30', 'fire_delay: soon'), '0 or more'),
                (('fire_delay: 30', 'timezone: Mars/Base'), 'IANA'),
                (('  fire_pipeline: fired\n', ''), 'fire_pipeline is missin'),
                (('fire_pipeline: fired', 'fire_pipeline: [a]'), 'a sink'),
                (('number: 1', 'number: 1.5'), 'whole number'),
                (('number: 1', 'last: 1'), "no key 'last' here"),
                (('number: 1', 'number: 1\n      number: 2'), 'twice in one'),
                (('event_type: image.*', 'event_type: []'), 'event_type is'),
                (('event_type: image.*', 'last: 0'), '1 or more'),
                (('event_type: image.*',
                  'map_distinguished_by: {instanceid: a}'),
                 "did you mean 'instance_id'")):
            text = BLUEPRINT.replace(*change)
            self.assertNotEqual(BLUEPRINT, text, change)
            problem, = self.problems(text)
            self.assertIn(words, str(problem))
            self.assertIsNotNone(problem.line)

    def test_what_is_missing_is_named(self):
        problems = self.problems('- fire_criteria: [{}]\n')
        self.assertEqual(
            {'name', 'distinguished_by', 'expiration', 'match_criteria',
             'fire_pipeline'}, {one.key for one in problems})
        self.assertEqual({'#1'}, {one.definition for one in problems})

    def test_yaml_of_other_types_is_refused(self):
        problems = self.problems("""
- name: n
  distinguished_by: [{a: !!set {day}}, [x], {5: day}, null, ""]
  expiration: !!set {first}
  match_criteria: {}
  fire_criteria: x
  load_criteria: [5]
  fire_delay: .nan
  timezone: 5
  fire_pipeline: null
  5: x
- &me [*me]
""".lstrip())
        self.assertEqual(
            [2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
            sorted(one.line for one in problems))

    def test_files_that_are_none(self):
        for text, words in (('', 'a list of mappings'),
                            ('name: x', 'a list of mappings'),
                            ('- 5', 'is a mapping'),
                            ('- [', 'not YAML')):
            problem, = self.problems(text)
            self.assertIn(words, str(problem))
        error = self.assertRaises(
            exceptions.DefinitionError,
            definitions_module.TriggerDefinitions.load, '/no/such/file')
        self.assertIn('/no/such/file', str(error))
