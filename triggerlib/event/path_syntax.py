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

"""The language of field paths: from text to steps.

It is that of jsonpath-rw and jsonpath-rw-ext. Those build the tables of their
parser anew for every path, so the shapes that definition files are made of
are read here; a text of any other shape is left to them, and so is what to
say about one that is wrong. ``|`` binds closer than ``.``, and a bracket is
about all that is left of it: ``a.b|c[0]`` is ``(a.(b|c))[0]``.
"""

import contextlib
import dataclasses
import io
import re
import typing

from triggerlib import exceptions


@dataclasses.dataclass(frozen=True, slots=True)
class Fields:
    """Fields of a mapping, by name; all of them if ``*`` is a name."""

    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Index:
    """One item of a list (or character of a text)."""

    number: int


@dataclasses.dataclass(frozen=True, slots=True)
class Slice:
    """Items of a list; of a mapping, text or number as the only item."""

    start: int | None
    end: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Split:
    """One part of a text that is cut at a character."""

    char: str
    segment: int
    most: int


@dataclasses.dataclass(frozen=True, slots=True)
class Union:
    """What each of several paths leads to, one after the other."""

    paths: tuple['Path', ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Test:
    """A condition on an item.

    :param target: path from the item
    :param sign: the comparison, None to ask only if the target is there
    :param wanted: what the target is compared with
    """

    target: 'Path'
    sign: str | None
    wanted: str | int | float | None


@dataclasses.dataclass(frozen=True, slots=True)
class Filter:
    """Items of a list that meet all conditions."""

    tests: tuple[Test, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Root:
    """The whole that the path began with."""


@dataclasses.dataclass(frozen=True, slots=True)
class This:
    """Where the path is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Foreign:
    """What only jsonpath-rw can evaluate.

    :param tree: its parse tree of the whole path
    """

    tree: typing.Any


Step: typing.TypeAlias = (
    Fields | Index | Slice | Split | Union | Filter | Root | This | Foreign)
#: The steps from left to right.
Path: typing.TypeAlias = tuple[Step, ...]


def parse(text: str) -> Path:
    """Read a field path.

    :param text: the path, such as ``payload.image_meta.'a.b'``
    :returns: its steps
    :raises PathError: it is none; the text says where
    """
    if not isinstance(text, str):
        raise exceptions.PathError(
            f'a field path is a text, not {type(text).__name__}')
    if not text.strip():
        raise exceptions.PathError('a field path is empty')
    try:
        path = _Reader(text).read()
        if path is None:
            path = _from_library(text)
        return path
    except RecursionError as error:
        raise exceptions.PathError(
            f'field path {text[:50]!r}... is nested too deep') from error


class _Beyond(Exception):
    """The text has another shape than those that are read here."""


_TOKEN = re.compile(r'''[ \t]*(?:
    (?P<name>@?[a-zA-Z_][a-zA-Z0-9_@\-]*)
    |'(?P<single>(?:[^'\\]|\\.)*)'
    |"(?P<double>(?:[^"\\]|\\.)*)"
    |`(?P<operator>[^`\\]*)`
    |(?P<float>-?[0-9]+\.[0-9]+)
    |(?P<number>-?[0-9]+)
    |(?P<sign>==?|<=|>=|!=|<|>|~)
    |(?P<mark>[.*\[\]()$,:|&?@])
    )[ \t]*''', re.X)
_ESCAPE = re.compile(r'\\(.)')
_SPLIT = re.compile(r'split\((.),\s+([0-9]+),\s+([0-9]+|-1)\)')
#: The library reads these as the begin of something else than a name.
_NOT_NAMES = ('true', 'false')


def _tokens(text):
    """Return ``(kind, value)`` pairs, and one that stands for the end."""
    tokens = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _Beyond
        position = found.end()
        kind, value = found.lastgroup, found[found.lastgroup]
        if kind == 'name':
            if value == 'where' or (
                    value.startswith(_NOT_NAMES)
                    and value not in _NOT_NAMES):
                raise _Beyond
            if value in _NOT_NAMES:
                kind, value = 'truth', value == 'true'
        elif kind in ('single', 'double'):
            kind, value = 'name', _ESCAPE.sub(r'\1', value)
        elif kind == 'number':
            value = int(value)
        elif kind == 'float':
            value = float(value)
        elif kind == 'mark':
            kind = value
        tokens.append((kind, value))
    tokens.append(('end', None))
    return tokens


class _Reader:
    """Reads the shapes of paths that files are made of."""

    def __init__(self, text):
        self._text = text
        self._tokens = ()
        self._at = 0

    def read(self):
        """Return the path, or None where it is of another shape."""
        try:
            self._tokens = _tokens(self._text)
            path = self._path()
            self._take('end')
            return path
        except (_Beyond, ValueError):
            # ValueError: a number of too many digits.
            return None

    @property
    def _next(self):
        return self._tokens[self._at][0]

    def _take(self, *kinds):
        kind, value = self._tokens[self._at]
        if kind not in kinds:
            raise _Beyond
        self._at += 1
        return value

    def _takes(self, kind):
        if self._next != kind:
            return False
        self._at += 1
        return True

    def _path(self):
        before, paths = (), [self._atom()]
        while True:
            if self._takes('.'):
                before += _union(paths)
                paths = [self._atom()]
            elif self._takes('|'):
                paths.append(self._atom())
            elif self._takes('['):
                # A bracket belongs to all that is left of it.
                paths = [before + _union(paths)
                         + (self._bracket(filters=True),)]
                before = ()
            else:
                return before + _union(paths)

    def _atom(self):
        if self._next == 'name':
            return (self._names(),)
        kind = self._next
        value = self._take('*', '$', '@', '(', '[', 'operator')
        if kind == '*':
            return (Fields(('*',)),)
        if kind == '$':
            return (Root(),)
        if kind == '@':
            return (This(),)
        if kind == '[':
            return (self._bracket(filters=False),)
        if kind == '(':
            steps = self._path()
            self._take(')')
            return steps
        return (_operator(value),)

    def _names(self):
        names = [self._take('name')]
        while self._takes(','):
            names.append(self._take('name'))
        return Fields(tuple(names))

    def _bracket(self, filters):
        if self._next == 'name':
            step = self._names()
        elif self._takes('*'):
            step = Slice(None, None)
        elif filters and self._takes('?'):
            step = self._filter()
        else:
            start = self._number()
            if self._takes(':'):
                step = Slice(start, self._number())
            elif start is None:
                raise _Beyond
            else:
                step = Index(start)
        self._take(']')
        return step

    def _number(self):
        return self._take('number') if self._next == 'number' else None

    def _filter(self):
        tests = [self._test()]
        while self._takes('&'):
            tests.append(self._test())
        if len(tests) > 1 and any(one.sign is None for one in tests):
            # There, the library has an "&" of paths.
            raise _Beyond
        return Filter(tuple(tests))

    def _test(self):
        target = self._path()
        if self._next != 'sign':
            return Test(target, None, None)
        sign = self._take('sign')
        return Test(target, sign,
                    self._take('name', 'number', 'float', 'truth'))


def _union(paths):
    return paths[0] if len(paths) == 1 else (Union(tuple(paths)),)


def _operator(text):
    if text == 'this':
        return This()
    found = _SPLIT.match(text)
    if found is None:
        raise _Beyond
    return Split(found[1], int(found[2]), int(found[3]))


def _from_library(text):
    """Parse with jsonpath-rw, and turn its tree into steps."""
    # Seldom needed, and the import costs more than all the rest.
    from jsonpath_rw_ext import parser

    try:
        with contextlib.ExitStack() as stack:
            if 'sub(' in text:
                # It prints what its "sub" is made of.
                stack.enter_context(
                    contextlib.redirect_stdout(io.StringIO()))
            tree = parser.parse(text)
    except RecursionError:
        raise
    except AttributeError as error:
        # It looks for the place of a token where there is none left.
        raise exceptions.PathError(
            f'field path {text!r} ends too early') from error
    except Exception as error:
        # It has no class of its own for what it cannot read.
        raise exceptions.PathError(
            f'field path {text!r} cannot be read: {error}') from error
    path = _Translation().path(tree)
    return (Foreign(tree),) if path is None else path


class _Translation:
    """Turns the library's trees into steps, None where there are none."""

    def __init__(self):
        import jsonpath_rw
        from jsonpath_rw_ext import _filter
        from jsonpath_rw_ext import _string

        # By exact type: its classes inherit from each other.
        self._steps = {
            jsonpath_rw.Fields: lambda one: Fields(tuple(one.fields)),
            jsonpath_rw.Index: lambda one: Index(one.index),
            jsonpath_rw.Slice: lambda one: Slice(one.start, one.end),
            jsonpath_rw.Root: lambda one: Root(),
            jsonpath_rw.This: lambda one: This(),
            _string.Split: lambda one: Split(
                one.char, one.segment, one.max_split),
        }
        self._child = jsonpath_rw.Child
        self._union = jsonpath_rw.Union
        self._filter = _filter.Filter

    def path(self, tree):
        kind = type(tree)
        if kind in self._steps:
            return (self._steps[kind](tree),)
        if kind is self._child:
            parts = [self.path(tree.left), self.path(tree.right)]
            return None if None in parts else parts[0] + parts[1]
        if kind is self._union:
            parts = [self.path(tree.left), self.path(tree.right)]
            return None if None in parts else (Union(tuple(parts)),)
        if kind is self._filter:
            return self._tests(tree)
        return None

    def _tests(self, tree):
        targets = [self.path(one.target) for one in tree.expressions]
        if None in targets:
            return None
        return (Filter(tuple(
            Test(target, one.op, one.value)
            for target, one in zip(targets, tree.expressions))),)
