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

"""Plugins by name: the only module that talks to stevedore."""

import functools

from stevedore import driver
from stevedore import exception
from stevedore import extension

from triggerlib import exceptions

TRAIT_PLUGIN = 'triggerlib.trait_plugin'
TRANSFORMER = 'triggerlib.transformer'
PUBLISHER = 'triggerlib.publisher'
STORAGE = 'triggerlib.storage'


@functools.lru_cache(maxsize=None)
def load(namespace, name):
    """Return what the entry point ``name`` of ``namespace`` refers to.

    :raises PluginError: it is not installed or cannot be imported; the
        message names those that are installed
    """
    try:
        return driver.DriverManager(
            namespace, name, invoke_on_load=False,
            warn_on_missing_entrypoint=False).driver
    except exception.NoMatches as error:
        known = ', '.join(sorted(names(namespace))) or 'none'
        raise exceptions.PluginError(
            f'no {namespace} named {name!r}; installed are: {known}'
        ) from error
    except exception.MultipleMatches as error:
        raise exceptions.PluginError(
            f'{namespace} {name!r} is installed more than once: {error}'
        ) from error
    except Exception as error:
        # Importing a plugin runs code that is not ours, so it may raise
        # anything; the cause is kept.
        raise exceptions.PluginError(
            f'{namespace} {name!r} cannot be loaded: {error}') from error


def names(namespace):
    """Return the names of the installed plugins, without importing them."""
    manager = extension.ExtensionManager.make_test_instance(
        [], namespace=namespace)
    return sorted(set(manager.entry_points_names()))
