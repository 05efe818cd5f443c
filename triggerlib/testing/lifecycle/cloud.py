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

"""What every life cycle is given: the cloud that it takes place in."""

import collections
import dataclasses

from triggerlib.testing.lifecycle import agenda as agenda_
from triggerlib.testing.lifecycle import inventory as inventory_


@dataclasses.dataclass(frozen=True, slots=True)
class Habits:
    """How things go in the cloud; shares are from 0 to 1.

    :param failure_share: of the servers and volumes, those whose creation
        never ends
    :param delete_failure_share: of the servers, those whose first deletion
        never ends
    :param resize_share: of the servers, those that are resized
    :param unconfirmed_share: of the resizes, those that nobody confirms
    :param updates_per_day: ``compute.instance.update`` notifications of a
        server and day that belong to no action
    :param lifetime_hours: mean time from a thing's creation to its deletion
    """

    failure_share: float
    delete_failure_share: float
    resize_share: float
    unconfirmed_share: float
    updates_per_day: float
    lifetime_hours: float


@dataclasses.dataclass(slots=True)
class Cloud:
    """The cloud.

    :param agenda: runs the life cycles and takes their messages
    :param inventory: what there is to choose from
    :param habits: how things go
    :param end: the moment from which on nothing new is begun
    :param period: length of an audit period, in microseconds
    """

    agenda: agenda_.Agenda
    inventory: inventory_.Inventory
    habits: Habits
    end: int | float
    period: int
    #: the servers that came up last, for volumes to be attached to
    newest_servers: collections.deque = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=32))

    def period_begin(self, moment: int) -> int:
        """Return when the audit period that holds ``moment`` begins."""
        return moment - moment % self.period
