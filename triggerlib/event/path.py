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

The language is that of jsonpath-rw and jsonpath-rw-ext. Paths of the shapes
that real definition files use are read here and become plain functions; any
other is parsed by those libraries, and what their parse tree cannot be turned
into a function for is evaluated by them.
"""

from collections import abc as collections_abc
import functools
import re
import typing

from triggerlib import exceptions

#: ``(path, value)`` pairs
Matches: typing.TypeAlias = list[tuple[str, typing.Any]]
_Walk: typing.TypeAlias = collections_abc.Callable[[Matches], Matches]

_NAME = r'[a-zA-Z_][a-zA-Z0-9_\-]*'
_STEP = re.compile(
    rf'''(?P<name>{_NAME})
    |"(?P<double>[^"\\]*)"
    |'(?P<single>[^'\\]*)'
    |(?P<all>\*)
    |`split\((?P<char>.),\s+(?P<segment>\d+),\s+(?P<most>\d+|-1)\)`''',
    re.X)
_BRACKET = re.compile(
    rf'''\[\s*(?:
    (?P<index>-?\d+)
    |(?P<slice>\*)
    |(?P<name>{_NAME})
    |"(?P<double>[^"\\]*)"
    |'(?P<single>[^'\\]*)'
    |\?(?P<key>{_NAME})\s*(?:==|=)\s*(?P<value>{_NAME})
    )\s*\]''', re.X)
#: Words that mean something else in the language.
_RESERVED = frozenset({'parent', 'where', 'flatten', 'len', 'contains',
                       'wherenot'})


class FieldPath:
    """A field path, read once.

    :param text: the path as it was written
    """

    __slots__ = ('text', 'root', 'keys', '_walk')

    def __init__(self, text: str, walk: _Walk, root: str | None = None,
                 keys: tuple[str, ...] | None = None):
        self.text = text
        #: The key that it begins with, None where that is not known.
        self.root = root
        #: The keys, where it is nothing but keys of mappings; else None.
        self.keys = keys
        self._walk = walk

    def __repr__(self):
        return f'FieldPath({self.text!r})'

    def find(self, body) -> Matches:
        """Return every field that the path leads to, with its own path.

        :param body: a notification
        """
        return self._walk([('', body)])

    def first(self, body):
        """Return the first field that is there and not null, or None."""
        for _, value in self._walk([('', body)]):
            if value is not None:
                return value
        return None


@functools.lru_cache(maxsize=10000)
def compile(text: str) -> FieldPath:
    """Read a field path; equal ones are the same object.

    :param text: the path
    :raises PathError: it is none; the text says where
    """
    if not isinstance(text, str) or not text.strip():
        raise exceptions.PathError('a field path is a text')
    found = _read(text.strip())
    if found is None:
        return FieldPath(text, _compile_tree(_parse(text)))
    walks, keys = found
    return FieldPath(text, _chain(walks), keys[0],
                     None if None in keys else tuple(keys))


def _read(text):
    """Read a path of a usual shape; None for any other."""
    position = 0
    if text.startswith('$.'):
        position = 2
    walks, keys = [], []
    dotted = True
    while position < len(text):
        if text[position] == '[' and walks:
            found = _BRACKET.match(text, position)
        elif dotted:
            found = _STEP.match(text, position)
        else:
            found = None
        if found is None:
            return None
        walk, key = _step(found.groupdict())
        if walk is None:
            return None
        walks.append(walk)
        keys.append(key)
        position = found.end()
        dotted = text[position:position + 1] == '.'
        if dotted:
            position += 1
            if position == len(text) or text[position] in '.[':
                return None
    if not walks:
        return None
    return walks, keys


def _step(parts):
    """Return the walk of one step, and its key where it is one."""
    key = parts.get('name')
    if key is not None and key in _RESERVED:
        return None, None
    for quoted in ('double', 'single'):
        if parts.get(quoted) is not None:
            key = parts[quoted]
    if key is not None:
        # A quoted star is a star to jsonpath-rw as well.
        return (_all_fields, None) if key == '*' else (
            _fields((key,)), key)
    if parts.get('all'):
        return _all_fields, None
    if parts.get('char'):
        return _split(parts['char'], int(parts['segment']),
                      int(parts['most'])), None
    if parts.get('index') is not None:
        return _index(int(parts['index'])), None
    if parts.get('slice'):
        return _slice(slice(None)), None
    if parts.get('value') is not None:
        return _filter([(_fields((parts['key'],)), '=',
                         parts['value'])]), None
    return None, None


def _chain(walks):
    if len(walks) == 1:
        return walks[0]

    def walk(matches):
        for one in walks:
            matches = one(matches)
            if not matches:
                break
        return matches
    return walk


def _join(path, step):
    return f'{path}.{step}' if path else step


def _fields(names):
    def walk(matches):
        found = []
        for path, value in matches:
            if isinstance(value, dict):
                for name in names:
                    if name in value:
                        found.append((_join(path, name), value[name]))
        return found
    return walk


def _all_fields(matches):
    return [(_join(path, str(name)), inner) for path, value in matches
            if isinstance(value, dict) for name, inner in value.items()]


def _index(number):
    def walk(matches):
        return [
            (_join(path, f'[{number}]'), value[number])
            for path, value in matches
            if isinstance(value, (list, tuple, str))
            and -len(value) <= number < len(value)]
    return walk


def _slice(wanted):
    def walk(matches):
        found = []
        for path, value in matches:
            # As in jsonpath-rw, anything else is a list of itself.
            items = value if isinstance(value, list) else [value]
            for number in range(*wanted.indices(len(items))):
                found.append((_join(path, f'[{number}]'), items[number]))
        return found
    return walk


def _split(char, segment, most):
    def walk(matches):
        found = []
        for _, value in matches:
            if isinstance(value, str):
                parts = value.split(char, most)
                if segment < len(parts):
                    # What is cut out is no field, so it has no path.
                    found.append(('`this`', parts[segment]))
        return found
    return walk


def _filter(conditions):
    """Keep items of a list for which each (walk, operator, value) holds."""
    def holds(item):
        for walk, sign, wanted in conditions:
            found = walk([('', item)])
            if sign is not None:
                found = [one for one in found
                         if _compares(one[1], sign, wanted)]
            if not found:
                return False
        return True

    def walk(matches):
        return [
            (_join(path, f'[{number}]'), item)
            for path, value in matches if isinstance(value, list)
            for number, item in enumerate(value) if holds(item)]
    return walk


def _compares(value, sign, wanted):
    from jsonpath_rw_ext import _filter

    if value is None:
        return False
    try:
        if isinstance(wanted, int):
            value = int(value)
        return bool(_filter.OPERATOR_MAP[sign](value, wanted))
    except (TypeError, ValueError):
        # Not to be compared with what the notification has there.
        return False


def _parse(text):
    # The parser builds its tables at every call and is seldom needed.
    from jsonpath_rw_ext import parser

    try:
        return parser.parse(text)
    except Exception as error:
        # It raises plain Exception for what it cannot read.
        raise exceptions.PathError(
            f'field path {text!r} cannot be read: {error}') from error


def _compile_tree(tree) -> _Walk:
    """Turn a parse tree into a function, as far as it goes."""
    import jsonpath_rw
    from jsonpath_rw_ext import _filter as filter_module
    from jsonpath_rw_ext import _string

    if isinstance(tree, jsonpath_rw.Child):
        return _chain([_compile_tree(tree.left), _compile_tree(tree.right)])
    if isinstance(tree, jsonpath_rw.Union):
        left, right = _compile_tree(tree.left), _compile_tree(tree.right)
        return lambda matches: left(matches) + right(matches)
    if isinstance(tree, jsonpath_rw.Fields):
        return _all_fields if '*' in tree.fields else _fields(
            tuple(tree.fields))
    if isinstance(tree, jsonpath_rw.Index):
        return _index(tree.index)
    if isinstance(tree, jsonpath_rw.Slice):
        return _slice(slice(tree.start, tree.end, tree.step))
    if isinstance(tree, _string.Split):
        return _split(tree.char, tree.segment, tree.max_split)
    if isinstance(tree, filter_module.Filter):
        return _filter([(_compile_tree(one.target), one.op, one.value)
                        for one in tree.expressions])
    if type(tree) in (jsonpath_rw.This, jsonpath_rw.Root):
        return lambda matches: matches
    return functools.partial(_find, tree)


def _find(tree, matches):
    found = []
    for path, value in matches:
        try:
            data = tree.find(value)
        except (AttributeError, IndexError, KeyError, TypeError,
                ValueError):
            # The libraries raise where a field is of another kind than the
            # path expects; it does not lead anywhere then.
            continue
        found += [(_join(path, str(one.full_path)), one.value)
                  for one in data]
    return found
