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

"""Storages: events, instances, journals and dead letters."""

import re

from triggerlib import exceptions
from triggerlib import opts
from triggerlib import plugins
from triggerlib.storage.driver import DeadLetter
from triggerlib.storage.driver import Driver
from triggerlib.storage.driver import Due
from triggerlib.storage.driver import Instance
from triggerlib.storage.driver import NewestEvent
from triggerlib.storage.driver import StepRecord
from triggerlib.storage.driver import StepState
from triggerlib.storage.driver import Transaction

__all__ = ('DeadLetter', 'Driver', 'Due', 'Instance', 'NewestEvent',
           'StepRecord', 'StepState', 'Transaction', 'get_driver')

_SCHEME = re.compile(r'[A-Za-z][A-Za-z0-9.-]*(\+[A-Za-z0-9_.-]+)?')


def get_driver(conf, clock=None) -> Driver:
    """Return the storage driver for the ``connection`` option.

    Its scheme names the driver; what stands behind a ``+`` in it is up to
    the driver.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param clock: the clock to go by, in place of the database's
    :raises PluginError: there is no such driver, or the URL cannot be read
    """
    url = conf[opts.GROUP].connection
    scheme, separator, _ = url.partition('://')
    if not separator or not _SCHEME.fullmatch(scheme):
        # The text may be anything, a password too, so it is not shown.
        known = ', '.join(plugins.names(plugins.STORAGE))
        raise exceptions.PluginError(
            f'the option connection is a URL, such as '
            f'sqlite:////var/lib/triggerlib.sqlite, and this one has no '
            f'scheme; storage drivers are: {known}')
    return plugins.load(
        plugins.STORAGE, scheme.partition('+')[0])(conf, url, clock)
