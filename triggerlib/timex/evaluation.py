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

"""From a tree to a function from datetimes by name to a result."""

from collections import abc
import datetime
import typing

from triggerlib import exceptions
from triggerlib.timex import limits
from triggerlib.timex import parser
from triggerlib.timex import result
from triggerlib.timex import tree
from triggerlib.timex import walltime

Result: typing.TypeAlias = result.Timestamp | result.TimeRange
Evaluation: typing.TypeAlias = abc.Callable[
    [abc.Mapping[str, datetime.datetime]], Result]

# Of which unit a bare number is, by the length of the range it applies to.
_BARE_UNITS = tuple(
    (datetime.timedelta(microseconds=limits.MICROSECONDS[length]), unit)
    for length, unit in (
        ('year', 'month'), ('month', 'day'), ('day', 'hour'),
        ('hour', 'minute'), ('minute', 'second')))


def compile_tree(node: parser.Tree, zone: datetime.tzinfo,
                 text: str) -> Evaluation:
    """Return the function that evaluates a tree.

    The function raises TimexError when a name is missing or is no datetime,
    and OverflowError when a result is outside of datetime's range.

    :param node: what the parser made
    :param zone: the zone in which ``@``, periods and days are read
    :param text: the expression's text, for error messages
    """
    compiler = _Compiler(zone, text)
    if isinstance(node, tree.Moment):
        moment = compiler.moment(node)
        timestamp = result.Timestamp
        return lambda datetimes: timestamp(moment(datetimes))
    if isinstance(node, tree.Between):
        ends = compiler.between(node)
    else:
        ends = compiler.period(node)
    time_range = result.TimeRange
    return lambda datetimes: time_range(*ends(datetimes))


class _Compiler:
    def __init__(self, zone, text):
        self._zone = zone
        self._text = text

    def moment(self, node):
        read = self._read(node)
        if not node.operations:
            return read
        change = self._changes(node.operations)
        return lambda datetimes: change(read(datetimes))

    def between(self, node):
        begin = self.moment(node.begin)
        end = self.moment(node.end)
        steps = [self._on_both_ends(operation)
                 for operation in node.operations]

        def evaluate(datetimes):
            ends = begin(datetimes), end(datetimes)
            for step in steps:
                ends = step(*ends)
            return ends

        return evaluate

    def period(self, node):
        argument = self.moment(node.argument)
        pinned = node.pinned()
        around = self._pinned(node.unit, self._changes(pinned))
        if len(pinned) == len(node.operations):
            return lambda datetimes: around(argument(datetimes))
        rest = self._changes(node.operations[len(pinned):])

        def evaluate(datetimes):
            begin, end = around(argument(datetimes))
            return rest(begin), rest(end)

        return evaluate

    def _pinned(self, unit, change):
        # The operations move every boundary of the calendar alike; the
        # range is what lies between those two moved boundaries that have
        # the moment between them. That keeps months and years of unequal
        # length, and days of 23 and 25 hours, joined without a gap.
        periods = walltime.Periods(unit, self._zone)
        stride = 2 * periods.usual_length

        def evaluate(moment):
            boundary = periods.around(moment)
            number = 0
            begin = change(boundary(number))
            while begin > moment:
                number -= (begin - moment) // stride or 1
                begin = change(boundary(number))
            end = change(boundary(number + 1))
            while end <= moment:
                number += (moment - end) // stride or 1
                begin = change(boundary(number))
                end = change(boundary(number + 1))
            return begin, end

        return evaluate

    def _on_both_ends(self, operation):
        if operation.bare is None:
            change = self._change(operation)
            return lambda begin, end: (change(begin), change(end))

        def step(begin, end):
            resolved = operation.resolve(_bare_unit(end - begin))
            reason = limits.mistake(resolved)
            if reason is not None:
                raise exceptions.TimexError(
                    self._text, operation.column, reason)
            change = self._change(resolved)
            return change(begin), change(end)

        return step

    def _changes(self, operations):
        return walltime.chain(
            [self._change(operation) for operation in operations])

    def _change(self, operation):
        amounts = operation.amounts
        if operation.symbol == '@':
            return walltime.replace(self._zone, amounts)
        sign = 1 if operation.symbol == '+' else -1
        months = 12 * amounts.get('year', 0) + amounts.get('month', 0)
        days = 7 * amounts.get('week', 0) + amounts.get('day', 0)
        elapsed = datetime.timedelta(microseconds=sum(
            amounts.get(unit, 0) * limits.MICROSECONDS[unit]
            for unit in ('hour', 'minute', 'second', 'microsecond')))
        return walltime.shift(
            self._zone, sign * months, sign * days, sign * elapsed)

    def _read(self, node):
        name = node.name
        column = node.column
        text = self._text

        def read(datetimes):
            try:
                moment = datetimes[name]
            except KeyError:
                raise exceptions.TimexError(
                    text, column, f'there is no datetime {name!r}') from None
            if not isinstance(moment, datetime.datetime):
                raise exceptions.TimexError(
                    text, column, f'{name!r} is no datetime: {moment!r}')
            return result.as_utc(moment)

        return read


def _bare_unit(length):
    length = abs(length)
    for limit, unit in _BARE_UNITS:
        if length >= limit:
            return unit
    return 'microsecond'
