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

"""Which oslo.messaging transport rpc and notifications go over."""

import importlib

from oslo_config import cfg
import oslo_messaging
import oslo_messaging.opts

from triggerlib import exceptions

#: The transport in the process, used where no ``transport_url`` is given.
IN_PROCESS = 'fake://'

_GLOBAL_ONLY = (
    ('oslo_messaging._metrics.client', 'oslo_messaging_metrics'),
    ('oslo_messaging._tracing.client', 'oslo_messaging_tracing'))

_RABBIT = 'oslo_messaging_rabbit'

_DEFAULTS = (cfg.Locations.opt_default, cfg.Locations.set_default)


def get_rpc_transport(conf):
    """Return the transport of the rpc casts.

    With no ``transport_url`` given, casts stay in the process.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    """
    _register_missing(conf)
    return oslo_messaging.get_rpc_transport(conf, url=_url(conf))


def get_notification_transport(conf, prefetch=None):
    """Return the transport on which notifications arrive and leave.

    ``[oslo_messaging_notifications] transport_url`` goes before
    ``transport_url``, as everywhere in oslo.messaging.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param prefetch: how many messages RabbitMQ may send ahead from each
        queue, where the options do not say; None for any number
    """
    if prefetch is not None:
        _set_prefetch(conf, prefetch)
    # Only this call registers the group of the notifications.
    transport = oslo_messaging.get_notification_transport(
        conf, url=IN_PROCESS)
    if conf.oslo_messaging_notifications.transport_url or not _url(conf):
        transport = oslo_messaging.get_notification_transport(conf)
    return transport


def check(conf) -> None:
    """Refuse a transport that cannot be had; nothing is connected to.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :raises PluginError: it says what to do
    """
    try:
        get_rpc_transport(conf)
        get_notification_transport(conf)
    except oslo_messaging.MessagingException as error:
        raise exceptions.PluginError(
            f'the option transport_url: {error}') from error
    except ValueError:
        # What it says has a part of the URL, and so maybe of a password.
        raise exceptions.PluginError(
            'the option transport_url cannot be read; characters like @, : '
            'and / in a password are written as %40, %3A and %2F') from None


def is_in_process(conf) -> bool:
    """Tell whether rpc casts stay in the process.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    """
    return (_url(conf) or conf.transport_url).startswith(IN_PROCESS)


def prefetch(conf) -> int:
    """Return how many messages RabbitMQ sends ahead from each queue.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :returns: 0 for any number, or where the driver is another one
    """
    try:
        return conf[_RABBIT].rabbit_qos_prefetch_count
    except cfg.NoSuchOptError:
        return 0


def _set_prefetch(conf, prefetch):
    # The driver registers its options, and reads them, when it is loaded.
    for group, options in oslo_messaging.opts.list_opts():
        if str(getattr(group, 'name', group)) == _RABBIT:
            conf.register_opts(options, group=_RABBIT)
            conf.set_default('rabbit_qos_prefetch_count', prefetch, _RABBIT)


def _url(conf):
    # Parsing any URL registers the transport options with conf.
    oslo_messaging.TransportURL.parse(conf, IN_PROCESS)
    location = conf.get_location('transport_url')
    if location is None or location.location in _DEFAULTS:
        return IN_PROCESS
    return None


def _register_missing(conf):
    # Some releases of oslo.messaging register these options with the global
    # configuration alone, and read them from the one they were given: rpc
    # would fail on any other.
    for module, group in _GLOBAL_ONLY:
        try:
            options = getattr(importlib.import_module(module), group)
        except (ImportError, AttributeError):
            continue
        conf.register_opts(options, group=group)
