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

"""The publishers that go nowhere far: ``log``, ``event`` and ``test``."""

import json
import logging
import uuid

import fixtures

from tests import base
from tests.unit.pipeline import stage
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib import pipeline
from triggerlib import publisher as publisher_room
from triggerlib.publisher import event as event_publisher
from triggerlib.publisher import log as log_publisher
from triggerlib.publisher import publisher as publisher_module
from triggerlib.publisher import test as test_publisher

EVENTS = [stage.event(1, text='ä\n"'), stage.event(2)]


def context(add_events=None):
    return pipeline.Context('t', 'fire', {}, 1, 1, 's.0.x', stage.IDENTITY,
                            add_events)


class TestLog(base.TestCase):
    """``log://``"""

    def test_a_line_of_json_for_each_event(self):
        logger = self.useFixture(fixtures.FakeLogger(
            format='%(levelname)s %(message)s', level=logging.INFO))
        log_publisher.LogPublisher(None, 'log://').publish(EVENTS, context())
        lines = logger.output.splitlines()
        self.assertEqual(
            [encoding.as_dict(each) for each in EVENTS],
            [json.loads(line.removeprefix('INFO ')) for line in lines])


class TestEvent(base.TestCase):
    """``event://``"""

    def test_events_go_to_the_trigger_manager(self):
        added = []
        one = event_publisher.EventPublisher(None, 'event://')
        self.assertTrue(one.transactional)
        one.publish(EVENTS, context(added.extend))
        self.assertEqual(EVENTS, added)

    def test_without_a_trigger_manager(self):
        error = self.assertRaises(
            exceptions.PublishError,
            event_publisher.EventPublisher(None, 'event://').publish, EVENTS,
            context())
        self.assertFalse(error.retryable)
        self.assertIn('without a trigger manager', str(error))


class TestTest(base.TestCase):
    """``test://``"""

    def test_what_was_published_is_kept_by_name(self):
        name, other = uuid.uuid4().hex, uuid.uuid4().hex
        self.addCleanup(test_publisher.reset, name)
        for each in EVENTS:
            test_publisher.TestPublisher(None, f'test://{name}').publish(
                [each], context())
        self.assertEqual((EVENTS, []), (test_publisher.published(name),
                                        test_publisher.published(other)))
        # What is given is the caller's own.
        test_publisher.published(name).clear()
        self.assertEqual(EVENTS, test_publisher.published(name))
        test_publisher.reset(name)
        test_publisher.reset(name)
        self.assertEqual([], test_publisher.published(name))


class Own(publisher_room.Publisher):
    """A publisher that somebody else wrote."""

    def __init__(self, conf, url):
        super().__init__(conf, url)
        self.size = self.option('size', int, 7)
        self.fast = self.option('fast', publisher_module.flag, False)
        self.refuse_other_options()


class TestBase(base.TestCase):
    """The base class."""

    def test_options(self):
        one = Own(None, 'own://host/?size=5&fast=Yes')
        self.assertEqual((5, True, 'host'),
                         (one.size, one.fast, one.url.hostname))
        one = Own(None, 'own://')
        self.assertEqual((7, False), (one.size, one.fast))

    def test_what_is_refused(self):
        for url, part in (
                ('own://?size=x', 'option size=x'),
                ('own://?size=', 'option size='),
                ('own://?fast=maybe', 'neither true nor false'),
                ('own://?b=1&a=2', 'unknown options: a, b'),
                ('own://?b=1&sise=2', "did you mean 'size'?"),
                ('own://?size=1&size=2', 'twice'),
                ('own://[x/', 'cannot be read'), ('own://#x', '%23')):
            error = self.assertRaises(ValueError, Own, None, url)
            self.assertIn(part, str(error), url)

    def test_all_of_ours_refuse_unknown_options(self):
        for cls in (log_publisher.LogPublisher,
                    event_publisher.EventPublisher,
                    test_publisher.TestPublisher):
            self.assertRaises(ValueError, cls, None, 'x://?nope=1')

    def test_publishing_has_to_be_written(self):
        one = Own(None, 'own://')
        self.assertRaises(NotImplementedError, one.publish, [], context())
        one.close()
