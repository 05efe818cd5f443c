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

"""Words, numbers and signs of a time expression."""

import dataclasses
import re

from triggerlib import exceptions

_SPACE = re.compile(r'[ \t\r\n\f\v]*')
_NUMBER = re.compile(r'[0-9]+')
_WORD = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
# A unit ends where the next number begins: 3h30m.
_WORD_AFTER_NUMBER = re.compile(r'[A-Za-z_]+')
_SIGNS = '$()+-@:'


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text.

    :param kind: ``number``, ``word``, ``end``, or for a sign the sign
    :param text: the piece itself
    :param column: where it begins, counted from 1
    """

    kind: str
    text: str
    column: int


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression; the last one is of kind ``end``.

    :raises TimexError: at a character that the language does not have
    """
    found = []
    position = _SPACE.match(text).end()
    kind = None
    while position < len(text):
        sign = text[position]
        if sign in _SIGNS:
            kind, piece = sign, sign
        elif match := _NUMBER.match(text, position):
            kind, piece = 'number', match.group()
        else:
            pattern = _WORD_AFTER_NUMBER if kind == 'number' else _WORD
            match = pattern.match(text, position)
            if match is None:
                raise exceptions.TimexError(
                    text, position + 1, f'unexpected character {sign!r}')
            kind, piece = 'word', match.group()
        found.append(Token(kind, piece, position + 1))
        position = _SPACE.match(text, position + len(piece)).end()
    found.append(Token('end', '', len(text) + 1))
    return found
