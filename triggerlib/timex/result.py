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

"""What evaluating a time expression gives: a moment or a range."""

import dataclasses
import datetime

UTC = datetime.timezone.utc


def as_utc(moment: datetime.datetime) -> datetime.datetime:
    """Return a datetime as an aware UTC one; a naive one is taken as UTC.

    :raises OverflowError: when it is outside of datetime's range in UTC
    """
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Timestamp:
    """One moment; it matches that moment and no other.

    :param timestamp: the moment, an aware UTC datetime
    """

    timestamp: datetime.datetime

    @property
    def begin(self) -> datetime.datetime:
        """The moment."""
        return self.timestamp

    @property
    def end(self) -> datetime.datetime:
        """The moment."""
        return self.timestamp

    def match(self, moment: object) -> bool:
        """Tell whether ``moment`` is this moment.

        :param moment: a datetime, taken as UTC when it is naive; a value of
            another type does not match
        """
        return (isinstance(moment, datetime.datetime)
                and _comparable(moment) == _comparable(self.timestamp))

    __contains__ = match


@dataclasses.dataclass(frozen=True, slots=True)
class TimeRange:
    """The time from ``begin`` on and before ``end``.

    A range that ends where it begins, or earlier, holds nothing.

    :param begin: the first moment it holds, an aware UTC datetime
    :param end: the first moment it no longer holds, an aware UTC datetime
    """

    begin: datetime.datetime
    end: datetime.datetime

    @property
    def timestamp(self) -> datetime.datetime:
        """The begin, so that a range can stand in for a moment."""
        return self.begin

    def match(self, moment: object) -> bool:
        """Tell whether ``moment`` is in the range.

        :param moment: a datetime, taken as UTC when it is naive; a value of
            another type does not match
        """
        return (isinstance(moment, datetime.datetime)
                and self.begin <= _comparable(moment) < self.end)

    __contains__ = match


def _comparable(moment):
    # Python never finds datetimes of two zones equal when one of them is in
    # a repeated hour, so that they are brought into one zone first. A moment
    # that UTC cannot hold keeps its zone: it differs from all that UTC can.
    try:
        return as_utc(moment)
    except OverflowError:
        return moment
