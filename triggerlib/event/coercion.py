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

"""From fields of a notification to trait values of a type."""

import json
import math

from triggerlib.event import timestamps

#: What a storage can hold of an int.
_LEAST, _MOST = -2 ** 63, 2 ** 63 - 1


def to_text(value):
    """Return a value as text; what is no text is shown as JSON.

    :raises ValueError: it cannot be shown
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=str)
    return str(value)


def to_int(value):
    """Return a value as int of 64 bits.

    :raises ValueError: it is none
    """
    number = int(value)
    if not _LEAST <= number <= _MOST:
        raise ValueError('is beyond 64 bits')
    return number


def to_float(value):
    """Return a value as float.

    :raises ValueError: it is none, or no number
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError('is not a finite number')
    return number


#: Functions by the name of a type.
TYPES = {'text': to_text, 'int': to_int, 'float': to_float,
         'datetime': timestamps.parse}
