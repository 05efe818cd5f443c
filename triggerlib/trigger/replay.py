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

"""Replay: notifications from a file, on a clock that follows the events."""

import collections
from collections import abc as collections_abc
import typing

from triggerlib import clock as clock_module
from triggerlib.event import converter as converter_module
from triggerlib import exceptions
from triggerlib import opts
from triggerlib.trigger import catalog as catalog_module
from triggerlib.trigger import definition as definition_module
from triggerlib.trigger import manager as manager_module
from triggerlib.trigger import scheduler as scheduler_module
from triggerlib.trigger import worker as worker_module


class Replay:
    """Feeds notifications through everything, in the time of the events.

    The clock goes to the newest event of each batch. Whatever is due before
    a batch begins is done before it, and at its own time.

    :param storage: a :class:`triggerlib.storage.Driver` that goes by
        ``clock``
    :param clock: a :class:`triggerlib.clock.ReplayClock`
    :param manager: a :class:`triggerlib.trigger.TriggerManager`
    :param scheduler: a :class:`triggerlib.trigger.Scheduler` whose caster
        has the work done before it returns
    :param ended: counts the instances that ended, by name and by ``fire``,
        ``expire`` or ``source``; kept by the caster
    :param batch_size: notifications in one transaction at most
    :param step: seconds of event time in one transaction at most: how far
        the scheduler lags behind the events
    """

    def __init__(self, storage, clock, manager, scheduler, ended, *,
                 batch_size=200, step=60.0):
        self._storage = storage
        self._clock = clock
        self._manager = manager
        self._scheduler = scheduler
        self._batch_size = batch_size
        self._step = clock_module.seconds(step)
        # How far to go on where nothing tells when the next thing is due. It
        # is not nothing, as that would be for ever.
        self._pause = max(step, 1.0)
        self._due = None
        #: What became of everything fed so far.
        self.report = manager_module.Report()
        #: How many instances ended, by name and kind.
        self.ended = ended

    @classmethod
    def from_conf(cls, conf, storage, clock, *, step=60.0) -> 'Replay':
        """Build manager, scheduler and worker from the options.

        :param conf: an ``oslo_config.cfg.ConfigOpts``
        :param storage: a :class:`triggerlib.storage.Driver` that goes by
            ``clock``
        :param clock: a :class:`triggerlib.clock.ReplayClock`
        :param step: seconds of event time in one transaction at most
        :raises DefinitionError: every mistake in the files
        """
        problems = []
        try:
            converter = converter_module.Converter.from_conf(conf)
        except exceptions.DefinitionError as error:
            problems.extend(error.problems)
        try:
            catalog = catalog_module.Catalog.from_conf(conf)
        except exceptions.DefinitionError as error:
            problems.extend(error.problems)
        if problems:
            raise exceptions.DefinitionError(problems)
        manager = manager_module.TriggerManager.from_conf(
            conf, storage, catalog, converter)
        ended = collections.Counter()
        worker = worker_module.Worker.from_conf(
            conf, storage, manager, catalog,
            lambda kind, instance: ended.update([(instance.name, kind)]))
        scheduler = scheduler_module.Scheduler.from_conf(
            conf, storage, worker, catalog)
        return cls(storage, clock, manager, scheduler, ended,
                   batch_size=conf[opts.GROUP].batch_size, step=step)

    def feed(
            self, notifications: collections_abc.Iterable,
            progress: typing.Callable[[manager_module.Report], None]
            | None = None) -> None:
        """Pass notifications through, in the order given.

        :param notifications: bodies in any form the converter takes
        :param progress: called with the report after each transaction
        """
        self._look()
        batch = manager_module.Batch()
        first = last = None
        for body in notifications:
            one = manager_module.Batch()
            event = self._manager.convert(body, one)
            moment = None if event is None else event.timestamp
            if batch.report.received >= self._batch_size or (
                    moment is not None and first is not None
                    and max(last, moment) - min(first, moment)
                    >= self._step):
                self._flush(batch, first, last, progress)
                batch = manager_module.Batch()
                first = last = None
            batch.merge(one)
            if moment is not None:
                first = moment if first is None else min(first, moment)
                last = moment if last is None else max(last, moment)
        if batch.report.received:
            self._flush(batch, first, last, progress)

    def run_out(
            self, until: typing.Any = None,
            progress: typing.Callable[[manager_module.Report], None]
            | None = None) -> None:
        """Go on, without further events, until nothing is due any more.

        What never expires is left open.

        :param until: stop at this moment, an aware datetime; None for never
        :param progress: called with the report at every moment worked off
        """
        self._look()
        while self._due is not None and (until is None or self._due <= until):
            if self._due >= definition_module.NEVER:
                return
            self._clock.advance_to(self._due)
            if not self._work_off():
                # Expiry follows the events, and none will come: only the
                # wall's time brings it on.
                self._clock.advance(self._pause)
            if progress is not None:
                progress(self.report)

    def _flush(self, batch, first, last, progress):
        if first is not None:
            self._catch_up(first)
            self._clock.advance_to(last)
        self.report.add(self._manager.add(batch))
        self._look()
        self._work_off()
        if progress is not None:
            progress(self.report)

    def _catch_up(self, moment):
        while self._due is not None and self._due <= moment:
            now = self._clock.now()
            if self._due > now:
                self._clock.advance_to(self._due)
            elif now < moment:
                # It is due by the wall and not yet by the events. What comes
                # due behind it does not wait for that.
                self._clock.advance_to(
                    min(moment, clock_module.after(now, self._pause)))
            else:
                break
            self._work_off()

    def _work_off(self):
        """Sweep until nothing is due now; return whether anything was."""
        worked = False
        while self._due is not None and self._due <= self._clock.now():
            moved = self._scheduler.run_once()
            self._look()
            if not moved:
                break
            worked = True
        return worked

    def _look(self):
        self._due = self._storage.run(lambda tx: tx.next_due(), write=False)
