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

"""``log://``: a line in the log for each event."""

from oslo_log import log as logging

from triggerlib.event import encoding
from triggerlib.publisher import publisher

LOG = logging.getLogger(__name__)


class LogPublisher(publisher.Publisher):
    """Logs each event as one line of JSON."""

    def __init__(self, conf, url):
        super().__init__(conf, url)
        self.refuse_other_options()

    def publish(self, events, context):
        """Log the events."""
        for event in events:
            LOG.info('%s', encoding.to_json(event))
