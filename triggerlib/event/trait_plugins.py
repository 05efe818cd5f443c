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

"""The trait plugins that come with the package."""

from collections import abc as collections_abc
import datetime

from triggerlib.event import audit_period
from triggerlib.event import path as path_module
from triggerlib.event import timestamps
from triggerlib.event import trait_plugin

#: A date in which no part is like another.
_SAMPLE = datetime.datetime(
    2012, 3, 13, 17, 24, 29, 899834, datetime.timezone.utc)


class SplitPlugin(trait_plugin.TraitPlugin):
    """Cuts a text at a separator, and takes one of the parts.

    The first field that has so many parts counts.

    :param separator: where to cut
    :param segment: number of the part, from 0; negative ones from the end
    :param max_split: how often to cut at most
    """

    def __init__(self, separator='.', segment=0, max_split=None):
        if not isinstance(separator, str) or not separator:
            raise ValueError('separator is a text')
        if type(segment) is not int:
            raise ValueError('segment is a whole number')
        if max_split is not None and type(max_split) is not int:
            raise ValueError('max_split is a whole number')
        self._separator = separator
        self._segment = segment
        self._max_split = -1 if max_split is None else max_split

    def trait_value(self, match_list):
        """Return the part, None where there are not so many."""
        for _, value in match_list:
            parts = str(value).split(self._separator, self._max_split)
            if -len(parts) <= self._segment < len(parts):
                return parts[self._segment]
        return None


class BitfieldPlugin(trait_plugin.TraitPlugin):
    """Sets bits of a number for the fields that are there.

    :param initial_bitfield: the number to begin with
    :param flags: mappings of ``path``, ``bit`` and, where only one value
        sets the bit, ``value``
    """

    def __init__(self, initial_bitfield=0, flags=None):
        if type(initial_bitfield) is not int:
            raise ValueError('initial_bitfield is a whole number')
        if not isinstance(flags or [], list):
            raise ValueError('flags is a list of mappings')
        self._initial = initial_bitfield
        self._flags = [self._flag(flag) for flag in flags or ()]

    @staticmethod
    def _flag(flag):
        if not isinstance(flag, dict) or not {'path', 'bit'} <= set(
                flag) <= {'path', 'bit', 'value'}:
            raise ValueError('a flag is a mapping of path, bit and, if need '
                             'be, value')
        bit = int(flag['bit'])
        if not 0 <= bit <= 62:
            raise ValueError(f'bit is 0 to 62, not {bit}')
        if not isinstance(flag['path'], str):
            raise ValueError('path is a field path')
        # The path as a match list gives it, which has no quotes.
        paths = {flag['path'], path_module.compile(flag['path']).name}
        return paths, 1 << bit, 'value' not in flag, flag.get('value')

    def trait_value(self, match_list):
        """Return the number."""
        number = self._initial
        for path, value in match_list:
            for paths, bit, any_value, wanted in self._flags:
                if path in paths and (any_value or wanted == value):
                    number |= bit
        return number


class TimedeltaPlugin(trait_plugin.TraitPlugin):
    """Gives the seconds between two timestamps, always 0 or more."""

    def trait_value(self, match_list):
        """Return the seconds, None where there are not two timestamps."""
        if len(match_list) > 2:
            raise ValueError('there are more than two timestamps')
        if len(match_list) < 2:
            return None
        begin, end = (timestamps.parse(value) for _, value in match_list)
        return abs((end - begin).total_seconds())


class MapPlugin(trait_plugin.TraitPlugin):
    """Puts one value in the place of another.

    The first field that gives a new value counts.

    :param values: new values by old ones
    :param default: for values that are not among them; None for no trait
    :param case_sensitive: whether case counts in old values
    """

    def __init__(self, values=None, default=None, case_sensitive=True):
        if not isinstance(values, dict) or not values:
            raise ValueError('values is a mapping of old values to new ones')
        if not isinstance(case_sensitive, bool):
            raise ValueError('case_sensitive is true or false')
        self._case_sensitive = case_sensitive
        self._values = {self._fold(old): new for old, new in values.items()}
        self._default = default

    def trait_value(self, match_list):
        """Return the new value, None where there is no field."""
        for _, value in match_list:
            if isinstance(value, collections_abc.Hashable):
                new = self._values.get(self._fold(value), self._default)
            else:
                new = self._default
            if new is not None:
                return new
        return None

    def _fold(self, value):
        if not self._case_sensitive and isinstance(value, str):
            return value.casefold()
        return value


class CasePlugin(trait_plugin.TraitPlugin):
    """Changes the case of a text.

    :param case: ``lower``, ``upper``, ``title`` or ``capitalize``
    """

    def __init__(self, case='lower'):
        if case not in ('lower', 'upper', 'title', 'capitalize'):
            raise ValueError('case is lower, upper, title or capitalize')
        self._case = case

    def trait_value(self, match_list):
        """Return the first field in that case."""
        if not match_list:
            return None
        return getattr(str(match_list[0][1]), self._case)()


class DatetimePlugin(trait_plugin.TraitPlugin):
    """Reads a date that is not in ISO form; as text it is in ISO form.

    :param formats: strptime format, or a list of them, tried in order;
        without a zone it is UTC
    """

    def __init__(self, formats):
        self._formats = [formats] if isinstance(formats, str) else formats
        if not isinstance(self._formats, list) or not self._formats or (
                not all(isinstance(one, str) for one in self._formats)):
            raise ValueError('formats is a strptime format, or a list of '
                             'them')
        for one in self._formats:
            # What cannot read what it wrote itself can read nothing.
            datetime.datetime.strptime(_SAMPLE.strftime(one), one)

    def trait_value(self, match_list):
        """Return the date, an aware UTC datetime.

        :raises ValueError: none of the formats fits
        """
        if not match_list:
            return None
        text = str(match_list[0][1])
        for one in self._formats:
            try:
                moment = datetime.datetime.strptime(text, one)
            except ValueError:
                continue
            return timestamps.parse(moment)
        raise ValueError(f'{text[:100]!r} fits none of {self._formats}')


class AuditPeriodPlugin(trait_plugin.TraitPlugin):
    """Gives the begin or end of the audit period of a timestamp.

    :param period: the audit period, such as ``day@6``
    :param part: ``beginning`` or ``ending``
    :param which: ``last``, the last one over by then, as in an ``exists``
        notification; or ``containing``, the one it lies in
    """

    def __init__(self, period, part='beginning', which='last'):
        audit_period.check(period)
        if part not in ('beginning', 'ending'):
            raise ValueError('part is beginning or ending')
        if which not in ('last', 'containing'):
            raise ValueError('which is last or containing')
        self._period = period
        self._part = 0 if part == 'beginning' else 1
        self._find = (audit_period.last_completed if which == 'last'
                      else audit_period.containing)

    def trait_value(self, match_list):
        """Return the begin or end, an aware UTC datetime."""
        if not match_list:
            return None
        moment = timestamps.parse(match_list[0][1])
        return self._find(self._period, moment)[self._part]
