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

"""Timestamps in any form that notifications have them."""

import datetime
import re

import iso8601

UTC = datetime.timezone.utc

# iso8601 takes the 5 of "17:5" for a second.
_LONE_DIGIT = re.compile(r'[ T]\d{2}:?\d(?!\d)')


def parse(value) -> datetime.datetime:
    """Return a timestamp as aware UTC datetime.

    :param value: a datetime, or a text such as ``2012-03-12 17:01:29.899834``,
        ``2012-03-13 17:01`` or any ISO 8601 form, also with ``UTC`` behind
        it; without a zone it is UTC
    :raises ValueError: it is none; the text says what was given
    """
    if type(value) is str:
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            moment = _parse_iso(value)
    elif isinstance(value, datetime.datetime):
        moment = value
    else:
        raise ValueError(f'{_shown(value)} is not a timestamp')
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(
            f'{_shown(value)} is out of all years as UTC') from error


def _parse_iso(text):
    plain = text.strip()
    if plain.endswith('UTC'):
        plain = f'{plain[:-3].rstrip()}Z'
    if _LONE_DIGIT.search(plain):
        raise ValueError(f'{_shown(text)} is not a timestamp')
    try:
        return iso8601.parse_date(plain, default_timezone=UTC)
    except (iso8601.ParseError, OverflowError) as error:
        raise ValueError(f'{_shown(text)} is not a timestamp') from error


def _shown(value):
    text = repr(value)
    return text if len(text) <= 100 else f'{text[:100]}...'
