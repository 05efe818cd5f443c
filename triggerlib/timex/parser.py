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

"""From the text of a time expression to its tree.

The grammar, each rule being a method of the parser::

    expression = operated [ "to" operated ]
    operated   = operand { ("+" | "-") duration | "@" replacement }
    operand    = "(" expression ")" | period | ["$"] name
    period     = ("hour" | "day" | "month" | "year") [ "(" [expression] ")" ]
    duration   = number [unit] { number [unit] }
    replacement= duration | HH ":" MM [ ":" SS ]

What is a moment and what is a range is checked on the way.
"""

import dataclasses
import typing

from triggerlib import exceptions
from triggerlib.timex import lexer
from triggerlib.timex import limits
from triggerlib.timex import tree

#: How deep parentheses may be nested.
DEPTH = 50

_UNITS = {
    'us': 'microsecond',
    's': 'second', 'sec': 'second',
    'm': 'minute', 'min': 'minute',
    'h': 'hour', 'hr': 'hour',
    'd': 'day',
    'w': 'week',
    'mo': 'month',
    'y': 'year', 'yr': 'year',
}

# No number of more digits than this fits the calendar in any unit.
_DIGITS = 18

Tree: typing.TypeAlias = tree.Moment | tree.Between | tree.Period


def parse(text: str) -> Tree:
    """Return the tree of an expression.

    :raises TimexError: with the column, where the text is no expression
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text):
        self._text = text
        self._tokens = lexer.tokens(text)
        self._index = 0
        self._depth = 0

    def parse(self):
        node = self._expression()
        token = self._peek()
        if token.kind != 'end':
            raise self._unexpected(token, '+, -, @, "to" or the end')
        return node

    def _expression(self):
        begin = self._operated()
        token = self._peek()
        if not (token.kind == 'word' and token.text == 'to'):
            return begin
        self._require_moment(
            begin, token, 'what stands before "to" is a range already')
        self._take()
        start = self._peek()
        end = self._operated()
        self._require_moment(
            end, start, 'a range cannot be the end of a range')
        return tree.Between(begin, end)

    def _operated(self):
        node = self._operand()
        while self._peek().kind in ('+', '-', '@'):
            operation = self._operation(node)
            node = dataclasses.replace(
                node, operations=(*node.operations, operation))
        return node

    def _operand(self):
        token = self._take()
        if token.kind == '(':
            return self._parenthesis(token)
        if token.kind == '$':
            name = self._take()
            if name.kind != 'word':
                raise self._unexpected(name, 'a name after $')
            return tree.Moment(name.text, name.column)
        if token.kind != 'word' or token.text == 'to':
            raise self._unexpected(
                token, 'a name, a period (hour, day, month, year) or "("')
        if token.text in tree.PERIODS:
            return self._period(token)
        if self._peek().kind == '(':
            raise self._error(
                token, f'there is no period {token.text!r}; there are hour, '
                       f'day, month and year')
        return tree.Moment(token.text, token.column)

    def _parenthesis(self, opening):
        self._depth += 1
        if self._depth > DEPTH:
            raise self._error(
                opening, f'parentheses are nested more than {DEPTH} deep')
        node = self._expression()
        closing = self._take()
        if closing.kind != ')':
            raise self._unexpected(
                closing, f'")" for the "(" in column {opening.column}')
        self._depth -= 1
        return node

    def _period(self, word):
        if self._peek().kind != '(':
            return tree.Period(
                word.text, tree.Moment('timestamp', word.column))
        opening = self._take()
        if self._peek().kind == ')':
            self._take()
            return tree.Period(
                word.text, tree.Moment('timestamp', word.column))
        argument = self._parenthesis(opening)
        self._require_moment(
            argument, opening, f'{word.text} is taken of a moment, and this '
                               f'is a range')
        return tree.Period(word.text, argument)

    def _operation(self, node):
        sign = self._take()
        if sign.kind == '@' and self._peek(1).kind == ':':
            operation = self._clock_time()
        else:
            operation = self._duration(sign, node)
        if isinstance(node, tree.Period):
            operation = operation.resolve(tree.PERIODS[node.unit])
            if (sign.kind == '@' and operation.largest()
                    <= tree.UNITS.index(node.unit)):
                raise self._refusal(
                    operation, f'@ on a range of one {node.unit} sets only '
                               f'what is smaller than a {node.unit}')
        if operation.bare is None:
            reason = limits.mistake(operation)
            if reason is not None:
                raise self._refusal(operation, reason)
        return operation

    def _duration(self, sign, node):
        first = self._peek()
        if first.kind != 'number':
            raise self._unexpected(
                first, f'a number, such as 3h, after {sign.text}')
        amounts = {}
        bare = None
        while self._peek().kind == 'number':
            number = self._take()
            amount = self._number(number)
            unit = self._unit(number)
            if unit is not None:
                amounts[unit] = amounts.get(unit, 0) + amount
            elif isinstance(node, tree.Moment):
                raise self._error(
                    number, f'{number.text} needs a unit: '
                            f'{", ".join(_UNITS)}')
            else:
                bare = amount if bare is None else bare + amount
        return tree.Operation(sign.kind, amounts, bare, first.column)

    def _unit(self, number):
        token = self._peek()
        if token.kind == ':':
            raise self._error(token, 'a time of day can only follow @')
        if token.kind != 'word' or token.text == 'to':
            return None
        if token.text not in _UNITS:
            raise self._error(
                token, f'{token.text!r} is no unit; the units are '
                       f'{", ".join(_UNITS)}')
        self._take()
        return _UNITS[token.text]

    def _clock_time(self):
        hour = self._take()
        if hour.kind != 'number' or len(hour.text) > 2:
            raise self._unexpected(hour, 'a time of day, such as 06:00')
        amounts = {'hour': int(hour.text), 'minute': 0, 'second': 0,
                   'microsecond': 0}
        for unit in ('minute', 'second'):
            if self._peek().kind != ':':
                break
            self._take()
            token = self._take()
            if token.kind != 'number' or len(token.text) != 2:
                raise self._unexpected(token, f'two digits of the {unit}')
            amounts[unit] = int(token.text)
        return tree.Operation('@', amounts, None, hour.column)

    def _number(self, token):
        if len(token.text) > _DIGITS:
            raise self._error(
                token, f'the number has more than {_DIGITS} digits')
        return int(token.text)

    def _peek(self, ahead=0):
        # The end token is last and never passed.
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def _take(self):
        token = self._peek()
        self._index += 1
        return token

    def _require_moment(self, node, token, reason):
        if not isinstance(node, tree.Moment):
            raise self._error(token, reason)

    def _unexpected(self, token, wanted):
        found = ('the expression ends' if token.kind == 'end'
                 else f'there is {token.text!r}')
        return self._error(token, f'{wanted} is wanted, but {found}')

    def _refusal(self, operation, reason):
        return exceptions.TimexError(self._text, operation.column, reason)

    def _error(self, token, reason):
        return exceptions.TimexError(self._text, token.column, reason)
