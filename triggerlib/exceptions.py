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

"""The errors that triggerlib raises.

A caller can tell by type whether to try again: what derives from
:class:`RetryableError` may succeed later as it is, everything else will not.
"""

import dataclasses
import sys


class TriggerlibError(Exception):
    """Anything that triggerlib raises on purpose."""


class RetryableError(TriggerlibError):
    """The same call may succeed when it is made again later."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a definitions file, with its place.

    :param file: path of the file as the user named it
    :param line: line number, counted from 1, or None where there is none
    :param definition: name (or position) of the definition it is in
    :param key: the key in the definition, dotted and indexed
        (``match_criteria[0].traits.memory_mb``)
    :param message: what is wrong and what would be right
    """

    file: str
    line: int | None
    definition: str | None
    key: str | None
    message: str

    def __str__(self):
        place = self.file if self.line is None else (
            f'{self.file}:{self.line}')
        parts = [place]
        if self.definition is not None:
            parts.append(f'definition {self.definition!r}')
        if self.key is not None:
            parts.append(f'key {self.key!r}')
        return f'{", ".join(parts)}: {self.message}'


class DefinitionError(TriggerlibError):
    """Definitions were refused; every mistake found is in ``problems``.

    :param problems: the mistakes, a sequence of :class:`Problem`
    """

    def __init__(self, problems):
        self.problems = tuple(problems)
        count = len(self.problems)
        noun = 'mistake' if count == 1 else 'mistakes'
        lines = '\n'.join(f'  {problem}' for problem in self.problems)
        super().__init__(f'{count} {noun}, nothing was loaded:\n{lines}')


class PluginError(TriggerlibError):
    """A plugin is not installed, or cannot be imported or set up."""


class TimexError(TriggerlibError):
    """A time expression cannot be parsed or evaluated.

    :param expression: the whole text of the expression
    :param column: where the mistake is, counted from 1, or None
    :param reason: what is wrong there
    """

    def __init__(self, expression, column, reason):
        self.expression = expression
        self.column = column
        self.reason = reason
        where = '' if column is None else f', column {column}'
        super().__init__(
            f'time expression {expression!r}{where}: {reason}')


class TimexOverflow(TimexError):
    """A time expression's result is outside of datetime's range."""


class PathError(TriggerlibError):
    """A field path of an event definition cannot be parsed."""


class NotificationError(TriggerlibError):
    """A notification cannot become an event and never will.

    :param message_id: the notification's id, or None where it has none
    :param reason: what is wrong with it
    """

    def __init__(self, message_id, reason):
        self.message_id = message_id
        self.reason = reason
        super().__init__(f'notification {message_id!r}: {reason}')


class EventError(TriggerlibError):
    """An event cannot be stored as it is and never will.

    :param message_id: the event's id
    :param reason: what is wrong with it
    """

    def __init__(self, message_id, reason):
        self.message_id = message_id
        self.reason = reason
        super().__init__(f'event {message_id!r}: {reason}')


class StorageError(TriggerlibError):
    """The storage refused a call, and will refuse it again."""


class StorageBusy(RetryableError, StorageError):
    """Deadlock, serialization failure, busy or unreachable storage."""


class SchemaError(StorageError):
    """The database's tables are not those that this release needs."""


class InvalidTransition(TriggerlibError):
    """A state change was asked for that the state machine does not have."""


class LeaseLost(TriggerlibError):
    """Another worker may have taken the instance; this one must stop."""


class PipelineError(TriggerlibError):
    """A step of a pipeline failed.

    :param step: the step's name
    :param cause: the exception it raised
    """

    def __init__(self, step, cause):
        self.step = step
        self.cause = cause
        super().__init__(
            f'step {step!r} failed: {type(cause).__name__}: {cause}')

    @property
    def retryable(self) -> bool:
        """Whether the step may succeed when it is tried again later."""
        return isinstance(self.cause, (
            RetryableError, ConnectionError, TimeoutError,
            *_foreign_errors())) or bool(
                getattr(self.cause, 'retryable', False))

    @property
    def retry_after(self) -> float:
        """Seconds that whoever refused asked to be left alone for, or 0."""
        return getattr(self.cause, 'retry_after', None) or 0


def _foreign_errors():
    """Yield what libraries raise for a lost connection or a timeout.

    Their own classes derive from none of Python's. A library that nobody
    has imported has raised nothing.
    """
    for module, name in (
            ('oslo_messaging', 'MessagingTimeout'),
            ('oslo_messaging', 'MessageDeliveryFailure'),
            ('kombu.exceptions', 'OperationalError'),
            ('requests', 'ConnectionError'), ('requests', 'Timeout')):
        if module in sys.modules:
            yield getattr(sys.modules[module], name)


class PublishError(TriggerlibError):
    """A publisher could not hand its events on.

    :param message: what went wrong, and with which receiver
    :param retryable: whether the same call may succeed later
    :param retry_after: seconds before which there is no use in trying again,
        where the receiver said so
    """

    def __init__(self, message, retryable=False, retry_after=None):
        self.retryable = retryable
        self.retry_after = retry_after
        super().__init__(message)


class NotFound(TriggerlibError):
    """There is no instance, event or dead letter of that id."""
