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

"""From a YAML file to trigger definitions, with every mistake placed."""

import datetime
import hashlib
import json

from triggerlib import criteria
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib import timex
from triggerlib import trait_expression
from triggerlib.trigger import definition as definition_module
from triggerlib.trigger import source
from triggerlib import yamlfile

KEYS = ('name', 'distinguished_by', 'expiration', 'fire_delay', 'timezone',
        'match_criteria', 'fire_criteria', 'load_criteria', 'fire_pipeline',
        'expire_pipeline')
_NEEDED = ('name', 'distinguished_by', 'expiration', 'match_criteria')
_MATCH = ('event_type', 'timestamp', 'traits', 'map_distinguished_by')
_FIRE = ('event_type', 'timestamp', 'traits', 'number')
_LOAD = ('event_type', 'timestamp', 'traits', 'map_distinguished_by', 'last')

#: Longest name; it has to fit the storage.
NAME_LENGTH = 255


def load(document, problems, pipelines=None):
    """Read trigger definitions from a YAML document.

    :param document: a :class:`triggerlib.yamlfile.Document`
    :param problems: a list that gets every mistake found
    :param pipelines: names of the pipelines there are; None to leave that
        unchecked
    :returns: the definitions that have no mistake
    """
    problems += document.repetitions()
    if not isinstance(document.data, list):
        problems.append(document.problem(
            'a file of trigger definitions is a list of mappings'))
        return []
    names = {}
    loaded = []
    for index in range(len(document.data)):
        one = _Loader(document, index, problems, pipelines).load(names)
        if one is not None:
            loaded.append(one)
    return loaded


class _Loader:
    """Reads one definition."""

    def __init__(self, document, index, problems, pipelines):
        self._document = document
        self._index = index
        self._problems = problems
        self._pipelines = pipelines
        self._data = document.data[index]
        self._label = f'#{index + 1}'
        self._zone = 'UTC'

    def load(self, names):
        before = len(self._problems)
        if not isinstance(self._data, dict):
            self._refuse('a trigger definition is a mapping')
            return None
        name = self._data.get('name')
        if isinstance(name, str) and name:
            self._label = name
        for key in self._data:
            if key not in KEYS:
                self._refuse(f'a trigger definition has no key {key!r}'
                             f'{yamlfile.suggestion(key, KEYS)}', key)
        for key in _NEEDED:
            if key not in self._data:
                self._refuse(f'{key} is missing', named=key)
        self._check_name(names)
        self._zone = self._timezone()
        distinguished_by = self._distinguished_by()
        expiration = self._expiration()
        fire_delay = self._fire_delay()
        match = self._criteria('match_criteria', _MATCH, needed=True)
        fire = self._criteria('fire_criteria', _FIRE)
        load_ = self._criteria('load_criteria', _LOAD)
        self._check_renamed(distinguished_by, match, 'match_criteria')
        self._check_renamed(distinguished_by, load_, 'load_criteria')
        fire_pipeline = self._pipeline('fire_pipeline')
        expire_pipeline = self._pipeline('expire_pipeline')
        if self._data.get('fire_criteria') and (
                'fire_pipeline' not in self._data):
            self._refuse('fire_pipeline is missing, and there are '
                         'fire_criteria', named='fire_pipeline')
        if len(self._problems) > before:
            return None
        return definition_module.TriggerDefinition(
            name, distinguished_by, expiration, match, fire_delay, fire,
            load_, fire_pipeline, expire_pipeline, self._fingerprint())

    def _refuse(self, message, *path, named=None):
        self._problems.append(self._document.problem(
            message, self._index, *path, definition=self._label,
            key=named or yamlfile.dotted(path) or None))

    def _check_name(self, names):
        if 'name' not in self._data:
            return
        name = self._data['name']
        if not isinstance(name, str) or not name.isprintable() or (
                not 1 <= len(name) <= NAME_LENGTH):
            self._refuse(f'name is a text of 1 to {NAME_LENGTH} printable '
                         f'characters', 'name')
        elif name.startswith(source.PREFIX):
            self._refuse(f'names that begin with {source.PREFIX!r} are kept '
                         f'for the sources of pipelines', 'name')
        elif name in names:
            self._refuse(f'there is another definition of that name in line '
                         f'{names[name]}', 'name')
        else:
            names[name] = self._document.line(self._index, 'name')

    def _timezone(self):
        zone = self._data.get('timezone', 'UTC')
        if isinstance(zone, str):
            try:
                timex.parse('first', zone)
                return zone
            except exceptions.TimexError as error:
                reason = error.reason
        else:
            reason = 'it is not a text'
        self._refuse(f'timezone is the IANA name of a time zone, such as '
                     f'Europe/Berlin: {reason}', 'timezone')
        return 'UTC'

    def _distinguished_by(self):
        entries = self._data.get('distinguished_by', [])
        if not isinstance(entries, list):
            self._refuse('distinguished_by is a list of traits, or of '
                         '{trait: period}', 'distinguished_by')
            return ()
        found = []
        for index, entry in enumerate(entries):
            path = ('distinguished_by', index)
            period = None
            if isinstance(entry, dict) and len(entry) == 1:
                (entry, text), = entry.items()
                path += (entry,)
                period = self._period(text, path)
            elif entry == definition_module.TIMESTAMP:
                # One instance for every moment is hardly meant.
                self._refuse('timestamp needs a period, as in '
                             '{timestamp: day}', *path)
                continue
            if not isinstance(entry, str) or not entry:
                self._refuse('is the name of a trait, or {trait: period}',
                             *path)
            elif entry in [one.trait for one in found]:
                self._refuse(f'{entry!r} is there twice', *path)
            else:
                found.append(definition_module.Distinguisher(entry, period))
        return tuple(found)

    def _period(self, text, path):
        try:
            if not isinstance(text, str):
                raise TypeError('a period is a text, such as day')
            period = timex.parse(text, self._zone)
        except (exceptions.TimexError, TypeError) as error:
            self._refuse(str(error), *path)
            return None
        if not period.is_range or period.names != {'timestamp'}:
            self._refuse(f'{text!r} is not a period; write hour, day, month '
                         f'or year, such as day@6', *path)
            return None
        if not _divides_time(period):
            self._refuse(f'{text!r} is not the period in which a moment '
                         f'lies, so that moments of one period would be told '
                         f'apart; write hour, day, month or year, such as '
                         f'day@6', *path)
            return None
        return period

    def _expiration(self):
        if 'expiration' not in self._data:
            return ()
        texts = self._data['expiration']
        listed = isinstance(texts, list)
        if listed and not texts:
            self._refuse('expiration is empty', 'expiration')
        found = []
        for index, text in enumerate(texts if listed else [texts]):
            path = ('expiration', index) if listed else ('expiration',)
            if not isinstance(text, str):
                self._refuse('expiration is a time expression, or a list of '
                             'them', *path)
                continue
            try:
                expression = timex.parse(text, self._zone)
            except exceptions.TimexError as error:
                self._refuse(str(error), *path)
                continue
            if expression.is_range:
                self._refuse(f'{text!r} is a range; expiration is a single '
                             f'time', *path)
            elif not expression.names <= criteria.LIST_NAMES:
                names = ', '.join(sorted(
                    expression.names - criteria.LIST_NAMES))
                self._refuse(f'{text!r} refers to {names}; expiration can '
                             f'only refer to first and last', *path)
            else:
                found.append(expression)
        return tuple(found)

    def _fire_delay(self):
        delay = self._data.get('fire_delay', 0)
        if type(delay) not in (int, float) or not 0 <= delay <= 10 ** 10:
            self._refuse('fire_delay is a number of seconds, 0 or more',
                         'fire_delay')
            return 0.0
        return float(delay)

    def _criteria(self, key, allowed, needed=False):
        entries = self._data.get(key)
        if entries is None and not (needed and key in self._data):
            return ()
        if not isinstance(entries, list):
            self._refuse(f'{key} is a list of criteria', key)
            return ()
        if needed and not entries:
            self._refuse(f'{key} is empty, so nothing would be collected',
                         key)
        found = [
            criteria.Criterion.load(
                self._document, (self._index, key, index), self._problems,
                self._label, self._zone, allowed)
            for index in range(len(entries))]
        return tuple(one for one in found if one is not None)

    def _check_renamed(self, distinguished_by, loaded, key):
        known = [one.trait for one in distinguished_by]
        for index, criterion in enumerate(loaded):
            for trait in criterion.renamed:
                if trait not in known and 'distinguished_by' in self._data:
                    self._refuse(
                        f'{trait!r} is not in distinguished_by'
                        f'{yamlfile.suggestion(trait, known)}',
                        key, index, 'map_distinguished_by', trait)

    def _pipeline(self, key):
        name = self._data.get(key)
        if name is None:
            if key in self._data:
                self._refuse(f'{key} is the name of a sink', key)
            return None
        if not isinstance(name, str):
            self._refuse(f'{key} is the name of a sink', key)
        elif self._pipelines is not None and name not in self._pipelines:
            self._refuse(f'there is no sink {name!r} in the pipelines'
                         f'{yamlfile.suggestion(name, self._pipelines)}',
                         key)
        return name

    def _fingerprint(self):
        # What is left out decides nothing about collecting, so that a new
        # pipeline does not make every instance be evaluated again.
        expiration = self._data['expiration']
        canonical = {
            'name': self._data['name'],
            'distinguished_by': self._data['distinguished_by'],
            'expiration': expiration if isinstance(expiration, list)
            else [expiration],
            'fire_delay': float(self._data.get('fire_delay', 0)),
            'timezone': self._zone,
            'match_criteria': [
                _canonical(one) for one in self._data['match_criteria']],
            'fire_criteria': [
                {'number': 1, **_canonical(one)}
                for one in self._data.get('fire_criteria') or ()],
        }
        text = json.dumps(canonical, sort_keys=True, default=_date)
        return hashlib.sha256(text.encode()).hexdigest()


#: Moments of different lengths of month and year, and of both seasons.
_MOMENTS = (
    datetime.datetime(2001, 2, 3, 4, 5, 6, 7, datetime.timezone.utc),
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, datetime.timezone.utc),
    datetime.datetime(2025, 7, 15, tzinfo=datetime.timezone.utc))


def _divides_time(period):
    """Tell whether each moment lies in its period, and that is one for all.

    A period that was moved away from its moment does not, and neither does a
    range that begins with it.
    """
    for moment in _MOMENTS:
        try:
            found = period(timestamp=moment)
            if moment not in found or period(timestamp=found.begin) != found:
                return False
            latest = found.end - datetime.timedelta(microseconds=1)
            if period(timestamp=latest) != found:
                return False
        except exceptions.TimexOverflow:
            return False
    return True


def _canonical(criterion):
    """Return a criterion's mapping, the same for all that mean the same."""
    canonical = {key: value for key, value in criterion.items()
                 if value != {}}
    types = canonical.get('event_type')
    if isinstance(types, str):
        canonical['event_type'] = [types]
    return canonical


def _date(value):
    # Not as a text: a date and a text of it are not compared alike.
    return {'datetime': encoding.isoformat(trait_expression.as_utc(value))}
