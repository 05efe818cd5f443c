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

"""Trait expressions: what one trait is compared with, made into a test.

What a criterion says of a trait is either a constant or an expression:

* ``> 10``, ``>=``, ``<``, ``<=``, ``!=``. What is behind the operator decides
  what is compared: a number compares numbers; a date or datetime, and a time
  expression, compares datetimes; anything else compares texts. In quotes it
  is a text in any case: ``> '10'``;
* ``is NULL`` (the event lacks the trait) and ``is not NULL``;
* a list: any of its entries;
* ``{glob: "web-*"}`` and ``{regex: ...}``, which the whole text has to match;
* a time expression or range, against a datetime trait;
* the typed forms ``{int: "> 4"}``, ``{float: "> 4"}`` (ints count as well),
  ``{datetime: "> first"}`` and ``{text: "> 10"}``, the last of which is
  always the constant.

**What is a time expression.** Many a constant looks like one: ``first``,
``day``, ``rack-3m``. A plain text is taken for one when it refers to
something by ``$``, by an operator, or as a range, and can be parsed. It then
still equals a text trait of that very text, so that a constant never fails
silently. One with a ``$``, or with an operator behind ``first``, ``last`` or
``timestamp``, is refused when it cannot be parsed. ``{datetime: first}`` says
that a time is meant, ``{text: $5}`` that none is. In a comparison ``first``,
``last`` and ``timestamp`` are times by themselves; what refers to none of them
and has no ``$`` compares texts as well. A text that is a date or datetime
equals both that datetime and that text.

A comparison across types does not match, and does not raise. Ints and floats
are both numbers. Datetimes without a zone are UTC; a date is its midnight.
"""

from collections import abc as collections_abc
import datetime
import fnmatch
import operator
import re
import typing

from triggerlib.event import timestamps
from triggerlib import exceptions
from triggerlib import timex

#: Names in time expressions that are the list's, not a trait's.
LIST_NAMES: typing.Final = frozenset({'first', 'last'})

#: ``test(event, first, last)``
Test: typing.TypeAlias = collections_abc.Callable[..., bool]

#: ``bounds(first, last)`` gives the begin and end of what can match.
Bounds: typing.TypeAlias = collections_abc.Callable[..., tuple]


class Mistake(Exception):
    """An expression is wrong; the text says how, and what would be right."""


class Compiled(typing.NamedTuple):
    """An expression that was read.

    :param test: tells whether an event matches
    :param needs_list: whether the test needs first and last
    :param equals: the constants that it amounts to, each in every type that
        is equal to it; None where it is not that simple
    :param bounds: gives the times before and after which nothing matches,
        where they do not depend on the event
    """

    test: Test
    needs_list: bool = False
    equals: tuple | None = None
    bounds: Bounds | None = None


def compile_trait(name, wanted, timezone) -> Compiled:
    """Read what a criterion says of a trait.

    :param name: the trait's name
    :param wanted: the constant or expression, as YAML gives it
    :param timezone: IANA name of the zone in which times are read
    :raises Mistake: it is none
    :raises TimexError: a time expression in it is wrong
    """
    if isinstance(wanted, list):
        return _any_of(name, wanted, timezone)
    if isinstance(wanted, dict):
        return _typed(name, wanted, timezone)
    if isinstance(wanted, bool):
        raise Mistake(
            'a trait is never true or false; compare it with a text or a '
            'number (quote the text: "True")')
    if wanted is None:
        raise Mistake('write "is NULL" for a trait that must be missing')
    if isinstance(wanted, (int, float)):
        return _number_test(name, operator.eq, wanted)
    if isinstance(wanted, datetime.date):
        return _moment_test(_trait(name), operator.eq, as_utc(wanted))
    if not isinstance(wanted, str):
        raise Mistake(f'a trait is a text, a number or a datetime, never a '
                      f'{type(wanted).__name__}')
    words = wanted.lower().split()
    if words == ['is', 'null']:
        return Compiled(lambda event, first, last: name not in event.traits)
    if words == ['is', 'not', 'null']:
        return Compiled(lambda event, first, last: name in event.traits)
    compared = _comparison(wanted)
    if compared is not None:
        return _compared(name, *compared, timezone)
    return _plain(name, wanted, timezone)


def compile_timestamp(wanted, timezone) -> Compiled:
    """Read what a criterion says of the event's own timestamp.

    :param wanted: a datetime, a time expression or range, or a comparison
    :param timezone: IANA name of the zone in which times are read
    :raises Mistake: it is none of these
    :raises TimexError: a time expression in it is wrong
    """
    get = operator.attrgetter('timestamp')
    if isinstance(wanted, datetime.date):
        return _moment_test(get, operator.eq, as_utc(wanted))
    if not isinstance(wanted, str):
        raise Mistake('timestamp is a datetime, a time expression or a '
                      'range')
    compare, operand = _comparison(wanted) or (operator.eq, wanted.strip())
    return _time_test(get, compare, operand, timezone)


def as_utc(date) -> datetime.datetime:
    """Return a date or datetime of a YAML file as aware UTC datetime.

    :raises Mistake: as UTC it is out of all years
    """
    if not isinstance(date, datetime.datetime):
        date = datetime.datetime.combine(date, datetime.time())
    try:
        return timestamps.parse(date)
    except ValueError as error:
        raise Mistake(str(error)) from error


_OPERATORS = {'>=': operator.ge, '<=': operator.le, '!=': operator.ne,
              '>': operator.gt, '<': operator.lt}
_COMPARISON = re.compile(r'\s*(>=|<=|!=|>|<)(.*)', re.S)
_NUMBER = re.compile(r'[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?')
_DATE = re.compile(r'\d{4}-\d\d-\d\d([T ].*)?')
#: Without one of these a text is no time expression but a word.
_TIME_SIGN = re.compile(r'[$+@(-]|\sto\s')
#: What begins so is meant as one, even when it has a mistake.
_TIME_MEANT = re.compile(
    r'[\s(]*(first|last|timestamp)\s*([+@]|-\s*[\d.]+\s*[A-Za-z])|.*\$', re.S)
_AS_IT_STANDS = 'a text that is meant as it stands is written {text: ...}'
_IN_QUOTES = 'a text to compare with can stand in quotes'


def _comparison(text):
    """Return ``(operator, operand text)``, or None for no comparison."""
    found = _COMPARISON.fullmatch(text)
    if found is None:
        if text.lstrip().startswith('='):
            raise Mistake(f'{text!r}: the operators are '
                          f'{", ".join(_OPERATORS)}; what is equal is '
                          f'written alone, and {_AS_IT_STANDS}')
        return None
    operand = found[2].strip()
    if not operand:
        raise Mistake(f'{text!r}: there is nothing behind {found[1]!r}')
    if operand[0] in '<>=!':
        raise Mistake(f'{text!r}: the operators are '
                      f'{", ".join(_OPERATORS)}; {_IN_QUOTES}')
    return _OPERATORS[found[1]], operand


def _any_of(name, wanted, timezone):
    if not wanted:
        raise Mistake('an empty list matches nothing; leave the trait out, '
                      'or write what may match')
    if any(isinstance(one, list) for one in wanted):
        raise Mistake('a list of what may match holds no lists')
    return _any([compile_trait(name, one, timezone) for one in wanted])


def _typed(name, wanted, timezone):
    forms = ('glob', 'regex', 'int', 'float', 'datetime', 'text')
    if len(wanted) != 1 or next(iter(wanted)) not in forms:
        raise Mistake(f'a mapping here has one of the keys '
                      f'{", ".join(forms)}')
    (form, operand), = wanted.items()
    if form in ('int', 'float'):
        return _typed_number(name, form, operand)
    if form == 'datetime' and isinstance(operand, datetime.date):
        return _moment_test(_trait(name), operator.eq, as_utc(operand))
    if not isinstance(operand, str):
        raise Mistake(f'{{{form}: ...}} takes a text; quote it')
    if form == 'text':
        return _text_test(name, operator.eq, operand)
    if form == 'datetime':
        compare, operand = (
            _comparison(operand) or (operator.eq, operand.strip()))
        return _time_test(_trait(name), compare, operand, timezone)
    pattern = fnmatch.translate(operand) if form == 'glob' else operand
    try:
        match = re.compile(pattern).fullmatch
    except (re.error, OverflowError, RecursionError) as error:
        raise Mistake(
            f'{operand!r} is not a regular expression: {error}') from error
    return Compiled(lambda event, first, last: (
        type(value := event.traits.get(name)) is str
        and match(value) is not None))


def _typed_number(name, form, operand):
    compare = operator.eq
    if isinstance(operand, str):
        compare, text = _comparison(operand) or (operator.eq, operand)
        operand = _number(text.strip())
    if form == 'int':
        if type(operand) is not int:
            raise Mistake('{int: ...} takes a whole number, alone or behind '
                          'a comparison')
        return _number_test(name, compare, operand, (int,))
    if type(operand) not in (int, float):
        raise Mistake('{float: ...} takes a number, alone or behind a '
                      'comparison')
    return _number_test(name, compare, operand)


def _plain(name, wanted, timezone):
    """Compile a text that is a constant, and may be a time as well."""
    if _DATE.fullmatch(wanted):
        try:
            moment = timestamps.parse(wanted)
        except ValueError:
            return _text_test(name, operator.eq, wanted)
        return _any([_moment_test(_trait(name), operator.eq, moment),
                     _text_test(name, operator.eq, wanted)])
    expression = _guess(wanted, timezone, _AS_IT_STANDS)
    if expression is None:
        return _text_test(name, operator.eq, wanted)
    return _any([_expression_test(_trait(name), operator.eq, expression),
                 _text_test(name, operator.eq, wanted)])


def _compared(name, compare, operand, timezone):
    number = _number(operand)
    if number is not None:
        return _number_test(name, compare, number)
    if len(operand) > 1 and operand[0] == operand[-1] in ('"', "'"):
        return _text_test(name, compare, operand[1:-1])
    if _DATE.fullmatch(operand):
        try:
            return _time_test(_trait(name), compare, operand, timezone)
        except Mistake as error:
            raise Mistake(f'{error}; {_IN_QUOTES}') from error
    if operand in LIST_NAMES or operand == 'timestamp':
        expression = timex.parse(operand, timezone)
    else:
        expression = _guess(operand, timezone, _IN_QUOTES)
    text_test = _text_test(name, compare, operand)
    if expression is None:
        return text_test
    certain = '$' in operand or not expression.names.isdisjoint(
        LIST_NAMES | {'timestamp'})
    if expression.is_range:
        if certain:
            raise _range_mistake(operand, _IN_QUOTES)
        return text_test
    timed = _expression_test(_trait(name), compare, expression)
    return timed if certain else _any([timed, text_test])


def _guess(text, timezone, otherwise):
    """Return the time expression that a text is taken for, or None.

    :param otherwise: how to write that it is none
    """
    if not _TIME_SIGN.search(text):
        return None
    try:
        return timex.parse(text, timezone)
    except exceptions.TimexError as error:
        if _TIME_MEANT.match(text):
            raise Mistake(f'{error}; {otherwise}') from error
        return None


def _number(text):
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)


def _trait(name):
    return lambda event: event.traits.get(name)


def _number_test(name, compare, wanted, types=(int, float)):
    return Compiled(
        lambda event, first, last: (
            type(value := event.traits.get(name)) in types
            and compare(value, wanted)),
        equals=_equal_numbers(wanted, types)
        if compare is operator.eq else None)


def _equal_numbers(wanted, types):
    # Equal numbers of two types, and the two zeros, stand apart in an index.
    if not wanted:
        equal = [0, 0.0, -0.0]
    elif type(wanted) is float:
        equal = [wanted, *([int(wanted)] if wanted.is_integer() else [])]
    else:
        equal = [wanted]
        try:
            equal.append(float(wanted))
        except OverflowError:
            # No float is that large.
            pass
    return tuple(one for one in equal if type(one) in types)


def _text_test(name, compare, wanted):
    return Compiled(
        lambda event, first, last: (
            type(value := event.traits.get(name)) is str
            and compare(value, wanted)),
        equals=(wanted,) if compare is operator.eq else None)


def _moment_test(get, compare, wanted):
    return Compiled(
        lambda event, first, last: (
            type(value := get(event)) is datetime.datetime
            and compare(value, wanted)),
        equals=(wanted,) if compare is operator.eq else None,
        bounds=lambda first, last: _bounds(compare, wanted, wanted))


def _any(compiled):
    tests = [one.test for one in compiled]
    equals = None
    if all(one.equals is not None for one in compiled):
        equals = tuple(value for one in compiled for value in one.equals)
    return Compiled(
        lambda event, first, last: any(
            test(event, first, last) for test in tests),
        any(one.needs_list for one in compiled), equals)


def _time_test(get, compare, text, timezone):
    """Compile a comparison with a datetime or a time expression."""
    if _DATE.fullmatch(text):
        try:
            moment = timestamps.parse(text)
        except ValueError as error:
            raise Mistake(str(error)) from error
        return _moment_test(get, compare, moment)
    expression = timex.parse(text, timezone)
    if expression.is_range and compare is not operator.eq:
        raise _range_mistake(text, 'write the begin or the end of it')
    return _expression_test(get, compare, expression)


def _range_mistake(text, otherwise):
    return Mistake(f'{text!r} is a range, and only a single time can be '
                   f'compared; {otherwise}')


def _expression_test(get, compare, expression):
    """Compile a comparison with a time expression, or in a range."""
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

    depends_on_event = wants_timestamp or bool(others)
    find = evaluate if depends_on_event else evaluate_list

    def test(event, first, last):
        value = get(event)
        if type(value) is not datetime.datetime:
            return False
        moment = find(event, first, last)
        if moment is None:
            return False
        if compare is operator.eq:
            return value in moment
        return compare(value, moment.timestamp)

    def bounds(first, last):
        moment = find(None, first, last)
        if moment is None:
            # Out of all datetimes: the test lets nothing through.
            return None, None
        return _bounds(compare, moment.begin, moment.end)

    return Compiled(test, needs_list,
                    bounds=None if depends_on_event else bounds)


def _bounds(compare, begin, end):
    """Return begin and end, exclusive, of what compares so with a time."""
    if compare is operator.eq:
        return begin, end
    if compare in (operator.gt, operator.ge):
        return begin, None
    if compare is operator.lt:
        return None, end
    if compare is operator.le and end < datetime.datetime.max.replace(
            tzinfo=datetime.timezone.utc):
        return None, end + datetime.timedelta(microseconds=1)
    return None, None
