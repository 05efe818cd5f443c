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

"""The states of a trigger instance and the ways between them, as data."""

import dataclasses
import enum
import typing

from automaton import exceptions as automaton_exceptions
from automaton import machines

from triggerlib import exceptions


class State(enum.StrEnum):
    """Where a trigger instance stands."""

    ACTIVE = 'ACTIVE'
    READY_TO_FIRE = 'READY_TO_FIRE'
    READY_TO_EXPIRE = 'READY_TO_EXPIRE'
    FIRING = 'FIRING'
    EXPIRING = 'EXPIRING'
    ERROR = 'ERROR'
    EXPIRE_ERROR = 'EXPIRE_ERROR'
    DELETED = 'DELETED'


@dataclasses.dataclass(frozen=True, slots=True)
class Transition:
    """One way from a state to another.

    :param source: the state it leaves
    :param event: the word for what happens
    :param target: the state it enters
    :param when: in words, for people
    """

    source: State
    event: str
    target: State
    when: str


TRANSITIONS: typing.Final = (
    Transition(State.ACTIVE, 'ready_to_fire', State.READY_TO_FIRE,
               'its fire_timestamp has passed'),
    Transition(State.ACTIVE, 'ready_to_expire', State.READY_TO_EXPIRE,
               'its expire_timestamp has passed and it has no '
               'fire_timestamp'),
    Transition(State.READY_TO_FIRE, 'claim', State.FIRING,
               'a worker claims it'),
    Transition(State.READY_TO_EXPIRE, 'claim', State.EXPIRING,
               'a worker claims it'),
    Transition(State.FIRING, 'finish', State.DELETED,
               'its pipeline is done'),
    Transition(State.EXPIRING, 'finish', State.DELETED,
               'its pipeline is done'),
    Transition(State.FIRING, 'release', State.READY_TO_FIRE,
               'its lease ran out, or a retryable error with attempts left'),
    Transition(State.EXPIRING, 'release', State.READY_TO_EXPIRE,
               'its lease ran out, or a retryable error with attempts left'),
    Transition(State.FIRING, 'fail', State.ERROR,
               'a final error, attempts used up, or its definition or '
               'pipeline is gone'),
    Transition(State.EXPIRING, 'fail', State.EXPIRE_ERROR,
               'a final error, attempts used up, or its definition or '
               'pipeline is gone'),
    Transition(State.ERROR, 'retry', State.READY_TO_FIRE,
               "an operator's retry"),
    Transition(State.EXPIRE_ERROR, 'retry', State.READY_TO_EXPIRE,
               "an operator's retry"),
    Transition(State.ACTIVE, 'discard', State.DELETED,
               "an operator's delete"),
    Transition(State.READY_TO_FIRE, 'discard', State.DELETED,
               "an operator's delete"),
    Transition(State.READY_TO_EXPIRE, 'discard', State.DELETED,
               "an operator's delete"),
    Transition(State.ERROR, 'discard', State.DELETED,
               "an operator's delete"),
    Transition(State.EXPIRE_ERROR, 'discard', State.DELETED,
               "an operator's delete"),
)

#: States in which a worker holds the instance by a lease.
LEASED: typing.Final = (State.FIRING, State.EXPIRING)
#: States in which the instance waits for a worker.
READY: typing.Final = (State.READY_TO_FIRE, State.READY_TO_EXPIRE)
#: States that only an operator ends.
FAILED: typing.Final = (State.ERROR, State.EXPIRE_ERROR)


def _build():
    machine = machines.FiniteMachine()
    for state in State:
        machine.add_state(state, terminal=state is State.DELETED)
    for transition in TRANSITIONS:
        machine.add_transition(
            transition.source, transition.target, transition.event)
    machine.default_start_state = State.ACTIVE
    machine.freeze()
    return machine


#: The declared table as an automaton, for drawing and walking.
MACHINE: typing.Final = _build()


def target(source, event):
    """Return the state that ``event`` leads to from ``source``.

    :raises InvalidTransition: the table has no such way
    """
    walker = MACHINE.copy(shallow=True)
    walker.initialize(start_state=source)
    try:
        walker.process_event(event)
    except automaton_exceptions.NotFound as error:
        raise exceptions.InvalidTransition(
            f'no transition {event!r} from {source}') from error
    return walker.current_state


_PAIRS = frozenset((way.source, way.target) for way in TRANSITIONS)


def check(source, target):
    """Refuse a change of state that the table does not have.

    :raises InvalidTransition: it would be a programming error
    """
    if (source, target) not in _PAIRS:
        raise exceptions.InvalidTransition(
            f'no transition from {source} to {target}')
