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

"""Which amounts an operation can have at all."""

from triggerlib.timex import tree

_LIMITS = {
    'year': (1, 9999),
    'month': (1, 12),
    'day': (1, 31),
    'hour': (0, 23),
    'minute': (0, 59),
    'second': (0, 59),
    'microsecond': (0, 999999),
}

_SECOND = 1000000
_DAY = 24 * 60 * 60 * _SECOND

#: Microseconds in a unit; a month and a year are the shortest of their kind.
MICROSECONDS = {
    'year': 365 * _DAY,
    'month': 28 * _DAY,
    'week': 7 * _DAY,
    'day': _DAY,
    'hour': 60 * 60 * _SECOND,
    'minute': 60 * _SECOND,
    'second': _SECOND,
    'microsecond': 1,
}

_CALENDAR = 9999 * 366 * _DAY


def mistake(operation: tree.Operation) -> str | None:
    """Return why no datetime can take an operation, or None if one can.

    :param operation: an operation without a bare number
    """
    if operation.symbol == '@':
        return _replacement_mistake(operation.amounts)
    length = sum(amount * MICROSECONDS[unit]
                 for unit, amount in operation.amounts.items())
    if length > _CALENDAR:
        return 'the duration is longer than the calendar (years 1 to 9999)'
    return None


def _replacement_mistake(amounts):
    for unit, amount in amounts.items():
        if unit not in _LIMITS:
            return f'@ cannot set a {unit}; it sets {", ".join(_LIMITS)}'
        low, high = _LIMITS[unit]
        if not low <= amount <= high:
            return f'@ cannot set {unit} {amount}: it is {low} to {high}'
    return None
