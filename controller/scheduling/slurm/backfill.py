"""sched/backfill: Slurm's main scheduler, and passes that start jobs out of order where that delays
no promise.

Place: scheduling, pure. Follows slurm.conf(5) SchedulerParameters bf_*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.slurm.backfill_pass import BackfillPass, PlansOnly
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.slurm.het_order import combine_of, side_by_side
from understudy.controller.scheduling.slurm.when import BackfillTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.tables import Tables


class Backfill(Builtin):
    """The main scheduler and backfill passes, each run when Slurm would run it."""

    name = "backfill"

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self.backfill_trigger = BackfillTrigger(parameters, tables.rhythm)
        # a dependency or begin time, of which the main scheduler has still to find out
        self._has_met = False

    def _read(self, parameters: PolicyParameters) -> None:
        super()._read(parameters)
        self.backfill = BackfillPass(self.tables, self.selector, self.planner, parameters)
        self._combine = combine_of(parameters)

    def _records(self) -> list[Record]:
        """Those of the queue in the order in which backfill looks at them."""
        if self._combine is None:
            return list(self.queue.records)
        return side_by_side(list(self.queue.records), self.tables.partitions, self._combine)

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """As `Builtin.reconfigure`."""
        super().reconfigure(parameters)
        self.backfill_trigger.read(parameters)

    def note(self, what: Note, now: float) -> None:
        """As in `SchedulingPolicy`."""
        super().note(what, now)
        if what is Note.MET and self.trigger.interval_s > 0:
            self._has_met = True
        else:
            self.backfill_trigger.note(now)

    def catch_up(self, now: float) -> None:
        """Bring the triggers forward over a time without pending jobs."""
        super().catch_up(now)
        self.backfill_trigger.catch_up(now)

    def next_run(self) -> float | None:
        """As in `SchedulingPolicy`."""
        if not self.tables.pending:
            return None
        main = super().next_run()
        at = self.backfill_trigger.next_run()
        if main is not None and main < at:
            return main
        return None if at == float("inf") else at

    def complete_plan(self, now: float) -> None:
        """Make the promises that the last pass left out, as of now. Starts nothing."""
        if self.backfill.is_complete:
            return
        planning = BackfillPass(
            self.tables, self.selector, PlansOnly(self.backfill.planner), self.parameters
        )
        for _ in planning.run(self._records(), now):
            pass
        self.backfill.is_complete = True

    def run(self, now: float) -> Iterator[float | None]:
        """The main scheduler, if it is due, then a backfill pass, if one is due."""
        began = now
        runs = self.main_cycles.count
        yield from super().run(now)
        if self.main.started or (self._has_met and self.main_cycles.count != runs):
            self._has_met = False
            self.backfill_trigger.note(now)
        if self.backfill_trigger.next_run() <= now:
            if self.tables.waits_for_cleaning(now):
                self.backfill_trigger.put_off(now)
                return
            if self.main.charge.cost_us and self.main.charge.now > began:
                now = self.main.charge.now
            version, self.backfill.started = self.tables.version, 0
            if self.tables.pending:
                self.queue.refresh(now)
                records = self._records()
                self.backfill.plans_ahead = not self.plans_when_asked
                self.gives_way = True
                try:
                    yield from self.backfill.run(records, now)
                finally:
                    self.gives_way = False
                if self.tables.burst_buffers:
                    self.planner.stage_expected(now)
                self.backfill_cycles.ran(len(records), self.backfill.started, now)
                if self.backfill.charge.cost_us:
                    now = self.backfill.charge.now
            has_changed = bool(self.backfill.charge.cost_us) and self.tables.version != version
            marked = bool(
                self.tables.nodes.idle_nodes
                & self.tables.nodes.up_nodes
                & self.backfill.promised_nodes
            )
            promised = marked or self.backfill.promises_anew
            self.backfill_trigger.ran(
                now,
                changed=self.backfill.started > 0 or has_changed,
                promised=promised,
                marked=marked,
            )
            if self.backfill.started:
                self.queue.drop_departed()
            self._was_idle = not self.tables.pending
