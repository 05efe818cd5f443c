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

"""The pipelines file: sources and sinks, in Ceilometer's format."""

from collections import abc as collections_abc
import dataclasses
import re
import types
import urllib.parse

from triggerlib.event import event_type as event_type_module
from triggerlib import exceptions
from triggerlib import plugins
from triggerlib import yamlfile

_FILE_KEYS = ('sources', 'sinks')
_SOURCE_KEYS = ('name', 'events', 'sinks')
_SINK_KEYS = ('name', 'transformers', 'publishers')
_TRANSFORMER_KEYS = ('name', 'parameters', 'checkpoint')

_SCHEME = re.compile('([A-Za-z][A-Za-z0-9+.-]*):')
# Up to the last "@": one that should be percent-encoded may have anything.
_PASSWORD = re.compile('//[^/:@]*:(.*)@', re.DOTALL)

#: Longest name of a source or sink; it has to fit the storage.
NAME_LENGTH = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One transformer or publisher of a sink.

    :param name: unique name, ``sink.index.plugin``
    :param plugin: the transformer or publisher
    :param publishes: whether it is a publisher
    :param checkpoint: whether what it gave is kept, so that another attempt
        need not run it again
    """

    name: str
    plugin: object
    publishes: bool
    checkpoint: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Sink:
    """Transformers and publishers, in the order in which they work.

    :param name: unique name
    :param steps: its :class:`Step` objects, transformers first
    """

    name: str
    steps: tuple[Step, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Events that go straight through to sinks.

    :param name: unique name
    :param event_types: the types of its events
    :param sinks: its sinks
    """

    name: str
    event_types: event_type_module.EventTypes
    sinks: tuple[Sink, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Pipelines:
    """What a pipelines file says.

    :param sinks: sinks by name
    :param sources: sources, in the order of the file
    """

    sinks: collections_abc.Mapping[str, Sink]
    sources: tuple[Source, ...]

    @property
    def names(self) -> frozenset[str]:
        """Names of the sinks."""
        return frozenset(self.sinks)

    @classmethod
    def empty(cls) -> 'Pipelines':
        """Return what no file says."""
        return cls(types.MappingProxyType({}), ())

    @classmethod
    def load(cls, path, conf) -> 'Pipelines':
        """Read a pipelines file. Nothing is connected to.

        :param path: path of the YAML file
        :param conf: an ``oslo_config.cfg.ConfigOpts``, for publishers
        :raises DefinitionError: every mistake in the file
        """
        loader = _Loader(yamlfile.read(path), conf)
        pipelines = loader.load()
        if loader.problems:
            raise exceptions.DefinitionError(loader.problems)
        return pipelines

    def close(self) -> None:
        """Have publishers give back what they opened."""
        for sink in self.sinks.values():
            for step in sink.steps:
                if step.publishes:
                    step.plugin.close()


class _Loader:
    """Reads a document, and collects its mistakes."""

    def __init__(self, document, conf):
        self.problems = []
        self._document = document
        self._conf = conf

    def load(self):
        self.problems += self._document.repetitions()
        data = self._document.data
        if data is None:
            return Pipelines.empty()
        if not isinstance(data, dict):
            self._refuse('a pipelines file is a mapping with the keys '
                         'sources and sinks')
            return None
        self._check_keys(data, _FILE_KEYS)
        sinks = {}
        for path, item, name in self._items('sinks', _SINK_KEYS):
            sink = self._sink(path, item, name)
            if name is not None:
                sinks[name] = sink
        sources = tuple([
            self._source(path, item, name, sinks)
            for path, item, name in self._items('sources', _SOURCE_KEYS)])
        return Pipelines(types.MappingProxyType(sinks), sources)

    def _refuse(self, message, *path, definition=None):
        self.problems.append(self._document.problem(
            message, *path, definition=definition))

    def _check_keys(self, mapping, known, *path, definition=None):
        for key in mapping:
            if key not in known:
                self._refuse(f'there is no key {key!r} here'
                             f'{yamlfile.suggestion(key, known)}',
                             *path, key, definition=definition)

    def _items(self, kind, keys):
        items = self._document.data.get(kind)
        if items is None:
            return
        if not isinstance(items, list):
            self._refuse(f'{kind} is a list of mappings', kind)
            return
        names = {}
        for index, item in enumerate(items):
            path = (kind, index)
            if not isinstance(item, dict):
                self._refuse('is a mapping with the keys '
                             f'{", ".join(keys)}', *path)
                continue
            name = item.get('name')
            if not isinstance(name, str) or not name.isprintable() or not (
                    0 < len(name) <= NAME_LENGTH):
                self._refuse(f'name is a text of 1 to {NAME_LENGTH} '
                             f'printable characters', *path, 'name')
                name = None
            elif name in names:
                self._refuse(
                    f'there is another of that name in line {names[name]}',
                    *path, 'name', definition=name)
            else:
                names[name] = self._document.line(*path, 'name')
            self._check_keys(item, keys, *path, definition=name)
            yield path, item, name

    def _list(self, item, key, path, name, needed=None):
        values = item.get(key)
        if values is None:
            values = []
        if not isinstance(values, list):
            self._refuse(f'{key} is a list', *path, key, definition=name)
            return []
        if needed and not values:
            self._refuse(needed, *path, key, definition=name)
        return values

    def _source(self, path, item, name, sinks):
        types_ = item.get('events')
        patterns = [types_] if isinstance(types_, str) else types_
        if not isinstance(patterns, list) or not patterns or not all(
                isinstance(one, str) and one.lstrip('!')
                for one in patterns):
            self._refuse('events is a list of event types, which may be '
                         'globs, or exclusions behind a "!"', *path,
                         'events', definition=name)
            patterns = []
        found = []
        wanted = self._list(item, 'sinks', path, name,
                            'a source names at least one sink')
        for index, one in enumerate(wanted):
            if not isinstance(one, str) or one not in sinks:
                self._refuse(f'there is no sink {one!r}'
                             f'{yamlfile.suggestion(one, sinks)}', *path,
                             'sinks', index, definition=name)
            elif one in wanted[:index]:
                self._refuse(f'the sink {one!r} is named twice', *path,
                             'sinks', index, definition=name)
            else:
                found.append(sinks[one])
        return Source(name, event_type_module.EventTypes(patterns),
                      tuple(found))

    def _sink(self, path, item, name):
        steps = []
        for index, one in enumerate(
                self._list(item, 'transformers', path, name)):
            steps.append(self._transformer(
                (*path, 'transformers', index), one, name, len(steps)))
        publishers = self._list(item, 'publishers', path, name,
                                'a sink has at least one publisher')
        for index, url in enumerate(publishers):
            steps.append(self._publisher(
                (*path, 'publishers', index), url, name, len(steps)))
        return Sink(name, tuple(one for one in steps if one is not None))

    def _transformer(self, path, item, name, index):
        if not isinstance(item, dict):
            self._refuse('a transformer is a mapping with the keys '
                         f'{", ".join(_TRANSFORMER_KEYS)}', *path,
                         definition=name)
            return None
        self._check_keys(item, _TRANSFORMER_KEYS, *path, definition=name)
        checkpoint = item.get('checkpoint', False)
        if not isinstance(checkpoint, bool):
            self._refuse('checkpoint is true or false', *path, 'checkpoint',
                         definition=name)
        parameters = item.get('parameters')
        if parameters is not None and not isinstance(parameters, dict):
            self._refuse('parameters is a mapping', *path, 'parameters',
                         definition=name)
            return None
        kind = item.get('name')
        cls = self._plugin(plugins.TRANSFORMER, kind, (*path, 'name'), name)
        if cls is None:
            return None
        if parameters is None:
            # So that a place in the document is there to be named.
            item['parameters'] = {}
        before = len(self.problems)
        plugin = cls.load(self._document, (*path, 'parameters'),
                          self.problems, name)
        if len(self.problems) > before:
            return None
        return Step(f'{name}.{index}.{kind}', plugin, False, checkpoint)

    def _publisher(self, path, url, name, index):
        found = _SCHEME.match(url) if isinstance(url, str) else None
        if found is None:
            self._refuse('a publisher is a URL, such as '
                         'file:///var/lib/usage.jsonl', *path,
                         definition=name)
            return None
        scheme = found[1].lower()
        cls = self._plugin(plugins.PUBLISHER, scheme, path, name)
        if cls is None:
            return None
        try:
            plugin = cls(self._conf, url)
        except (ValueError, TypeError) as error:
            self._refuse(
                f'{scheme} publisher: {_without_password(str(error), url)}',
                *path, definition=name)
            return None
        return Step(f'{name}.{index}.{scheme}', plugin, True)

    def _plugin(self, namespace, kind, path, name):
        try:
            if not isinstance(kind, str) or not kind:
                raise exceptions.PluginError(
                    'name is the name of a transformer, a text')
            return plugins.load(namespace, kind)
        except exceptions.PluginError as error:
            self._refuse(str(error), *path, definition=name)
            return None


def _without_password(text, url):
    """Return what a publisher said of its URL, without the password."""
    for password in _PASSWORD.findall(url):
        # A host is read up to "/", "?" or "#", so that one of these in a
        # password leaves its begin standing where the port would be.
        for form in (password, urllib.parse.unquote(password),
                     re.split('[/?#@]', password)[0]):
            if form:
                text = text.replace(form, '***')
    return text
