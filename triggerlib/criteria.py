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

"""Criteria: which events are meant (blueprint event-triggers, "Criteria").

A criterion names event types, a time for the event's own timestamp, and what
traits are compared with, as :mod:`triggerlib.trait_expression` says. Whatever
it leaves out may be anything.
"""

from collections import abc as collections_abc
import dataclasses
import datetime
import typing

from triggerlib.event import event_type as event_type_module
from triggerlib import exceptions
from triggerlib import trait_expression
from triggerlib import yamlfile

LIST_NAMES: typing.Final = trait_expression.LIST_NAMES

KEYS: typing.Final = ('event_type', 'timestamp', 'traits', 'number', 'last',
                      'map_distinguished_by')
_ALONE = ('event_type', 'timestamp', 'traits')


@dataclasses.dataclass(frozen=True, slots=True)
class EventQuery:
    """What a storage can narrow events by before the criteria decide.

    :param event_types: exact types, None for any
    :param begin: earliest timestamp, None for any
    :param end: first timestamp that is too late, None for any; where it is
        the same as ``begin``, that very moment is meant
    :param traits: values by trait name; a tuple stands for any of its values
    """

    event_types: tuple[str, ...] | None = None
    begin: datetime.datetime | None = None
    end: datetime.datetime | None = None
    traits: collections_abc.Mapping[str, typing.Any] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Criterion:
    """One description of events.

    :param event_types: types that match; None for any
    :param number: events that must match for a trigger to fire
    :param last: how many of the newest are loaded; None for all
    :param renamed: distinguishing traits that its events call otherwise
    :param needs_list: whether it refers to the first or last event
    """

    event_types: event_type_module.EventTypes | None
    number: int = 1
    last: int | None = None
    renamed: collections_abc.Mapping[str, str] = dataclasses.field(
        default_factory=dict)
    needs_list: bool = False
    _alone: tuple[trait_expression.Test, ...] = ()
    _listed: tuple[trait_expression.Test, ...] = ()
    _bounds: trait_expression.Bounds | None = None
    _equals: collections_abc.Mapping[str, tuple] = dataclasses.field(
        default_factory=dict)

    @classmethod
    def load(cls, document, path, problems, definition=None, timezone='UTC',
             allowed=_ALONE) -> 'Criterion | None':
        """Read a criterion from a YAML document.

        :param document: a :class:`triggerlib.yamlfile.Document`
        :param path: keys and indexes that lead to the mapping
        :param problems: a list that gets every mistake found
        :param definition: name of the definition it is in, for mistakes
        :param timezone: zone in which time expressions are read
        :param allowed: the keys it may have
        :returns: the criterion, or None when there was a mistake
        """
        return _Loader(document, tuple(path), problems, definition,
                       timezone).criterion(allowed)

    def matches_type(self, event_type: str) -> bool:
        """Tell whether events of this type can match."""
        return self.event_types is None or self.event_types.match(event_type)

    def matches_alone(self, event) -> bool:
        """Tell whether all matches that asks about the event alone.

        The event's type is not looked at.
        """
        for test in self._alone:
            if not test(event, None, None):
                return False
        return True

    def matches(self, event, first=None, last=None) -> bool:
        """Tell whether an event matches.

        :param event: a :class:`triggerlib.event.Event`
        :param first: timestamp of the list's first event
        :param last: timestamp of the list's last event; both are needed
            where :attr:`needs_list` is set
        """
        if (self.event_types is not None
                and not self.event_types.match(event.event_type)):
            return False
        for test in self._alone:
            if not test(event, None, None):
                return False
        for test in self._listed:
            if not test(event, first, last):
                return False
        return True

    def query(self, first, last) -> EventQuery:
        """Return what events that match have in common.

        :param first: timestamp of the list's first event
        :param last: timestamp of the list's last event
        """
        begin = end = None
        if self._bounds is not None:
            begin, end = self._bounds(first, last)
        return EventQuery(
            None if self.event_types is None or not self.event_types.exact
            else tuple(sorted(self.event_types.exact)),
            begin, end, dict(self._equals))


class _Loader:
    """Reads one criterion, and collects its mistakes."""

    def __init__(self, document, path, problems, definition, timezone):
        self._document = document
        self._path = path
        self._problems = problems
        self._definition = definition
        self._timezone = timezone
        self._alone = []
        self._listed = []

    def criterion(self, allowed):
        before = len(self._problems)
        data = self._document.at(*self._path)
        if not isinstance(data, dict):
            self._refuse('a criterion is a mapping with the keys '
                         f'{", ".join(allowed)}')
            return None
        for key in data:
            if key not in allowed:
                self._refuse(f'a criterion has no key {key!r} here'
                             f'{yamlfile.suggestion(key, allowed)}', key)
        types = self._types(data)
        bounds = self._timestamp(data)
        equals = self._traits(data)
        number = self._count(data, 'number', 0, 1)
        last = self._count(data, 'last', 1, None)
        renamed = self._renamed(data)
        if len(self._problems) > before:
            return None
        return Criterion(
            types, number, last, renamed, bool(self._listed),
            tuple(self._alone), tuple(self._listed), bounds, equals)

    def _refuse(self, message, *path):
        inner = self._path + path
        # The definition is named already, so the key begins inside it.
        shown = inner
        while shown and isinstance(shown[0], int):
            shown = shown[1:]
        self._problems.append(self._document.problem(
            message, *inner, definition=self._definition,
            key=yamlfile.dotted(shown) or None))

    def _types(self, data):
        if 'event_type' not in data:
            return None
        patterns = data['event_type']
        if isinstance(patterns, str):
            patterns = [patterns]
        if not isinstance(patterns, list) or not patterns or not all(
                isinstance(one, str) and one.lstrip('!')
                for one in patterns):
            self._refuse('event_type is a text or a list of texts',
                         'event_type')
            return None
        return event_type_module.EventTypes(patterns)

    def _timestamp(self, data):
        if 'timestamp' not in data:
            return None
        try:
            compiled = trait_expression.compile_timestamp(
                data['timestamp'], self._timezone)
        except (exceptions.TimexError, trait_expression.Mistake) as error:
            self._refuse(str(error), 'timestamp')
            return None
        self._keep(compiled)
        return compiled.bounds

    def _keep(self, compiled):
        (self._listed if compiled.needs_list else self._alone).append(
            compiled.test)

    def _traits(self, data):
        traits = data.get('traits', {})
        equals = {}
        if not isinstance(traits, dict):
            self._refuse('traits is a mapping of trait names to constants '
                         'or expressions', 'traits')
            return equals
        for name, wanted in traits.items():
            if not isinstance(name, str):
                self._refuse('a trait name is a text', 'traits', name)
                continue
            try:
                compiled = trait_expression.compile_trait(
                    name, wanted, self._timezone)
            except (exceptions.TimexError,
                    trait_expression.Mistake) as error:
                self._refuse(str(error), 'traits', name)
                continue
            self._keep(compiled)
            if compiled.equals is not None:
                equals[name] = compiled.equals
        return equals

    def _count(self, data, key, least, default):
        number = data.get(key, default)
        if key in data and (
                type(number) is not int or number < least):
            self._refuse(f'{key} is a whole number, {least} or more', key)
            return default
        return number

    def _renamed(self, data):
        renamed = data.get('map_distinguished_by', {})
        if not isinstance(renamed, dict) or not all(
                isinstance(word, str) and word
                for pair in renamed.items() for word in pair):
            self._refuse('map_distinguished_by is a mapping of '
                         'distinguishing traits to the names that these '
                         'events have for them', 'map_distinguished_by')
            return {}
        return renamed
