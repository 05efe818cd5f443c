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

"""YAML files read with the line of every key, so that errors have a place."""

import dataclasses
import difflib
import typing

import yaml

from triggerlib import exceptions

# libyaml where PyYAML was built with it: both are safe loaders.
_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)

#: No definition needs as much. The loader recurses, and some that are in use
#: do it in C, where too deep a file would end the process.
MAX_DEPTH: typing.Final = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """What a YAML file holds.

    :param file: the path it was read from, as the user named it
    :param data: the plain Python value, None for an empty file
    """

    file: str
    data: typing.Any
    _root: yaml.Node | None

    def at(self, *path):
        """Return the value at ``path``, keys and indexes from the root."""
        value = self.data
        for step in path:
            value = value[step]
        return value

    def line(self, *path):
        """Return the line on which the value at ``path`` stands.

        :param path: keys and indexes from the root; where the path leads
            nowhere, the line of the deepest part that exists
        :returns: a line number counted from 1, or None for an empty file
        """
        node = self._root
        if node is None:
            return None
        line = node.start_mark.line + 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line

    def problem(self, message, *path, definition=None, key=None):
        """Return a mistake at ``path`` of this file.

        :param message: what is wrong and what would be right
        :param path: keys and indexes from the root
        :param definition: name or position of the definition
        :param key: the key as people would write it; by default made from
            ``path``
        :returns: a :class:`triggerlib.exceptions.Problem`
        """
        if key is None and path:
            key = dotted(path)
        return exceptions.Problem(
            self.file, self.line(*path), definition, key, message)

    def repetitions(self):
        """Return a mistake for each key that a mapping repeats."""
        return [
            exceptions.Problem(
                self.file, line, None, key,
                'is there twice in one mapping; only one of them would '
                'count')
            for line, key in self.duplicate_keys()]

    def duplicate_keys(self):
        """Yield ``(line, key)`` for each key that a mapping repeats."""
        seen = set()
        stack = [] if self._root is None else [self._root]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                keys = set()
                for key, value in node.value:
                    if key.value == '<<' and key.tag.endswith(':merge'):
                        stack.append(value)
                        continue
                    if isinstance(key, yaml.ScalarNode):
                        if key.value in keys:
                            yield key.start_mark.line + 1, key.value
                        keys.add(key.value)
                    stack.append(value)
            elif isinstance(node, yaml.SequenceNode):
                stack.extend(node.value)


def suggestion(word, known) -> str:
    """Return a hint at the known word that a misspelt one may stand for."""
    close = difflib.get_close_matches(str(word), known, 1)
    if close:
        return f'; did you mean {close[0]!r}?'
    if not known:
        return '; there are none'
    return f'; known are {", ".join(sorted(known))}'


def dotted(path):
    """Return a path of keys and indexes as ``a.b[0].c``."""
    text = ''
    for step in path:
        if isinstance(step, int):
            text += f'[{step}]'
        else:
            text += f'.{step}' if text else str(step)
    return text


def _child(node, step):
    """Return the line and node of ``step`` in ``node``, or None."""
    if isinstance(node, yaml.SequenceNode):
        if isinstance(step, int) and step < len(node.value):
            child = node.value[step]
            return child.start_mark.line + 1, child
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    merged = []
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == str(step):
            return key.start_mark.line + 1, value
        if key.tag.endswith(':merge'):
            merged.extend(
                value.value if isinstance(value, yaml.SequenceNode)
                else [value])
    for other in merged:
        found = _child(other, step)
        if found is not None:
            return found
    return None


def read(path):
    """Read one YAML document from a file.

    :param path: path of the file
    :returns: a :class:`Document`
    :raises DefinitionError: it cannot be read or is not YAML; the problem
        names file and line
    """
    try:
        with open(path, encoding='utf-8') as stream:
            return parse(stream.read(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise exceptions.DefinitionError([exceptions.Problem(
            str(path), None, None, None,
            f'cannot be read: {error}')]) from error


def parse(text, file):
    """Parse one YAML document.

    :param text: the document
    :param file: the name that errors give as its place
    :returns: a :class:`Document`
    :raises DefinitionError: it is not YAML, or nested too deep
    """
    loader = root = None
    try:
        _check_depth(text, file)
        loader = _LOADER(text)
        root = loader.get_single_node()
        data = None
        if root is not None:
            # Constructing flattens the merge keys of the nodes it visits,
            # so the places are taken from a tree of their own.
            data = yaml.load(text, Loader=_LOADER)
        return Document(file, data, root)
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        raise exceptions.DefinitionError([exceptions.Problem(
            file, None if mark is None else mark.line + 1, None, None,
            f'is not YAML: {getattr(error, "problem", None) or error}'
        )]) from error
    except ValueError as error:
        # A date such as 2026-13-45 has the form of one, and is none.
        raise exceptions.DefinitionError([exceptions.Problem(
            file, _line_of_bad_value(root), None, None,
            f'has a value that is none: {error}')]) from error
    finally:
        if loader is not None:
            loader.dispose()


def _line_of_bad_value(root):
    """Return the line of the first scalar that has no value, or None."""
    stack = [] if root is None else [root]
    constructor = yaml.SafeLoader('')
    seen = set()
    while stack:
        node = stack.pop()
        # An alias may lead back to where it stands.
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            try:
                constructor.construct_object(node)
            except ValueError:
                return node.start_mark.line + 1
            except yaml.YAMLError:
                # A "<<" is no value by itself.
                continue
        elif isinstance(node, yaml.MappingNode):
            stack += [one for pair in reversed(node.value)
                      for one in reversed(pair)]
        else:
            stack += reversed(node.value)
    return None


def _check_depth(text, file):
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise exceptions.DefinitionError([exceptions.Problem(
                    file, event.start_mark.line + 1, None, None,
                    f'is nested more than {MAX_DEPTH} deep')])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
