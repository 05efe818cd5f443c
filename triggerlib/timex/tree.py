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

"""What a time expression says, as data.

Parentheses and order are gone here: operations stand in the order in which
they apply, so that a tree is never deeper than a range of moments.
"""

import dataclasses

#: The units, from large to small.
UNITS = ('year', 'month', 'week', 'day', 'hour', 'minute', 'second',
         'microsecond')

#: The periods, each with the unit of a number that comes without one.
PERIODS = {'year': 'month', 'month': 'day', 'day': 'hour', 'hour': 'minute'}


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One step: add, subtract or replace.

    :param symbol: ``+``, ``-`` or ``@``
    :param amounts: number by unit
    :param bare: the number that came without a unit, or None; its unit
        depends on the length of the range that it is applied to
    :param column: where the first number stands, counted from 1
    """

    symbol: str
    amounts: dict[str, int]
    bare: int | None
    column: int

    def resolve(self, unit: str) -> 'Operation':
        """Return the operation with its bare number read as ``unit``."""
        if self.bare is None:
            return self
        amounts = dict(self.amounts)
        amounts[unit] = amounts.get(unit, 0) + self.bare
        return dataclasses.replace(self, amounts=amounts, bare=None)

    def largest(self) -> int:
        """Return the index in UNITS of the largest unit that it touches."""
        return min(
            (UNITS.index(unit) for unit, amount in self.amounts.items()
             if amount or self.symbol == '@'),
            default=len(UNITS))


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """A name and what is done to its datetime.

    :param name: a datetime's name
    :param column: where the name stands, counted from 1
    :param operations: the operations, in order
    """

    name: str
    column: int
    operations: tuple[Operation, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Between:
    """A range from one moment to another, and what is done to both ends.

    :param begin: where it begins
    :param end: where it ends
    :param operations: the operations, in order
    """

    begin: Moment
    end: Moment
    operations: tuple[Operation, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Period:
    """The calendar period around a moment, and what is done to its ends.

    :param unit: a key of PERIODS
    :param argument: the moment
    :param operations: the operations, in order
    """

    unit: str
    argument: Moment
    operations: tuple[Operation, ...] = ()

    def pinned(self) -> tuple[Operation, ...]:
        """Return the operations that leave the range around its moment.

        They are those before the first that is as large as the period.
        """
        own = UNITS.index(self.unit)
        for index, operation in enumerate(self.operations):
            if operation.largest() <= own:
                return self.operations[:index]
        return self.operations
