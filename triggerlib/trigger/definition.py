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

"""A trigger definition: what belongs together, and when it is complete.

The fields are those of the blueprint event-triggers, "Defining the triggers".
"""

import dataclasses
import datetime
import hashlib
import typing

from triggerlib import clock
from triggerlib import criteria
from triggerlib.event import encoding
from triggerlib import exceptions
from triggerlib import timex

#: An expiration that is out of all datetimes.
NEVER: typing.Final = clock.LAST

#: What distinguishes by the event's own timestamp, which is no trait.
TIMESTAMP: typing.Final = 'timestamp'


@dataclasses.dataclass(frozen=True, slots=True)
class Distinguisher:
    """A trait by whose value instances are told apart.

    :param trait: name of the trait, or ``timestamp``
    :param period: a range that stands for all datetimes in it, or None
    """

    trait: str
    period: timex.Expression | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class TriggerDefinition:
    """The template of a class of trigger instances.

    :param name: unique name
    :param distinguished_by: what tells instances apart
    :param expiration: time expressions, of which the earliest counts
    :param match_criteria: events to collect; any of them
    :param fire_delay: seconds between complete and fired
    :param fire_criteria: what must be in the list; all of them
    :param load_criteria: further events for the pipeline
    :param fire_pipeline: name of a sink, or None
    :param expire_pipeline: name of a sink, or None
    :param fingerprint: of all that decides what is collected, and when it
        fires and expires
    """

    name: str
    distinguished_by: tuple[Distinguisher, ...]
    expiration: tuple[timex.Expression, ...]
    match_criteria: tuple[criteria.Criterion, ...]
    fire_delay: float = 0.0
    fire_criteria: tuple[criteria.Criterion, ...] = ()
    load_criteria: tuple[criteria.Criterion, ...] = ()
    fire_pipeline: str | None = None
    expire_pipeline: str | None = None
    fingerprint: str = ''

    #: Whether a match criterion refers to the first or last event.
    matches_list: bool = dataclasses.field(init=False)
    #: Whether a fire criterion refers to the first or last event.
    needs_list: bool = dataclasses.field(init=False)
    _counted: tuple = dataclasses.field(init=False, repr=False)
    _listed: tuple = dataclasses.field(init=False, repr=False)

    def __post_init__(self):
        counted, listed = [], []
        for index, criterion in enumerate(self.fire_criteria):
            (listed if criterion.needs_list else counted).append(
                (index, criterion))
        for name, value in (
                ('matches_list', any(one.needs_list
                                     for one in self.match_criteria)),
                ('needs_list', bool(listed)),
                ('_counted', tuple(counted)), ('_listed', tuple(listed))):
            object.__setattr__(self, name, value)

    def key(self, event, match_criteria) -> tuple | None:
        """Return what distinguishes the instance an event belongs to.

        Where :attr:`matches_list` is set, the event may belong to it;
        :meth:`accepts` decides. Of criteria that give different keys, the
        first counts that does not look at the list; where all that match do,
        the first.

        :param event: a :class:`triggerlib.event.Event`
        :param match_criteria: those that match its type
        :returns: values in the order of :attr:`distinguished_by`, or None
            where the event does not match or lacks one of them
        """
        perhaps = None
        for criterion in match_criteria:
            if criterion.matches_alone(event):
                key = self._values(event, criterion.renamed)
                if key is None:
                    continue
                if not criterion.needs_list:
                    return key
                if perhaps is None:
                    perhaps = key
        return perhaps

    def accepts(self, event, key, instance) -> bool:
        """Tell whether an event belongs to an instance, given its list.

        :param event: an event whose :meth:`key` is the instance's
        :param key: the instance's
        :param instance: a :class:`triggerlib.storage.Instance`; without
            events, the event would be its first and last
        """
        if instance.event_count:
            first, last = instance.first_event, instance.last_event
        else:
            first = last = event.timestamp
        document = self.key_document(key)
        return any(
            criterion.matches(event, first, last)
            and self._has_key(event, criterion.renamed, document)
            for criterion in self.match_criteria)

    def key_document(self, key) -> str:
        """Return a key as JSON document of values by trait name."""
        return encoding.dump_traits({
            one.trait: value
            for one, value in zip(self.distinguished_by, key)})

    def active_key(self, key) -> str:
        """Return the text that is unique to an ACTIVE instance."""
        text = f'{self.name}\0{self.key_document(key)}'
        return hashlib.sha256(
            text.encode('utf-8', 'surrogatepass')).hexdigest()

    def expire_timestamp(self, first, last) -> datetime.datetime:
        """Return when an instance expires.

        :param first: timestamp of its first event
        :param last: timestamp of its last event
        """
        earliest = NEVER
        for expression in self.expiration:
            try:
                moment = expression(first=first, last=last).timestamp
            except exceptions.TimexOverflow:
                continue
            if moment < earliest:
                earliest = moment
        return earliest

    def count(self, event, counts) -> None:
        """Count an event for the fire criteria that look at it alone.

        :param counts: numbers by position of the criterion; changed in place
        """
        for index, criterion in self._counted:
            if criterion.matches(event):
                counts[index] += 1

    def count_over_list(self, events, first, last, counts) -> None:
        """Count a whole list for the fire criteria that look at it.

        :param events: the list
        :param first: timestamp of its first event
        :param last: timestamp of its last event
        :param counts: numbers by position of the criterion; changed in place
        """
        for index, criterion in self._listed:
            counts[index] = sum(
                criterion.matches(event, first, last) for event in events)

    def is_complete(self, counts) -> bool:
        """Tell whether the fire criteria are met by these counts."""
        if not self.fire_criteria:
            return False
        for criterion, count in zip(self.fire_criteria, counts):
            if criterion.number:
                if count < criterion.number:
                    return False
            elif count:
                return False
        return True

    def load_queries(self, key, first, last):
        """Yield what further events to load for an instance's pipeline.

        :param key: the instance's
        :param first: timestamp of its first event
        :param last: timestamp of its last event
        :returns: ``(query, predicate, newest)``: what the storage can narrow
            by, what decides, and how many of the newest are wanted, None for
            all
        """
        document = self.key_document(key)
        for criterion in self.load_criteria:
            query = self._narrow(criterion.query(first, last),
                                 criterion.renamed, key)

            def matches(event, criterion=criterion):
                return (criterion.matches(event, first, last)
                        and self._has_key(event, criterion.renamed,
                                          document))

            if query is not None:
                yield query, matches, criterion.last

    def _has_key(self, event, renamed, document):
        # By the document, in which 1 and 1.0 differ as they do in
        # active_key and in the trait index.
        values = self._values(event, renamed)
        return values is not None and self.key_document(values) == document

    def _values(self, event, renamed):
        values = []
        for one in self.distinguished_by:
            name = renamed.get(one.trait, one.trait)
            if name == TIMESTAMP:
                value = event.timestamp
            else:
                value = event.traits.get(name)
                if value is None:
                    return None
            if one.period is not None:
                if type(value) is not datetime.datetime:
                    return None
                try:
                    value = one.period(timestamp=value).begin
                except exceptions.TimexOverflow:
                    return None
            values.append(value)
        return tuple(values)

    def _narrow(self, query, renamed, key):
        traits = dict(query.traits)
        begin, end = query.begin, query.end
        for one, value in zip(self.distinguished_by, key):
            name = renamed.get(one.trait, one.trait)
            if one.period is None:
                if name != TIMESTAMP:
                    traits[name] = value
                continue
            if name != TIMESTAMP:
                continue
            latest = _end(one.period, value)
            begin = value if begin is None else max(begin, value)
            end = latest if end is None else min(end, latest)
            if end < begin:
                return None
        return dataclasses.replace(
            query, begin=begin, end=end, traits=traits)


def _end(period, begin):
    """Return the end of the period that begins at a time."""
    end = begin
    while True:
        try:
            found = period(timestamp=end)
        except exceptions.TimexOverflow:
            return NEVER
        # Where the clocks are put back by part of a period, a period may
        # begin inside of another.
        if found.begin > begin or found.end <= end:
            return end
        end = found.end
