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

"""The blueprints' own examples, from notification to fired trigger."""

import datetime
import json
import re

from triggerlib.event import converter
from triggerlib.event import definitions
from triggerlib.state import State

from tests import base
from tests import engine

UTC = datetime.timezone.utc

TRIGGERS = """
    - name: tenant_activity
      distinguished_by: [tenant_id]
      expiration: last + 2d
      fire_delay: 30
      match_criteria:
        - event_type: compute.instance.*
      fire_criteria:
        - event_type: compute.instance.create.end
        - event_type: compute.instance.resize.confirm.start
        - event_type: compute.instance.exists
          traits:
            audit_period_ending: "first@06:00 to last"
      fire_pipeline: fired
      expire_pipeline: expired
    """

PIPELINES = """
    sinks:
      - name: fired
        publishers: ['test://$NAME']
      - name: expired
        publishers: ['test://$NAME']
    """


class TestBlueprint(base.TestCase):
    """Notification examples, example definitions, a trigger over them."""

    def setUp(self):
        super().setUp()
        text = self.shared_path(
            'blueprints', 'notification-examples.txt').read_text()
        self.notifications = [
            json.loads(one) for one in re.findall(
                r'<pre><nowiki>\s*(\{.*?\})\s*</nowiki></pre>', text, re.S)]
        self.converter = converter.Converter(
            definitions.EventDefinitions.load(
                base.ROOT / 'tests' / 'data' / 'event_definitions.yaml'))

    def test_a_trigger_over_them_fires(self):
        it = self.useFixture(engine.Engine(
            TRIGGERS, PIPELINES, 'sqlite://',
            start=datetime.datetime(2012, 3, 13, 17, 1, 5, tzinfo=UTC)))
        it.manager.converter = self.converter
        resize, create, exists = self.notifications

        # An event that comes in begins an instance in the ACTIVE state, with
        # its distinguishing trait, and with first and last event from it.
        it.manager.add_notification(exists)
        instance = it.instance()
        self.assertEqual(State.ACTIVE, instance.state)
        self.assertEqual('{"tenant_id":"12345"}', instance.key)
        self.assertEqual(instance.first_event, instance.last_event)
        self.assertEqual(
            datetime.datetime(2012, 3, 15, 17, 1, tzinfo=UTC),
            instance.expire_timestamp)

        # Others are added to its list, whatever their order, and a repeated
        # one is rejected by its message_id.
        it.manager.add_notifications([resize, exists])
        instance = it.instance()
        self.assertEqual(2, instance.event_count)
        self.assertEqual(
            datetime.datetime(2012, 3, 12, 17, 1, 29, 899834, UTC),
            instance.first_event)
        self.assertIsNone(instance.fire_timestamp)

        # When the criteria are met, it is to fire now, plus the delay.
        it.manager.add_notification(create)
        instance = it.instance()
        self.assertEqual(
            datetime.datetime(2012, 3, 13, 17, 1, 35, tzinfo=UTC),
            instance.fire_timestamp)

        # Once that has passed it is READY_TO_FIRE, and a cast is made.
        it.clock.advance(29)
        self.assertEqual(0, it.scheduler.run_once())
        it.clock.advance(1)
        self.assertEqual(1, it.scheduler.run_once())
        instance = it.instance()
        self.assertEqual(State.READY_TO_FIRE, instance.state)
        self.assertEqual([('fire', instance.id)], it.casts)

        # The events go to the pipeline sorted by timestamp, and the instance
        # is deleted. Calling again does not run it more than once.
        self.assertTrue(it.worker.fire_trigger(instance.id))
        self.assertFalse(it.worker.fire_trigger(instance.id))
        self.assertEqual(
            ['compute.instance.create.end',
             'compute.instance.resize.confirm.start',
             'compute.instance.exists'],
            [event.event_type for event in it.published()])
        self.assertEqual([], it.instances())
