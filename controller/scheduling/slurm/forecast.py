"""When pending jobs are expected to start under sched/builtin, which starts nobody ahead of those
before him.

Place: scheduling, pure. Decides nothing and tells times alone: made when somebody asks, and again
at most every bf_interval.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from understudy.controller.scheduling.slurm.backfill_pass import BackfillPass, PlansOnly
from understudy.controller.scheduling.slurm.queue import PendingQueue, preempting_order, slurm_order
from understudy.model.scheduler_parameters import backfill_interval_s

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import Ask, Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.backfill_pass import Walk
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.tables import Tables


class _Noted(PlansOnly):
    """Keeps the starts to itself."""

    def __init__(self, planner: Planner) -> None:
        super().__init__(planner)
        self.starts: dict[int, int] = {}

    def await_switches(self, job: Job, now: int) -> None:
        pass  # asking does not make their wait begin

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        del nodes
        if start is not None:
            self.starts[job.job_id] = min(start, self.starts.get(job.job_id, start))


class _InOrder(BackfillPass):
    """A pass that does not even try to start a job, and so leaves no trace with it. Who waits keeps
    his partition's nodes from all behind him.
    """

    def _try(self, record: Record, walk: Walk, *, shows: bool = True) -> int | None:
        when = super()._try(record, walk, shows=shows)
        if when is not None and when > walk.second + 1:
            walk.slots.promise(walk.second, when, record.partition.nodes)
        return when

    def _start(self, ask: Ask, now: float) -> bool:
        del ask, now
        return False

    def _start_together(self, parts: dict[int, Ask], now: float) -> bool:
        del parts, now
        return False


class Forecast:
    """The expected starts of one policy's queue."""

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        self._tables, self._selector, self._planner = tables, selector, planner
        self._parameters = parameters
        self._made = -inf

    def complete_plan(self, now: float) -> None:
        """Tell pending jobs when they would start, unless that has been done within the
        interval.
        """
        tables, planner = self._tables, self._planner
        interval_s = backfill_interval_s(self._parameters)
        if not tables.pending or interval_s <= 0 or now < self._made + interval_s:
            return
        self._made = now
        preemption = tables.preemption
        order = slurm_order if preemption is None else preempting_order(preemption, slurm_order)
        queue = PendingQueue(tables, order, prefers=True, reservations=True)
        queue.refresh(now)
        noted = _Noted(planner)
        for _ in _InOrder(tables, self._selector, noted, self._parameters).run(
            list(queue.records), now
        ):
            pass
        for record in queue.records:
            job, start = record.job, noted.starts.get(record.job.job_id)
            if start != job.expected_start:
                planner.promise(job, start, 0)
