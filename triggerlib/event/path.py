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

"""Field paths: which fields of a notification a trait is made from.

A path leads to what jsonpath-rw's ``find`` leads to, in the same order, but
is compiled to plain functions. Two things are otherwise: where jsonpath-rw
raises because a field is of another kind than the path expects (an index into
a number, say), the path leads nowhere; and only dicts are mappings.
"""

from collections import abc as collections_abc
import functools
import logging
import operator
import re
import typing

from triggerlib.event import path_syntax
from triggerlib import exceptions

LOG = logging.getLogger(__name__)

Matches: typing.TypeAlias = list[tuple[str, typing.Any]]
Getter: typing.TypeAlias = collections_abc.Callable[
    [typing.Any], typing.Any]

# A match on its way is (whole, place, value): what "$" means there, the path
# to the value, and the value. These are the places of a whole itself.
_THIS, _ROOT = object(), object()
_WHOLE = {_THIS: '`this`', _ROOT: '$'}
_WHOLES = (path_syntax.Root, path_syntax.This)

_SIGNS = {
    '=': operator.eq, '==': operator.eq, '!=': operator.ne,
    '<': operator.lt, '<=': operator.le,
    '>': operator.gt, '>=': operator.ge,
}


class FieldPath:
    """A field path, read once.

    :param text: the path as it was written
    :param steps: what it consists of
    """

    __slots__ = ('text', 'steps', 'keys', 'roots', '_walk', '_get')

    def __init__(self, text: str, steps: path_syntax.Path):
        if len(steps) > 1 and type(steps[0]) in _WHOLES and (
                type(steps[1]) is path_syntax.Fields):
            # "$.a" is "a".
            steps = steps[1:]
        self.text = text
        self.steps = steps
        #: The keys, where it is nothing but one key after another, else
        #: None.
        self.keys = _keys(steps)
        #: The keys of the body that it may begin with, None for any.
        self.roots = _roots(steps)
        self._walk = _compile(steps)
        self._get = _getter(steps)

    def __repr__(self):
        return f'FieldPath({self.text!r})'

    @property
    def name(self) -> str:
        """The path that :meth:`find` gives for a field.

        Only for a path of plain keys and indexes; else it is the text.
        """
        parts = []
        for step in self.steps:
            if type(step) is path_syntax.Index:
                parts.append(f'[{step.number}]')
            elif type(step) is path_syntax.Fields and _is_one(step):
                parts.append(step.names[0])
            else:
                return self.text
        return '.'.join(parts)

    def find(self, body) -> Matches:
        """Return every field that the path leads to, with its own path.

        :param body: a notification
        :returns: ``(path, value)`` pairs, nulls among them
        """
        return [(place if type(place) is str else _WHOLE[place], value)
                for _, place, value in self._walk([(body, _THIS, body)])]

    def values(self, body) -> list:
        """Return every field that the path leads to and that is not null.

        :param body: a notification
        """
        if self._get is not None:
            value = self._get(body)
            return [] if value is None else [value]
        return [value for _, _, value in self._walk([(body, _THIS, body)])
                if value is not None]

    def first(self, body):
        """Return the first field that is there and not null, or None.

        :param body: a notification
        """
        if self._get is not None:
            return self._get(body)
        for _, _, value in self._walk([(body, _THIS, body)]):
            if value is not None:
                return value
        return None


@functools.lru_cache(maxsize=10000)
def compile(text: str) -> FieldPath:
    """Read a field path; equal texts give the same object.

    :param text: the path
    :raises PathError: it is none; the text says where
    """
    return FieldPath(text, path_syntax.parse(text))


def _is_one(step):
    return len(step.names) == 1 and step.names[0] != '*'


def _keys(steps):
    if all(type(one) is path_syntax.Fields and _is_one(one)
           for one in steps):
        return tuple(one.names[0] for one in steps)
    return None


def _roots(steps):
    """Return the keys of the body that steps may begin with, or None."""
    while steps and type(steps[0]) in _WHOLES:
        steps = steps[1:]
    if not steps or any(_goes_back(one) for one in steps):
        return None
    if type(steps[0]) is path_syntax.Union:
        found = [_roots(one) for one in steps[0].paths]
        return None if None in found else frozenset().union(*found)
    if type(steps[0]) is path_syntax.Fields and '*' not in steps[0].names:
        return frozenset(steps[0].names)
    return None


def _goes_back(step):
    if type(step) is path_syntax.Union:
        return any(_goes_back(inner) for one in step.paths for inner in one)
    return type(step) in (path_syntax.Root, path_syntax.Foreign)


# Paths that lead to one field at most: the value is handed from step to step.

def _getter(steps) -> Getter | None:
    """Return a function to the field or None, None if there may be more."""
    gets = []
    for step in steps:
        if type(step) is path_syntax.Fields and _is_one(step):
            gets.append(_get_field(step.names[0]))
        elif type(step) is path_syntax.Index:
            gets.append(_get_item(step.number))
        elif type(step) is path_syntax.Split:
            gets.append(_get_part(step))
        elif type(step) is not path_syntax.This:
            return None
    if len(gets) == 1:
        return gets[0]

    def get(value):
        for one in gets:
            value = one(value)
            if value is None:
                return None
        return value
    return get


def _get_field(name):
    def get(value):
        return value.get(name) if isinstance(value, dict) else None
    return get


def _get_item(number):
    def get(value):
        if isinstance(value, (list, tuple, str)) and (
                -len(value) <= number < len(value)):
            return value[number]
        return None
    return get


def _get_part(step):
    char, segment, most = step.char, step.segment, step.most

    def get(value):
        if isinstance(value, str):
            parts = value.split(char, most)
            if segment < len(parts):
                return parts[segment]
        return None
    return get


# Paths of every shape, with the place of each field.

def _compile(steps):
    """Return a function from a list of matches to the next one."""
    walks = [_WALKS[type(step)](step) for step in steps]
    if len(walks) == 1:
        return walks[0]

    def walk(matches):
        for one in walks:
            matches = one(matches)
            if not matches:
                break
        return matches
    return walk


def _join(place, step):
    return f'{place}.{step}' if type(place) is str else str(step)


def _walk_fields(step):
    if '*' in step.names:
        return _walk_all_fields
    names = step.names

    def walk(matches):
        return [(whole, _join(place, name), value[name])
                for whole, place, value in matches
                if isinstance(value, dict)
                for name in names if name in value]
    return walk


def _walk_all_fields(matches):
    return [(whole, _join(place, name), inner)
            for whole, place, value in matches if isinstance(value, dict)
            for name, inner in value.items()]


def _walk_index(step):
    number = step.number

    def walk(matches):
        return [(whole, _join(place, f'[{number}]'), value[number])
                for whole, place, value in matches
                if isinstance(value, (list, tuple, str))
                and -len(value) <= number < len(value)]
    return walk


def _walk_slice(step):
    wanted = slice(step.start, step.end)

    def walk(matches):
        found = []
        for whole, place, value in matches:
            if isinstance(value, (dict, int, str)):
                value = [value]
                if type(place) is not str:
                    whole = value
            elif not isinstance(value, (list, tuple)):
                continue
            found += [(whole, _join(place, f'[{number}]'), value[number])
                      for number in range(len(value))[wanted]]
        return found
    return walk


def _walk_split(step):
    get = _get_part(step)

    def walk(matches):
        # What is cut out is no field, so it is a whole of its own.
        return [(part, _THIS, part)
                for part in (get(value) for _, _, value in matches)
                if part is not None]
    return walk


def _walk_union(step):
    walks = [_compile(one) for one in step.paths]

    def walk(matches):
        return [found for one in matches for each in walks
                for found in each([one])]
    return walk


def _walk_filter(step):
    tests = [_test(one) for one in step.tests]
    holds = tests[0] if len(tests) == 1 else (
        lambda item: all(test(item) for test in tests))

    def walk(matches):
        return [(whole, _join(place, f'[{number}]'), item)
                for whole, place, value in matches
                if isinstance(value, list)
                for number, item in enumerate(value) if holds(item)]
    return walk


def _test(one):
    """Return a function that tells whether an item meets a condition."""
    walk = _compile(one.target)
    if one.sign is None:
        return lambda item: bool(walk([(item, _THIS, item)]))
    get = _getter(one.target)
    compares = _comparison(one.sign, one.wanted)
    if get is not None:
        def holds(item):
            value = get(item)
            return value is not None and compares(value)
        return holds
    return lambda item: any(
        value is not None and compares(value)
        for _, _, value in walk([(item, _THIS, item)]))


def _comparison(sign, wanted):
    if sign == '~':
        if not isinstance(wanted, str):
            raise exceptions.PathError(
                f'"~" compares with a regular expression, not {wanted!r}')
        try:
            matches = re.compile(wanted).match
        except re.error as error:
            raise exceptions.PathError(
                f'{wanted!r} is no regular expression: {error}') from error
        return lambda value: isinstance(value, str) and bool(matches(value))
    if sign in ('=', '==') and isinstance(wanted, str):
        return lambda value: value == wanted
    compare = _SIGNS[sign]
    as_int = isinstance(wanted, int)

    def compares(value):
        try:
            return bool(compare(int(value) if as_int else value, wanted))
        except (TypeError, ValueError, OverflowError):
            # Not to be compared with what the notification has there.
            return False
    return compares


def _walk_root(step):
    return lambda matches: [(whole, _ROOT, whole) for whole, _, _ in matches]


def _walk_this(step):
    return lambda matches: matches


def _walk_foreign(step):
    find = step.tree.find

    def walk(matches):
        found = []
        for _, _, value in matches:
            try:
                found += [(one.value, str(one.full_path), one.value)
                          for one in find(value)]
            except Exception as error:
                # It raises whatever comes of a field of another kind than
                # the path expects; the path leads nowhere then.
                LOG.debug('The path %s does not fit: %r', step.tree, error)
        return found
    return walk


_WALKS = {
    path_syntax.Fields: _walk_fields,
    path_syntax.Index: _walk_index,
    path_syntax.Slice: _walk_slice,
    path_syntax.Split: _walk_split,
    path_syntax.Union: _walk_union,
    path_syntax.Filter: _walk_filter,
    path_syntax.Root: _walk_root,
    path_syntax.This: _walk_this,
    path_syntax.Foreign: _walk_foreign,
}
