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

"""From fields of a notification to trait values of a type.

Each function raises some exception where a value cannot be made; which one
depends on the value, and the text says what is wrong.
"""

from collections import abc as collections_abc
import datetime
import json
import math
import typing

from triggerlib.event import encoding
from triggerlib.event import timestamps

#: What a storage can hold of an int.
_LEAST, _MOST = -2 ** 63, 2 ** 63 - 1


def to_text(value) -> str:
    """Return a value as text, whole.

    A datetime is in ISO form, UTC; a mapping or list is shown as JSON, which
    more than Python can read; anything else as Python shows it (``True``,
    as Ceilometer has it).
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=to_text)
    if isinstance(value, datetime.datetime):
        return encoding.isoformat(timestamps.parse(value))
    return str(value)


def to_int(value) -> int:
    """Return a value as int of 64 bits; fractions are cut off."""
    number = value if type(value) is int else int(value)
    if _LEAST <= number <= _MOST:
        return number
    raise ValueError('is beyond 64 bits')


def to_float(value) -> float:
    """Return a value as finite float."""
    number = value if type(value) is float else float(value)
    if math.isfinite(number):
        return number
    raise ValueError('is not a finite number')


Coerce: typing.TypeAlias = collections_abc.Callable[[typing.Any], typing.Any]

#: Functions by the name of a type.
TYPES: dict[str, Coerce] = {
    'text': to_text, 'int': to_int, 'float': to_float,
    'datetime': timestamps.parse}
