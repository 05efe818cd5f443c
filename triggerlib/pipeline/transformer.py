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

"""The base class of transformers (``triggerlib.transformer``)."""

import inspect

from triggerlib import yamlfile


class Transformer:
    """Takes a list of events and gives a list of events.

    It may drop, change and add events, and has no side effects: it may be
    run again with the same events. An event that it adds gets its
    message_id from ``context.derive``.

    ``transform`` may be a generator. Where the step is a checkpoint, each
    event that it yields is noted at once; another attempt begins with what
    was noted, and ``context.done`` says how many these are. An event yielded
    again is told by its message_id.

    A transformer is built from the ``parameters`` of its mapping in the
    pipelines file. Parameters that are wrong raise TypeError or ValueError.
    """

    @classmethod
    def load(cls, document, path, problems, definition):
        """Build one from a pipelines file.

        :param document: a :class:`triggerlib.yamlfile.Document`
        :param path: keys and indexes that lead to the parameters, a mapping
        :param problems: a list that gets every mistake found
        :param definition: name of the sink, for mistakes
        :returns: the transformer, or None when there was a mistake
        """
        parameters = document.at(*path) or {}
        before = len(problems)
        known = inspect.signature(cls).parameters
        if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
            for key in parameters:
                if key not in known:
                    problems.append(document.problem(
                        f'there is no parameter {key!r}'
                        f'{yamlfile.suggestion(key, known)}', *path, key,
                        definition=definition))
        for name, one in known.items():
            if name not in parameters and one.default is one.empty and (
                    one.kind in (one.KEYWORD_ONLY,
                                 one.POSITIONAL_OR_KEYWORD)):
                problems.append(document.problem(
                    f'the parameter {name!r} is missing', *path,
                    definition=definition))
        if len(problems) > before:
            return None
        try:
            return cls(**parameters)
        except (TypeError, ValueError) as error:
            problems.append(document.problem(
                str(error), *path, definition=definition))
            return None

    def transform(self, events, context):
        """Return what becomes of the events.

        :param events: a list of :class:`triggerlib.event.Event`, in order of
            their timestamps; it is not to be changed
        :param context: a :class:`triggerlib.pipeline.Context`
        :returns: a list of events
        """
        raise NotImplementedError
