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

"""``aggregate``: one event that sums up many."""

import dataclasses
import logging
import math
import typing

from triggerlib import criteria
from triggerlib.event import event as event_module
from triggerlib.pipeline import transformer
from triggerlib.storage import driver as storage_module
from triggerlib import yamlfile

LOG = logging.getLogger(__name__)

_ALONE = ('event_type', 'timestamp', 'traits')
_KEYS = ('event_type', 'group_by', 'timestamp', 'keep_events', 'traits')
_OF_TRAIT = ('sum', 'min', 'max', 'mean', 'first', 'last')
_FORMS = ('count', *_OF_TRAIT, 'elapsed', 'value', 'key')


class Aggregate(transformer.Transformer):
    """Makes one summary event of all events, or one of each group.

    Parameters:

    ``event_type``
        type of the summary
    ``traits``
        the summary's traits, each one of ``count``; ``{count: criterion}``;
        ``{sum: trait}``, likewise ``min``, ``max``, ``mean``, ``first`` and
        ``last``, each with ``where: criterion`` where not all events are
        meant; ``{elapsed: {from: criterion, to: criterion}}``, the seconds
        from the first event that matches the one to the next that matches
        the other; ``{value: constant}``; ``{key: trait}``, a value that
        distinguishes the trigger instance. One that comes to nothing is left
        out.
    ``group_by``
        traits; there is a summary for each combination of their values,
        which it has too
    ``timestamp``
        ``last`` or ``first``: whose timestamp the summary has
    ``keep_events``
        whether the events go on beside the summary

    Without events there is no summary. It is one pass, and what it keeps
    does not grow with the number of events.
    """

    def __init__(self, event_type, traits, group_by=(), timestamp='last',
                 keep_events=False):
        self._event_type = event_type
        self._traits = traits
        self._group_by = tuple(group_by)
        self._at_first = timestamp == 'first'
        self._keep_events = keep_events

    @classmethod
    def load(cls, document, path, problems, definition):
        """Build one from a pipelines file."""
        return _Loader(document, path, problems, definition).load(cls)

    def transform(self, events, context):
        """Return the summaries, behind the events where these are kept."""
        groups = {}
        for event in events:
            key = tuple(event.traits.get(name) for name in self._group_by)
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(
                    event, [make(context) for _, make in self._traits])
            group.last = event
            for accumulator in group.accumulators:
                accumulator.add(event)
        summaries = [
            self._summary(position, key, group, context)
            for position, (key, group) in enumerate(groups.items())]
        return [*events, *summaries] if self._keep_events else summaries

    def _summary(self, position, key, group, context):
        traits = {name: value for name, value in zip(self._group_by, key)
                  if value is not None}
        for (name, _), accumulator in zip(self._traits, group.accumulators):
            value = accumulator.result()
            if type(value) is float and not math.isfinite(value):
                # As the converter does with one: JSON has no such number.
                LOG.warning(
                    'Step %s of trigger instance %s leaves out the trait %r '
                    'of its summary: %s is not a finite number.',
                    context.step, context.instance_id, name, value)
            elif value is not None:
                traits[name] = value
        moment = (group.first if self._at_first else group.last).timestamp
        return event_module.Event(
            context.derive(position), self._event_type, moment, traits)


@dataclasses.dataclass(slots=True)
class _Group:
    first: event_module.Event
    accumulators: list
    last: event_module.Event | None = None


class _Count:
    def __init__(self, where):
        self._where = where
        self._count = 0

    def add(self, event):
        if self._where is None or self._where.matches(event):
            self._count += 1

    def result(self):
        return self._count


class _Numbers:
    """The sum or mean of a trait, over those events that have a number."""

    def __init__(self, trait, where, mean):
        self._trait = trait
        self._where = where
        self._mean = mean
        self._sum = 0
        self._count = 0

    def add(self, event):
        value = event.traits.get(self._trait)
        if type(value) in (int, float) and (
                self._where is None or self._where.matches(event)):
            self._sum += value
            self._count += 1

    def result(self):
        if not self._count:
            return None
        return self._sum / self._count if self._mean else self._sum


class _Pick:
    """One of the values of a trait."""

    def __init__(self, trait, where, better):
        self._trait = trait
        self._where = where
        self._better = better
        self._value = None

    def add(self, event):
        value = event.traits.get(self._trait)
        if value is None or (self._where is not None
                             and not self._where.matches(event)):
            return
        if self._value is None or self._better(value, self._value):
            self._value = value

    def result(self):
        return self._value


class _Elapsed:
    def __init__(self, begin, end):
        self._begin = begin
        self._end = end
        self._began = None
        self._seconds = None

    def add(self, event):
        if self._seconds is not None:
            return
        if self._began is not None and self._end.matches(event):
            self._seconds = (
                event.timestamp - self._began).total_seconds()
        elif self._began is None and self._begin.matches(event):
            self._began = event.timestamp

    def result(self):
        return self._seconds


class _Constant:
    def __init__(self, value):
        self._value = value

    def add(self, event):
        pass

    def result(self):
        return self._value


def _rank(value):
    """Order values of one kind; numbers, texts and datetimes do not mix."""
    return 'number' if type(value) in (int, float) else type(value).__name__


_BETTER: typing.Final = {
    'min': lambda new, old: _rank(new) == _rank(old) and new < old,
    'max': lambda new, old: _rank(new) == _rank(old) and new > old,
    'first': lambda new, old: False,
    'last': lambda new, old: True,
}


class _Loader:
    """Reads the parameters, and collects their mistakes."""

    def __init__(self, document, path, problems, definition):
        self._document = document
        self._path = path
        self._problems = problems
        self._definition = definition

    def load(self, cls):
        before = len(self._problems)
        parameters = self._document.at(*self._path)
        for key in parameters:
            if key not in _KEYS:
                self._refuse(f'aggregate has no parameter {key!r}'
                             f'{yamlfile.suggestion(key, _KEYS)}', key)
        event_type = parameters.get('event_type')
        if not isinstance(event_type, str) or not (
                0 < len(event_type) <= storage_module.ID_LENGTH):
            self._refuse(
                f'aggregate needs an event_type for its summary, a text of 1 '
                f'to {storage_module.ID_LENGTH} characters')
        group_by = parameters.get('group_by', [])
        if not isinstance(group_by, list) or not all(
                isinstance(one, str) for one in group_by):
            self._refuse('group_by is a list of traits', 'group_by')
        timestamp = parameters.get('timestamp', 'last')
        if timestamp not in ('first', 'last'):
            self._refuse('timestamp is first or last', 'timestamp')
        keep_events = parameters.get('keep_events', False)
        if not isinstance(keep_events, bool):
            self._refuse('keep_events is true or false', 'keep_events')
        wanted = parameters.get('traits', {})
        if not isinstance(wanted, dict):
            self._refuse('traits is a mapping by trait name', 'traits')
            wanted = {}
        traits = [(name, self._trait(name, wanted[name]))
                  for name in wanted]
        for name in wanted:
            if isinstance(group_by, list) and name in group_by:
                self._refuse('the summary has this trait by group_by',
                             'traits', name)
        if len(self._problems) > before:
            return None
        return cls(event_type, traits, group_by, timestamp, keep_events)

    def _refuse(self, message, *path):
        self._problems.append(self._document.problem(
            message, *self._path, *path, definition=self._definition))

    def _trait(self, name, wanted):
        path = ('traits', name)
        if not isinstance(name, str) or not name:
            self._refuse('the name of a trait is a text', *path)
            return None
        if wanted == 'count':
            return lambda context: _Count(None)
        forms = ([] if not isinstance(wanted, dict) else
                 [key for key in wanted if key != 'where'])
        if len(forms) != 1 or forms[0] not in _FORMS:
            self._refuse(f'is count, or a mapping with one of the keys '
                         f'{", ".join(_FORMS)}', *path)
            return None
        form, = forms
        where = None
        if 'where' in wanted:
            if form not in _OF_TRAIT:
                self._refuse(f'where does not go with {form}', *path,
                             'where')
                return None
            where = self._criterion(*path, 'where')
        operand = wanted[form]
        if form == 'count':
            where = self._criterion(*path, 'count')
            return lambda context: _Count(where)
        if form == 'elapsed':
            return self._elapsed(operand, path)
        if form == 'value':
            if type(operand) not in (str, int, float) or (
                    type(operand) is float and not math.isfinite(operand)):
                self._refuse('value is a text or a finite number', *path,
                             form)
            return lambda context: _Constant(operand)
        if not isinstance(operand, str) or not operand:
            self._refuse(f'{form} takes the name of a trait', *path, form)
            return None
        if form == 'key':
            return lambda context: _Constant(context.key.get(operand))
        if form in ('sum', 'mean'):
            return lambda context: _Numbers(operand, where, form == 'mean')
        return lambda context: _Pick(operand, where, _BETTER[form])

    def _elapsed(self, operand, path):
        if not isinstance(operand, dict) or set(operand) != {'from', 'to'}:
            self._refuse('elapsed is a mapping with the keys from and to',
                         *path, 'elapsed')
            return None
        begin = self._criterion(*path, 'elapsed', 'from')
        end = self._criterion(*path, 'elapsed', 'to')
        return lambda context: _Elapsed(begin, end)

    def _criterion(self, *path):
        criterion = criteria.Criterion.load(
            self._document, (*self._path, *path), self._problems,
            self._definition, allowed=_ALONE)
        if criterion is not None and criterion.needs_list:
            self._refuse('refers to first or last, which an aggregate does '
                         'not know yet when it looks at an event', *path)
        return criterion
