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

"""What an event changes in an instance: pure functions, no storage writes.

Fire criteria that depend on the event alone are counted as events arrive.
Only those that look at the first or last event are counted over the list.
"""

from triggerlib import clock
from triggerlib.storage import driver as storage_module


def new_instance(definition, key, event) -> storage_module.Instance:
    """Return an instance without events that ``event`` may begin.

    :param definition: its
        :class:`triggerlib.trigger.definition.TriggerDefinition`
    :param key: values of its distinguishing traits
    :param event: the first event it is offered
    """
    moment = event.timestamp
    return storage_module.Instance(
        name=definition.name, key=definition.key_document(key),
        active_key=definition.active_key(key),
        fingerprint=definition.fingerprint, first_event=moment,
        last_event=moment,
        expire_timestamp=definition.expire_timestamp(moment, moment),
        counts=[0] * len(definition.fire_criteria))


def add(definition, instance, event) -> None:
    """Put an event on an instance's list: first, last, expiry and counts."""
    moment = event.timestamp
    if instance.event_count == 0:
        instance.first_event = instance.last_event = moment
        changed = True
    elif moment < instance.first_event:
        instance.first_event = moment
        changed = True
    elif moment > instance.last_event:
        instance.last_event = moment
        changed = True
    else:
        changed = False
    if changed:
        instance.expire_timestamp = definition.expire_timestamp(
            instance.first_event, instance.last_event)
    instance.event_count += 1
    definition.count(event, instance.counts)


def settle(definition, instance, now, events=None) -> None:
    """Set the fire_timestamp when the fire criteria are met, or take it back.

    :param definition: the instance's definition
    :param instance: changed in place
    :param now: the time for firing, an aware UTC datetime
    :param events: the whole list, for a definition that needs it
    """
    if definition.needs_list:
        definition.count_over_list(
            events, instance.first_event, instance.last_event,
            instance.counts)
    if not definition.is_complete(instance.counts):
        instance.fire_timestamp = None
    elif instance.fire_timestamp is None:
        instance.fire_timestamp = clock.after(now, definition.fire_delay)


def evaluate(definition, instance, events, now) -> None:
    """Evaluate an instance anew from its list, under this definition.

    :param definition: the instance's definition
    :param instance: changed in place
    :param events: its whole list, in order; at least one
    :param now: the time for firing, an aware UTC datetime
    """
    instance.fingerprint = definition.fingerprint
    instance.counts = [0] * len(definition.fire_criteria)
    for event in events:
        definition.count(event, instance.counts)
    instance.first_event = events[0].timestamp
    instance.last_event = events[-1].timestamp
    instance.expire_timestamp = definition.expire_timestamp(
        instance.first_event, instance.last_event)
    settle(definition, instance, now, events)


def refresh(tx, instances, definitions, now) -> set[int]:
    """Evaluate those locked instances anew that an older definition left.

    :param tx: the running storage transaction, which locked the instances
    :param instances: changed in place
    :param definitions: the
        :class:`triggerlib.trigger.definitions.TriggerDefinitions` in force;
        an instance of an unknown one is left alone
    :param now: the time for firing, an aware UTC datetime
    :returns: ids of those that were evaluated and written
    """
    stale = []
    for instance in instances:
        definition = definitions.get(instance.name)
        if (definition is not None and instance.event_count
                and instance.fingerprint != definition.fingerprint):
            stale.append((definition, instance))
    if not stale:
        return set()
    lists = tx.instance_events([instance.id for _, instance in stale])
    for definition, instance in stale:
        evaluate(definition, instance, lists[instance.id], now)
    tx.collect([instance for _, instance in stale], {})
    return {instance.id for _, instance in stale}
