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

"""The heartbeat: a lease is renewed while a pipeline runs long."""

import logging
import threading

from triggerlib import clock
from triggerlib import exceptions

LOG = logging.getLogger(__name__)


class Heartbeat:
    """Renews the lease of an instance, in a thread, inside a ``with`` block.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param instance_id: id of the instance
    :param owner: token of the worker that holds it
    :param lease: seconds for which each renewal holds
    """

    def __init__(self, storage, instance_id, owner, lease):
        self._storage = storage
        self._instance_id = instance_id
        self._owner = owner
        self._lease = lease
        self._stop = threading.Event()
        self._lost = None
        self._thread = threading.Thread(
            target=self._run, name=f'heartbeat-{instance_id}', daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc_info):
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Refuse to go on when the lease is known to be lost.

        :raises LeaseLost: another worker may have taken the instance
        """
        if self._lost is not None:
            raise exceptions.LeaseLost(str(self._lost))

    def beat(self) -> None:
        """Renew the lease once."""
        self._storage.run(lambda tx: tx.hold(
            self._instance_id, self._owner,
            tx.now() + clock.seconds(self._lease)))

    def _run(self):
        while not self._stop.wait(self._lease / 3):
            try:
                self.beat()
            except exceptions.LeaseLost as error:
                self._lost = error
                return
            except exceptions.StorageError as error:
                # The next beat may go better; if none does, the lease runs
                # out and the next step's own renewal fails.
                LOG.warning('The lease of trigger instance %s could not be '
                            'renewed: %s', self._instance_id, error)
