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

"""What the life cycles draw from a ``random.Random``.

Only ``random()`` and ``getrandbits()`` are used: Python does not promise
that any other method gives the same values in its next version.
"""

import random
import typing

from triggerlib.testing.lifecycle import moments


def pick(rng: random.Random, choices: typing.Sequence):
    """Return one of ``choices``."""
    return choices[int(rng.random() * len(choices))]


def number(rng: random.Random, low: int, high: int) -> int:
    """Return a whole number from ``low`` up to, not including, ``high``."""
    return low + int(rng.random() * (high - low))


def wait(rng: random.Random, low: float, high: float) -> int:
    """Return a wait of ``low`` to ``high`` seconds, in microseconds."""
    return int((low + rng.random() * (high - low)) * moments.SECOND)


def long_tailed(rng: random.Random, low: float, high: float) -> int:
    """Return a wait like :func:`wait`'s, of which most are short."""
    share = rng.random()
    return int((low + share * share * (high - low)) * moments.SECOND)


def hex_id(rng: random.Random) -> str:
    """Return an id of 32 hexadecimal digits, as Keystone's are."""
    return f'{rng.getrandbits(128):032x}'


def uuid(rng: random.Random) -> str:
    """Return an id in the form of a random (version 4) UUID."""
    # 122 random bits, with the version and the variant put in between.
    text = f'{rng.getrandbits(122):031x}'
    variant = '89ab'[int(text[0], 16) & 3]
    return (f'{text[1:9]}-{text[9:13]}-4{text[13:16]}-'
            f'{variant}{text[16:19]}-{text[19:]}')
