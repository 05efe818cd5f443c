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

"""``triggerlib timex``: what a time expression comes to."""

from cliff import show

from triggerlib.event import encoding
from triggerlib.event import timestamps
from triggerlib import exceptions
from triggerlib import timex


class Timex(show.ShowOne):
    """Evaluate a time expression."""

    def get_parser(self, prog_name):
        """Return the parser of the command's own options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('expression', help='a time expression')
        parser.add_argument(
            '--at', action='append', default=[], metavar='NAME=TIME',
            help='a datetime by its name (first, last, timestamp or a '
                 'trait); may be given several times')
        parser.add_argument(
            '--timezone', default='UTC',
            help='IANA time zone in which "@" and periods are read')
        return parser

    def take_action(self, parsed_args):
        """Return the result as columns and values."""
        expression = timex.parse(
            parsed_args.expression, parsed_args.timezone)
        result = expression(**dict(map(_named, parsed_args.at)))
        if expression.is_range:
            return (('expression', 'begin', 'end'),
                    (expression.text, encoding.isoformat(result.begin),
                     encoding.isoformat(result.end)))
        return (('expression', 'timestamp'),
                (expression.text, encoding.isoformat(result.timestamp)))


def _named(text):
    name, equals, moment = text.partition('=')
    if not equals:
        raise exceptions.TriggerlibError(
            f'--at {text!r}: write NAME=TIME, '
            f'as in --at first=2012-03-12T17:00:24')
    try:
        return name.removeprefix('$'), timestamps.parse(moment)
    except ValueError as error:
        raise exceptions.TriggerlibError(f'--at {text!r}: {error}') from error
