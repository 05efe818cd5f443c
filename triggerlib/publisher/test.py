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

"""``test://NAME``: keeps events in memory, for tests to look at."""

import collections
import threading

from triggerlib.publisher import publisher

_LOCK = threading.Lock()
_PUBLISHED = collections.defaultdict(list)


class TestPublisher(publisher.Publisher):
    """Keeps what is published under the name in its URL."""

    # Test runners take a class of such a name for a test.
    __test__ = False

    def __init__(self, conf, url):
        super().__init__(conf, url)
        self.refuse_other_options()

    def publish(self, events, context):
        """Keep the events."""
        with _LOCK:
            _PUBLISHED[self.url.netloc].extend(events)


def published(name: str) -> list:
    """Return what was published under a name, oldest first."""
    with _LOCK:
        return list(_PUBLISHED.get(name, ()))


def reset(name: str) -> None:
    """Forget what was published under a name."""
    with _LOCK:
        _PUBLISHED.pop(name, None)
