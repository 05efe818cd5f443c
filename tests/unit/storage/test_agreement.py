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

"""Whatever is done to two storages, both answer alike and hold the same."""

import dataclasses

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from triggerlib import clock as clock_module
from triggerlib import criteria
from triggerlib import exceptions
from triggerlib import state as state_module
from triggerlib import storage
from triggerlib.testing import storage_contract

from tests import sql

State = state_module.State
at = storage_contract.at

NAMES = ('a', 'A', 'a ', 'ä', '\U0001f600', 'z')
ACTIVE_KEYS = ('k', 'K', 'k ', 'l')
MOMENTS = st.integers(0, 9).map(at)
MAYBE = st.one_of(st.none(), MOMENTS)
NUMBERS = st.integers(0, 9)
#: Numbers of the instances that there are at first.
INSTANCE = st.integers(0, 3)
INSTANCES = st.lists(INSTANCE, min_size=1, max_size=6)
OWNERS = st.sampled_from(['one', 'other'])
CHANGES = st.fixed_dictionaries({}, optional={
    'new_owner': OWNERS, 'deadline': MAYBE, 'not_before': MAYBE,
    'attempts': st.integers(0, 5),
    'error': st.one_of(st.none(), st.just('error'))})


class Undo(Exception):
    """Ends a unit of work in vain."""


class Side:
    """A storage, and its instances by when the test met them.

    Storages number their rows as they like, so the test has numbers of its
    own.
    """

    def __init__(self, url):
        self.clock = clock_module.ReplayClock(at(0))
        self.driver = storage.get_driver(sql.load(url), self.clock)
        self.driver.upgrade()
        self.ids = []

    def id(self, number):
        """Return the id of an instance, or one that there is none of."""
        return self.ids[number] if number < len(self.ids) else 10 ** 9

    def meet(self, instances):
        """Return instances with the test's numbers."""
        for one in instances:
            if one.id not in self.ids:
                self.ids.append(one.id)
        return [dataclasses.replace(one, id=self.ids.index(one.id))
                for one in instances]

    def run(self, work, undo):
        """Run a unit of work, in vain where that is wanted."""
        known = list(self.ids)
        found = []

        def run(tx):
            found.append(work(self, tx))
            if undo:
                raise Undo

        try:
            self.driver.run(run)
        except Undo:
            self.ids = known
        return found

    def everything(self, tx):
        """Return all that the storage holds."""
        ids = [one.id for one in tx.list_instances(limit=1000)]
        lists = tx.instance_events(ids)
        instances = sorted(self.meet(tx.get_instances(ids)),
                           key=lambda one: one.id)
        return (
            instances, [lists[self.id(one.id)] for one in instances],
            [tx.journal(self.id(one.id)) for one in instances],
            list(tx.find_events(criteria.EventQuery())),
            tx.count_instances(), tx.count_events(), tx.next_due(),
            [tx.backlog(what, at(5)) for what in storage.Due])


class Agreement(stateful.RuleBasedStateMachine):
    """Units of work of one call or two, in any order."""

    def __init__(self):
        super().__init__()
        self.sides = [Side('memory://'), Side('sqlite://')]

    def teardown(self):
        """Close both."""
        for side in self.sides:
            side.driver.close()

    def both(self, work, undo):
        """Do the same to both, and compare."""
        first, second = [side.run(work, undo) for side in self.sides]
        assert first == second, f'{first} is not {second}'
        first, second = [side.driver.run(side.everything, write=False)
                         for side in self.sides]
        assert first == second, f'{first} is not {second}'

    @stateful.initialize(
        states=st.lists(st.sampled_from(
            [State.ACTIVE, State.READY_TO_FIRE, State.FIRING]),
            min_size=4, max_size=4),
        held=st.sets(st.sampled_from(NAMES)), deadline=MAYBE)
    def begin(self, states, held, deadline):
        """Store all events, and instances of several states."""
        def work(side, tx):
            tx.add_events([storage_contract.event(name, number)
                           for number, name in enumerate(NAMES)])
            found = tx.lock_active([
                storage_contract.template(key) for key in ACTIVE_KEYS])
            side.meet(found)
            found[0].event_count = len(held)
            tx.collect(found[:1], {found[0].id: sorted(held)})
            for one, target in zip(found, states):
                state = State.ACTIVE
                for further in (State.READY_TO_FIRE, State.FIRING):
                    if state is not target:
                        tx.transition([one.id], state, further,
                                      deadline=deadline, new_owner='one')
                        state = further

        self.both(work, False)

    @stateful.rule(seconds=st.integers(0, 3))
    def wait(self, seconds):
        """Let time pass."""
        for side in self.sides:
            side.clock.advance(seconds)

    @stateful.rule(undo=st.booleans(), events=st.lists(st.builds(
        storage_contract.event, st.sampled_from(NAMES), NUMBERS,
        st.sampled_from(['t', 'T'])), max_size=6))
    def add_events(self, undo, events):
        """Store events, some of them again."""
        self.both(lambda side, tx: tx.add_events(events), undo)

    @stateful.rule(
        undo=st.booleans(), fire=MAYBE, expire=MAYBE, count=NUMBERS,
        wanted=st.dictionaries(
            st.sampled_from(ACTIVE_KEYS), st.sets(st.sampled_from(NAMES))),
        keyless=st.lists(st.sets(st.sampled_from(NAMES)), max_size=1))
    def collect(self, undo, fire, expire, count, wanted, keyless):
        """Put what is stored on the lists of new and known instances."""
        keys = [*wanted, *(None for _ in keyless)]
        choices = [*wanted.values(), *keyless]

        def work(side, tx):
            found = tx.lock_active([
                storage_contract.template(key, name=f'of {key}')
                for key in keys])
            before = side.meet(found)
            stored = tx.get_events(NAMES)
            lists = tx.instance_events([one.id for one in found])
            places = {}
            for one, choice in zip(found, choices):
                held = {each.message_id for each in lists[one.id]}
                places[one.id] = sorted(choice & stored.keys() - held)
                one.event_count += len(places[one.id])
                one.fire_timestamp, one.expire_timestamp = fire, expire
                one.counts, one.fingerprint = [count], 'second'
            tx.collect(found, places)
            return before

        self.both(work, undo)

    @stateful.rule(
        undo=st.booleans(), numbers=INSTANCES,
        way=st.sampled_from(state_module.TRANSITIONS),
        owner=st.one_of(st.none(), OWNERS), changes=CHANGES)
    def transition(self, undo, numbers, way, owner, changes):
        """Move what is in a state, and held by an owner."""
        def work(side, tx):
            moved = tx.transition(
                [side.id(number) for number in numbers], way.source,
                way.target, owner=owner, **changes)
            return sorted(map(side.ids.index, moved))

        self.both(work, undo)

    @stateful.rule(undo=st.booleans(), deadline=MOMENTS,
                   numbers=INSTANCES)
    def postpone(self, undo, deadline, numbers):
        """Postpone what is ready, some of it named twice."""
        self.both(lambda side, tx: tx.postpone(
            [side.id(number) for number in numbers], deadline), undo)

    @stateful.rule(undo=st.booleans(), number=INSTANCE,
                   owner=OWNERS, deadline=MOMENTS)
    def hold(self, undo, number, owner, deadline):
        """Renew a lease, or be told that it is lost."""
        def work(side, tx):
            try:
                tx.hold(side.id(number), owner, deadline)
            except exceptions.LeaseLost:
                return False
            return True

        self.both(work, undo)

    @stateful.rule(
        undo=st.booleans(), number=INSTANCE,
        forget=st.one_of(st.none(), st.integers(0, 3)),
        record=st.builds(
            storage.StepRecord, st.sampled_from(['s', 'S', 's ']),
            st.integers(0, 3), st.sampled_from(storage.StepState),
            st.integers(1, 3), NUMBERS,
            st.one_of(st.none(), st.just('[]')), st.none(), MAYBE, MAYBE))
    def journal(self, undo, number, forget, record):
        """Write a step, and forget some."""
        def work(side, tx):
            if not tx.get_instances([side.id(number)], lock=True):
                return
            if forget is not None:
                tx.forget_steps(side.id(number), forget)
            tx.save_step(side.id(number), record)

        self.both(work, undo)

    @stateful.rule(undo=st.booleans(), before=MOMENTS)
    def purge(self, undo, before):
        """Take away old events."""
        self.both(lambda side, tx: tx.purge_events(before, 100), undo)

    @stateful.rule(what=st.sampled_from(storage.Due), moment=MOMENTS,
                   limit=st.integers(1, 9))
    def due(self, what, moment, limit):
        """Ask what is due; those due since the same moment are alike."""
        since = {storage.Due.TO_FIRE: 'fire_timestamp',
                 storage.Due.TO_EXPIRE: 'expire_timestamp'}.get(
                     what, 'deadline')
        self.both(lambda side, tx: [
            getattr(one, since) for one in tx.due(what, moment, limit)],
            False)


class TestAgreement(Agreement.TestCase):
    """``memory://`` and SQLite."""

    settings = hypothesis.settings(
        deadline=None, max_examples=60, stateful_step_count=15)
