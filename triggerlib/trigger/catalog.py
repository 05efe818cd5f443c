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

"""The trigger definitions and pipelines in force, replaced as one."""

import logging
import typing

from oslo_config import cfg

from triggerlib import exceptions
from triggerlib import opts
from triggerlib.pipeline import pipelines as pipelines_module
from triggerlib.trigger import definitions as definitions_module

LOG = logging.getLogger(__name__)


class Loaded(typing.NamedTuple):
    """What one set of files says.

    :param definitions: a
        :class:`triggerlib.trigger.definitions.TriggerDefinitions`
    :param pipelines: a :class:`triggerlib.pipeline.pipelines.Pipelines`
    """

    definitions: definitions_module.TriggerDefinitions
    pipelines: pipelines_module.Pipelines


class Catalog:
    """Holds what is loaded; manager, scheduler and worker share one.

    Whoever works takes :attr:`current` once and keeps to it until that piece
    of work is done.

    :param definitions: trigger definitions
    :param pipelines: event pipelines
    :param conf: where to load from again, for :meth:`reload`
    """

    def __init__(self, definitions, pipelines, conf=None):
        self.current = Loaded(definitions, pipelines)
        self._conf = conf

    @classmethod
    def from_conf(cls, conf) -> 'Catalog':
        """Load the files that the options name.

        :raises DefinitionError: every mistake in any of the files
        """
        return cls(*_load(conf), conf=conf)

    def reload(self) -> None:
        """Load the files again; what was loaded stays when one is refused.

        :raises DefinitionError: every mistake in any of the files
        """
        self.current = _load(self._conf, self.current)
        LOG.info('Trigger definitions and pipelines were loaded again.')


def _load(conf, before=None) -> Loaded:
    group = conf[opts.GROUP]
    problems = []
    pipelines = None
    names = None
    path = find_file(conf, group.event_pipeline_cfg_file)
    if path is None and (_is_named(conf, 'event_pipeline_cfg_file')
                         or before is not None and before.pipelines.sinks):
        problems.append(_missing(group.event_pipeline_cfg_file))
    elif path is None:
        LOG.warning('The pipelines file %s was not found; there are no '
                    'pipelines.', group.event_pipeline_cfg_file)
        pipelines = pipelines_module.Pipelines.empty()
    else:
        try:
            pipelines = pipelines_module.Pipelines.load(path, conf)
        except exceptions.DefinitionError as error:
            problems.extend(error.problems)
    if pipelines is not None:
        names = pipelines.names
    definitions = None
    path = find_file(conf, group.trigger_definitions_cfg_file)
    if path is None and (_is_named(conf, 'trigger_definitions_cfg_file')
                         or before is not None and len(before.definitions)):
        problems.append(_missing(group.trigger_definitions_cfg_file))
    elif path is None:
        LOG.warning('The trigger definitions file %s was not found; there '
                    'are no triggers.', group.trigger_definitions_cfg_file)
        definitions = definitions_module.TriggerDefinitions(())
    else:
        try:
            definitions = definitions_module.TriggerDefinitions.load(
                path, names)
        except exceptions.DefinitionError as error:
            problems.extend(error.problems)
    if problems:
        raise exceptions.DefinitionError(problems)
    return Loaded(definitions, pipelines)


def _is_named(conf, option):
    """Tell whether somebody gave the option a value of its own."""
    location = conf.get_location(option, opts.GROUP)
    return location is not None and (
        location.location is not cfg.Locations.opt_default)


def _missing(name):
    return exceptions.Problem(
        name, None, None, None, 'was not found; an empty file is one '
        'without entries')


def find_file(conf, name):
    """Return the path of a file named in an option, or None.

    An absolute path is taken as it is; anything else is looked for where
    oslo.config looks for configuration files.
    """
    return conf.find_file(name)
