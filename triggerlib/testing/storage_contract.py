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

"""What every storage driver has to do: tests for drivers to inherit.

A driver's own tests say how to build it, and get the rest from here::

    class TestMyDriver(storage_contract.StorageContract, unittest.TestCase):

        def make_driver(self, clock):
            return MyDriver(self.conf, 'my://scratch', clock)
"""

import datetime
import math

from triggerlib import clock as clock_module
from triggerlib import criteria
from triggerlib.event import event as event_module
from triggerlib import exceptions
from triggerlib import state as state_module
from triggerlib.storage import driver as driver_module

UTC = datetime.timezone.utc
State = state_module.State
Due = driver_module.Due
Query = criteria.EventQuery

START = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
#: How an instance gets from ACTIVE to a state.
_WAYS = {
    State.ACTIVE: (),
    State.READY_TO_FIRE: (State.READY_TO_FIRE,),
    State.READY_TO_EXPIRE: (State.READY_TO_EXPIRE,),
    State.FIRING: (State.READY_TO_FIRE, State.FIRING),
    State.EXPIRING: (State.READY_TO_EXPIRE, State.EXPIRING),
    State.ERROR: (State.READY_TO_FIRE, State.FIRING, State.ERROR),
    State.EXPIRE_ERROR: (State.READY_TO_EXPIRE, State.EXPIRING,
                         State.EXPIRE_ERROR),
}
_OWNER = 'token of the one that holds it'
#: Texts of which no two are the same, however much they look alike.
ALIKE = ('a', 'A', 'a ', ' a', 'a  ', 'a\t', 'á', 'a\u0301', 'Á', 'ä', 'å',
         'ae', 'æ', 'ss', 'ß', 'i', 'ı', 'İ', '1', '01', '1.0', '１', '%',
         '_', "'", '\\', '"', '\uffee', '\U0001f600', '\U0001f601', '\x01',
         'null', 'NULL')


def at(seconds=0, micros=0) -> datetime.datetime:
    """Return a moment so much after :data:`START`."""
    return START + datetime.timedelta(seconds=seconds, microseconds=micros)


def event(message_id, seconds=0, event_type='test.event',
          **traits) -> event_module.Event:
    """Return an event so many seconds after :data:`START`."""
    return event_module.Event(message_id, event_type, at(seconds), traits)


def template(active_key='k', **fields) -> driver_module.Instance:
    """Return what :meth:`Transaction.lock_active` takes."""
    return driver_module.Instance(**{
        'name': 'trigger', 'key': '{"instance_id": "i"}',
        'active_key': active_key, 'fingerprint': 'first',
        'first_event': at(), 'last_event': at(), **fields})


def matches(query, one) -> bool:
    """Tell whether an event is what a query asks for."""
    if (query.event_types is not None
            and one.event_type not in query.event_types):
        return False
    if query.begin is not None and one.timestamp < query.begin:
        return False
    if query.end is not None:
        if query.begin == query.end:
            if one.timestamp != query.end:
                return False
        elif one.timestamp >= query.end:
            return False
    for name, wanted in query.traits.items():
        if name not in one.traits:
            return False
        value = one.traits[name]
        if not isinstance(wanted, tuple):
            wanted = (wanted,)
        if not any(type(each) is type(value) and each == value
                   for each in wanted):
            return False
    return True


class StorageContract:
    """Mix it with a ``unittest.TestCase``, and say what is tested.

    The clock given to the driver is :attr:`clock`; it stands still.
    """

    #: Longest text in bytes of a trait that the tests store.
    long_text = 70_000

    def make_driver(self, clock):
        """Return the driver to test, over an empty storage.

        :param clock: the clock that it is to go by
        """
        raise NotImplementedError

    def setUp(self):
        """Build the driver and its schema."""
        super().setUp()
        self.clock = clock_module.ReplayClock(START)
        self.driver = self.make_driver(self.clock)
        self.addCleanup(self.driver.close)
        self.driver.upgrade()
        self.driver.check()

    # What the tests say in one word

    def write(self, work, *args):
        """Run a unit of work."""
        return self.driver.run(work, *args)

    def read(self, work, *args):
        """Run a unit of work that only reads."""
        return self.driver.run(work, *args, write=False)

    def store(self, *events):
        """Store events, and return which of them are new."""
        return self.write(lambda tx: tx.add_events(events))

    def find(self, query=Query(), newest_first=False):
        """Return the ids of the stored events that a query asks for."""
        return [one.message_id for one in self.read(
            lambda tx: list(tx.find_events(query, newest_first)))
            if matches(query, one)]

    def lock(self, *templates):
        """Lock the instances of templates in a unit of work of its own."""
        return self.write(lambda tx: tx.lock_active(templates))

    def new(self, active_key=None, **fields):
        """Store an ACTIVE instance, and return it.

        What only :meth:`Transaction.collect` writes is given to that.
        """
        one, = self.lock(template(active_key, **fields))
        return one

    def get(self, instance_id):
        """Return an instance, None when there is none."""
        found = self.read(lambda tx: tx.get_instances([instance_id]))
        return found[0] if found else None

    def collect(self, instance, *message_ids):
        """Put stored events on an instance's list."""
        instance.event_count += len(message_ids)
        self.write(lambda tx: tx.collect(
            [instance], {instance.id: message_ids}))

    def ids_of(self, instance_id):
        """Return the ids on an instance's list, in order."""
        lists = self.read(lambda tx: tx.instance_events([instance_id]))
        return [one.message_id for one in lists[instance_id]]

    def move(self, ids, source, target, **kwargs):
        """Make a transition in a unit of work of its own."""
        if not isinstance(ids, list):
            ids = [ids]
        return self.write(
            lambda tx: tx.transition(ids, source, target, **kwargs))

    def make(self, state, deadline=None, **fields):
        """Store an instance, bring it to a state, and return its id."""
        instance_id = self.new(**fields).id
        source = State.ACTIVE
        for target in _WAYS[state]:
            kwargs = {}
            if source in state_module.LEASED:
                kwargs['owner'] = _OWNER
            if target in state_module.LEASED:
                kwargs['new_owner'] = _OWNER
            if target is state:
                kwargs['deadline'] = deadline
            self.assertEqual(
                [instance_id],
                self.move(instance_id, source, target, **kwargs))
            source = target
        return instance_id

    def due(self, what, moment, limit=100):
        """Return the ids of what is due."""
        return [one.id for one in self.write(
            lambda tx: tx.due(what, moment, limit))]

    # Units of work

    def test_now_is_the_clock_of_the_driver(self):
        moment = at(5, 123456)
        self.clock.advance_to(moment)
        now = self.read(lambda tx: tx.now())
        self.assertEqual(moment, now)
        self.assertEqual(datetime.timedelta(0), now.utcoffset())

    def test_now_stands_still_in_a_unit_of_work(self):
        with self.driver.begin() as tx:
            before = tx.now()
            self.clock.advance(10)
            self.assertEqual(before, tx.now())
        with self.driver.begin() as tx:
            self.assertEqual(before + datetime.timedelta(seconds=10),
                             tx.now())

    def test_a_unit_of_work_sees_what_it_did(self):
        with self.driver.begin() as tx:
            tx.add_events([event('a')])
            one, = tx.lock_active([template()])
            tx.collect([one], {one.id: ['a']})
            self.assertEqual(['a'], list(tx.get_events(['a'])))
            self.assertEqual(1, len(tx.instance_events([one.id])[one.id]))
            again, = tx.lock_active([template()])
            self.assertEqual(one.id, again.id)

    def test_an_error_undoes_everything(self):
        self.store(event('held', 1), event('old', 2))
        kept = self.new('kept')
        self.collect(kept, 'held')
        ready = self.make(State.READY_TO_FIRE)
        gone = self.make(State.READY_TO_EXPIRE)
        firing = self.make(State.FIRING, deadline=at(60))
        self.write(lambda tx: tx.save_step(firing, driver_module.StepRecord(
            'step', 0, driver_module.StepState.RUNNING)))
        before = self._everything()

        def work(tx):
            tx.add_events([event('new', 3), event('old', 4)])
            tx.purge_events(at(3), 10)
            tx.lock_active([template('fresh'), template(None)])
            one, = tx.lock_active([template('kept')])
            one.event_count = 2
            one.counts = [7]
            tx.collect([one], {one.id: ['new']})
            tx.transition([one.id], State.ACTIVE, State.READY_TO_FIRE)
            tx.lock_active([template('kept')])
            tx.transition([ready], State.READY_TO_FIRE, State.FIRING,
                          new_owner='x', deadline=at(9))
            tx.transition([gone], State.READY_TO_EXPIRE, State.DELETED)
            tx.hold(firing, _OWNER, at(99))
            tx.save_step(firing, driver_module.StepRecord(
                'step', 0, driver_module.StepState.DONE))
            tx.save_step(firing, driver_module.StepRecord(
                'next', 1, driver_module.StepState.RUNNING))
            tx.forget_steps(firing)
            tx.transition([firing], State.FIRING, State.DELETED,
                          owner=_OWNER)
            tx.add_dead_letters([driver_module.DeadLetter(
                'event', 'x', 'reason', 'body')])
            raise KeyError('whatever')

        self.assertRaises(KeyError, self.write, work)
        self.assertEqual(before, self._everything())
        # And all of it can be done after that.
        self.assertEqual([True], self.store(event('new', 3)))
        self.assertEqual(kept.id, self.lock(template('kept'))[0].id)

    def _everything(self):
        def work(tx):
            instances = tx.list_instances()
            ids = [one.id for one in instances]
            return (list(tx.find_events(Query())), instances,
                    tx.instance_events(ids),
                    {one: tx.journal(one) for one in ids},
                    tx.list_dead_letters(), tx.newest_event(),
                    tx.count_instances(), tx.count_events(),
                    tx.count_dead_letters(), tx.next_due())
        return self.read(work)

    def test_run_tries_again_what_was_busy(self):
        self.driver.retry_delay = 0
        tries = []

        def work(tx, name):
            flags = tx.add_events([event(name)])
            tries.append(flags)
            if len(tries) < 3:
                raise exceptions.StorageBusy('again')
            return flags

        self.assertEqual([True], self.write(work, 'a'))
        self.assertEqual([[True]] * 3, tries)
        self.assertEqual(['a'], self.find())

    def test_run_gives_up_in_the_end(self):
        self.driver.retry_delay = 0
        self.driver.retries = 2
        tries = []

        def work(tx):
            tries.append(tx.add_events([event('a')]))
            raise exceptions.StorageBusy('again')

        self.assertRaises(exceptions.StorageBusy, self.write, work)
        self.assertEqual(3, len(tries))
        self.assertEqual([], self.find())

    def test_run_does_not_try_again_what_is_final(self):
        tries = []

        def work(tx):
            tries.append(tx)
            raise exceptions.StorageError('no')

        self.assertRaises(exceptions.StorageError, self.write, work)
        self.assertEqual(1, len(tries))

    def test_an_upgrade_of_what_is_up_to_date_changes_nothing(self):
        self.store(event('a'))
        self.driver.upgrade()
        self.driver.check()
        self.assertEqual(['a'], self.find())

    # Events

    def test_an_event_comes_back_as_it_was(self):
        zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
        traits = {
            'text': 'text', 'empty': '', 'blank': ' ', 'nul': 'a\0b',
            'odd': '\\ \' " \n \r \t \x7f \u2028 %s :name $1',
            'wide': 'ä\u0301 \uffff \U0001f600', 'lone': '\ud800',
            'small': -2 ** 63, 'large': 2 ** 63 - 1, 'unsigned': 2 ** 64 - 1,
            'huge': 10 ** 40, 'zero': 0, 'one': 1, 'float': 0.1,
            'whole': 1.0, 'minus': -1e-300, 'vast': 1.7e308,
            'moment': at(1, 1), 'early': datetime.datetime(
                1, 1, 2, tzinfo=UTC),
            'late': datetime.datetime(
                9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            '': 'no name', 'Text': 'not text', 'ünï': 'name',
            'a.b[0]': 'path',
        }
        one = event_module.Event(
            'ä\U0001f600', 'Type.ß', at(0, 999999).astimezone(zone),
            {**traits, 'zoned': at(2, 3).astimezone(zone)}, raw={'a': 1})
        self.assertEqual([True], self.store(one))
        found = self.read(lambda tx: tx.get_events([one.message_id]))
        back = found[one.message_id]
        self.assertEqual(one, back)
        self.assertIsNone(back.raw)
        self.assertEqual(datetime.timedelta(0), back.timestamp.utcoffset())
        for name, value in one.traits.items():
            self.assertIs(type(value), type(back.traits[name]), name)
            self.assertEqual(value, back.traits[name], name)
        self.assertEqual(
            datetime.timedelta(0), back.traits['zoned'].utcoffset())

    def test_an_event_needs_no_traits(self):
        self.store(event('a'))
        found = self.read(lambda tx: tx.get_events(['a']))
        self.assertEqual({'a': event('a')}, found)

    def test_long_texts_are_kept_whole(self):
        text = 'ß\U0001f600' * (self.long_text // 6)
        one = event('a', text=text, more='x' * self.long_text)
        self.store(one)
        self.assertEqual(
            {'a': one}, self.read(lambda tx: tx.get_events(['a'])))

    def test_what_is_stored_is_nobody_elses(self):
        given = event('a', name='kept')
        self.store(given)
        given.traits['name'] = 'changed'
        back = self.read(lambda tx: tx.get_events(['a']))['a']
        back.traits['name'] = 'changed'
        for found in self.read(lambda tx: list(tx.find_events(Query()))):
            self.assertEqual('kept', found.traits['name'])
            found.traits['name'] = 'changed'
        one = self.new()
        self.collect(one, 'a')
        one.counts.append(5)
        lists = self.read(lambda tx: tx.instance_events([one.id]))
        self.assertEqual('kept', lists[one.id][0].traits['name'])
        self.assertEqual([], self.get(one.id).counts)

    def test_a_message_id_is_stored_once(self):
        self.assertEqual(
            [True, False, True, False],
            self.store(event('b', 1), event('b', 2), event('a', 3),
                       event('a', 4)))
        self.assertEqual(
            [False, True, False],
            self.store(event('a', 5), event('c', 6), event('c', 7)))
        self.assertEqual(['b', 'a', 'c'], self.find())
        moments = [one.timestamp for one in self.read(
            lambda tx: list(tx.find_events(Query())))]
        self.assertEqual([at(1), at(3), at(6)], moments)
        self.assertEqual(3, self.read(lambda tx: tx.count_events()))

    def test_a_batch_may_be_all_duplicates_or_empty(self):
        self.store(event('a'), event('b'))
        self.assertEqual([False, False], self.store(event('b'), event('a')))
        self.assertEqual([], self.store())

    def test_a_message_id_is_a_duplicate_in_the_same_unit_of_work(self):
        with self.driver.begin() as tx:
            self.assertEqual([True], tx.add_events([event('a')]))
            self.assertEqual([False, True],
                             tx.add_events([event('a'), event('b')]))

    def test_a_large_batch(self):
        events = [event(f'm{number % 2500}', number)
                  for number in range(3000)]
        self.assertEqual([True] * 2500 + [False] * 500, self.store(*events))
        self.assertEqual([False] * 3000, self.store(*reversed(events)))
        found = self.read(lambda tx: tx.get_events(
            [one.message_id for one in events]))
        self.assertEqual(
            {one.message_id: one for one in events[:2500]}, found)

    def test_message_ids_compare_byte_by_byte(self):
        self.assertEqual([True] * len(ALIKE), self.store(
            *[event(text, number) for number, text in enumerate(ALIKE)]))
        self.assertEqual(list(ALIKE), self.find())
        for text in ALIKE:
            found = self.read(lambda tx: tx.get_events([text]))
            self.assertEqual([text], list(found))

    def test_names_may_be_long(self):
        # The longest text in the widest characters, and one that differs
        # from it at its end only.
        texts = ['\U0001f600' * 255, '\U0001f600' * 254 + '\U0001f601']
        self.assertEqual([True, True], self.store(
            *[event(text, event_type=text) for text in texts]))
        self.assertEqual(texts, self.find())
        self.assertEqual(texts[1:],
                         self.find(Query(event_types=tuple(texts[1:]))))

    def _refused(self, one):
        error = self.assertRaises(
            exceptions.EventError, self.store, event('before'), one,
            event('behind'))
        if error is not None:
            # Only testtools gives the error back.
            self.assertEqual(one.message_id, error.message_id)
        self.assertEqual([], self.find())

    def test_what_cannot_be_stored_whole_is_refused(self):
        for text in ('', 'x' * 256, 'a\0b', '\ud800', None, 7, b'a'):
            self._refused(event(text))
            self._refused(event('a', event_type=text))

    def test_a_timestamp_without_a_zone_is_refused(self):
        self._refused(event_module.Event(
            'a', 'test.event', datetime.datetime(2026, 1, 1)))
        self._refused(event('a', when=datetime.datetime(2026, 1, 1)))

    def test_a_moment_that_utc_does_not_have_is_refused(self):
        hour = datetime.timedelta(hours=1)
        for moment in (
                datetime.datetime.max.replace(
                    tzinfo=datetime.timezone(-hour)),
                datetime.datetime.min.replace(
                    tzinfo=datetime.timezone(hour))):
            self._refused(event_module.Event('a', 'test.event', moment))
            self._refused(event('a', when=moment))

    def test_the_first_and_the_last_moment_there_are(self):
        moments = [
            datetime.datetime.min.replace(tzinfo=datetime.timezone.utc),
            datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)]
        events = [event_module.Event(f'm{number}', 'test.event', moment,
                                     {'when': moment})
                  for number, moment in enumerate(moments)]
        self.store(*events)
        self.assertEqual(events, self.read(
            lambda tx: list(tx.find_events(Query()))))
        self.assertEqual(moments[0], self.read(
            lambda tx: tx.newest_event()).timestamp)

    def test_what_is_no_trait_is_refused(self):
        for value in (None, [1], {'t': 1}, (1,), b'a', object(),
                      math.nan, math.inf, -math.inf,
                      datetime.date(2026, 1, 1)):
            self._refused(event('a', trait=value))
        self._refused(event_module.Event(
            'a', 'test.event', at(), {7: 'seven'}))

    def test_events_that_are_not_stored_are_not_found(self):
        self.store(event('a'))
        found = self.read(lambda tx: tx.get_events(['b', 'a', 'a', 'c']))
        self.assertEqual(['a'], list(found))
        self.assertEqual({}, self.read(lambda tx: tx.get_events([])))

    def test_what_cannot_be_stored_is_not_found(self):
        self.store(event('a'))
        self.new()
        for text in ('a\0', '\ud800'):
            self.assertEqual({}, self.read(
                lambda tx: tx.get_events([text])))
            self.assertEqual([], self.find(Query(event_types=(text,))))
            self.assertEqual([], self.read(
                lambda tx: tx.list_instances(name=text)))
        for number in (2 ** 70, 0, -1, -2 ** 70):
            self.assertEqual([], self.read(
                lambda tx: tx.get_instances([number], lock=True)))
        self.assertEqual([], self.read(
            lambda tx: tx.list_instances(after=2 ** 70)))
        self.assertEqual([], self.read(
            lambda tx: tx.list_dead_letters(after=2 ** 70)))

    def test_the_newest_event(self):
        newest = driver_module.NewestEvent

        def ask():
            return self.read(lambda tx: tx.newest_event())

        self.assertIsNone(ask())
        self.store(event('a', 5, 'x'), event('b', 3))
        self.assertEqual(newest(at(5), at()), ask())
        self.clock.advance(100)
        # A late event is news too.
        self.store(event('c', 1))
        self.assertEqual(newest(at(5), at(100)), ask())
        self.clock.advance(100)
        self.store(event('c', 1))
        self.assertEqual(newest(at(5), at(100)), ask())

    def test_what_is_ahead_of_the_clock_does_not_tell_the_time(self):
        def ask():
            return self.read(lambda tx: tx.newest_event())

        self.store(event('wrong', 86400))
        self.assertIsNone(ask())
        self.store(event('a', 5), event('b', driver_module.AHEAD))
        self.assertEqual(at(driver_module.AHEAD), ask().timestamp)
        self.clock.advance(2 * 86400)
        # It is not ahead any more, and was wrong all the same.
        self.assertEqual(at(driver_module.AHEAD), ask().timestamp)
        self.store(event('c', 86401))
        self.assertEqual(at(86401), ask().timestamp)

    # Listeners

    def test_how_far_listeners_are(self):
        def progress(listener, queue, moment):
            return driver_module.Progress(
                listener, queue, moment, queue == 'info')

        def save(listener, queue, seconds, until):
            self.write(lambda tx: tx.save_progress(
                progress(listener, queue, at(seconds)), at(until)))

        def ask(moment):
            return self.read(lambda tx: tx.list_progress(at(moment)))

        self.assertEqual([], ask(0))
        save('b', 'info', 5, 30)
        save('a', 'info', 7, 20)
        save('a', 'error', 1, 10)
        self.assertEqual(
            [progress('a', 'error', at(1)), progress('a', 'info', at(7)),
             progress('b', 'info', at(5))], ask(9))
        self.assertEqual(
            [progress('a', 'info', at(7)), progress('b', 'info', at(5))],
            ask(10))
        # It may go back, when a batch comes again.
        save('b', 'info', 3, 40)
        self.write(lambda tx: tx.forget_progress(at(20)))
        self.assertEqual([progress('b', 'info', at(3))], ask(-100))

    # Finding events

    def test_events_are_found_in_order(self):
        names = ['B', 'a', 'b', 'á', '\uffee', '\U0001f600']
        events = [event('z', 5), *(event(name, 7) for name in
                                   reversed(names)), event('A', 9)]
        self.store(*events)
        order = ['z', *names, 'A']
        self.assertEqual(order, self.find())
        self.assertEqual(order[::-1], self.find(newest_first=True))

    def test_microseconds_are_kept_apart(self):
        self.store(*[
            event_module.Event(f'm{micros}', 'test.event', at(0, micros))
            for micros in (3, 1, 2, 0)])
        self.assertEqual(['m0', 'm1', 'm2', 'm3'], self.find())
        self.assertEqual(['m1', 'm2'], self.find(
            Query(begin=at(0, 1), end=at(0, 3))))
        self.assertEqual(['m2'], self.find(
            Query(begin=at(0, 2), end=at(0, 2))))

    def test_many_events_are_found(self):
        # More than any page, and many of one moment.
        events = [event(f'm{number:05}', number // 700)
                  for number in range(2101)]
        self.store(*events[::2])
        self.store(*events[1::2])
        order = [one.message_id for one in events]
        self.assertEqual(order, self.find())
        self.assertEqual(order[::-1], self.find(newest_first=True))
        query = Query(('test.event',), at(1), at(2))
        self.assertEqual(order[700:1400], self.find(query))
        self.assertEqual(order[700:1400][::-1], self.find(query, True))

    def test_finding_is_lazy(self):
        self.store(*[event(f'm{number:04}', number)
                     for number in range(1200)])

        def work(tx):
            found = tx.find_events(Query(), newest_first=True)
            first = next(found)
            # Other calls may come between.
            self.assertEqual(1200, tx.count_events())
            second = next(found)
            self.assertEqual(1, len(tx.get_events(['m0007'])))
            return [first.message_id, second.message_id]

        self.assertEqual(['m1199', 'm1198'], self.read(work))

    def test_events_are_found_by_type(self):
        self.store(*[event(f'm{number:02}', number, text)
                     for number, text in enumerate(ALIKE)])
        for number, text in enumerate(ALIKE):
            query = Query(event_types=(text,))
            self.assertEqual([f'm{number:02}'], self.find(query))
        self.assertEqual(['m00', 'm03'], self.find(
            Query(event_types=(ALIKE[3], 'unknown', ALIKE[0]))))
        self.assertEqual(['m03', 'm00'], self.find(
            Query(event_types=(ALIKE[3], ALIKE[0])), True))
        self.assertEqual([], self.find(Query(event_types=())))
        self.assertEqual([], self.find(Query(event_types=('unknown',))))

    def test_events_are_found_by_time(self):
        self.store(*[event(f'm{number}', number) for number in range(6)])
        for begin, end, expected in (
                (2, 4, '23'), (None, 2, '01'), (4, None, '45'),
                (3, 3, '3'), (0, 0, '0'), (9, 9, ''), (4, 2, ''),
                (-5, 1, '0'), (None, None, '012345')):
            query = Query(begin=None if begin is None else at(begin),
                          end=None if end is None else at(end))
            for newest_first in (False, True):
                names = [f'm{one}' for one in expected]
                if newest_first:
                    names.reverse()
                self.assertEqual(names, self.find(query, newest_first))

    def test_a_moment_may_be_in_another_zone(self):
        zone = datetime.timezone(datetime.timedelta(hours=-7))
        self.store(event('a', 1), event('b', 2))
        self.assertEqual(['b'], self.find(Query(
            begin=at(2).astimezone(zone), end=at(2))))

    def register(self, *names):
        """Register traits, and return which the index lacks."""
        return self.write(lambda tx: tx.register_traits(names))

    def backfill(self, limit=2):
        """Backfill the trait index."""
        after = 0
        while after is not None:
            after = self.write(lambda tx: tx.index_events(after, limit))

    def _traits(self):
        values = {
            'text': 'x', 'upper': 'X', 'padded': 'x ', 'empty': '',
            'int': 1, 'float': 1.0, 'digit': '1', 'zero': 0,
            'minus': -0.0, 'large': 2 ** 63 - 1, 'larger': 2 ** 63,
            'moment': at(1, 1), 'iso': at(1, 1).isoformat(),
            'long': 'y' * 3000 + 'a', 'longer': 'y' * 3000 + 'b',
            'wide': '\U0001f600', 'nul': '\0', 'lone': '\udfff',
            'quote': '"', 'slash': '\\'}
        self.store(*[event(f'm-{name}', number, value=value, other='o')
                     for number, (name, value) in enumerate(
                         values.items())], event('bare', 90))
        return values

    def _check_traits(self, values):
        for name, value in values.items():
            expected = [f'm-{name}' for name, each in values.items()
                        if type(each) is type(value) and each == value]
            self.assertIn(f'm-{name}', expected)
            for wanted in (value, (value,), ('other', value, 5)):
                for query in (
                        Query(traits={'value': wanted}),
                        Query(('test.event',), at(-1), at(99),
                              {'value': wanted, 'other': 'o'})):
                    self.assertEqual(expected, self.find(query))
                    self.assertEqual(expected, self.find(query, True))
        self.assertEqual([], self.find(
            Query(traits={'value': 'x', 'other': 'p'})))
        self.assertEqual([], self.find(Query(traits={'value': ()})))
        self.assertEqual(
            ['m-text', 'm-wide'],
            self.find(Query(traits={'value': ('\U0001f600', 'x')})))
        self.assertEqual([], self.find(Query(traits={'nobody': 'x'})))

    def test_events_are_found_by_traits_that_are_not_indexed(self):
        self._check_traits(self._traits())

    def test_events_are_found_by_indexed_traits(self):
        self.assertEqual(frozenset(), self.register('value', 'other'))
        self.assertEqual(frozenset(), self.register('value'))
        self._check_traits(self._traits())

    def test_a_trait_that_is_registered_later_is_backfilled(self):
        values = self._traits()
        lacking = self.register('value', 'other')
        self.assertLessEqual(lacking, {'value', 'other'})
        self._check_traits(values)
        self.store(event('later', 99, value='later'))
        self.assertEqual(['later'], self.find(
            Query(traits={'value': 'later'})))
        self.backfill()
        self.assertEqual(frozenset(), self.register('value', 'other'))
        self._check_traits(values)
        self.assertEqual(['later'], self.find(
            Query(traits={'value': 'later'})))

    def test_a_trait_that_is_registered_during_a_backfill(self):
        self.store(*[event(f'm{number}', number, first=number, second='x')
                     for number in range(6)])
        self.register('first')
        after = self.write(lambda tx: tx.index_events(0, 3))
        self.register('second')
        while after is not None:
            after = self.write(lambda tx: tx.index_events(after, 3))
        # The backfill did not look at the first events for that trait.
        everything = [f'm{number}' for number in range(6)]
        self.assertEqual(everything, self.find(
            Query(traits={'second': 'x'})))
        self.backfill()
        self.assertEqual(frozenset(), self.register('first', 'second'))
        self.assertEqual(everything, self.find(
            Query(traits={'second': 'x'})))

    def test_a_backfill_may_be_repeated(self):
        self.store(event('a', 1, trait='x'), event('b', 2, trait='x'))
        self.register('trait')
        self.backfill()
        self.backfill(1)
        self.assertEqual(['a', 'b'], self.find(Query(traits={'trait': 'x'})))
        self.assertIsNone(self.write(lambda tx: tx.index_events(10 ** 9, 1)))

    def test_a_backfill_of_nothing(self):
        self.assertIsNone(self.write(lambda tx: tx.index_events(0, 5)))
        self.assertEqual(frozenset(), self.register())

    # Purge

    def purge(self, seconds, limit=100):
        """Purge events older than so many seconds after the start."""
        return self.write(lambda tx: tx.purge_events(at(seconds), limit))

    def test_old_events_are_purged(self):
        self.register('trait')
        self.store(*[event(f'm{number}', number, trait='x')
                     for number in range(6)])
        self.assertEqual(0, self.purge(0))
        self.assertEqual(2, self.purge(3, limit=2))
        self.assertEqual(1, self.purge(3, limit=2))
        self.assertEqual(0, self.purge(3))
        self.assertEqual(['m3', 'm4', 'm5'], self.find())
        self.assertEqual(['m3', 'm4', 'm5'],
                         self.find(Query(traits={'trait': 'x'})))
        # What is gone may come back.
        self.assertEqual([True], self.store(event('m0', 0, trait='x')))
        self.assertEqual(['m0', 'm3', 'm4', 'm5'],
                         self.find(Query(traits={'trait': 'x'})))

    def test_what_an_instance_holds_is_not_purged(self):
        self.store(*[event(f'm{number}', number) for number in range(4)])
        one = self.new()
        two = self.new()
        self.collect(one, 'm0', 'm2')
        self.collect(two, 'm2')
        self.assertEqual(2, self.purge(100))
        self.assertEqual(['m0', 'm2'], self.find())
        self.move(one.id, State.ACTIVE, State.DELETED)
        self.assertEqual(1, self.purge(100))
        self.assertEqual(['m2'], self.find())
        self.assertEqual(['m2'], self.ids_of(two.id))

    # Instances

    def test_a_new_key_begins_an_instance(self):
        self.clock.advance_to(at(7, 5))
        given = template(
            'k', name='\U0001f600name', key='{"a": "\\u0000"}',
            first_event=at(1, 1), last_event=at(2, 2),
            expire_timestamp=at(3, 3), fire_timestamp=at(4, 4),
            counts=[0, 3], event_count=5)
        one, = self.lock(given)
        self.assertIsNotNone(one.id)
        self.assertEqual(0, one.version)
        self.assertIs(State.ACTIVE, one.state)
        given.id = one.id
        given.created_at = given.updated_at = at(7, 5)
        self.assertEqual(given, one)
        self.assertEqual(one, self.get(one.id))

    def test_a_known_key_gives_its_instance(self):
        one, = self.lock(template('k'))
        self.clock.advance(5)
        again, = self.lock(template(
            'k', fingerprint='other', first_event=at(-5), event_count=9))
        self.assertEqual(one, again)
        self.assertEqual(1, len(self.read(lambda tx: tx.list_instances())))

    def test_instances_come_in_the_order_of_the_templates(self):
        self.lock(template('b'), template('d'))
        keys = ['e', 'b', None, 'a', 'd', None, 'c']
        found = self.lock(*[template(key, name=f'n{number}')
                            for number, key in enumerate(keys)])
        self.assertEqual(keys, [one.active_key for one in found])
        self.assertEqual(['n0', 'trigger', 'n2', 'n3', 'trigger', 'n5',
                          'n6'], [one.name for one in found])
        self.assertEqual(7, len({one.id for one in found}))
        again = self.lock(*[template(key) for key in keys if key])
        self.assertEqual([one.id for one in found if one.active_key],
                         [one.id for one in again])

    def test_nothing_joins_an_instance_without_a_key(self):
        one = self.new(None)
        two = self.new(None)
        self.assertNotEqual(one.id, two.id)

    def test_no_templates_give_no_instances(self):
        self.assertEqual([], self.lock())

    def test_keys_compare_byte_by_byte(self):
        found = self.lock(*[template(text) for text in ALIKE])
        self.assertEqual(len(ALIKE), len({one.id for one in found}))
        self.assertEqual(list(ALIKE), [one.active_key for one in found])

    def test_many_instances_at_once(self):
        keys = [f'k{number}' for number in range(2000)]
        found = self.lock(*[template(key) for key in keys])
        self.assertEqual(keys, [one.active_key for one in found])
        again = self.lock(*[template(key) for key in reversed(keys)])
        self.assertEqual(found, again[::-1])

    def test_leaving_active_gives_the_key_free(self):
        for target in (State.READY_TO_FIRE, State.READY_TO_EXPIRE,
                       State.DELETED):
            one = self.new('k')
            self.assertEqual(
                [one.id], self.move(one.id, State.ACTIVE, target))
            if target is not State.DELETED:
                self.assertIsNone(self.get(one.id).active_key)
            two = self.new('k')
            self.assertNotEqual(one.id, two.id)
            self.assertEqual(0, two.version)
            self.move(two.id, State.ACTIVE, State.DELETED)

    def test_what_was_collected_is_written(self):
        self.store(event('b', 2), event('a', 1), event('c', 3))
        one, two = self.lock(template('one'), template('two'))
        self.clock.advance(50)
        one.fingerprint = 'second'
        one.first_event = at(1, 1)
        one.last_event = at(2, 2)
        one.expire_timestamp = at(3, 3)
        one.fire_timestamp = at(4, 4)
        one.counts = [1, 2, 3]
        one.event_count = 2
        two.event_count = 2

        self.write(lambda tx: tx.collect(
            [two, one], {one.id: ['b', 'a'], two.id: ['c', 'b']}))
        one.version = 1
        one.updated_at = at(50)
        self.assertEqual(one, self.get(one.id))
        self.assertEqual(['a', 'b'], self.ids_of(one.id))
        self.assertEqual(['b', 'c'], self.ids_of(two.id))
        # And taken back again.
        one.expire_timestamp = one.fire_timestamp = None
        self.write(lambda tx: tx.collect([one], {}))
        one.version = 2
        self.assertEqual(one, self.get(one.id))

    def test_nothing_else_is_written_by_collecting(self):
        one = self.new('k')
        one.name = one.key = one.active_key = one.error = one.owner = 'x'
        one.state = State.FIRING
        one.attempts = 9
        one.deadline = one.not_before = one.created_at = at(99)
        self.write(lambda tx: tx.collect([one], {one.id: []}))
        expected = template('k', id=one.id, version=1, created_at=at(),
                            updated_at=at())
        self.assertEqual(expected, self.get(one.id))

    def test_only_stored_events_are_collected(self):
        self.store(event('a'))
        one = self.new('k')
        self.assertRaises(
            exceptions.StorageError, self.collect, one, 'a', 'b')
        self.assertEqual([], self.ids_of(one.id))
        self.assertEqual(0, self.get(one.id).version)

    def test_an_event_is_on_a_list_once(self):
        self.driver.retries = 0
        self.store(event('a'))
        one = self.new('k')
        self.collect(one, 'a')
        self.assertRaises(exceptions.StorageError, self.collect, one, 'a')
        self.assertEqual(['a'], self.ids_of(one.id))

    def test_event_lists_are_in_order(self):
        names = ['b', 'B', '\U0001f600', '\uffee', 'a']
        self.store(*[event(name, 5) for name in names], event('z', 1))
        one = self.new()
        self.collect(one, *names)
        self.collect(one, 'z')
        self.assertEqual(['z', 'B', 'a', 'b', '\uffee', '\U0001f600'],
                         self.ids_of(one.id))

    def test_event_lists_of_several_instances(self):
        self.store(event('a', name='x'))
        one, two = self.new(), self.new()
        self.collect(one, 'a')
        found = self.read(lambda tx: tx.instance_events(
            [two.id, one.id, 10 ** 9]))
        self.assertEqual({two.id: [], one.id: [event('a', name='x')],
                          10 ** 9: []}, found)
        self.assertEqual({}, self.read(lambda tx: tx.instance_events([])))

    def test_a_long_event_list(self):
        self.store(*[event(f'm{number:04}', number)
                     for number in range(1500)])
        one = self.new()
        self.collect(one, *[f'm{number:04}' for number in range(1500)])
        self.assertEqual([f'm{number:04}' for number in range(1500)],
                         self.ids_of(one.id))

    def test_instances_by_id(self):
        ids = [self.new().id for _ in range(3)]
        for lock in (False, True):
            found = self.write(lambda tx: tx.get_instances(
                [ids[2], ids[0], 10 ** 9, ids[2]], lock))
            self.assertEqual(sorted([ids[0], ids[2]]),
                             [one.id for one in found])
            self.assertEqual([], self.write(
                lambda tx: tx.get_instances([], lock)))

    # Transitions

    def test_every_transition(self):
        for way in state_module.TRANSITIONS:
            instance_id = self.make(way.source)
            before = self.get(instance_id)
            self.clock.advance(1)
            kwargs = {}
            if way.source in state_module.LEASED:
                kwargs['owner'] = _OWNER
            self.assertEqual([instance_id], self.move(
                instance_id, way.source, way.target, **kwargs), way)
            after = self.get(instance_id)
            if way.target is State.DELETED:
                self.assertIsNone(after)
                continue
            before.state = way.target
            before.version += 1
            before.updated_at = self.clock.now()
            before.owner = before.deadline = before.not_before = None
            self.assertEqual(before, after, way)

    def test_no_other_transition(self):
        known = {(way.source, way.target)
                 for way in state_module.TRANSITIONS}
        for source in State:
            instance_id = None
            if source is not State.DELETED:
                instance_id = self.make(source)
            for target in State:
                if (source, target) in known:
                    continue
                self.assertRaises(
                    exceptions.InvalidTransition, self.move,
                    [] if instance_id is None else instance_id,
                    source, target)
            if instance_id is not None:
                self.assertIs(source, self.get(instance_id).state)

    def test_only_what_is_in_the_state_is_moved(self):
        ids = [self.new().id for _ in range(4)]
        self.move(ids[1], State.ACTIVE, State.READY_TO_EXPIRE)
        self.assertEqual(
            sorted([ids[0], ids[2]]),
            sorted(self.move([ids[2], ids[1], 10 ** 9, ids[0], ids[2]],
                             State.ACTIVE, State.READY_TO_FIRE)))
        self.assertEqual([], self.move(
            ids, State.READY_TO_FIRE, State.FIRING)[2:])
        self.assertEqual(
            [State.FIRING, State.READY_TO_EXPIRE, State.FIRING,
             State.ACTIVE], [self.get(one).state for one in ids])

    def test_the_second_loses(self):
        instance_id = self.make(State.READY_TO_FIRE)
        self.assertEqual([instance_id], self.move(
            instance_id, State.READY_TO_FIRE, State.FIRING, new_owner='a',
            deadline=at(60)))
        self.assertEqual([], self.move(
            instance_id, State.READY_TO_FIRE, State.FIRING, new_owner='b',
            deadline=at(90)))
        found = self.get(instance_id)
        self.assertEqual(('a', at(60)), (found.owner, found.deadline))

    def test_no_ids_move_nothing(self):
        self.assertEqual([], self.move([], State.ACTIVE, State.DELETED))

    def test_what_a_transition_sets(self):
        instance_id = self.make(State.READY_TO_FIRE)
        self.move(instance_id, State.READY_TO_FIRE, State.FIRING,
                  new_owner='ow\u00e9ner', deadline=at(1, 1), attempts=3,
                  not_before=at(2, 2), error='')
        found = self.get(instance_id)
        self.assertEqual(
            ('ow\u00e9ner', at(1, 1), 3, at(2, 2), ''),
            (found.owner, found.deadline, found.attempts, found.not_before,
             found.error))
        text = 'ß\U0001f600' * (self.long_text // 6)
        self.move(instance_id, State.FIRING, State.READY_TO_FIRE,
                  owner='ow\u00e9ner', error=text)
        found = self.get(instance_id)
        # Attempts and error stay until others are given.
        self.assertEqual(
            (None, None, 3, None, text),
            (found.owner, found.deadline, found.attempts, found.not_before,
             found.error))
        self.move(instance_id, State.READY_TO_FIRE, State.FIRING)
        self.assertEqual(text, self.get(instance_id).error)

    def test_an_error_may_be_any_text(self):
        instance_id = self.make(State.FIRING)
        self.move(instance_id, State.FIRING, State.ERROR, owner=_OWNER,
                  error='nul \0 and \ud800 half')
        error = self.get(instance_id).error
        self.assertTrue(error.startswith('nul '), error)
        self.assertTrue(error.endswith(' half'), error)

    def test_an_error_may_be_taken_away(self):
        instance_id = self.make(State.FIRING)
        self.move(instance_id, State.FIRING, State.ERROR, owner=_OWNER,
                  error='text')
        self.move(instance_id, State.ERROR, State.READY_TO_FIRE, error=None)
        self.assertIsNone(self.get(instance_id).error)

    def test_a_transition_sets_nothing_else(self):
        instance_id = self.new().id
        self.assertRaises(
            TypeError, self.move, instance_id, State.ACTIVE,
            State.READY_TO_FIRE, name='other')
        self.assertIs(State.ACTIVE, self.get(instance_id).state)

    def test_deleting_takes_list_and_journal_along(self):
        self.store(event('a'))
        one = self.new()
        self.collect(one, 'a')
        other = self.make(State.FIRING)
        for target in (State.READY_TO_FIRE, State.FIRING):
            self.move(one.id, State.READY_TO_FIRE
                      if target is State.FIRING else State.ACTIVE, target,
                      new_owner=_OWNER)
        record = driver_module.StepRecord(
            'step', 0, driver_module.StepState.DONE)
        for instance_id in (one.id, other):
            self.write(lambda tx: tx.save_step(instance_id, record))
        self.move(one.id, State.FIRING, State.DELETED, owner=_OWNER)
        self.assertIsNone(self.get(one.id))
        self.assertEqual([], self.ids_of(one.id))
        self.assertEqual({}, self.read(lambda tx: tx.journal(one.id)))
        self.assertEqual(['a'], self.find())
        self.assertEqual(['step'], list(
            self.read(lambda tx: tx.journal(other))))

    def test_ids_are_not_used_again(self):
        one = self.new()
        self.move(one.id, State.ACTIVE, State.DELETED)
        self.assertNotEqual(one.id, self.new().id)

    def test_only_the_owner_moves_what_is_leased(self):
        for held, ready in ((State.FIRING, State.READY_TO_FIRE),
                            (State.EXPIRING, State.READY_TO_EXPIRE)):
            instance_id = self.make(held, deadline=at(10 ** 6))
            for owner in (None, 'other', _OWNER.upper(), _OWNER + ' ', ''):
                for target in (ready, State.DELETED):
                    self.assertEqual([], self.move(
                        instance_id, held, target, owner=owner))
            self.assertEqual([instance_id], self.move(
                instance_id, held, ready, owner=_OWNER))

    def test_anyone_moves_what_has_run_out(self):
        for held, ready in ((State.FIRING, State.READY_TO_FIRE),
                            (State.EXPIRING, State.READY_TO_EXPIRE)):
            deadline = self.clock.now() + datetime.timedelta(seconds=10)
            instance_id = self.make(held, deadline=deadline)
            self.clock.advance_to(
                deadline - datetime.timedelta(microseconds=1))
            self.assertEqual([], self.move(instance_id, held, ready))
            self.clock.advance_to(deadline)
            self.assertEqual([], self.move(
                instance_id, held, ready, owner='other'))
            self.assertEqual([instance_id], self.move(
                instance_id, held, ready))
            # Who held it holds it no more.
            self.assertEqual([], self.move(
                instance_id, held, State.DELETED, owner=_OWNER))

    def test_the_owner_may_be_late(self):
        instance_id = self.make(State.FIRING, deadline=at(10))
        self.clock.advance(1000)
        self.assertEqual([instance_id], self.move(
            instance_id, State.FIRING, State.DELETED, owner=_OWNER))

    def test_a_lease_without_an_end_does_not_run_out(self):
        instance_id = self.make(State.FIRING)
        self.clock.advance(10 ** 6)
        self.assertEqual([], self.move(
            instance_id, State.FIRING, State.READY_TO_FIRE))

    def test_postponing(self):
        states = [State.ACTIVE, State.READY_TO_FIRE, State.READY_TO_EXPIRE,
                  State.FIRING, State.ERROR]
        ids = [self.make(state, deadline=at(5)) for state in states]
        before = [self.get(one) for one in ids]
        self.clock.advance(1)
        self.write(lambda tx: tx.postpone(
            [*ids, 10 ** 9, *ids], at(77)))
        for one in before:
            if one.state in state_module.READY:
                one.deadline = at(77)
                one.version += 1
                one.updated_at = at(1)
            self.assertEqual(one, self.get(one.id))
        self.write(lambda tx: tx.postpone([], at(77)))

    def test_holding_renews_the_lease(self):
        for state in state_module.LEASED:
            instance_id = self.make(state, deadline=at(5))
            before = self.get(instance_id)
            self.clock.advance(1)
            self.write(lambda tx: tx.hold(instance_id, _OWNER, at(80, 1)))
            before.deadline = at(80, 1)
            before.version += 1
            before.updated_at = self.clock.now()
            self.assertEqual(before, self.get(instance_id))

    def test_only_the_owner_holds(self):
        firing = self.make(State.FIRING, deadline=at(5))
        ready = self.make(State.READY_TO_FIRE)
        for instance_id, owner in (
                (firing, 'other'), (firing, _OWNER.upper()),
                (firing, _OWNER + ' '), (ready, _OWNER), (10 ** 9, _OWNER)):
            self.assertRaises(exceptions.LeaseLost, self.write, lambda tx:
                              tx.hold(instance_id, owner, at(80)))
        self.assertEqual(at(5), self.get(firing).deadline)

    # What is due

    def test_due_to_fire(self):
        late = self.new(fire_timestamp=at(5)).id
        early = self.new(fire_timestamp=at(3), expire_timestamp=at(1)).id
        self.new(fire_timestamp=at(10, 1))
        self.new(expire_timestamp=at(1))
        self.make(State.READY_TO_FIRE, fire_timestamp=at(1), deadline=at(1))
        exact = self.new(fire_timestamp=at(10)).id
        self.assertEqual([early, late, exact], self.due(Due.TO_FIRE, at(10)))
        self.assertEqual([early, late], self.due(Due.TO_FIRE, at(10), 2))
        self.assertEqual([], self.due(Due.TO_FIRE, at(2, 999999)))

    def test_due_to_expire(self):
        late = self.new(expire_timestamp=at(5)).id
        early = self.new(expire_timestamp=at(3)).id
        self.new(expire_timestamp=at(10, 1))
        self.new(expire_timestamp=at(1), fire_timestamp=at(99))
        self.new()
        self.make(State.READY_TO_EXPIRE, expire_timestamp=at(1))
        exact = self.new(expire_timestamp=at(10)).id
        self.assertEqual([early, late, exact],
                         self.due(Due.TO_EXPIRE, at(10)))
        self.assertEqual([early], self.due(Due.TO_EXPIRE, at(10), 1))

    def test_due_for_a_cast(self):
        late = self.make(State.READY_TO_FIRE, deadline=at(5))
        early = self.make(State.READY_TO_EXPIRE, deadline=at(3))
        self.make(State.READY_TO_FIRE)
        self.make(State.READY_TO_FIRE, deadline=at(10, 1))
        self.make(State.FIRING, deadline=at(1))
        self.make(State.ERROR, deadline=at(1))
        exact = self.make(State.READY_TO_FIRE, deadline=at(10))
        self.assertEqual([early, late, exact], self.due(Due.READY, at(10)))
        self.assertEqual([early, late], self.due(Due.READY, at(10), 2))

    def test_what_has_been_cast_is_counted(self):
        self.make(State.READY_TO_FIRE, deadline=at(20))
        self.make(State.READY_TO_EXPIRE, deadline=at(10, 1))
        self.make(State.READY_TO_EXPIRE, deadline=at(10))
        self.make(State.READY_TO_FIRE)
        self.make(State.FIRING, deadline=at(20))
        for moment in (at(20), at(10)):
            self.move(self.make(State.FIRING), State.FIRING,
                      State.READY_TO_FIRE, owner=_OWNER, deadline=at(20),
                      not_before=moment)

        def count(limit):
            return self.read(lambda tx: tx.count_cast(at(10), limit))

        self.assertEqual(3, count(10))
        self.assertEqual(3, count(3))
        self.assertEqual(2, count(2))

    def test_due_as_their_leases_ran_out(self):
        late = self.make(State.FIRING, deadline=at(5))
        early = self.make(State.EXPIRING, deadline=at(3))
        self.make(State.FIRING)
        self.make(State.FIRING, deadline=at(10, 1))
        self.make(State.READY_TO_FIRE, deadline=at(1))
        exact = self.make(State.EXPIRING, deadline=at(10))
        self.assertEqual([early, late, exact], self.due(Due.LEASED, at(10)))
        self.assertEqual([early], self.due(Due.LEASED, at(10), 1))

    def test_what_is_due_is_whole(self):
        one = self.new('k', fire_timestamp=at(5), counts=[4])
        found = self.write(lambda tx: tx.due(Due.TO_FIRE, at(9), 1))
        self.assertEqual([one], found)

    def test_what_changes_is_due_otherwise(self):
        one = self.new('k', expire_timestamp=at(5))
        self.assertEqual([one.id], self.due(Due.TO_EXPIRE, at(9)))
        one.fire_timestamp = at(7)
        self.collect(one)
        self.assertEqual([], self.due(Due.TO_EXPIRE, at(9)))
        self.assertEqual([one.id], self.due(Due.TO_FIRE, at(9)))
        one.fire_timestamp = None
        one.expire_timestamp = at(8)
        self.collect(one)
        self.assertEqual([], self.due(Due.TO_FIRE, at(9)))
        self.assertEqual([], self.due(Due.TO_EXPIRE, at(7)))
        self.assertEqual([one.id], self.due(Due.TO_EXPIRE, at(8)))
        self.move(one.id, State.ACTIVE, State.READY_TO_EXPIRE,
                  deadline=at(20))
        self.assertEqual([], self.due(Due.TO_EXPIRE, at(99)))
        self.write(lambda tx: tx.postpone([one.id], at(30)))
        self.assertEqual([], self.due(Due.READY, at(29)))
        self.assertEqual([one.id], self.due(Due.READY, at(30)))
        self.move(one.id, State.READY_TO_EXPIRE, State.EXPIRING,
                  new_owner=_OWNER, deadline=at(40))
        self.write(lambda tx: tx.hold(one.id, _OWNER, at(50)))
        self.assertEqual([], self.due(Due.READY, at(99)))
        self.assertEqual([], self.due(Due.LEASED, at(49)))
        self.assertEqual([one.id], self.due(Due.LEASED, at(50)))
        self.move(one.id, State.EXPIRING, State.DELETED, owner=_OWNER)
        for what in Due:
            self.assertEqual([], self.due(what, at(999)))

    def test_the_backlog(self):
        def ask(what, seconds):
            return self.read(lambda tx: tx.backlog(what, at(seconds)))

        for what in Due:
            self.assertEqual((0, None), ask(what, 100))
        self.new(fire_timestamp=at(5))
        self.new(fire_timestamp=at(3), expire_timestamp=at(1))
        self.new(expire_timestamp=at(7))
        self.make(State.READY_TO_FIRE, deadline=at(20))
        self.make(State.READY_TO_EXPIRE, deadline=at(30))
        self.make(State.FIRING, deadline=at(40))
        self.assertEqual((2, at(3)), ask(Due.TO_FIRE, 100))
        self.assertEqual((1, at(3)), ask(Due.TO_FIRE, 3))
        self.assertEqual((0, None), ask(Due.TO_FIRE, 2))
        self.assertEqual((1, at(7)), ask(Due.TO_EXPIRE, 100))
        self.assertEqual((2, at(20)), ask(Due.READY, 100))
        self.assertEqual((1, at(40)), ask(Due.LEASED, 100))

    def test_when_something_is_due_next(self):
        def ask():
            return self.read(lambda tx: tx.next_due())

        self.assertIsNone(ask())
        self.make(State.ERROR, deadline=at(1))
        self.new()
        self.assertIsNone(ask())
        self.make(State.FIRING, deadline=at(90))
        self.assertEqual(at(90), ask())
        self.make(State.READY_TO_EXPIRE, deadline=at(80))
        self.assertEqual(at(80), ask())
        self.new(expire_timestamp=at(70))
        self.assertEqual(at(70), ask())
        self.new(expire_timestamp=at(10), fire_timestamp=at(75))
        self.assertEqual(at(70), ask())
        self.new(fire_timestamp=at(60, 1))
        self.assertEqual(at(60, 1), ask())

    # The journal

    def test_steps_are_journaled(self):
        instance_id = self.make(State.FIRING)
        other = self.make(State.FIRING)
        records = [
            driver_module.StepRecord(
                'first', 0, driver_module.StepState.DONE, 3, 7,
                '[["\\ud83d"]]' * 20_000, None, at(1, 1), at(2, 2)),
            driver_module.StepRecord(
                'First', 1, driver_module.StepState.FAILED, 1, 0, '',
                'ß\U0001f600' * 20_000, at(3), None),
            driver_module.StepRecord(
                'ünï step ', 2, driver_module.StepState.RUNNING,
                error=''),
        ]

        def work(tx):
            for record in records:
                tx.save_step(instance_id, record)
            tx.save_step(other, records[2])

        self.write(work)
        journal = self.read(lambda tx: tx.journal(instance_id))
        self.assertEqual({one.step: one for one in records}, journal)
        for record in journal.values():
            self.assertIsInstance(record.state, driver_module.StepState)
        self.assertEqual(['ünï step '], list(
            self.read(lambda tx: tx.journal(other))))
        self.assertEqual({}, self.read(lambda tx: tx.journal(10 ** 9)))

    def test_a_step_takes_the_place_of_its_former_self(self):
        instance_id = self.make(State.FIRING)
        record = driver_module.StepRecord(
            'step', 4, driver_module.StepState.RUNNING, started_at=at(1))
        self.write(lambda tx: tx.save_step(instance_id, record))
        record.state = driver_module.StepState.FAILED
        record.position = 3
        record.attempts = 2
        record.items = 5
        record.output = '[]'
        record.error = 'text'
        record.started_at = None
        record.finished_at = at(9)
        self.assertEqual(
            driver_module.StepState.RUNNING,
            self.read(lambda tx: tx.journal(instance_id))['step'].state)
        self.write(lambda tx: tx.save_step(instance_id, record))
        self.assertEqual({'step': record}, self.read(
            lambda tx: tx.journal(instance_id)))

    def test_an_error_of_a_step_may_be_any_text(self):
        instance_id = self.make(State.FIRING)
        self.write(lambda tx: tx.save_step(
            instance_id, driver_module.StepRecord(
                'step', 0, driver_module.StepState.FAILED,
                error='nul \0 and \udfff half')))
        error = self.read(lambda tx: tx.journal(instance_id))['step'].error
        self.assertTrue(error.endswith(' half'), error)

    def test_steps_are_forgotten(self):
        instance_id = self.make(State.FIRING)
        other = self.make(State.FIRING)

        def fill(tx):
            for one in (instance_id, other):
                for position in range(4):
                    tx.save_step(one, driver_module.StepRecord(
                        f'step{position}', position,
                        driver_module.StepState.DONE))

        def steps(one):
            return sorted(self.read(lambda tx: tx.journal(one)))

        self.write(fill)
        self.write(lambda tx: tx.forget_steps(instance_id, 2))
        self.assertEqual(['step0', 'step1'], steps(instance_id))
        self.write(lambda tx: tx.forget_steps(instance_id))
        self.assertEqual([], steps(instance_id))
        self.assertEqual(4, len(steps(other)))

    # For people

    def test_instances_are_listed(self):
        ids = [self.new(name='a').id, self.new(name='A').id,
               self.make(State.READY_TO_FIRE, name='a'),
               self.new(name='a ').id, self.new(name='a').id]

        def ask(**filters):
            return [one.id for one in self.read(
                lambda tx: tx.list_instances(**filters))]

        self.assertEqual(ids, ask())
        self.assertEqual(ids[:2], ask(limit=2))
        self.assertEqual(ids[2:4], ask(limit=2, after=ids[1]))
        self.assertEqual([ids[0], ids[2], ids[4]], ask(name='a'))
        self.assertEqual([ids[2]], ask(state=State.READY_TO_FIRE))
        self.assertEqual([ids[4]], ask(
            name='a', state=State.ACTIVE, after=ids[0], limit=1))
        self.assertEqual([], ask(state=State.ERROR))

    def test_instances_are_counted(self):
        self.assertEqual({}, self.read(lambda tx: tx.count_instances()))
        for name, state in (('a', State.ACTIVE), ('a', State.ACTIVE),
                            ('A', State.ACTIVE), ('a', State.ERROR)):
            self.make(state, name=name)
        found = self.read(lambda tx: tx.count_instances())
        self.assertEqual({('a', State.ACTIVE): 2, ('A', State.ACTIVE): 1,
                          ('a', State.ERROR): 1}, found)
        for _, state in found:
            self.assertIsInstance(state, State)

    def test_events_are_counted(self):
        self.assertEqual(0, self.read(lambda tx: tx.count_events()))
        self.store(event('a'), event('b'), event('a'))
        self.assertEqual(2, self.read(lambda tx: tx.count_events()))

    # Dead letters

    def test_dead_letters_are_kept(self):
        letters = [
            driver_module.DeadLetter('notification', None, 'no id', '{}'),
            driver_module.DeadLetter(
                'event', 'ä' * 1000, 'ß' * 40_000,
                '{"\U0001f600": "' + 'x' * self.long_text + '"}'),
            driver_module.DeadLetter('event', '', '', ''),
        ]
        self.clock.advance(3)
        self.write(lambda tx: tx.add_dead_letters(letters[:2]))
        self.clock.advance(3)
        self.write(lambda tx: tx.add_dead_letters(letters[2:]))
        self.write(lambda tx: tx.add_dead_letters([]))
        found = self.read(lambda tx: tx.list_dead_letters())
        self.assertEqual(
            [at(3), at(3), at(6)], [one.created_at for one in found])
        ids = [one.id for one in found]
        self.assertEqual(sorted(set(ids)), ids)
        for given, kept in zip(letters, found):
            given.id, given.created_at = kept.id, kept.created_at
        self.assertEqual(letters, found)
        self.assertEqual(3, self.read(lambda tx: tx.count_dead_letters()))
        self.assertEqual(ids[:2], [one.id for one in self.read(
            lambda tx: tx.list_dead_letters(limit=2))])
        self.assertEqual(ids[1:2], [one.id for one in self.read(
            lambda tx: tx.list_dead_letters(after=ids[0], limit=1))])
        self.assertEqual([], self.read(
            lambda tx: tx.list_dead_letters(after=ids[2])))

    def test_dead_letters_are_deleted(self):
        def delete(*ids):
            return self.write(lambda tx: tx.delete_dead_letters(ids))

        self.write(lambda tx: tx.add_dead_letters([
            driver_module.DeadLetter('event', f'm{number}', 'r', 'b')
            for number in range(4)]))
        ids = [one.id for one in self.read(
            lambda tx: tx.list_dead_letters())]
        self.assertEqual(0, delete())
        self.assertEqual(0, delete(0, -1, ids[-1] + 1, 2 ** 70))
        self.assertEqual(2, delete(ids[2], ids[0], ids[0]))
        self.assertEqual(0, delete(ids[2], ids[0]))
        self.assertEqual(['m1', 'm3'], [one.message_id for one in self.read(
            lambda tx: tx.list_dead_letters())])

    def test_a_dead_letter_may_hold_any_text(self):
        text = 'nul \0 and \ud800 half'
        self.write(lambda tx: tx.add_dead_letters([
            driver_module.DeadLetter('notification', text, text, text)]))
        found, = self.read(lambda tx: tx.list_dead_letters())
        for kept in (found.message_id, found.reason, found.body):
            self.assertTrue(kept.startswith('nul '), kept)
            self.assertTrue(kept.endswith(' half'), kept)
