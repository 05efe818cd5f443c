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

"""The heartbeat: leases are renewed while pipelines run long."""

import contextlib
import logging
import threading

from triggerlib import clock
from triggerlib import exceptions

LOG = logging.getLogger(__name__)


class Lease:
    """What a worker holds while it runs the pipeline of an instance.

    :param instance_id: id of the instance
    :param owner: token of the worker
    """

    __slots__ = ('instance_id', 'owner', 'lost')

    def __init__(self, instance_id: int, owner: str):
        self.instance_id = instance_id
        self.owner = owner
        #: The error that said so, once the lease is known to be lost.
        self.lost: exceptions.LeaseLost | None = None

    def check(self) -> None:
        """Refuse to go on when the lease is known to be lost.

        :raises LeaseLost: another worker may have taken the instance
        """
        if self.lost is not None:
            raise exceptions.LeaseLost(str(self.lost))


class Heartbeat:
    """Renews the leases of all pipelines that run, from one thread.

    Most runs are over long before their lease has to be renewed, so none
    starts a thread of its own. The one thread begins with the first run and
    ends when a third of a lease has gone by without any.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param seconds: seconds for which each renewal holds
    """

    def __init__(self, storage, seconds: float):
        self._storage = storage
        self._seconds = seconds
        self._lock = threading.Lock()
        self._leases = set()
        self._thread = None

    @contextlib.contextmanager
    def keep(self, instance_id: int, owner: str):
        """Keep a lease renewed as long as the ``with`` block lasts.

        :returns: the :class:`Lease`, which knows when it is lost
        """
        lease = Lease(instance_id, owner)
        try:
            with self._lock:
                self._leases.add(lease)
                # A fork takes the object along, and not the thread.
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(
                        target=self._run, name='triggerlib-heartbeat',
                        daemon=True)
                    self._thread.start()
            yield lease
        finally:
            with self._lock:
                self._leases.discard(lease)

    def beat(self) -> None:
        """Renew all leases once."""
        with self._lock:
            leases = [lease for lease in self._leases if lease.lost is None]
        for lease in leases:
            try:
                self._storage.run(self._renew, lease)
            except exceptions.LeaseLost as error:
                lease.lost = error
            except Exception:
                # The next beat may go better; if none does, the lease runs
                # out and the next step's own renewal decides. The other
                # leases depend on this thread to go on.
                LOG.exception('The lease of trigger instance %s could not '
                              'be renewed.', lease.instance_id)

    def _renew(self, tx, lease):
        tx.hold(lease.instance_id, lease.owner,
                clock.after(tx.now(), self._seconds))

    def _run(self):
        pause = threading.Event()
        while True:
            pause.wait(self._seconds / 3)
            with self._lock:
                if not self._leases:
                    self._thread = None
                    return
            self.beat()
