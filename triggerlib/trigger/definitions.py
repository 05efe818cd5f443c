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

"""All trigger definitions in force, found by the type of an event."""

from collections import abc as collections_abc

from triggerlib import exceptions
from triggerlib.trigger import definition as definition_module
from triggerlib.trigger import loader
from triggerlib import yamlfile

#: Event types come from outside, so what is remembered of them is bounded.
CACHE_SIZE = 10000


class TriggerDefinitions:
    """A set of trigger definitions.

    :param definitions: :class:`~.definition.TriggerDefinition` objects of
        different names
    """

    def __init__(self, definitions: collections_abc.Iterable[
            definition_module.TriggerDefinition] = ()):
        self._definitions = tuple(definitions)
        self._by_name = {one.name: one for one in self._definitions}
        self._by_event_type = {}
        #: Names of the traits that some definition distinguishes by.
        self.indexed_traits = frozenset(
            criterion.renamed.get(one.trait, one.trait)
            for each in self._definitions
            for one in each.distinguished_by
            for criterion in (*each.match_criteria, *each.load_criteria)
        ) - {definition_module.TIMESTAMP}

    @classmethod
    def load(cls, path, pipelines=None) -> 'TriggerDefinitions':
        """Read a file of trigger definitions.

        :param path: path of the YAML file
        :param pipelines: names of the pipelines there are; None to leave
            that unchecked
        :raises DefinitionError: every mistake in the file
        """
        problems = []
        definitions = loader.load(yamlfile.read(path), problems, pipelines)
        if problems:
            raise exceptions.DefinitionError(problems)
        return cls(definitions)

    def __iter__(self):
        return iter(self._definitions)

    def __len__(self):
        return len(self._definitions)

    def get(self, name):
        """Return the definition of that name, or None."""
        return self._by_name.get(name)

    def for_event_type(self, event_type):
        """Return the definitions that an event of this type can match.

        :returns: pairs of a definition and those of its match criteria that
            match the type
        """
        found = self._by_event_type.get(event_type)
        if found is None:
            found = []
            for one in self._definitions:
                matching = tuple(
                    criterion for criterion in one.match_criteria
                    if criterion.matches_type(event_type))
                if matching:
                    found.append((one, matching))
            if len(self._by_event_type) >= CACHE_SIZE:
                self._by_event_type.clear()
            found = self._by_event_type[event_type] = tuple(found)
        return found
