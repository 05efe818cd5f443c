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

"""A process that publishes to a file: URL, name, batches, size of each."""

import datetime
import sys

from triggerlib.event import event as event_module
from triggerlib.publisher import file as file_publisher

UTC = datetime.timezone.utc


def events(name, batch, size):
    """Return a batch of events that are told apart by their ids."""
    moment = datetime.datetime(2026, 3, 1, tzinfo=UTC)
    return [event_module.Event(f'{name}-{batch}-{number}', 'x', moment,
                               {'text': 'ä' * 20})
            for number in range(size)]


def main(url, name, batches, size):
    """Publish all batches."""
    publisher = file_publisher.FilePublisher(None, url)
    for batch in range(int(batches)):
        publisher.publish(events(name, batch, int(size)), None)


if __name__ == '__main__':
    main(*sys.argv[1:])
