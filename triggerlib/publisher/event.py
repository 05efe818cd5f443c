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

"""``event://``: back into the trigger manager, so that triggers chain."""

from triggerlib import exceptions
from triggerlib.publisher import publisher


class EventPublisher(publisher.Publisher):
    """Puts events into the trigger manager, exactly once.

    The events and the journal are committed in one transaction. One whose
    message_id is stored already is dropped as duplicate.
    """

    transactional = True

    def __init__(self, conf, url):
        super().__init__(conf, url)
        self.refuse_other_options()

    def publish(self, events, context):
        """Put the events in."""
        if context.add_events is None:
            raise exceptions.PublishError(
                'this worker was built without a trigger manager to put '
                'events into')
        context.add_events(events)
