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

"""The audit: says of each thing in each period that it existed."""

import random
import typing

from triggerlib.testing.lifecycle import agenda
from triggerlib.testing.lifecycle import cloud as cloud_
from triggerlib.testing.lifecycle import draw

#: how many seconds after a period's end its ``exists`` comes at the latest
MAX_EXISTS_DELAY_SECONDS = 300


class Audited(typing.Protocol):
    """What can be audited.

    ``deleted`` is the moment of its deletion, or None.
    """

    deleted: int | None

    def exists(self, moment: int, beginning: int, ending: int) -> None:
        """Send, at ``moment``, that it existed in that period."""


def audit(cloud: cloud_.Cloud, rng: random.Random, thing: Audited,
          born: int) -> agenda.LifeCycle:
    """Report ``thing`` once for each completed period in which it lived.

    A period of which it lived through a part counts. Periods that end after
    the cloud's end are not reported.

    :param born: the moment from which on the thing exists
    """
    beginning = cloud.period_begin(born)
    while thing.deleted is None or thing.deleted > beginning:
        ending = beginning + cloud.period
        if ending > cloud.end:
            return
        moment = ending + draw.wait(rng, 1, MAX_EXISTS_DELAY_SECONDS)
        yield moment
        thing.exists(moment, beginning, ending)
        beginning = ending
