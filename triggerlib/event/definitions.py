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

from triggerlib.event import coercion
from triggerlib.event import event_type as event_type_module
from triggerlib.event import path as path_module
from triggerlib.event import trait_plugin
from triggerlib import exceptions
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
    :param constant: its value itself, where it is made from no field
    :param call: ``call(match_list)`` of its plugin, None without one
    """

    name: str
    type: str
    paths: tuple[path_module.FieldPath, ...]
    constant: int | None = None
    call: trait_plugin.Call | None = None


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
        self.problems += self._document.repetitions()
        data = self._document.data
        if data is None:
            return []
        if not isinstance(data, list):
            self._refuse('a file of event definitions is a list of mappings')
            return []
        return [self._definition(index, item)
                for index, item in enumerate(data)]

    def _refuse(self, message, *path):
        # The definition is named already, so the key begins inside it.
        self.problems.append(exceptions.Problem(
            self._document.file, self._document.line(*path), self._label,
            yamlfile.dotted(path[1:]) or None, message))

    def _check_keys(self, mapping, known, *path):
        for key in mapping:
            if key not in known:
                self._refuse(
                    f'there is no key {key!r} here'
                    f'{yamlfile.suggestion(key, known)}',
                    *path, key)

    def _definition(self, index, item):
        self._label = f'#{index + 1}'
        if not isinstance(item, dict):
            self._refuse('an event definition is a mapping with the keys '
                         'event_type and traits', index)
            return None
        patterns = self._patterns(index, item)
        self._check_keys(item, _KEYS, index)
        if 'traits' not in item:
            self._refuse('traits is missing', index)
        traits = item.get('traits', {})
        if not isinstance(traits, dict):
            self._refuse('traits is a mapping by trait name; for none beside '
                         'the default traits, write {}', index, 'traits')
            traits = {}
        return EventDefinition(
            event_type_module.EventTypes(patterns),
            {name: self._trait(index, name, one)
             for name, one in traits.items()})

    def _patterns(self, index, item):
        if 'event_type' not in item:
            self._refuse('event_type is missing', index)
            return ()
        types = item['event_type']
        patterns = [types] if isinstance(types, str) else types
        if not isinstance(patterns, list) or not patterns or not all(
                isinstance(one, str) and one.lstrip('!')
                for one in patterns):
            self._refuse('event_type is a text or a list of texts', index,
                         'event_type')
            return ()
        self._label = ', '.join(patterns)
        return patterns

    def _trait(self, index, name, item):
        path = (index, 'traits', name)
        if not isinstance(name, str) or not name:
            self._refuse('the name of a trait is a text', *path)
        if not isinstance(item, dict):
            # Ceilometer's short form: the fields alone.
            return TraitDefinition(name, 'text', *self._fields(path, item))
        self._check_keys(item, _TRAIT_KEYS, *path)
        kind = item.get('type', 'text')
        if not isinstance(kind, str) or kind not in coercion.TYPES:
            self._refuse(
                f'there is no type {kind!r}'
                f'{yamlfile.suggestion(kind, coercion.TYPES)}', *path, 'type')
            kind = 'text'
        call = self._plugin(path, item)
        if 'fields' not in item:
            self._refuse('fields is missing', *path)
            return None
        paths, constant = self._fields((*path, 'fields'), item['fields'])
        if constant is not None:
            if call is not None:
                self._refuse('a constant needs no plugin', *path, 'fields')
            try:
                coercion.TYPES[kind](constant)
            except (ValueError, TypeError) as error:
                self._refuse(f'the constant {constant!r} is no {kind}: '
                             f'{error}', *path, 'fields')
        return TraitDefinition(name, kind, paths, constant, call)

    def _fields(self, path, fields):
        """Return the paths and the constant that fields stand for."""
        if type(fields) is int:
            # Ceilometer takes a number for the value itself.
            return (), fields
        listed = isinstance(fields, list)
        if listed and not fields:
            self._refuse('the list of fields is empty', *path)
        found = []
        for number, text in enumerate(fields if listed else [fields]):
            place = (*path, number) if listed else path
            if not isinstance(text, str):
                self._refuse('fields is a field path or a list of field '
                             'paths', *place)
                continue
            try:
                found.append(path_module.compile(text))
            except exceptions.PathError as error:
                self._refuse(str(error), *place)
        return tuple(found), None

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
            return trait_plugin.load(wanted['name'], parameters)
        except exceptions.PluginError as error:
            key = 'parameters' if 'parameters' in wanted else 'name'
            self._refuse(str(error), *path, *(
                [] if isinstance(item['plugin'], str) else [key]))
            return None
