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

"""The plug into a stock Ceilometer: ``publishers: [triggers://]``.

Ceilometer's notification agent then hands the events that it has made to a
trigger manager in its own process. The options of ``[triggerlib]`` stand in
Ceilometer's configuration.
"""

from triggerlib.event import event as event_module
from triggerlib.event import timestamps
from triggerlib import opts
from triggerlib import storage
from triggerlib.trigger import manager as manager_module


class TriggersPublisher:
    """A Ceilometer event publisher (``ceilometer.event.publisher``).

    :param conf: Ceilometer's configuration
    :param parsed_url: the publisher's URL, which says nothing more
    :raises DefinitionError: every mistake in the definition files
    :raises SchemaError: the storage's schema is not the one needed
    """

    def __init__(self, conf, parsed_url):
        opts.register_opts(conf)
        self._storage = storage.get_driver(conf)
        self._storage.check()
        self._manager = manager_module.TriggerManager.from_conf(
            conf, self._storage)

    def publish_events(self, events):
        """Store and collect events, in one transaction.

        :param events: Ceilometer's event models
        :raises StorageError: nothing was stored; Ceilometer requeues the
            notifications
        """
        self._manager.add_events([to_event(event) for event in events])

    def publish_samples(self, samples):
        """Refuse samples: triggers are about events.

        :raises NotImplementedError: always
        """
        raise NotImplementedError(
            'triggers:// takes events; use it in event_pipeline.yaml')


def to_event(event) -> event_module.Event:
    """Return the event that a Ceilometer event model stands for.

    :param event: a ``ceilometer.event.models.Event``; its datetimes are UTC
    """
    return event_module.Event(
        event.message_id, event.event_type,
        timestamps.parse(event.generated),
        {trait.name: timestamps.parse(trait.value)
         if hasattr(trait.value, 'isoformat') else trait.value
         for trait in event.traits})
