"""sched/builtin: Slurm's main scheduler alone. Jobs start in the order of the queue; none passes
another that waits for the same nodes.

Place: scheduling, pure.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from understudy.controller.scheduling.api import SchedulingPolicy
from understudy.controller.scheduling.slurm.forecast import Forecast
from understudy.controller.scheduling.slurm.main_pass import MainPass
from understudy.controller.scheduling.slurm.queue import PendingQueue, preempting_order, slurm_order
from understudy.controller.scheduling.slurm.when import MainTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.controller.scheduling.api import Note, Planner, PolicyParameters, Selector
    from understudy.controller.tables.tables import Tables


class Builtin(SchedulingPolicy):
    """The main scheduler, run when Slurm would run it."""

    name = "builtin"
    stages_buffers = True

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self.trigger = MainTrigger(parameters, tables.rhythm)
        self._was_idle = True
        self._read(parameters)

    def _read(self, parameters: PolicyParameters) -> None:
        preemption = self.tables.preemption
        order = slurm_order if preemption is None else preempting_order(preemption, slurm_order)
        self.parameters = parameters
        self.queue = PendingQueue(self.tables, order, prefers=True, reservations=True)
        self.main = MainPass(self.tables, self.selector, self.planner, parameters)
        self.forecast = Forecast(self.tables, self.selector, self.planner, parameters)

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`. The phases stay."""
        self._read(parameters)
        self.trigger.read(parameters)

    def note(self, what: Note, now: float) -> None:
        """As in `SchedulingPolicy`."""
        if self._was_idle:
            self.catch_up(now)
        self._was_idle = not self.tables.pending
        self.queue.note(what)
        self.trigger.note(what, now)

    def catch_up(self, now: float) -> None:
        """Bring the triggers forward over a time without pending jobs."""
        self.trigger.catch_up(now)

    def complete_plan(self, now: float) -> None:
        """As in `SchedulingPolicy`."""
        self.forecast.complete_plan(now)

    def next_run(self) -> float | None:
        """As in `SchedulingPolicy`."""
        if not self.tables.pending:
            return None
        at = self.trigger.next_run(self._next_eligible)
        return None if at == inf else at

    @property
    def _next_eligible(self) -> float | None:
        """When a job's begin time comes, one has waited long enough for few switches, or one that
        had to be spared may be preempted.
        """
        spared = None if self.tables.preemption is None else self.tables.preemption.spared_until
        times = [
            when
            for when in (self.queue.next_eligible, self.main.switches_due, spared)
            if when is not None
        ]
        return min(times, default=None)

    def run(self, now: float) -> Iterator[float | None]:
        """One pass of the main scheduler, if it is due."""
        depth = self.trigger.take(now, self._next_eligible)
        self.main.started = 0
        if depth and self.tables.waits_for_cleaning(now):
            self.trigger.put_off()
        elif depth and self.tables.pending:
            self.queue.refresh(now)
            records = list(self.queue.records)
            yield from self.main.run(records, depth, now)
            if self.main.lacks_buffers:
                self.planner.stage_expected(now)
            self.main_cycles.ran(len(records), self.main.started, now)
            if self.main.saw_all:
                self.trigger.saw_all()
            if self.main.started:
                self.queue.drop_departed()
            if self.main.charge.cost_us:
                yield self.main.charge.now
        self._was_idle = not self.tables.pending
