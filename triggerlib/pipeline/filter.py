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

"""``filter``: keeps the events that criteria are for."""

from triggerlib import criteria
from triggerlib.pipeline import transformer

_ALONE = ('event_type', 'timestamp', 'traits')


class Filter(transformer.Transformer):
    """Keeps events that match any of some criteria.

    Parameters: ``criteria``, a list of criteria, or the keys of a single
    one; ``exclude: true`` keeps the others instead. In time expressions,
    ``first`` and ``last`` are those of the events that come in.

    :param criteria: :class:`triggerlib.criteria.Criterion` objects
    :param exclude: whether to keep what does not match
    """

    def __init__(self, criteria=(), exclude=False):
        self._criteria = tuple(criteria)
        self._exclude = exclude

    @classmethod
    def load(cls, document, path, problems, definition):
        """Build one from a pipelines file."""
        parameters = document.at(*path)
        before = len(problems)
        exclude = parameters.get('exclude', False)
        if not isinstance(exclude, bool):
            problems.append(document.problem(
                'exclude is true or false', *path, 'exclude',
                definition=definition))
        loaded = []
        if 'criteria' in parameters:
            for key in parameters:
                if key not in ('criteria', 'exclude'):
                    problems.append(document.problem(
                        f'{key!r} cannot stand beside criteria; write it in '
                        f'one of them', *path, key, definition=definition))
            listed = parameters['criteria']
            if not isinstance(listed, list) or not listed:
                problems.append(document.problem(
                    'criteria is a list of criteria', *path, 'criteria',
                    definition=definition))
                listed = []
            loaded = [
                criteria.Criterion.load(
                    document, (*path, 'criteria', index), problems,
                    definition, allowed=_ALONE)
                for index in range(len(listed))]
        elif not set(parameters) - {'exclude'}:
            problems.append(document.problem(
                'a filter needs criteria', *path, definition=definition))
        else:
            loaded = [criteria.Criterion.load(
                document, path, problems, definition,
                allowed=(*_ALONE, 'exclude'))]
        return None if len(problems) > before else cls(loaded, exclude)

    def transform(self, events, context):
        """Return the events to keep."""
        if not events:
            return []
        first = min(event.timestamp for event in events)
        last = max(event.timestamp for event in events)
        return [
            event for event in events
            if any(one.matches(event, first, last)
                   for one in self._criteria) is not self._exclude]
