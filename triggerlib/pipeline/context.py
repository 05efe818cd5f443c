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

"""What a step is told about the run it is part of."""

import dataclasses
import typing
import uuid


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """The run of a pipeline, as one of its steps sees it.

    :param trigger: name of the trigger definition, or of the source
    :param kind: ``fire``, ``expire`` or ``source``
    :param key: values of the distinguishing traits, by name
    :param instance_id: id of the trigger instance
    :param attempt: which attempt this is, from 1
    :param step: name of the step, the same at every attempt
    :param identity: what the ids of derived events are made from
    :param add_events: ``add_events(events)`` puts events into the trigger
        manager, in the transaction of the journal; None for a publisher that
        is not transactional
    :param done: events that this step finished at earlier attempts, where
        it yields them one by one: a transformer may begin behind them, a
        publisher is not given them any more
    :param dead_letter: ``dead_letter(event, reason)``, for publishers: keeps
        an event that the receiver will never take, with its reason, a text,
        as dead letter. It is stored in the transaction that notes the next
        item that the publisher yields, or the step, as done, and is forgotten
        when the step fails before that
    """

    trigger: str
    kind: str
    key: dict
    instance_id: int
    attempt: int
    step: str
    identity: uuid.UUID
    add_events: typing.Callable | None = None
    done: int = 0
    dead_letter: typing.Callable | None = None

    def derive(self, position: int) -> str:
        """Return the message_id of an event that this step makes.

        It is the same at every attempt, so that whoever receives the event
        can drop a repeat.

        :param position: number of the event among those the step makes
        """
        return str(uuid.uuid5(self.identity, f'{self.step}\0{position}'))
