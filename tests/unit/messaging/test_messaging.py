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

"""Messaging in the process, as it is without a transport_url."""

from triggerlib import transport

from tests import base
from tests import messaging


class TestInProcess(messaging.MessagingRules, base.TestCase):
    """On oslo.messaging's fake transport."""

    def test_it_is_what_one_gets_without_a_url(self):
        for get in (transport.get_rpc_transport,
                    transport.get_notification_transport):
            self.assertEqual(
                'fake', get(self.conf)._driver.__class__.__name__
                .removesuffix('Driver').lower())

    def test_a_url_goes_before_it(self):
        self.conf.set_override('transport_url', 'kombu+memory://')
        self.assertNotEqual(
            'FakeDriver',
            transport.get_rpc_transport(self.conf)._driver
            .__class__.__name__)
