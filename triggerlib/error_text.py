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

"""The text of an error, as it is kept for people."""

import re
import traceback
import typing

from oslo_utils import strutils

#: Characters of an error's text that are kept.
LIMIT: typing.Final = 64 * 1024

_CUT = '\n...\n'

#: What stands for user and password in a URL, and behind a scheme of HTTP.
_IN_URL = re.compile(r'(?<=://)[^\s/]*@')
_IN_HEADER = re.compile(r'(authorization\W+(?:basic|bearer)\s+)[^\s\'"]+',
                        re.IGNORECASE)


def describe(error: BaseException) -> str:
    """Return an error with its traceback, without secrets.

    :param error: an exception
    :returns: its text; of one of more than :data:`LIMIT` characters the
        begin and the end
    """
    text = ''.join(traceback.format_exception(error))
    # Cut before it is searched: a hostile text may be very long.
    if len(text) > LIMIT:
        begin = (LIMIT - len(_CUT)) // 2
        end = LIMIT - len(_CUT) - begin
        text = f'{text[:begin]}{_CUT}{text[-end:]}'
    text = _IN_URL.sub('***@', strutils.mask_password(text))
    return _IN_HEADER.sub(r'\1***', text)[:LIMIT]
