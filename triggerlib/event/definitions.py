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

"""Event definitions: which fields become which traits, for which events.

The file is that of blueprint configurable-event-definitions.
"""

from collections import abc as collections_abc
import dataclasses
import difflib
import typing

from triggerlib.event import coercion
from triggerlib.event import event_type as event_type_module
from triggerlib.event import path as path_module
from triggerlib import exceptions
from triggerlib import plugins
from triggerlib import yamlfile

_KEYS = ('event_type', 'traits')
_TRAIT_KEYS = ('type', 'fields', 'plugin')
_PLUGIN_KEYS = ('name', 'parameters')


@dataclasses.dataclass(frozen=True, slots=True)
class TraitDefinition:
    """How a trait is made.

    :param name: the trait's name
    :param type: ``text``, ``int``, ``float`` or ``datetime``
    :param paths: the fields it is made from
    :param call: ``call(match_list)`` of its plugin, None without one
    """

    name: str
    type: str
    paths: tuple[path_module.FieldPath, ...]
    call: typing.Callable | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class EventDefinition:
    """The traits of some types of events.

    :param event_types: the types it is for
    :param traits: trait definitions by name
    """

    event_types: event_type_module.EventTypes
    traits: collections_abc.Mapping[str, TraitDefinition]


@dataclasses.dataclass(frozen=True, slots=True)
class EventDefinitions:
    """What a file of event definitions says.

    :param definitions: in the order of the file
    """

    definitions: tuple[EventDefinition, ...] = ()

    @classmethod
    def load(cls, path) -> 'EventDefinitions':
        """Read a file of event definitions.

        :param path: path of the YAML file
        :raises DefinitionError: every mistake in the file
        """
        loader = _Loader(yamlfile.read(path))
        definitions = loader.load()
        if loader.problems:
            raise exceptions.DefinitionError(loader.problems)
        return cls(tuple(definitions))

    def find(self, event_type: str) -> EventDefinition | None:
        """Return the definition for a type: the last in the file counts."""
        for one in reversed(self.definitions):
            if one.event_types.match(event_type):
                return one
        return None


class _Loader:
    """Reads a document, and collects its mistakes."""

    def __init__(self, document):
        self.problems = []
        self._document = document
        self._label = None

    def load(self):
        for line, key in self._document.duplicate_keys():
            self.problems.append(exceptions.Problem(
                self._document.file, line, None, key,
                'is there twice in one mapping; only one of them would '
                'count'))
        data = self._document.data
        if data is None:
            return []
        if not isinstance(data, list):
            self._refuse('a file of event definitions is a list of mappings')
            return []
        return [self._definition(index, item)
                for index, item in enumerate(data)]

    def _refuse(self, message, *path):
        key = yamlfile.dotted(path[1:]) or None
        self.problems.append(self._document.problem(
            message, *path, definition=self._label, key=key))

    def _check_keys(self, mapping, known, *path):
        for key in mapping:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, 1)
                hint = (f'did you mean {close[0]!r}?' if close
                        else f'known are {", ".join(known)}')
                self._refuse(f'there is no key {key!r} here; {hint}',
                             *path, key)

    def _definition(self, index, item):
        self._label = f'#{index + 1}'
        if not isinstance(item, dict):
            self._refuse('an event definition is a mapping with the keys '
                         'event_type and traits', index)
            return None
        self._check_keys(item, _KEYS, index)
        types = item.get('event_type')
        patterns = [types] if isinstance(types, str) else types
        if not isinstance(patterns, list) or not patterns or not all(
                isinstance(one, str) and one.lstrip('!')
                for one in patterns):
            path = (index, 'event_type') if 'event_type' in item else (index,)
            self._refuse('event_type is a text or a list of texts', *path)
            patterns = ['']
        else:
            self._label = ', '.join(patterns)
        if 'traits' not in item:
            self._refuse('traits is missing', index)
        traits = item.get('traits')
        if traits is None:
            traits = {}
        if not isinstance(traits, dict):
            self._refuse('traits is a mapping by trait name', index,
                         'traits')
            traits = {}
        return EventDefinition(
            event_type_module.EventTypes(patterns),
            {name: self._trait(index, name, one)
             for name, one in traits.items()})

    def _trait(self, index, name, item):
        path = (index, 'traits', name)
        if not isinstance(name, str) or not name:
            self._refuse('the name of a trait is a text', *path)
        if not isinstance(item, dict):
            self._refuse('a trait definition is a mapping with the keys '
                         f'{", ".join(_TRAIT_KEYS)}', *path)
            return None
        self._check_keys(item, _TRAIT_KEYS, *path)
        kind = item.get('type', 'text')
        if not isinstance(kind, str) or kind not in coercion.TYPES:
            self._refuse(f'type is one of {", ".join(coercion.TYPES)}',
                         *path, 'type')
        return TraitDefinition(
            name, kind, self._paths(path, item), self._plugin(path, item))

    def _paths(self, path, item):
        if 'fields' not in item:
            self._refuse('fields is missing', *path)
            return ()
        fields = item['fields']
        listed = isinstance(fields, list)
        if listed and not fields:
            self._refuse('fields is empty', *path, 'fields')
        found = []
        for number, text in enumerate(fields if listed else [fields]):
            try:
                found.append(path_module.compile(text))
            except (exceptions.PathError, TypeError) as error:
                self._refuse(str(error) if isinstance(text, str) else
                             'a field path is a text', *path, 'fields',
                             *([number] if listed else []))
        return tuple(found)

    def _plugin(self, path, item):
        wanted = item.get('plugin')
        if wanted is None:
            return None
        path += ('plugin',)
        if isinstance(wanted, str):
            wanted = {'name': wanted}
        if not isinstance(wanted, dict) or not isinstance(
                wanted.get('name'), str):
            self._refuse('plugin is the name of a trait plugin, or a mapping '
                         'with its name and parameters', *path)
            return None
        self._check_keys(wanted, _PLUGIN_KEYS, *path)
        parameters = wanted.get('parameters')
        if parameters is None:
            parameters = {}
        if not isinstance(parameters, dict) or not all(
                isinstance(key, str) for key in parameters):
            self._refuse('parameters is a mapping', *path, 'parameters')
            return None
        try:
            plugin = plugins.load(
                plugins.TRAIT_PLUGIN, wanted['name'])(**parameters)
        except exceptions.PluginError as error:
            self._refuse(str(error), *path)
            return None
        except Exception as error:
            # The plugin's own check of its parameters, or its bug; either
            # way it cannot be used, and the file says where.
            self._refuse(f'plugin {wanted["name"]!r} refuses its '
                         f'parameters: {error}', *path)
            return None
        return _call(plugin)


def _call(plugin):
    """Return what gives a plugin's value, whichever interface it has."""
    values = getattr(plugin, 'trait_values', None)
    if values is None:
        return plugin.trait_value

    def first(match_list):
        found = values(match_list)
        return found[0] if found else None
    return first
