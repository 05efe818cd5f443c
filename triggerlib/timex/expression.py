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

"""A time expression: text that has been read and can be evaluated."""

import dataclasses
import datetime
import functools
import zoneinfo

from triggerlib import exceptions
from triggerlib.timex import evaluation
from triggerlib.timex import parser
from triggerlib.timex import result
from triggerlib.timex import tree


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """A time expression; :func:`parse` makes it, calling it evaluates it.

    :param text: the text as it was given
    :param timezone: IANA name of the zone in which it is read
    :param names: the names of the datetimes it needs; a period without an
        argument needs ``timestamp``
    :param is_range: whether it gives a :class:`TimeRange`, which its text
        alone decides
    """

    text: str
    timezone: str
    names: frozenset[str] = dataclasses.field(compare=False)
    is_range: bool = dataclasses.field(compare=False)
    _evaluate: evaluation.Evaluation = dataclasses.field(
        compare=False, repr=False)

    def __call__(self, /, **datetimes: datetime.datetime) -> (
            result.Timestamp | result.TimeRange):
        """Return what the expression means for these datetimes.

        :param datetimes: datetimes by name, taken as UTC where naive; names
            that the expression does not need are ignored
        :return: aware UTC datetimes, in a Timestamp or a TimeRange
        :raises TimexError: when a name is missing or is no datetime
        :raises TimexOverflow: when a result is outside of the years 1 to
            9999
        """
        try:
            return self._evaluate(datetimes)
        except OverflowError as exc:
            raise exceptions.TimexOverflow(
                self.text, None,
                'the result is outside of the years 1 to 9999') from exc

    def __str__(self):
        return self.text

    def __reduce__(self):
        return parse, (self.text, self.timezone)


def parse(text: str, timezone: str = 'UTC') -> Expression:
    """Return the expression that a text means.

    :param text: a time expression, ``first@00:00 to last+2h``
    :param timezone: IANA name of the zone in which ``@``, periods, days,
        weeks, months and years are read
    :raises TimexError: when the text is no time expression, with the column
        of the mistake counted from 1, or when there is no such zone
    """
    if not isinstance(text, str):
        raise exceptions.TimexError(
            text, None, 'a time expression is a text, and this is of type '
                        f'{type(text).__name__}')
    if not isinstance(timezone, str):
        raise exceptions.TimexError(
            text, None, f'a time zone is an IANA name, not {timezone!r}')
    return _parse(text, timezone)


@functools.lru_cache(maxsize=1024)
def _parse(text, timezone):
    node = parser.parse(text)
    zone = _zone(text, timezone)
    return Expression(
        text=text, timezone=timezone, names=frozenset(_names(node)),
        is_range=not isinstance(node, tree.Moment),
        _evaluate=evaluation.compile_tree(node, zone, text))


def _names(node):
    if isinstance(node, tree.Between):
        return {node.begin.name, node.end.name}
    if isinstance(node, tree.Period):
        return {node.argument.name}
    return {node.name}


def _zone(text, timezone):
    if timezone == 'UTC':
        return result.UTC
    try:
        return zoneinfo.ZoneInfo(timezone)
    # Names are looked up as files, so that a bad one may also be a folder,
    # too long, or no path at all.
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise exceptions.TimexError(
            text, None, f'there is no time zone {timezone!r}') from exc
