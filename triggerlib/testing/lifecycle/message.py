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

"""One notification before it takes on one of its forms."""

import typing


class Context:
    """Who asked for an action; the same for all its notifications.

    :param plain: the request context, as an endpoint sees it
    """

    __slots__ = ('plain', '_flat')

    def __init__(self, plain: dict):
        self.plain = plain
        self._flat = None

    @property
    def flat(self) -> dict:
        """The context with the prefix that it has in the flat form."""
        if self._flat is None:
            self._flat = {f'_context_{key}': value
                          for key, value in self.plain.items()}
        return self._flat


class Message(typing.NamedTuple):
    """What a service says, when, and on whose behalf.

    :param moment: when, in microseconds since 1970 (UTC)
    """

    moment: int
    message_id: str
    event_type: str
    publisher_id: str
    priority: str
    context: Context
    payload: dict
