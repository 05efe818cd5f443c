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

A criterion names event types, a time for the event's timestamp, and for
traits either a constant or an expression:

* ``> 10``, ``>=``, ``<``, ``<=``, ``!=`` with a number, a datetime or time
  expression, or else a text;
* ``is NULL`` (the event lacks the trait) and ``is not NULL``;
* a list: any of its entries;
* ``{glob: "web-*"}`` and ``{regex: ...}`` (the whole text has to match);
* a time expression or range, against a datetime trait. A plain text is taken
  for one when it refers to a name by ``$``, by an operator, or as a range,
  and can be parsed as one; it still equals a text trait of that very text;
* the typed forms ``{int: "> 4"}``, ``{float: ...}``, ``{datetime: ...}`` and
  ``{text: "> 10"}``, the last of which is always the constant.

A comparison across types does not match, and does not raise.
"""

from collections import abc as collections_abc
import dataclasses
import datetime
import difflib
import fnmatch
import operator
import re
import typing

from triggerlib.event import event_type as event_type_module
from triggerlib.event import timestamps
from triggerlib import exceptions
from triggerlib import timex
from triggerlib import yamlfile

UTC = datetime.timezone.utc

#: Names in time expressions that are not traits.
LIST_NAMES: typing.Final = frozenset({'first', 'last'})

KEYS: typing.Final = ('event_type', 'timestamp', 'traits', 'number', 'last',
                      'map_distinguished_by')
_ALONE = ('event_type', 'timestamp', 'traits')

#: ``test(event, first, last)``
Test: typing.TypeAlias = typing.Callable[..., bool]


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


class _Compiled(typing.NamedTuple):
    """A test of one trait or of the timestamp.

    ``equals`` holds the constants it amounts to, where it is that simple.
    """

    test: Test
    needs_list: bool = False
    equals: tuple | None = None


class _Mistake(Exception):
    """An expression is wrong; the text says how."""


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
    _alone: tuple[Test, ...] = ()
    _listed: tuple[Test, ...] = ()
    _time: timex.Expression | None = None
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
        if self._time is not None and self._time.names <= LIST_NAMES:
            try:
                moment = self._time(first=first, last=last)
                begin, end = moment.begin, moment.end
            except exceptions.TimexOverflow:
                # Out of all datetimes: the criteria let nothing through.
                pass
        return EventQuery(
            None if self.event_types is None or not self.event_types.exact
            else tuple(sorted(self.event_types.exact)),
            begin, end, dict(self._equals))


def suggestion(word, known) -> str:
    """Return a hint at the known word that a misspelt one may stand for."""
    close = difflib.get_close_matches(str(word), known, 1)
    if close:
        return f'; did you mean {close[0]!r}?'
    return f'; known are {", ".join(sorted(known))}'


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
                             f'{suggestion(key, allowed)}', key)
        types = self._types(data)
        time = self._timestamp(data)
        equals = self._traits(data)
        number = self._count(data, 'number', 0, 1)
        last = self._count(data, 'last', 1, None)
        renamed = self._renamed(data)
        if len(self._problems) > before:
            return None
        return Criterion(
            types, number, last, renamed, bool(self._listed),
            tuple(self._alone), tuple(self._listed), time, equals)

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
        text = data['timestamp']
        if isinstance(text, datetime.date):
            moment = _as_datetime(text)
            self._alone.append(
                lambda event, first, last: event.timestamp == moment)
            return None
        try:
            if not isinstance(text, str):
                raise _Mistake('timestamp is a time expression or range')
            compared = _comparison(text)
            if compared is not None and compared[0] is not operator.eq:
                compiled = _time_test(
                    operator.attrgetter('timestamp'), compared[1],
                    self._timezone, compared[0])
                self._keep(compiled)
                return None
            expression = timex.parse(text, self._timezone)
        except (exceptions.TimexError, _Mistake) as error:
            self._refuse(str(error), 'timestamp')
            return None
        self._keep(_expression_test(
            operator.attrgetter('timestamp'), expression, None))
        return expression

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
                compiled = _trait_test(name, wanted, self._timezone)
            except (exceptions.TimexError, _Mistake) as error:
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


_OPERATORS = {'>=': operator.ge, '<=': operator.le, '!=': operator.ne,
              '>': operator.gt, '<': operator.lt}
_COMPARISON = re.compile(r'\s*(>=|<=|!=|>|<)(.*)', re.S)
_NUMBER = re.compile(r'[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?')
_DATE = re.compile(r'\d{4}-\d\d-\d\d([T ].*)?')
#: What a plain text needs to be taken for a time expression.
_TIME_SIGN = re.compile(
    r'\$|[+@]|\s-\s*\d|-\s*\d+\s*[a-z]|\sto\s|^\s*(hour|day|month|year)\s*\(')


def _comparison(text):
    """Return ``(operator, operand text)``, or None for no comparison."""
    found = _COMPARISON.fullmatch(text)
    if found is None:
        return None
    operand = found[2].strip()
    if not operand:
        raise _Mistake(f'{text!r}: there is nothing behind {found[1]!r}')
    return _OPERATORS[found[1]], operand


def _trait_test(name, wanted, timezone):
    """Compile what is wanted of a trait."""
    if isinstance(wanted, list):
        if not wanted:
            raise _Mistake('an empty list matches nothing; leave the trait '
                           'out, or write what may match')
        return _any(_trait_test(name, one, timezone) for one in wanted)
    if isinstance(wanted, dict):
        return _typed(name, wanted, timezone)
    if isinstance(wanted, bool):
        raise _Mistake(
            'a trait is never true or false; compare it with a text or a '
            'number (quote the text: "True")')
    if wanted is None:
        raise _Mistake('write "is NULL" for a trait that must be missing')
    if isinstance(wanted, (int, float)):
        return _number_test(name, operator.eq, wanted)
    if isinstance(wanted, datetime.date):
        return _datetime_test(name, operator.eq, _as_datetime(wanted))
    words = wanted.split()
    if [word.lower() for word in words] == ['is', 'null']:
        return _Compiled(
            lambda event, first, last: name not in event.traits)
    if [word.lower() for word in words] == ['is', 'not', 'null']:
        return _Compiled(lambda event, first, last: name in event.traits)
    compared = _comparison(wanted)
    if compared is not None:
        return _compared(name, *compared, timezone)
    if _TIME_SIGN.search(wanted):
        try:
            expression = timex.parse(wanted, timezone)
        except exceptions.TimexError:
            if '$' in wanted:
                raise
            expression = None
        if expression is not None:
            return _any([
                _expression_test(_trait(name), expression, None),
                _text_test(name, operator.eq, wanted)._replace(
                    equals=None)])
    if _DATE.fullmatch(wanted):
        try:
            moment = timestamps.parse(wanted)
        except ValueError:
            pass
        else:
            return _any([
                _datetime_test(name, operator.eq, moment),
                _text_test(name, operator.eq, wanted)])
    return _text_test(name, operator.eq, wanted)


def _typed(name, wanted, timezone):
    forms = ('glob', 'regex', 'int', 'float', 'datetime', 'text')
    if len(wanted) != 1 or next(iter(wanted)) not in forms:
        raise _Mistake(f'a mapping here has one of the keys '
                       f'{", ".join(forms)}')
    (form, operand), = wanted.items()
    if form == 'text':
        if not isinstance(operand, str):
            raise _Mistake('{text: ...} takes a text; quote it')
        return _text_test(name, operator.eq, operand)
    if form in ('glob', 'regex'):
        if not isinstance(operand, str):
            raise _Mistake(f'{{{form}: ...}} takes a text; quote it')
        pattern = fnmatch.translate(operand) if form == 'glob' else operand
        try:
            match = re.compile(pattern).fullmatch
        except re.error as error:
            raise _Mistake(
                f'{operand!r} is not a regular expression: {error}'
            ) from error
        return _Compiled(lambda event, first, last: (
            type(value := event.traits.get(name)) is str
            and match(value) is not None))
    if form == 'datetime':
        if isinstance(operand, datetime.date):
            return _datetime_test(name, operator.eq, _as_datetime(operand))
        if not isinstance(operand, str):
            raise _Mistake('{datetime: ...} takes a datetime or a time '
                           'expression')
        compare, operand = _comparison(operand) or (None, operand)
        return _time_test(_trait(name), operand, timezone, compare)
    compare = operator.eq
    if isinstance(operand, str):
        compare, text = _comparison(operand) or (operator.eq, operand)
        operand = _number(text.strip())
    if operand is None or type(operand) not in (int, float) or (
            form == 'int' and type(operand) is not int):
        raise _Mistake(f'{{{form}: ...}} takes a number, alone or behind a '
                       f'comparison')
    types = (int,) if form == 'int' else (int, float)
    return _number_test(name, compare, operand, types)


def _compared(name, compare, operand, timezone):
    number = _number(operand)
    if number is not None:
        return _number_test(name, compare, number)
    if (operand in LIST_NAMES or operand == 'timestamp'
            or _DATE.fullmatch(operand) or _TIME_SIGN.search(operand)):
        try:
            return _time_test(_trait(name), operand, timezone, compare)
        except (exceptions.TimexError, _Mistake):
            if '$' in operand:
                raise
    if operand[0] == operand[-1] and operand[0] in '\'"' and (
            len(operand) > 1):
        operand = operand[1:-1]
    return _text_test(name, compare, operand)


def _number(text):
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)


def _as_datetime(moment):
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def _trait(name):
    return lambda event: event.traits.get(name)


def _number_test(name, compare, wanted, types=(int, float)):
    equals = None
    if compare is operator.eq:
        equals = (wanted,)
        if wanted == wanted // 1:
            # An int and a float of one value are equal, and stand apart in
            # the index.
            equals = tuple({int: int(wanted), float: float(wanted)}[one]
                           for one in types)
    return _Compiled(
        lambda event, first, last: (
            type(value := event.traits.get(name)) in types
            and compare(value, wanted)), equals=equals)


def _text_test(name, compare, wanted):
    return _Compiled(
        lambda event, first, last: (
            type(value := event.traits.get(name)) is str
            and compare(value, wanted)),
        equals=(wanted,) if compare is operator.eq else None)


def _datetime_test(name, compare, wanted):
    return _Compiled(
        lambda event, first, last: (
            type(value := event.traits.get(name)) is datetime.datetime
            and compare(value, wanted)),
        equals=(wanted,) if compare is operator.eq else None)


def _any(compiled):
    compiled = list(compiled)
    tests = [one.test for one in compiled]
    equals = None
    if all(one.equals is not None for one in compiled):
        equals = tuple(value for one in compiled for value in one.equals)
    return _Compiled(
        lambda event, first, last: any(
            test(event, first, last) for test in tests),
        any(one.needs_list for one in compiled), equals)


def _time_test(get, text, timezone, compare):
    """Compile a comparison with a datetime or a time expression."""
    if _DATE.fullmatch(text.strip()):
        try:
            moment = timestamps.parse(text.strip())
        except ValueError as error:
            raise _Mistake(str(error)) from error
        test = compare or operator.eq
        return _Compiled(
            lambda event, first, last: (
                type(value := get(event)) is datetime.datetime
                and test(value, moment)))
    expression = timex.parse(text, timezone)
    if compare is not None and expression.is_range:
        raise _Mistake(f'{text!r} is a range; only a single time can be '
                       f'compared')
    return _expression_test(get, expression, compare)


def _expression_test(get, expression, compare):
    names = expression.names
    needs_list = bool(names & LIST_NAMES)
    wants_timestamp = 'timestamp' in names
    others = tuple(names - LIST_NAMES - {'timestamp'})
    remembered = (None, None, None)

    def evaluate(event, first, last):
        values = {'first': first, 'last': last} if needs_list else {}
        if wants_timestamp:
            values['timestamp'] = event.timestamp
        for name in others:
            value = event.traits.get(name)
            if type(value) is not datetime.datetime:
                return None
            values[name] = value
        try:
            return expression(**values)
        except exceptions.TimexOverflow:
            return None

    def evaluate_list(event, first, last):
        # Over a list the answer is the same for each event.
        nonlocal remembered
        known = remembered
        if known[0] != first or known[1] != last:
            known = remembered = (first, last, evaluate(event, first, last))
        return known[2]

    find = evaluate if others or wants_timestamp else evaluate_list

    def test(event, first, last):
        value = get(event)
        if type(value) is not datetime.datetime:
            return False
        moment = find(event, first, last)
        if moment is None:
            return False
        if compare is None:
            return value in moment
        return compare(value, moment.timestamp)

    return _Compiled(test, needs_list)
