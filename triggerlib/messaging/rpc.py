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

    @oslo_messaging.expose
    def fire_trigger(self, ctxt, trigger_id):
        """Run the fire pipeline of an instance that is READY_TO_FIRE."""
        self._worker.fire_trigger(trigger_id)

    @oslo_messaging.expose
    def expire_trigger(self, ctxt, trigger_id):
        """Run the expire pipeline of an instance that is READY_TO_EXPIRE."""
        self._worker.expire_trigger(trigger_id)


class Client:
    """Casts to whichever worker is free.

    :param transport: an oslo.messaging rpc transport
    """

    def __init__(self, transport):
        self._client = oslo_messaging.get_rpc_client(
            transport, oslo_messaging.Target(topic=TOPIC, version=VERSION))

    @classmethod
    def from_conf(cls, conf) -> 'Client':
        """Build one over the transport that the options name."""
        return cls(transport_module.get_rpc_transport(conf))

    def fire_trigger(self, trigger_id: int) -> None:
        """Have the pipeline of a READY_TO_FIRE instance run."""
        self._client.cast({}, 'fire_trigger', trigger_id=trigger_id)

    def expire_trigger(self, trigger_id: int) -> None:
        """Have the pipeline of a READY_TO_EXPIRE instance run."""
        self._client.cast({}, 'expire_trigger', trigger_id=trigger_id)


def get_rpc_server(conf, worker, host, transport=None):
    """Return the rpc server of a worker, not started.

    It works on as many instances at once as its executor has threads
    (``executor_thread_pool_size``).

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param worker: a :class:`triggerlib.trigger.Worker`
    :param host: name of this server among those of the topic
    :param transport: from ``conf`` unless given
    :returns: an ``oslo_messaging`` server with start, stop and wait
    """
    if transport is None:
        transport = transport_module.get_rpc_transport(conf)
    return oslo_messaging.get_rpc_server(
        transport, oslo_messaging.Target(topic=TOPIC, server=host),
        [Endpoint(worker)], executor='threading',
        access_policy=oslo_messaging.ExplicitRPCAccessPolicy)
