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

"""The operator's commands, as they are typed."""

import json
import os
import textwrap

import fixtures

from triggerlib import criteria
from triggerlib.state import State
from triggerlib import storage
from triggerlib.storage import driver as storage_driver

from tests import base
from tests import command
from tests import engine
from tests.unit.trigger import test_manager

EVENTS = """
    - event_type: compute.instance.*
      traits: {instance_id: {fields: payload.instance_id}}
    """


def notification(message_id, kind, seconds, instance='i'):
    return {
        'message_id': message_id,
        'event_type': f'compute.instance.create.{kind}',
        'timestamp': engine.at(seconds).isoformat(),
        'publisher_id': 'compute.h', 'payload': {'instance_id': instance}}


class CommandCase(base.TestCase):
    """A folder with a configuration, and the command."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.run_command = self.useFixture(command.Command())
        self.conf = f'{self.folder}/triggerlib.conf'
        self.write('triggerlib.conf', f"""
            [triggerlib]
            connection = sqlite:///{self.folder}/t.sqlite
            event_definitions_cfg_file = events.yaml
            trigger_definitions_cfg_file = triggers.yaml
            event_pipeline_cfg_file = pipelines.yaml
            """)
        self.write('events.yaml', EVENTS)
        self.write('triggers.yaml', test_manager.TRIGGERS)
        self.write('pipelines.yaml', test_manager.PIPELINES.replace(
            'test://$NAME', f'file://{self.folder}/out.jsonl'))

    def write(self, name, text):
        with open(f'{self.folder}/{name}', 'w', encoding='utf-8') as stream:
            stream.write(textwrap.dedent(text))
        return f'{self.folder}/{name}'

    def ok(self, *argv):
        status, out, err = self.run_command(*argv)
        self.assertEqual(0, status, err)
        return out

    def refused(self, *argv):
        status, out, err = self.run_command(*argv)
        self.assertEqual(1, status, out)
        self.assertNotIn('Traceback', err)
        return err


class TestValidate(CommandCase):
    """Are the files right?"""

    def test_right_files(self):
        out = self.ok('validate', '--config-file', self.conf)
        self.assertEqual(3, out.count(': right'))

    def test_options_before_and_after_the_command(self):
        for argv in (('--config-file', self.conf, 'validate'),
                     ('validate', '--config-file', self.conf),
                     ('validate', '--config-dir', self.folder,
                      '--config-file', self.conf)):
            self.assertIn('triggers.yaml: right', self.ok(*argv))

    def test_five_mistakes_in_one_refusal(self):
        self.write('triggers.yaml', """\
            - name: one
              distinguished_by: instance_id
              expiration: first + 1 fortnight
              match_criteria:
                - event_typ: a
              fire_criteria:
                - event_type: b
                  number: many
              fire_pipeline: wrong
            """)
        err = self.refused('validate', '--config-file', self.conf)
        self.assertIn('5 mistakes', err)
        for line in (2, 3, 5, 8, 9):
            self.assertIn(f'triggers.yaml:{line}, definition', err)

    def test_mistakes_of_all_files_at_once(self):
        self.write('events.yaml', '- event_type: a\n')
        self.write('triggers.yaml', '- name: x\n')
        self.write('pipelines.yaml', 'sinks: [{name: s}]\n')
        err = self.refused('validate', '--config-file', self.conf)
        for name in ('events.yaml', 'triggers.yaml', 'pipelines.yaml'):
            self.assertIn(name, err)

    def test_files_of_ones_own(self):
        path = self.write('other.yaml', '[]')
        out = self.ok('validate', '--config-file', self.conf,
                      '--trigger-definitions', path)
        self.assertIn(f'{path}: right', out)
        self.assertIn('no/file', self.refused(
            'validate', '--config-file', self.conf,
            '--trigger-definitions', 'no/file'))

    def test_a_file_is_looked_for_in_the_working_folder(self):
        here = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(here)
        # There is a right one of this name beside the configuration.
        with open('triggers.yaml', 'w', encoding='utf-8') as stream:
            stream.write('- name: broken\n')
        err = self.refused('validate', '--config-file', self.conf,
                           '--trigger-definitions', 'triggers.yaml')
        self.assertIn(f'{here}/triggers.yaml', err)

    def test_a_configured_file_that_is_missing(self):
        os.remove(f'{self.folder}/triggers.yaml')
        err = self.refused('validate', '--config-file', self.conf)
        self.assertIn('triggers.yaml: was not found', err)


class TestNoCommand(CommandCase):
    """No command at all."""

    def test_it_is_the_help_that_is_shown(self):
        status, out, _ = self.run_command()
        self.assertNotEqual(0, status)
        self.assertIn('usage: ', out)
        self.assertIn('replay', out)


class TestReplay(CommandCase):
    """Notifications from a file."""

    def replay(self, *lines, argv=()):
        path = self.write('n.jsonl', '')
        with open(path, 'w', encoding='utf-8') as stream:
            for line in lines:
                stream.write(line if isinstance(line, str)
                             else json.dumps(line) + '\n')
        rows = self.run_command.json(
            'replay', '--config-file', self.conf, path, *argv)
        return {(row['trigger'], row['what']): row['count'] for row in rows}

    def published(self):
        with open(f'{self.folder}/out.jsonl', encoding='utf-8') as stream:
            return [json.loads(line)['message_id'] for line in stream]

    def test_fires_and_expires(self):
        rows = self.replay(
            notification('e', 'end', 60), notification('s', 'start', 0),
            notification('s', 'start', 0),
            notification('x', 'start', 100, 'j'))
        self.assertEqual(
            {('-', 'received'): 4, ('-', 'stored'): 3,
             ('-', 'dropped as duplicate'): 1, ('-', 'dead letters'): 0,
             ('-', 'dropped for want of a definition'): 0,
             ('create', 'fired'): 1, ('create', 'expired'): 1}, rows)
        self.assertEqual(['s', 'e', 'x'], self.published())
        self.assertFalse(os.path.exists(f'{self.folder}/t.sqlite'))

    def test_what_is_due_in_a_gap_is_done_in_the_gap(self):
        rows = self.replay(
            notification('s', 'start', 0), notification('e', 'end', 3600))
        self.assertEqual(2, rows['create', 'expired'])
        self.assertNotIn(('create', 'fired'), rows)

    def test_bad_lines_are_dead_letters(self):
        rows = self.replay(
            'not json\n', '5\n', '\n', '{"message_id": ""}\n',
            notification('s', 'start', 0),
            argv=['--connection', f'sqlite:///{self.folder}/kept.sqlite'])
        self.assertEqual(3, rows['-', 'dead letters'])
        self.assertEqual(1, rows['-', 'stored'])
        self.assertTrue(os.path.exists(f'{self.folder}/kept.sqlite'))

    def test_a_mark_of_the_encoding_costs_no_line(self):
        rows = self.replay('\ufeff' + json.dumps(
            notification('s', 'start', 0)) + '\n')
        self.assertEqual((1, 0), (rows['-', 'stored'],
                                  rows['-', 'dead letters']))

    def test_a_line_that_is_no_text(self):
        path = f'{self.folder}/n.jsonl'
        with open(path, 'wb') as stream:
            stream.write(b'\xff\xfe{\n')
            stream.write(json.dumps(
                notification('s', 'start', 0)).encode() + b'\n')
        rows = {row['what']: row['count'] for row in self.run_command.json(
            'replay', '--config-file', self.conf, path)}
        self.assertEqual((1, 1), (rows['stored'], rows['dead letters']))

    def test_left_open(self):
        url = f'sqlite:///{self.folder}/t.sqlite'
        rows = self.replay(notification('s', 'start', 0),
                           argv=['--open', '--connection', url])
        self.assertNotIn(('create', 'expired'), rows)
        self.assertEqual(1, rows['create', 'still open'])
        one, = self.run_command.json(
            'instance', 'list', '--config-file', self.conf)
        self.assertEqual(('create', 'ACTIVE', '{"instance_id": "i"}'), (
            one['trigger'], one['state'], one['key']))

    def test_the_end_of_all_datetimes(self):
        rows = self.replay(
            {**notification('z', 'start', 0, 'j'),
             'timestamp': '9999-12-31 23:59:59.9'},
            {**notification('a', 'start', 0),
             'timestamp': '0001-01-01 00:00'})
        self.assertEqual(2, rows['-', 'stored'])
        self.assertEqual(1, rows['create', 'expired'])

    def test_a_pipeline_that_fails(self):
        self.write('pipelines.yaml', test_manager.PIPELINES.replace(
            'test://$NAME', f'file://{self.folder}/no/folder/out.jsonl'))
        path = self.write('n.jsonl', '\n'.join(map(json.dumps, (
            notification('s', 'start', 0), notification('e', 'end', 5),
            notification('x', 'start', 9, 'j')))))
        status, out, err = self.run_command(
            'replay', '--config-file', self.conf, path)
        self.assertEqual(1, status)
        self.assertRegex(out, r'create +\| failed +\| +2 ')
        self.assertEqual(1, out.count('| failed '))
        self.assertIn('no/folder', err)

    def test_no_such_file(self):
        err = self.refused('replay', '--config-file', self.conf, 'nothing')
        self.assertIn('nothing cannot be read', err)


class TestConfiguration(CommandCase):
    """Values that options cannot have."""

    def test_a_value_that_is_out_of_bounds(self):
        self.write('bad.conf', """
            [triggerlib]
            workers = -3
            """)
        err = self.refused('--config-file', f'{self.folder}/bad.conf',
                           'validate')
        self.assertIn('workers', err)
        self.assertIn('equal to 1', err)

    def test_numbers_that_are_no_time(self):
        for option in ('lease', 'retry_delay', 'allowed_lateness',
                       'scheduler_interval', 'ready_timeout'):
            for value in ('nan', 'inf', '1e15'):
                self.write('bad.conf', f"""
                    [triggerlib]
                    {option} = {value}
                    """)
                self.assertIn(option, self.refused(
                    '--config-file', f'{self.folder}/bad.conf', 'validate'))

    def test_no_such_file(self):
        self.assertIn('nothing.conf', self.refused(
            '--config-file', f'{self.folder}/nothing.conf', 'status'))

    def test_no_such_driver(self):
        self.write('bad.conf', """
            [triggerlib]
            connection = oracle://me:secret@here/there
            """)
        err = self.refused('--config-file', f'{self.folder}/bad.conf',
                           'status')
        self.assertIn('oracle', err)
        self.assertNotIn('secret', err)


class TestStorage(CommandCase):
    """Looking into a storage, and mending what failed."""

    def setUp(self):
        super().setUp()
        self.engine = self.useFixture(engine.Engine(
            test_manager.TRIGGERS, test_manager.PIPELINES,
            f'sqlite:///{self.folder}/t.sqlite'))

    def fail_one(self):
        it = self.engine
        it.add(test_manager.start())
        it.clock.advance(3600)
        it.scheduler.run_once()
        instance_id = it.instance().id
        it.storage.run(lambda tx: tx.transition(
            [instance_id], State.READY_TO_EXPIRE, State.EXPIRING,
            new_owner='w', deadline=it.clock.now(), attempts=5))
        it.storage.run(lambda tx: tx.transition(
            [instance_id], State.EXPIRING, State.EXPIRE_ERROR, owner='w',
            error='Traceback: no disk'))
        return instance_id

    def json(self, *argv):
        return self.run_command.json('--config-file', self.conf, *argv)

    def test_a_schema_that_is_not_there(self):
        self.write('other.conf', f"""
            [triggerlib]
            connection = sqlite:///{self.folder}/other.sqlite
            """)
        path = f'{self.folder}/other.conf'
        self.assertIn('triggerlib db upgrade',
                      self.refused('--config-file', path, 'db', 'check'))
        self.assertIn('triggerlib db upgrade',
                      self.refused('--config-file', path, 'status'))
        self.ok('--config-file', path, 'db', 'upgrade')
        self.ok('--config-file', path, 'db', 'upgrade')
        self.ok('--config-file', path, 'db', 'check')

    def test_purge(self):
        self.engine.add(test_manager.start(),
                        engine.event('free', 'other', 0))
        out = self.ok('--config-file', self.conf, 'db', 'purge', '--days',
                      '1', '--batch', '1')
        self.assertEqual('1 events were deleted.\n', out)
        self.assertEqual(['s'], [row['message_id']
                                 for row in self.json('event', 'list')])
        for days in ('-1', 'nan', 'inf', '1e300'):
            self.assertIn('--days is 0 to', self.refused(
                '--config-file', self.conf, 'db', 'purge', '--days', days))

    def test_a_time_that_is_none(self):
        status, _, err = self.run_command(
            '--config-file', self.conf, 'event', 'list', '--begin', 'noon')
        self.assertEqual(2, status)
        self.assertIn('noon', err)
        self.assertNotIn('_moment', err)

    def test_reindex(self):
        it = self.engine
        it.add(*(engine.event(f'x{n}', 'x', n, host=f'h{n % 2}')
                 for n in range(10)))
        lacking = it.storage.run(lambda tx: tx.register_traits(['host']))
        self.assertEqual({'host'}, lacking)
        self.ok('--config-file', self.conf, 'db', 'reindex', '--batch', '3')
        self.assertEqual(
            set(), it.storage.run(lambda tx: tx.register_traits(['host'])))
        query = criteria.EventQuery(traits={'host': 'h1'})
        self.assertEqual(5, len(it.storage.run(
            lambda tx: list(tx.find_events(query)))))

    def test_events(self):
        self.engine.add(*(
            test_manager.start(f's{n}', n, f'i{n}') for n in range(5)))
        rows = self.json('event', 'list', '--limit', '2', '--newest')
        self.assertEqual(['s4', 's3'], [row['message_id'] for row in rows])
        rows = self.json('event', 'list', '--event-type', 'nothing')
        self.assertEqual([], rows)
        rows = self.json('event', 'list', '--begin',
                         engine.at(2).isoformat(), '--end',
                         engine.at(4).isoformat())
        self.assertEqual(['s2', 's3'], [row['message_id'] for row in rows])
        self.assertEqual({
            'message_id': 's1', 'timestamp':
                '2026-03-01T12:00:01.000000+00:00',
            'event_type': 'compute.instance.create.start',
            'traits': {'instance_id': 'i1'},
        }, self.json('event', 'show', 's1'))
        self.assertIn('no event', self.refused(
            '--config-file', self.conf, 'event', 'show', 'nothing'))

    def test_instances(self):
        self.engine.add(test_manager.start(), test_manager.end())
        self.engine.add(test_manager.start('s2', 5, 'j'))
        rows = self.json('instance', 'list', '--state', 'ACTIVE',
                         '--trigger', 'create')
        self.assertEqual([2, 1], [row['events'] for row in rows])
        row = self.json('instance', 'show', rows[0]['id'].__str__())
        self.assertEqual(['s', 'e'], [
            event['message_id'] for event in row['events']])
        self.assertEqual([1, 1], row['counts'])
        out = self.ok('--config-file', self.conf, 'instance', 'show',
                      str(rows[0]['id']))
        self.assertIn('compute.instance.create.end e', out)
        self.assertIn('no instance 99', self.refused(
            '--config-file', self.conf, 'instance', 'show', '99'))

    def test_numbers_that_no_storage_has(self):
        for argv in (('instance', 'show', str(2 ** 63)),
                     ('instance', 'list', '--limit', '-1'),
                     ('event', 'list', '--limit', str(2 ** 64))):
            status, _, err = self.run_command(
                '--config-file', self.conf, *argv)
            self.assertNotEqual(0, status)
            self.assertNotIn('Traceback', err)

    def test_retry(self):
        instance_id = str(self.fail_one())
        row = self.json('instance', 'show', instance_id)
        self.assertEqual('Traceback: no disk', row['error'])
        self.ok('--config-file', self.conf, 'instance', 'retry',
                instance_id)
        one = self.engine.instance()
        self.assertEqual((State.READY_TO_EXPIRE, 0),
                         (one.state, one.attempts))
        self.assertIn('is READY_TO_EXPIRE', self.refused(
            '--config-file', self.conf, 'instance', 'retry', instance_id))
        self.engine.clock.advance(10**9)
        self.engine.settle()
        self.assertEqual([], self.engine.instances())
        self.assertEqual(1, len(self.engine.published()))

    def test_retry_from_a_step(self):
        instance_id = self.fail_one()

        def journal(tx):
            for position, step in enumerate(('a', 'b', 'c')):
                tx.save_step(instance_id, storage.StepRecord(
                    step, position, storage.StepState.DONE))

        def steps():
            return sorted(self.engine.storage.run(
                lambda tx: tx.journal(instance_id)))

        self.engine.storage.run(journal)
        err = self.refused('--config-file', self.conf, 'instance', 'retry',
                           str(instance_id), '--from-step', 'x')
        self.assertIn("no step 'x'; it has a, b, c", err)
        self.assertEqual(['a', 'b', 'c'], steps())
        self.ok('--config-file', self.conf, 'instance', 'retry',
                str(instance_id), '--from-step', 'b')
        self.assertEqual(['a'], steps())

    def test_retry_from_the_start(self):
        instance_id = self.fail_one()
        self.engine.storage.run(lambda tx: tx.save_step(
            instance_id, storage.StepRecord('a', 0, storage.StepState.DONE)))
        self.ok('--config-file', self.conf, 'instance', 'retry',
                str(instance_id), '--from-start')
        self.assertEqual({}, self.engine.storage.run(
            lambda tx: tx.journal(instance_id)))

    def fail_some(self):
        """Return the ids of two that failed to fire and one to expire."""
        it = self.engine
        for number in range(3):
            it.add(engine.event(f's{number}', 'compute.instance.create.start',
                                0, instance_id=f'i{number}'))
        ids = [one.id for one in it.instances()]
        self.assertEqual(3, len(ids))
        for instance_id, (ready, held, failed), error in zip(
                ids, 2 * [(State.READY_TO_FIRE, State.FIRING, State.ERROR)]
                + [(State.READY_TO_EXPIRE, State.EXPIRING,
                    State.EXPIRE_ERROR)],
                ('no disk', 'no route', 'no disk')):
            def work(tx):
                tx.transition([instance_id], State.ACTIVE, ready)
                tx.transition([instance_id], ready, held, new_owner='w',
                              deadline=it.clock.now(), attempts=5)
                tx.transition([instance_id], held, failed, owner='w',
                              error=error)
            it.storage.run(work)
        return ids

    def test_retry_by_a_filter(self):
        ids = self.fail_some()
        name = self.engine.instances()[0].name

        def retry(*argv):
            return [int(line.split()[1]) for line in self.ok(
                '--config-file', self.conf, 'instance', 'retry',
                *argv).splitlines()[:-1]]

        def failed():
            return [one.id for one in self.engine.instances()
                    if one.state in (State.ERROR, State.EXPIRE_ERROR)]

        for argv, expected in (
                (('--trigger', name), ids),
                (('--trigger', 'other'), []),
                (('--state', 'ERROR'), ids[:2]),
                (('--error-like', 'disk'), [ids[0], ids[2]]),
                (('--state', 'ERROR', '--error-like', 'disk'), ids[:1]),
                (('--trigger', name, '--from-step', 'x'), [])):
            self.assertEqual(expected, retry('--dry-run', *argv))
        self.assertEqual(ids, failed())
        self.assertEqual([ids[0]], retry(
            '--state', 'ERROR', '--error-like', 'disk'))
        self.assertEqual(ids[1:], failed())
        self.assertEqual(ids[1:], retry('--trigger', name))
        self.assertEqual([], failed())
        self.assertEqual([], retry('--trigger', name))

    def test_retry_wants_ids_or_a_filter(self):
        for argv in ((), ('1', '--state', 'ERROR')):
            self.assertIn('nothing was changed', self.refused(
                '--config-file', self.conf, 'instance', 'retry', *argv))

    def test_delete(self):
        instance_id = str(self.fail_one())
        self.assertIn('no instance 99', self.refused(
            '--config-file', self.conf, 'instance', 'delete', instance_id,
            '99'))
        self.assertEqual(1, len(self.engine.instances()))
        self.ok('--config-file', self.conf, 'instance', 'delete',
                instance_id)
        self.assertEqual([], self.engine.instances())
        self.assertEqual(1, len(self.json('event', 'list')))

    def test_what_a_worker_holds_is_not_deleted(self):
        it = self.engine
        it.add(test_manager.start())
        it.clock.advance(3600)
        it.scheduler.run_once()
        one = it.instance()
        it.storage.run(lambda tx: tx.transition(
            [one.id], State.READY_TO_EXPIRE, State.EXPIRING, new_owner='w',
            deadline=it.clock.now(), attempts=1))
        self.assertIn('a worker holds it', self.refused(
            '--config-file', self.conf, 'instance', 'delete', str(one.id)))

    def test_status(self):
        self.fail_one()
        self.engine.add(test_manager.start('s2', 5, 'j'))
        rows = {(row['trigger'], row['what']): row['count']
                for row in self.json('status')}
        self.assertEqual(1, rows['create', 'EXPIRE_ERROR'])
        self.assertEqual(1, rows['create', 'ACTIVE'])
        self.assertEqual(1, rows['-', 'failed'])
        self.assertEqual(2, rows['-', 'events stored'])
        # By the database's clock, 2026-03 is long ago.
        self.assertEqual(1, rows['-', 'waits to be made ready to expire'])


class TestDeadletter(CommandCase):
    """What could not be handled, looked at and mended."""

    def setUp(self):
        super().setUp()
        self.engine = self.useFixture(engine.Engine(
            test_manager.TRIGGERS, test_manager.PIPELINES,
            f'sqlite:///{self.folder}/t.sqlite'))
        body = json.dumps(notification('s', 'start', 0))
        self.keep(('notification', body), ('notification', '{"a": 1}'),
                  ('notification', '{"cut'), ('event', '{}'),
                  ('published', '{}'), ('notification', body))

    def keep(self, *letters):
        self.engine.storage.run(lambda tx: tx.add_dead_letters([
            storage_driver.DeadLetter(kind, 's', f'reason {number}', body)
            for number, (kind, body) in enumerate(letters, 1)]))

    def deadletter(self, *argv):
        return self.ok('--config-file', self.conf, 'deadletter', *argv)

    def ids(self):
        return [row['id'] for row in self.run_command.json(
            '--config-file', self.conf, 'deadletter', 'list')]

    def test_list_and_show(self):
        rows = self.run_command.json(
            '--config-file', self.conf, 'deadletter', 'list', '--after', '1',
            '--limit', '2')
        self.assertEqual([(2, 'reason 2'), (3, 'reason 3')],
                         [(row['id'], row['reason']) for row in rows])
        row = self.run_command.json(
            '--config-file', self.conf, 'deadletter', 'show', '3')
        self.assertEqual(('{"cut', 'notification'),
                         (row['body'], row['kind']))
        self.assertIn('no dead letter 7', self.refused(
            '--config-file', self.conf, 'deadletter', 'show', '7'))

    def test_replay(self):
        self.assertEqual('Dead letter 1 is stored as event s\n',
                         self.deadletter('replay', '1'))
        # It is collected like any other.
        self.assertEqual(1, self.engine.instance().event_count)
        self.assertEqual([2, 3, 4, 5, 6], self.ids())
        status, out, err = self.run_command(
            '--config-file', self.conf, 'deadletter', 'replay', '--all')
        self.assertEqual(1, status)
        self.assertIn('2 dead letters were not handed in', err)
        self.assertNotIn('Traceback', err)
        lines = out.splitlines()
        self.assertIn('2 stays: ', lines[0])
        self.assertIn('no JSON document', lines[1])
        self.assertIn('6 was known: event s', lines[2])
        self.assertEqual([2, 3, 4, 5], self.ids())
        self.assertEqual(1, self.engine.instance().event_count)

    def test_what_is_not_replayed(self):
        for letter_id, reason in (('4', 'the storage refused it'),
                                  ('5', 'a receiver refused it'),
                                  ('9', 'no dead letter 9')):
            status, out, err = self.run_command(
                '--config-file', self.conf, 'deadletter', 'replay',
                letter_id)
            self.assertEqual(1, status)
            self.assertIn(reason, out)
        self.assertEqual([1, 2, 3, 4, 5, 6], self.ids())

    def test_purge(self):
        self.assertEqual('2 dead letters were deleted.\n',
                         self.deadletter('purge', '2', '4', '99'))
        self.engine.clock.advance(86400 * 10 ** 4)
        self.keep(('notification', '{}'))
        self.assertEqual([1, 3, 5, 6, 7], self.ids())
        self.deadletter('purge', '--days', '100')
        self.assertEqual([7], self.ids())
        self.assertIn('--days is 0 to', self.refused(
            '--config-file', self.conf, 'deadletter', 'purge', '--days',
            'nan'))

    def test_which_ones_has_to_be_said(self):
        for name in ('replay', 'purge'):
            status, _, err = self.run_command(
                '--config-file', self.conf, 'deadletter', name)
            self.assertEqual(2, status, err)


class TestTimex(CommandCase):
    """Time expressions on the command line."""

    def test_a_time(self):
        row = self.run_command.json(
            'timex', '$first@00:00 + 1d', '--at',
            'first=2026-03-01 10:00', '--timezone', 'Europe/Berlin')
        self.assertEqual('2026-03-01T23:00:00.000000+00:00',
                         row['timestamp'])

    def test_a_range(self):
        row = self.run_command.json(
            'timex', 'day', '--at', 'timestamp=2026-03-01T10:00Z')
        self.assertEqual('2026-03-02T00:00:00.000000+00:00', row['end'])

    def test_mistakes(self):
        self.assertIn('column 8', self.refused('timex', 'first +'))
        self.assertIn('first', self.refused('timex', 'first + 1h'))
        self.assertIn('write NAME=TIME', self.refused(
            'timex', 'first', '--at', 'first'))
        self.assertIn('not a time', self.refused(
            'timex', 'first', '--at', 'first=soon'))
