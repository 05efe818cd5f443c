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

"""Pipeline sources: events that go straight through to sinks.

The events of a batch that a source takes are kept as an instance of their
own, due at once, so that they reach the sinks with the same promises as
those of a trigger: claimed once, journaled, tried again.
"""

from triggerlib.storage import driver as storage_module

#: A trigger definition's name cannot begin with this.
PREFIX = 'source:'


def instance_of(source, events, now) -> storage_module.Instance:
    """Return the instance that carries ``events`` to a source's sinks.

    :param source: a source of :class:`triggerlib.pipeline.pipelines.Pipelines`
    :param events: the events that the source takes; at least one
    :param now: the time for firing, an aware UTC datetime
    """
    moments = [event.timestamp for event in events]
    return storage_module.Instance(
        name=PREFIX + source.name, key='{}', active_key=None,
        fingerprint='', first_event=min(moments), last_event=max(moments),
        fire_timestamp=now, event_count=len(events))


def name_of(instance) -> str | None:
    """Return the source that an instance belongs to, None for a trigger."""
    if instance.name.startswith(PREFIX):
        return instance.name.removeprefix(PREFIX)
    return None
