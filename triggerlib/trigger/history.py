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

"""The events that a pipeline is given: the list, and what is loaded to it."""


from triggerlib.event import encoding
from triggerlib.event import event as event_module
from triggerlib import exceptions


class KeyChanged(exceptions.RetryableError):
    """The load criteria do not apply to what an instance stands for."""


def load(tx, instance, definition, events) -> list:
    """Return an instance's events and those its load criteria ask for.

    :param tx: the running storage transaction
    :param instance: a :class:`triggerlib.storage.Instance`
    :param definition: its
        :class:`triggerlib.trigger.definition.TriggerDefinition`, or None
    :param events: its own events, in order
    :returns: events in order of timestamp and message_id, each once
    :raises KeyChanged: the definition distinguishes by other traits than it
        did when the instance was begun
    """
    if definition is None or not definition.load_criteria:
        return events
    found = {event.message_id: event for event in events}
    key = encoding.load_traits(instance.key)
    if list(key) != [one.trait for one in definition.distinguished_by]:
        raise KeyChanged(
            f'it was begun when {instance.name!r} was distinguished by '
            f'{", ".join(key) or "nothing"}, so the load criteria of now do '
            f'not apply to it')
    key = tuple(key.values())
    for query, matches, newest in definition.load_queries(
            key, instance.first_event, instance.last_event):
        loaded = (event for event in tx.find_events(
            query, newest_first=newest is not None) if matches(event))
        for count, event in enumerate(loaded, 1):
            found.setdefault(event.message_id, event)
            if count == newest:
                break
    return sorted(found.values(), key=event_module.sort_key)
