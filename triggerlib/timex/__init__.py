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

"""The time-expression language: read once, evaluated often.

``parse('first@00:00 to last+2h')`` gives an :class:`Expression`; called with
datetimes by name it gives a :class:`Timestamp` or a :class:`TimeRange`. The
language is described in doc/source/timex.rst.
"""

from triggerlib.timex.expression import Expression  # noqa: H301
from triggerlib.timex.expression import parse
from triggerlib.timex.result import TimeRange
from triggerlib.timex.result import Timestamp

__all__ = ('Expression', 'TimeRange', 'Timestamp', 'parse')
