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

"""``map``: renames, sets and drops traits."""

import dataclasses
import datetime
import fnmatch
import math

from triggerlib.event import timestamps
from triggerlib.pipeline import transformer
from triggerlib.storage import driver as storage_module


class Map(transformer.Transformer):
    """Changes the traits of each event.

    An event keeps its message_id. Where the type changes, it is another
    event, and gets an id of its own.

    :param keep: traits to keep, names or globs; all by default
    :param drop: traits to drop, names or globs
    :param rename: new names by old ones; ``keep`` and ``drop`` go by the old
        ones. A renamed trait takes the place of one that had its new name
    :param set: values by trait name
    :param event_type: new type
    """

    def __init__(self, keep=None, drop=(), rename=None, set=None,
                 event_type=None):
        self._keep = None if keep is None else _names('keep', keep)
        self._drop = _names('drop', drop)
        self._rename = _mapping('rename', rename)
        names = list(self._rename.values())
        if not all(isinstance(name, str) and name for name in names):
            raise ValueError('rename is a mapping of old names to new ones')
        if len(dict.fromkeys(names)) < len(names):
            raise ValueError('rename gives two traits the same name')
        self._set = {name: _value(name, value)
                     for name, value in _mapping('set', set).items()}
        if event_type is not None and (
                not isinstance(event_type, str)
                or not 0 < len(event_type) <= storage_module.ID_LENGTH):
            raise ValueError(f'event_type is a text of 1 to '
                             f'{storage_module.ID_LENGTH} characters')
        self._event_type = event_type

    def transform(self, events, context):
        """Return the changed events."""
        return [self._change(event, position, context)
                for position, event in enumerate(events)]

    def _change(self, event, position, context):
        kept = {
            name: value for name, value in event.traits.items()
            if (self._keep is None or _listed(name, self._keep))
            and not _listed(name, self._drop)}
        traits = {name: value for name, value in kept.items()
                  if name not in self._rename}
        traits.update((new, kept[old]) for old, new in self._rename.items()
                      if old in kept)
        traits.update(self._set)
        if self._event_type in (None, event.event_type):
            return dataclasses.replace(event, traits=traits)
        return dataclasses.replace(
            event, traits=traits, event_type=self._event_type,
            message_id=context.derive(position))


def _listed(name, patterns):
    return any(fnmatch.fnmatchcase(name, one) for one in patterns)


def _names(key, names):
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, (list, tuple)) or not all(
            isinstance(one, str) for one in names):
        raise ValueError(f'{key} is a list of trait names')
    return tuple(names)


def _mapping(key, mapping):
    if mapping is None:
        return {}
    if not isinstance(mapping, dict) or not all(
            isinstance(one, str) for one in mapping):
        raise ValueError(f'{key} is a mapping by trait name')
    return mapping


def _value(name, value):
    if isinstance(value, datetime.datetime):
        return timestamps.parse(value)
    if type(value) not in (str, int, float):
        raise ValueError(f'set: a trait is a text, a number or a datetime; '
                         f'{name!r} is none of them')
    if type(value) is float and not math.isfinite(value):
        raise ValueError(f'set: {name!r} is not a finite number')
    return value
