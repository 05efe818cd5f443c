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

"""Ids of derived events, and which errors are tried again."""

import uuid

import oslo_messaging

from tests import base
from tests.unit.pipeline import stage
from triggerlib import exceptions
from triggerlib import pipeline


def context(step='s.0.x', attempt=1, identity=stage.IDENTITY):
    return pipeline.Context('t', 'fire', {}, 1, attempt, step, identity)


class TestDerive(base.TestCase):
    """Context.derive"""

    def test_it_is_what_receivers_have_seen_before(self):
        # Of a release that changes this, a retry of the one before would
        # not be told as a repeat.
        self.assertEqual(
            str(uuid.uuid5(stage.IDENTITY, 's.0.x\0' '7')),
            context().derive(7))
        self.assertEqual('5134e66a-9cbb-573b-87e6-15ccbfae5e35',
                         context().derive(0))

    def test_it_is_the_same_at_every_attempt(self):
        self.assertEqual(context().derive(3), context(attempt=9).derive(3))

    def test_it_differs_by_step_position_and_identity(self):
        ids = {context(step, identity=identity).derive(position)
               for step in ('s.0.x', 's.1.x', 's.0.x\0' '1')
               for identity in (stage.IDENTITY, uuid.UUID(int=1))
               for position in range(20)}
        self.assertEqual(3 * 2 * 20, len(ids))


class Foreign(Exception):
    """An error of somebody else's."""


class TestRetryable(base.TestCase):
    """PipelineError.retryable"""

    def test_what_may_go_better_later(self):
        from kombu import exceptions as kombu_exceptions
        import requests

        for cause in (
                exceptions.PublishError('x', retryable=True),
                exceptions.RetryableError('x'), exceptions.StorageBusy('x'),
                ConnectionRefusedError('x'), BrokenPipeError('x'),
                TimeoutError('x'), oslo_messaging.MessagingTimeout('x'),
                oslo_messaging.MessageDeliveryFailure('x'),
                kombu_exceptions.OperationalError('x'),
                requests.ConnectionError('x'), requests.ReadTimeout('x'),
                requests.ConnectTimeout('x')):
            self.assertTrue(
                exceptions.PipelineError('s', cause).retryable, repr(cause))

    def test_what_will_not(self):
        for cause in (
                exceptions.PublishError('x'), ValueError('x'),
                PermissionError('x'), Foreign('x'),
                exceptions.StorageError('x'),
                oslo_messaging.InvalidTarget('x', None)):
            self.assertFalse(
                exceptions.PipelineError('s', cause).retryable, repr(cause))
