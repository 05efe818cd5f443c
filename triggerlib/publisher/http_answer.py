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

"""What the answer to a batch of events means."""

import collections
import datetime
import email.utils
import json
import urllib.parse

from triggerlib import clock
from triggerlib import exceptions

UTC = datetime.timezone.utc

#: Bytes of an answer that are looked at.
SIZE_LIMIT = 4 * 1024 * 1024
#: Characters of an answer, or of a reason, that are passed on to people.
TEXT_LIMIT = 500
#: Statuses below 500 that are about the moment and not about the request.
_PASSING = (408, 429)

Rejected = collections.namedtuple('Rejected', 'reasons rest_is_taken')
Rejected.__doc__ = """Events that the receiver will never take.

:param reasons: why, by message_id
:param rest_is_taken: whether it has taken the other events of the batch
"""


def read(place, status, reason, headers, body, message_ids) -> Rejected:
    """Return which events of a batch were rejected.

    :param place: the receiver, for people
    :param status: the answer's status
    :param reason: the text beside it
    :param headers: the answer's headers, a mapping that knows no case
    :param body: the answer's begin, of at most ``SIZE_LIMIT`` + 1 bytes
    :param message_ids: the ids of the events that were sent
    :raises PublishError: the batch was not taken, or it cannot be told which
        of it was
    """
    if 200 <= status < 300:
        return Rejected(_reasons(place, body, message_ids), True)
    if 300 <= status < 400:
        raise exceptions.PublishError(
            f'{place} answered {status} and points to '
            f'{_location(headers)}; a redirect is not followed, the URL of '
            f'the publisher has to be changed')
    asked = retry_after(headers)
    passing = status in _PASSING or status >= 500
    if not passing:
        try:
            reasons = _reasons(place, body, message_ids)
        except exceptions.PublishError:
            # It is no worse than not to name any.
            reasons = {}
        if reasons:
            return Rejected(reasons, False)
    raise exceptions.PublishError(
        f'{place} answered {status} {printable(reason or "")}: '
        f'{printable(body.decode("utf-8", "replace"))}',
        retryable=passing or asked is not None, retry_after=asked)


def retry_after(headers) -> float | None:
    """Return the seconds that an answer asks to wait for, if it does.

    A date is compared with the answer's own, so that this host's clock does
    not matter.

    :param headers: the answer's headers, a mapping that knows no case
    """
    text = headers.get('Retry-After', '').strip()
    if text.isascii() and text.isdigit():
        return float(text)
    moment = _moment(text)
    if moment is None:
        return None
    now = _moment(headers.get('Date', '')) or clock.SystemClock().now()
    return max((moment - now).total_seconds(), 0.0)


def printable(text) -> str:
    """Return the begin of a text from outside, fit for a line of a log."""
    begin = text[:TEXT_LIMIT]
    return ''.join(one if one.isprintable() else ' ' for one in begin) + (
        '...' if len(text) > TEXT_LIMIT else '')


def _moment(text):
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _location(headers):
    """Return where a redirect leads, without what may be secret."""
    try:
        url = urllib.parse.urlsplit(headers.get('Location', ''))
    except ValueError:
        return 'no URL'
    return printable(urllib.parse.urlunsplit(
        (url.scheme, url.netloc.rpartition('@')[2], url.path, '', ''))
    ) or 'nowhere'


def _reasons(place, body, message_ids):
    """Return why events were rejected, by message_id.

    :raises PublishError: some were, and it cannot be told which
    """
    if not body.lstrip()[:1] == b'{':
        return {}
    if len(body) > SIZE_LIMIT:
        raise exceptions.PublishError(
            f'the answer of {place} is longer than {SIZE_LIMIT} bytes, so '
            f'that it cannot be told whether it rejects events')
    try:
        rejected = json.loads(body).get('rejected')
    except (ValueError, RecursionError):
        return {}
    if not rejected:
        return {}
    reasons = {}
    for one in rejected if isinstance(rejected, list) else [rejected]:
        given = one if isinstance(one, dict) else {'message_id': one}
        message_id = given.get('message_id')
        if not isinstance(message_id, str) or message_id not in message_ids:
            raise exceptions.PublishError(
                f'{place} rejects events, but not by a message_id that was '
                f'sent: {printable(json.dumps(one))}')
        reason = given.get('reason') or 'it gave no reason'
        reasons[message_id] = printable(
            reason if isinstance(reason, str) else json.dumps(reason))
    return reasons
