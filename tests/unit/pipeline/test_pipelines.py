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

"""The pipelines file: what is taken, and what is refused with its place."""

from tests import base
from tests.unit.pipeline import definition
from triggerlib import exceptions
from triggerlib.pipeline import aggregate
from triggerlib.pipeline import filter as filter_module
from triggerlib.pipeline import pipelines
from triggerlib.publisher import log
from triggerlib.publisher import notifier

WHOLE = """\
    sources:
      - name: deletions
        events: ["*.delete.end", "!image.*"]
        sinks: [first, second]
    sinks:
      - name: first
        transformers:
          - name: filter
            parameters: {event_type: x}
          - name: aggregate
            checkpoint: true
            parameters: {event_type: y}
        publishers:
          - log://
          - "notifier://?topic=t"
      - name: second
        transformers:
        publishers: [LOG://]
    """


class PipelinesCase(base.TestCase):
    """With a folder for the files."""

    def setUp(self):
        super().setUp()
        self.files = self.useFixture(definition.Definitions())


class TestLoad(PipelinesCase):
    """What is taken."""

    def test_ceilometers_own_file(self):
        loaded = pipelines.Pipelines.load(
            self.shared_path('data', 'ceilometer-event_pipeline.yaml'),
            self.files.conf)
        source, = loaded.sources
        self.assertEqual('event_source', source.name)
        self.assertTrue(source.event_types.match('anything.at.all'))
        sink, = source.sinks
        self.assertIs(loaded.sinks['event_sink'], sink)
        step, = sink.steps
        self.assertEqual('event_sink.0.notifier', step.name)
        self.assertIsInstance(step.plugin, notifier.NotifierPublisher)

    def test_our_own_sample(self):
        loaded = pipelines.Pipelines.load(
            base.ROOT / 'etc/triggerlib/event_pipeline.yaml',
            self.files.conf)
        self.assertIn('create_time', loaded.names)

    def test_a_whole_file(self):
        loaded = self.files.load(WHOLE)
        self.assertEqual({'first', 'second'}, loaded.names)
        source, = loaded.sources
        self.assertEqual(('first', 'second'),
                         tuple(sink.name for sink in source.sinks))
        self.assertTrue(source.event_types.match('volume.delete.end'))
        self.assertFalse(source.event_types.match('image.delete.end'))
        steps = loaded.sinks['first'].steps
        self.assertEqual(
            [('first.0.filter', filter_module.Filter, False, False),
             ('first.1.aggregate', aggregate.Aggregate, False, True),
             ('first.2.log', log.LogPublisher, True, False),
             ('first.3.notifier', notifier.NotifierPublisher, True, False)],
            [(step.name, type(step.plugin), step.publishes, step.checkpoint)
             for step in steps])
        self.assertEqual(['second.0.log'], [
            step.name for step in loaded.sinks['second'].steps])

    def test_nothing_is_connected_to(self):
        # Nobody listens there; loading would fail or wait.
        loaded = self.files.load("""
            sinks:
              - name: s
                publishers: ["notifier://u:p@127.0.0.1:1/"]
            """)
        loaded.close()

    def test_ceilometers_publisher_options(self):
        self.assertEqual([], self.files.problems("""
            sinks:
              - name: s
                publishers:
                  - notifier://
                  - notifier://?per_meter_topic=1
                  - notifier://?policy=drop&max_queue_length=512&topic=t
                  - notifier://h:5672/?topic=t&driver=messagingv2
            """))

    def test_a_file_that_says_nothing(self):
        for text in ('', '# nothing\n', '{}', 'sinks:\nsources:\n'):
            loaded = self.files.load(text)
            self.assertEqual((frozenset(), ()),
                             (loaded.names, loaded.sources))
        self.assertEqual(frozenset(), pipelines.Pipelines.empty().names)

    def test_null_parameters_are_none(self):
        for given in ('', 'parameters:', 'parameters: {}'):
            self.assertEqual([], self.files.problems(f"""
                sinks:
                  - name: s
                    transformers:
                      - name: map
                        {given}
                    publishers: [log://]
                """))

    def test_publishers_are_closed(self):
        loaded = self.files.load(WHOLE)
        closed = []
        for sink in loaded.sinks.values():
            for step in sink.steps:
                if step.publishes:
                    step.plugin.close = lambda name=step.name: (
                        closed.append(name))
        loaded.close()
        self.assertEqual(
            ['first.2.log', 'first.3.notifier', 'second.0.log'], closed)


class TestRefuse(PipelinesCase):
    """What is refused, and the place that is named."""

    def test_a_file_that_is_not_there(self):
        error = self.assertRaises(
            exceptions.DefinitionError, pipelines.Pipelines.load,
            self.files.path, self.files.conf)
        self.assertIn(self.files.path, str(error))
        self.assertIsInstance(error.__cause__, FileNotFoundError)

    def test_all_mistakes_at_once(self):
        problems = self.files.problems("""\
            sources:
              - name: a
                events: ["*"]
                sinks: [fisrt]
            sinks:
              - name: first
                transformer: []
                transformers:
                  - name: agregate
                  - name: filter
                    parameters: {event_tpye: x}
                  - name: map
                    parameters: {renam: {a: b}, drop: 5}
                publishers: ["lgo://", "file:relative", "log://?x=1"]
              - name: first
                publishers: [log://]
              - name: third
                checkpoint: yes
            sinsk: 5
            """)
        expected = {
            (4, 'sources[0].sinks[0]'): "did you mean 'first'",
            (7, 'sinks[0].transformer'): "did you mean 'transformers'",
            (9, 'sinks[0].transformers[0].name'): 'aggregate',
            (11, 'sinks[0].transformers[1].parameters.event_tpye'):
                "did you mean 'event_type'",
            (13, 'sinks[0].transformers[2].parameters.renam'):
                "did you mean 'rename'",
            (14, 'sinks[0].publishers[0]'): 'notifier',
            (14, 'sinks[0].publishers[1]'): 'missing or relative',
            (14, 'sinks[0].publishers[2]'): 'unknown options: x',
            (15, 'sinks[1].name'): 'another of that name in line 6',
            (17, 'sinks[2].publishers'): 'at least one publisher',
            (18, 'sinks[2].checkpoint'): "no key 'checkpoint'",
            (19, 'sinsk'): "did you mean 'sinks'",
        }
        self.assertEqual(sorted(expected),
                         sorted(one[:2] for one in problems))
        for line, key, message in problems:
            self.assertIn(expected[line, key], message)

    def test_the_error_names_everything(self):
        error = self.assertRaises(
            exceptions.DefinitionError, self.files.load,
            'sinks:\n  - name: s\n    publishers: [nope://]\n')
        self.assertIn(f"{self.files.path}:3, definition 's', key "
                      f"'sinks[0].publishers[0]': ", str(error))

    def test_each_alone(self):
        for text, line, key, part in (
                ('[1]', 1, None, 'is a mapping'),
                ('sinks: {}', 1, 'sinks', 'list of mappings'),
                ('sinks: [5]', 1, 'sinks[0]', 'is a mapping'),
                ('sinks: [{publishers: [log://]}]', 1, 'sinks[0].name',
                 'text of 1 to'),
                ('sinks: [{name: 5, publishers: [log://]}]', 1,
                 'sinks[0].name', 'text of 1 to'),
                (f'sinks: [{{name: {"x" * 201}, publishers: [log://]}}]', 1,
                 'sinks[0].name', 'text of 1 to'),
                ('sinks: [{name: "s\\0", publishers: [log://]}]', 1,
                 'sinks[0].name', 'printable'),
                ('sinks:\n- name: s\n  publishers: log://', 3,
                 'sinks[0].publishers', 'is a list'),
                ('sinks:\n- name: s\n  publishers: [log]', 3,
                 'sinks[0].publishers[0]', 'is a URL'),
                ('sinks:\n- name: s\n  publishers: [{a: b}]', 3,
                 'sinks[0].publishers[0]', 'is a URL'),
                ('sinks:\n- name: s\n  publishers: ["log://#x"]', 3,
                 'sinks[0].publishers[0]', '%23'),
                ('sinks:\n- name: s\n  transformers: [filter]\n'
                 '  publishers: [log://]', 3, 'sinks[0].transformers[0]',
                 'is a mapping'),
                ('sinks:\n- name: s\n  transformers: [{}]\n'
                 '  publishers: [log://]', 3,
                 'sinks[0].transformers[0].name', 'a text'),
                ('sinks:\n- name: s\n  transformers:\n  - name: map\n'
                 '    parameters: 5\n  publishers: [log://]', 5,
                 'sinks[0].transformers[0].parameters', 'is a mapping'),
                ('sinks:\n- name: s\n  transformers:\n  - name: filter\n'
                 '  publishers: [log://]', 4,
                 'sinks[0].transformers[0].parameters', 'needs criteria'),
                ('sinks:\n- name: s\n  transformers:\n  - name: map\n'
                 '    checkpoint: 1\n  publishers: [log://]', 5,
                 'sinks[0].transformers[0].checkpoint', 'true or false'),
                ('sinks:\n- name: s\n  publishers: [log://]\n'
                 '  publishers: [log://]', 4, 'publishers', 'twice'),
                ('sources: [{name: a, events: [x]}]', 1, 'sources[0].sinks',
                 'at least one sink'),
                ('sinks: [{name: s, publishers: [log://]}]\n'
                 'sources: [{name: a, events: [x], sinks: [s, s]}]', 2,
                 'sources[0].sinks[1]', 'named twice'),
                ('sinks: [{name: s, publishers: [log://]}]\n'
                 'sources: [{name: a, events: [x], sinks: [{s: s}]}]', 2,
                 'sources[0].sinks[0]', 'no sink'),
                ('sinks: [{name: s, publishers: [log://]}]\n'
                 'sources: [{name: a, sinks: [s]}]', 2, 'sources[0].events',
                 'list of event types'),
                ('sinks: [{name: s, publishers: [log://]}]\n'
                 'sources: [{name: a, events: ["!"], sinks: [s]}]', 2,
                 'sources[0].events', 'list of event types'),
        ):
            found = self.files.problems(text)
            self.assertEqual([(line, key)], [one[:2] for one in found], text)
            self.assertIn(part, found[0][2], text)

    def test_a_password_is_never_shown(self):
        for url in ('file://user:s3cr3t@host/x',
                    'notifier://user:s3cr3t@host:port/',
                    'notifier://user:s3cr3t@[host/',
                    'notifier://user:s3cr3t@ho\u2100st/',
                    'notifier://user:s3cr3t/x@host:5672/',
                    'notifier://user:s3cr3t#x@host:5672/',
                    'notifier://user:%733cr3t@host/?nope=1',
                    'log://user:s3cr3t@host/?nope=1',
                    'nope://user:s3cr3t@host/'):
            error = self.assertRaises(
                exceptions.DefinitionError, self.files.load,
                f'sinks: [{{name: s, publishers: ["{url}"]}}]')
            self.assertNotIn('s3cr3t', str(error), url)
            self.assertIn('publishers[0]', str(error), url)

    def test_a_publisher_that_shows_a_password_is_held_back(self):
        self.assertEqual(
            'bad: x://u:***@h, ***',
            pipelines._without_password(
                'bad: x://u:s%40c@h, s@c', 'x://u:s%40c@h'))
        for password in ('s3cr3t/x', 's3cr3t?x', 's3cr3t#x', 's3cr3t@x'):
            self.assertNotIn('s3cr3t', pipelines._without_password(
                f"bad: x://u:{password}@h, port 's3cr3t'",
                f'x://u:{password}@h'), password)
