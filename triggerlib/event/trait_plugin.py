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

"""Trait plugins: their base class, and how they are found and called."""

from collections import abc as collections_abc
import typing

from triggerlib import exceptions
from triggerlib import plugins

#: Where plugins that were written for Ceilometer are registered.
CEILOMETER = 'ceilometer.event.trait_plugin'


class TraitPlugin:
    """Makes the value of a trait from the fields that its paths lead to.

    A plugin is built with the ``parameters`` of its trait definition as
    keyword arguments. Parameters that are wrong raise TypeError or
    ValueError.

    A plugin written for Ceilometer, which has ``trait_values`` and gives a
    list, is taken as it is.
    """

    def trait_value(self, match_list):
        """Return the value of the trait, or None for no trait.

        :param match_list: ``(path, value)`` pairs of the fields that are
            there and not null; empty when there is none
        :returns: what the trait's type can be made from
        """
        raise NotImplementedError


Call: typing.TypeAlias = collections_abc.Callable[
    [list[tuple[str, typing.Any]]], typing.Any]


def load(name: str, parameters: dict[str, typing.Any]) -> Call:
    """Return the function that gives the value of a plugin's trait.

    :param name: name of an entry point in ``triggerlib.trait_plugin`` or,
        where that has none, in Ceilometer's namespace
    :param parameters: keyword arguments for the plugin
    :returns: a function of a match list
    :raises PluginError: there is no such plugin, or it refuses the
        parameters
    """
    try:
        factory = plugins.load(plugins.TRAIT_PLUGIN, name)
    except exceptions.PluginError:
        if name not in plugins.names(CEILOMETER):
            raise
        factory = plugins.load(CEILOMETER, name)
    try:
        plugin = factory(**parameters)
    except Exception as error:
        # The plugin's own check of its parameters, or a bug of it; either
        # way it cannot be used.
        raise exceptions.PluginError(
            f'plugin {name!r} refuses its parameters: {error}') from error
    values = getattr(plugin, 'trait_values', None)
    if values is not None:
        return _first_of(values)
    if not callable(getattr(plugin, 'trait_value', None)):
        raise exceptions.PluginError(
            f'plugin {name!r} has no trait_value')
    return plugin.trait_value


def _first_of(values):
    """Return a function that gives the first value that is not null."""
    def call(match_list):
        found = values(match_list)
        if found is None or isinstance(found, (str, bytes, dict)):
            return found
        return next((one for one in found if one is not None), None)
    return call
