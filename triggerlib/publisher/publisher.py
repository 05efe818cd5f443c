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

"""The base class of publishers (``triggerlib.publisher``)."""

import urllib.parse

from triggerlib import yamlfile


class Publisher:
    """Hands events on to the world outside.

    A publisher is built from its URL when the pipelines file is loaded, and
    connects to nothing before it is used. Options are the URL's query; an
    unknown one is refused.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param url: the publisher's URL
    :raises ValueError: the URL is wrong; the text says how
    """

    #: Whether events go into the storage, in the transaction that notes the
    #: step as done; :attr:`Context.add_events` is there for that.
    transactional = False

    def __init__(self, conf, url: str):
        self.conf = conf
        try:
            self.url = urllib.parse.urlsplit(url)
        except ValueError:
            # What it says may quote a password.
            raise ValueError('the host in the URL cannot be read') from None
        if self.url.fragment:
            raise ValueError("a '#' in a URL is written %23")
        self._known = set()
        self._options = {}
        for name, value in urllib.parse.parse_qsl(
                self.url.query, keep_blank_values=True):
            if name in self._options:
                raise ValueError(f'the option {name!r} is there twice')
            self._options[name] = value

    def option(self, name, parse=str, default=None):
        """Take an option out of the URL's query.

        :param name: its name
        :param parse: turns its text into a value
        :param default: what it is when it is not there
        :raises ValueError: it cannot be parsed
        """
        self._known.add(name)
        if name not in self._options:
            return default
        text = self._options.pop(name)
        try:
            return parse(text)
        except ValueError as error:
            raise ValueError(f'option {name}={text}: {error}') from error

    def refuse_other_options(self):
        """Refuse the options that nobody has taken.

        :raises ValueError: there are some
        """
        if self._options:
            names = sorted(self._options)
            hints = dict.fromkeys(
                yamlfile.suggestion(name, self._known) for name in names)
            raise ValueError(
                f'unknown options: {", ".join(names)}{"".join(hints)}')

    def publish(self, events, context):
        """Hand events on.

        It may be a generator that yields what it has handed on, an event or
        a list of them at a time. Each is noted at once, and another attempt
        is given the rest only.

        :param events: a list of :class:`triggerlib.event.Event`
        :param context: a :class:`triggerlib.pipeline.Context`
        :raises PublishError: it could not; ``retryable`` says whether it may
            go better later
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give back what was opened."""


def whole_number(text: str) -> int:
    """Return a number of 0 or more from the text of an option."""
    number = int(text)
    if number < 0:
        raise ValueError('is less than 0')
    return number


def flag(text: str) -> bool:
    """Return a truth value from the text of an option."""
    if text.lower() in ('true', 'yes', '1'):
        return True
    if text.lower() in ('false', 'no', '0'):
        return False
    raise ValueError('is neither true nor false')
