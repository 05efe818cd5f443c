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

"""Event types by name, by glob, and by exclusion."""

from collections import abc as collections_abc
import fnmatch
import re

_WILD = re.compile(r'[*?\[]')


class EventTypes:
    """A set of event types, as definitions and criteria write it.

    A pattern is a type, or a glob of types (``*``, ``?``, ``[...]``). One
    that begins with ``!`` takes types out. With exclusions only, everything
    else is in. Case counts.

    :param patterns: a pattern, or several
    """

    def __init__(self, patterns: str | collections_abc.Iterable[str]):
        self.patterns = ((patterns,) if isinstance(patterns, str)
                         else tuple(patterns))
        self._in, self._in_like = _compile(
            one for one in self.patterns if not one.startswith('!'))
        self._out, self._out_like = _compile(
            one[1:] for one in self.patterns if one.startswith('!'))
        self._all = all(one.startswith('!') for one in self.patterns)
        #: The types that are in, where no glob leaves that open; else None.
        self.exact = None
        if not self._all and self._in_like is None:
            self.exact = frozenset(
                one for one in self._in if not self._is_out(one))

    def __repr__(self):
        return f'EventTypes({list(self.patterns)!r})'

    def match(self, event_type: str) -> bool:
        """Tell whether a type is in the set."""
        if self.exact is not None:
            return event_type in self.exact
        return (self._all or event_type in self._in
                or (self._in_like is not None
                    and self._in_like(event_type) is not None)
                ) and not self._is_out(event_type)

    def _is_out(self, event_type):
        return event_type in self._out or (
            self._out_like is not None
            and self._out_like(event_type) is not None)


def _compile(patterns):
    """Return the plain names, and a match function for the globs or None."""
    plain, wild = [], []
    for one in patterns:
        (wild if _WILD.search(one) else plain).append(one)
    like = None
    if wild:
        like = re.compile(
            '|'.join(fnmatch.translate(one) for one in wild)).fullmatch
    return frozenset(plain), like
