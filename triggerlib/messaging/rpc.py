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

"""The rpc between schedulers and workers: two casts, and nothing else."""

import oslo_messaging

from triggerlib.messaging import server as server_module
from triggerlib import opts
from triggerlib import transport as transport_module

TOPIC = 'triggerlib'
VERSION = '1.0'


class Endpoint:
    """What the rpc server exposes of a worker.

    :param worker: a :class:`triggerlib.trigger.Worker`
    """

    target = oslo_messaging.Target(version=VERSION)

    def __init__(self, worker):
        self._worker = worker
        self._closed = False

    @oslo_messaging.expose
    def fire_trigger(self, ctxt, trigger_id):
        """Run the fire pipeline of an instance that is READY_TO_FIRE."""
        if not self._closed:
            self._worker.fire_trigger(trigger_id)

    @oslo_messaging.expose
    def expire_trigger(self, ctxt, trigger_id):
        """Run the expire pipeline of an instance that is READY_TO_EXPIRE."""
        if not self._closed:
            self._worker.expire_trigger(trigger_id)

    def close(self):
        """Begin nothing more; the casts that wait are made again."""
        self._closed = True


class Client:
    """Casts to whichever worker is free.

    :param transport: an oslo.messaging rpc transport
    :param lifetime: seconds after which a cast that no worker has taken is
        dropped by the message bus, where that can; None for never
    """

    def __init__(self, transport, lifetime=None):
        self._transport = transport
        self._target = oslo_messaging.Target(topic=TOPIC, version=VERSION)
        self._lifetime = lifetime

    @classmethod
    def from_conf(cls, conf) -> 'Client':
        """Build one over the transport that the options name."""
        return cls(transport_module.get_rpc_transport(conf),
                   conf[opts.GROUP].ready_timeout)

    def fire_trigger(self, trigger_id: int) -> None:
        """Have the pipeline of a READY_TO_FIRE instance run."""
        self._cast('fire_trigger', trigger_id)

    def expire_trigger(self, trigger_id: int) -> None:
        """Have the pipeline of a READY_TO_EXPIRE instance run."""
        self._cast('expire_trigger', trigger_id)

    def _cast(self, method, trigger_id):
        # The public client gives a lifetime to calls only. Casts that stay
        # for ever, and are made again every ready_timeout, would fill the
        # message bus while no worker is there.
        self._transport._send(
            self._target, {},
            {'method': method, 'args': {'trigger_id': trigger_id},
             'version': VERSION},
            timeout=self._lifetime)


def get_rpc_server(conf, worker, host, transport=None):
    """Return the rpc server of a worker, not started.

    It works on as many instances at once as the option ``workers`` says.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param worker: a :class:`triggerlib.trigger.Worker`
    :param host: name of this server among those of the topic
    :param transport: from ``conf`` unless given
    :returns: a :class:`triggerlib.messaging.server.Server`, with start, stop
        and wait
    """
    if transport is None:
        transport = transport_module.get_rpc_transport(conf)
    endpoint = Endpoint(worker)
    return server_module.Server(
        oslo_messaging.get_rpc_server(
            transport, oslo_messaging.Target(topic=TOPIC, server=host),
            [endpoint], executor='threading',
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy),
        endpoint.close, conf[opts.GROUP].workers)
