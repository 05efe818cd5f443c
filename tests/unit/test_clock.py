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

"""Clocks."""

import datetime

from triggerlib import clock

from tests import base


class TestClocks(base.TestCase):
    """What time it is, and how far it goes."""

    def test_a_replay_clock_goes_only_forward(self):
        noon = datetime.datetime(2026, 3, 1, 12, tzinfo=clock.UTC)
        replay = clock.ReplayClock(noon)
        replay.advance_to(noon - datetime.timedelta(hours=1))
        self.assertEqual(noon, replay.now())
        replay.advance(1.5)
        self.assertEqual(noon + datetime.timedelta(seconds=1.5),
                         replay.now())

    def test_after_stays_within_all_datetimes(self):
        self.assertEqual(clock.LAST, clock.after(clock.LAST, 1))
        self.assertEqual(clock.FIRST, clock.after(clock.FIRST, -1))
        self.assertEqual(clock.LAST, clock.after(clock.FIRST, 10 ** 12))
        self.assertEqual(
            clock.FIRST + datetime.timedelta(seconds=2.5),
            clock.after(clock.FIRST, 2.5))

    def test_the_systems_clock_is_aware(self):
        self.assertEqual(
            datetime.timedelta(0), clock.SystemClock().now().utcoffset())
