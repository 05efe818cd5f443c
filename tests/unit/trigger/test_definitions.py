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

from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib.storage import driver as storage_module
from triggerlib.trigger import definitions as definitions_module

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

    def test_fingerprints(self):
        one = self.one(BLUEPRINT).fingerprint
        for old, new, changed in (
                ('fire_delay: 30', 'fire_delay: 31', True),
                ('first+4h', 'first+5h', True),
                ('"> 10"', '"> 11"', True),
                ('first+4h', '[first+4h]', False),
                ('fire_pipeline: fired', 'fire_pipeline: other', False),
                ('  fire_delay: 30\n', '  timezone: UTC\n'
                 '  fire_delay: 30\n', False)):
            other = self.one(BLUEPRINT.replace(old, new)).fingerprint
            self.assertEqual(changed, other != one, (old, new))

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
                (('[instance_id]', 'instance_id'), 'distinguished_by is a'),
                (('[instance_id]', '[a, a]'), 'twice'),
                (('[instance_id]', '[timestamp]'), 'needs a period'),
                (('[instance_id]', '[{t: first}]'), 'not a period'),
                (('[instance_id]', '[{t: 5}]'), 'a period is a text'),
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
