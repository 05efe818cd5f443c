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

"""The worker: claims what is ready, and runs its pipeline.

Follows the blueprint's "Firing trigger" and "Expiring Trigger". Calling
either method again, or late, does nothing: a claim is a compare-and-set.
"""

import dataclasses
import json
import logging
import random
import typing
import uuid

from triggerlib import clock
from triggerlib import error_text
from triggerlib import exceptions
from triggerlib import opts
from triggerlib.pipeline import runner as runner_module
from triggerlib import state as state_module
from triggerlib.storage import driver as storage_module
from triggerlib.trigger import catalog as catalog_module
from triggerlib.trigger import history
from triggerlib.trigger import source as source_module

LOG = logging.getLogger(__name__)

State = state_module.State

#: Where the message_ids of derived events come from; it never changes.
NAMESPACE: typing.Final = uuid.UUID('6a3d6f0e-52a2-4b2d-9d4e-0c1f6f0f7b11')


@dataclasses.dataclass(slots=True)
class _Claim:
    """An instance that this worker holds, and what it is to do with it."""

    instance: storage_module.Instance
    owner: str
    held: State
    sinks: list
    kind: str
    events: list = dataclasses.field(default_factory=list)
    identity: uuid.UUID | None = None


class _Gone(exceptions.TriggerlibError):
    """This host's files do not have what the instance needs."""


class Worker:
    """Runs the pipelines of instances that are ready.

    :param storage: a :class:`triggerlib.storage.Driver`
    :param catalog: a :class:`triggerlib.trigger.catalog.Catalog`
    :param manager: the :class:`~triggerlib.trigger.TriggerManager` that the
        ``event`` publisher puts events into
    :param ended: called as ``ended(kind, instance)`` after an instance has
        come to its end; kind is ``fire``, ``expire`` or ``source``
    :param lease: seconds for which a claim holds without being renewed
    :param max_attempts: claims after which a retryable error is final
    :param retry_delay: seconds before the second attempt
    :param retry_delay_max: longest wait between attempts, in seconds
    :param journal_chunk: items of a step that share a row of the journal
    """

    def __init__(self, storage, catalog, manager=None, *, ended=None,
                 lease=300.0, max_attempts=5, retry_delay=10.0,
                 retry_delay_max=3600.0, journal_chunk=100):
        self._storage = storage
        self._catalog = catalog
        self._manager = manager
        self._ended = ended
        self._lease = lease
        self._max_attempts = max_attempts
        self._retry_delay = retry_delay
        self._retry_delay_max = retry_delay_max
        self._runner = runner_module.Runner(storage, lease, journal_chunk)

    @classmethod
    def from_conf(cls, conf, storage, manager=None, catalog=None,
                  ended=None) -> 'Worker':
        """Build one from the options of ``[triggerlib]``.

        :param conf: an ``oslo_config.cfg.ConfigOpts``
        :param storage: a :class:`triggerlib.storage.Driver`
        :param manager: the :class:`~triggerlib.trigger.TriggerManager` that
            the ``event`` publisher puts events into
        :param catalog: loaded from ``conf`` unless given
        :param ended: called after an instance has come to its end
        :raises DefinitionError: every mistake in the files
        """
        group = conf[opts.GROUP]
        return cls(
            storage, catalog or catalog_module.Catalog.from_conf(conf),
            manager, ended=ended, lease=group.lease,
            max_attempts=group.max_attempts,
            retry_delay=group.retry_delay,
            retry_delay_max=group.retry_delay_max,
            journal_chunk=group.journal_chunk)

    def fire_trigger(self, trigger_id: int) -> bool:
        """Run the fire pipeline of an instance that is READY_TO_FIRE.

        :param trigger_id: id of the instance
        :returns: whether it was this call that ran it to its end
        :raises StorageBusy: the storage stayed busy; what was claimed is
            made ready again when its lease runs out
        """
        return self._work(trigger_id, State.READY_TO_FIRE, State.FIRING)

    def expire_trigger(self, trigger_id: int) -> bool:
        """Run the expire pipeline of an instance that is READY_TO_EXPIRE.

        See :meth:`fire_trigger`.
        """
        return self._work(trigger_id, State.READY_TO_EXPIRE, State.EXPIRING)

    def _work(self, trigger_id, ready, held):
        owner = uuid.uuid4().hex
        if self._manager is not None:
            self._manager.register_traits()
        claim = self._claim_or_fail(trigger_id, ready, held, owner)
        if claim is None:
            LOG.debug('Trigger instance %s is not %s, or not yet; the '
                      'request is ignored.', trigger_id, ready)
            return False
        if isinstance(claim, exceptions.TriggerlibError):
            self._give_back(trigger_id, owner, ready, held, claim)
            return False
        if not claim.sinks:
            self._tell(claim)
            return True
        try:
            self._runner.run(
                claim.sinks, claim.events, self._run_of(claim),
                lambda tx: _finish(tx, claim))
        except exceptions.LeaseLost as error:
            LOG.warning('Trigger instance %s (%s) was taken from this '
                        'worker: %s', trigger_id, claim.instance.name, error)
            return False
        except exceptions.StorageError as error:
            self._give_back(trigger_id, owner, ready, held, error)
            return False
        except exceptions.PipelineError as error:
            if error.retryable:
                self._give_back(trigger_id, owner, ready, held, error)
            else:
                self._storage.run(
                    self._fail, claim.instance, owner, held, error)
            return False
        self._tell(claim)
        return True

    def _tell(self, claim):
        if self._ended is not None:
            self._ended(claim.kind, claim.instance)

    def _claim_or_fail(self, trigger_id, ready, held, owner):
        loaded = self._catalog.current
        try:
            return self._storage.run(
                self._claim, trigger_id, ready, held, owner, loaded)
        except exceptions.StorageBusy:
            raise
        except Exception as error:
            # Loading the events failed in a way that will not pass. That
            # undid the claim too; were it left so, the instance would be
            # cast for ever and nobody would see why.
            LOG.exception('The events of trigger instance %s cannot be '
                          'loaded.', trigger_id)
            self._storage.run(
                self._claim_and_fail, trigger_id, ready, held, owner, error)
            return None

    def _claim_and_fail(self, tx, trigger_id, ready, held, owner, error):
        instance = self._take(tx, trigger_id, ready, held, owner)
        if instance is not None:
            self._fail(tx, instance, owner, held, error)

    def _take(self, tx, trigger_id, ready, held, owner):
        """Claim an instance; None when it is not to be had."""
        found = tx.get_instances([trigger_id], lock=True)
        if found and found[0].owner == owner:
            # The claim was stored, and the answer to that was lost.
            return found[0]
        if not found or found[0].state is not ready:
            return None
        instance = found[0]
        now = tx.now()
        if instance.not_before is not None and instance.not_before > now:
            return None
        instance.attempts += 1
        moved = tx.transition(
            [trigger_id], ready, held, new_owner=owner,
            deadline=clock.after(now, self._lease),
            attempts=instance.attempts)
        return instance if moved else None

    def _claim(self, tx, trigger_id, ready, held, owner, loaded):
        instance = self._take(tx, trigger_id, ready, held, owner)
        if instance is None:
            return None
        try:
            sinks, definition, kind = _plan(instance, held, loaded)
            claim = _Claim(instance, owner, held, sinks, kind)
            if sinks:
                events = tx.instance_events([trigger_id])[trigger_id]
                claim.identity = identity(instance, kind, events)
                claim.events = history.load(
                    tx, instance, definition, events)
        except (_Gone, history.KeyChanged) as error:
            # Another host may have other files.
            return error
        if not sinks:
            # An expired trigger without a pipeline has nothing to run.
            _finish(tx, claim)
        return claim

    def _run_of(self, claim):
        instance = claim.instance
        return runner_module.Run(
            instance_id=instance.id, owner=claim.owner,
            attempt=instance.attempts, trigger=instance.name,
            kind=claim.kind, key=json.loads(instance.key),
            identity=claim.identity,
            add_events=None if self._manager is None
            else self._manager.add_events_in)

    def _give_back(self, trigger_id, owner, ready, held, error):
        """Hand a claim back for another attempt, or give it up."""
        self._storage.run(
            self._release, trigger_id, owner, ready, held, error)

    def _release(self, tx, trigger_id, owner, ready, held, error):
        found = tx.get_instances([trigger_id], lock=True)
        if not found or found[0].owner != owner:
            LOG.warning('Trigger instance %s was taken from this worker.',
                        trigger_id)
            return
        instance = found[0]
        if instance.attempts >= self._max_attempts:
            self._fail(tx, instance, owner, held, error)
            return
        wait = min(self._retry_delay * 2 ** (instance.attempts - 1),
                   self._retry_delay_max) * random.uniform(0.5, 1.0)
        asked = min(getattr(error, 'retry_after', 0), self._retry_delay_max)
        wait = max(wait, asked)
        again = clock.after(tx.now(), wait)
        tx.transition([trigger_id], held, ready, owner=owner,
                      deadline=again, not_before=again,
                      error=error_text.describe(error))
        LOG.warning('Trigger instance %s (%s) is tried again in %.1f s, '
                    'attempt %d of %d failed: %s', trigger_id, instance.name,
                    wait, instance.attempts, self._max_attempts, error)

    def _fail(self, tx, instance, owner, held, error):
        failed = (State.ERROR if held is State.FIRING
                  else State.EXPIRE_ERROR)
        if tx.transition([instance.id], held, failed, owner=owner,
                         error=error_text.describe(error)):
            LOG.error('Trigger instance %s (%s) is %s after %d attempts: %s',
                      instance.id, instance.name, failed, instance.attempts,
                      error)


def identity(instance, kind, events) -> uuid.UUID:
    """Return the uuid that the ids of an instance's derived events come from.

    It depends on the trigger's name, on what distinguishes the instance and
    on the first of its own events, and so is the same at every retry, and
    when the same events are processed anew.

    :param instance: a :class:`triggerlib.storage.Instance`
    :param kind: ``fire``, ``expire`` or ``source``
    :param events: its events, in order; an event can be in one instance of a
        trigger only
    """
    seed = [instance.name, instance.key, kind,
            events[0].message_id if events else '']
    return uuid.uuid5(NAMESPACE, json.dumps(seed))


def _plan(instance, held, loaded):
    """Return the sinks to run, the definition and the kind of run."""
    source_name = source_module.name_of(instance)
    if source_name is not None:
        for source in loaded.pipelines.sources:
            if source.name == source_name:
                return list(source.sinks), None, 'source'
        raise _Gone(f'the pipelines of this host have no source '
                    f'{source_name!r}')
    definition = loaded.definitions.get(instance.name)
    if definition is None:
        raise _Gone(f'the trigger definitions of this host have no '
                    f'{instance.name!r}')
    if held is State.FIRING:
        name, kind = definition.fire_pipeline, 'fire'
        if name is None:
            raise _Gone(f'trigger definition {instance.name!r} of this host '
                        f'has no fire_pipeline')
    else:
        name, kind = definition.expire_pipeline, 'expire'
        if name is None:
            return [], definition, kind
    sink = loaded.pipelines.sinks.get(name)
    if sink is None:
        raise _Gone(f'the pipelines of this host have no sink {name!r}')
    return [sink], definition, kind


def _finish(tx, claim):
    if not tx.transition([claim.instance.id], claim.held, State.DELETED,
                         owner=claim.owner):
        raise exceptions.LeaseLost(
            f'trigger instance {claim.instance.id} is not held by '
            f'{claim.owner} any more')
