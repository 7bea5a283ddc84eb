"""sched/conservative: conservative backfilling. Every job has a place in the plan from its
submission on, and nobody who comes later delays it.

Place: scheduling, pure; a textbook policy for research (see
understudy.controller.scheduling.textbook.pools). Follows Mu'alem and Feitelson (2001), with
everything that jobs hold (understudy.controller.scheduling.textbook.further):

1. a new job gets the earliest place at which all that it needs is free for its whole limit, beside
   all that have a place; it may be before jobs that came earlier;
2. when something comes back before it was expected, the plan is compressed: each job, in the
   queue's order, gives its place back and takes the earliest that there is then, which is never
   later;
3. jobs start at their places.

If anything else changes (a job is cancelled or held, a node is lost), the plan is made anew, in the
queue's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.scheduling.profile import FOREVER
from understudy.controller.scheduling.textbook.backfilling import Backfilling, planned_length
from understudy.controller.scheduling.textbook.pools import PASS_OFFSET_S, TextbookPolicy

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.profile import Profile
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.scheduling.textbook.backfilling import Pool
    from understudy.controller.tables.tables import Tables


class Conservative(TextbookPolicy):
    """A plan of all waiting jobs in each partition."""

    name = "conservative"

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self._passes = Backfilling(self)
        self._planned: dict[str, dict[int, int]] = {}  # by partition: job id, start
        self._alone: set[int] = set()  # ids of jobs for which none is kept in this pass

    def next_run(self) -> float | None:
        """As in `TextbookPolicy`; and when the next job's time comes."""
        due = super().next_run()
        times = [
            start + PASS_OFFSET_S
            for planned in self._planned.values()
            for start in planned.values()
        ]
        ahead = [at for at in times if at > self.last_pass]
        return min([*ahead, *([] if due is None else [due])], default=None)

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """One pass over each pool."""
        passes = self._passes
        if self.is_stale or not passes.pools:
            passes.rebuild()
            self._planned.clear()
        for pool, records, _ in passes.take_in(added):
            name = pool.partition.name
            records[:] = [record for record in records if record.job.is_pending]
            if not records:
                self._planned.pop(name, None)
                continue
            passes.open(pool)
            self._planned[name] = self._plan(pool, records, second, now, compress=freed)
            records[:] = [
                record
                for record in records
                if record.job.is_pending and record.job.job_id not in self._alone
            ]
            if records:
                need = pool.amounts.need(records[0])
                self.explain(records[0], pool.amounts.lacking(need, pool.free))

    def _plan(
        self, pool: Pool, records: list[Record], second: int, now: float, *, compress: bool
    ) -> dict[int, int]:
        """Start whose place is now. Where each of the others has its place, by its id."""
        self._alone.clear()
        profile = self._passes.profile(pool, second)
        before = self._planned.get(pool.partition.name, {})
        kept: dict[int, int] = {}
        for record in records:
            start = before.get(record.job.job_id)
            # A place may be gone where a job did not end or start when it should have.
            if start is not None and start >= second and _has_room(pool, profile, record, start):
                kept[record.job.job_id] = start
                _hold(pool, profile, record, start)
        planned: dict[int, int] = {}

        def settle(record: Record, start: int | None) -> None:
            """Its place is that, unless that is now: then it starts, or is refused."""
            if start == second:
                if self._passes.start(pool, record, now):
                    _hold(pool, profile, record, start)
                    return
                if self.waits_alone(record):
                    self._alone.add(record.job.job_id)
                    self._passes.tell(record, None)
                    return
                need = pool.amounts.need(record)
                start = self._passes.after_refusal(profile, need, planned_length(record))
            if start is not None:
                _hold(pool, profile, record, start)
                planned[record.job.job_id] = start
            self._passes.tell(record, start)

        for record in records:
            start = kept.get(record.job.job_id)
            if start is None:
                continue
            if not compress and start > second:
                planned[record.job.job_id] = start
                continue
            need = pool.amounts.need(record)
            profile.release(start, _end(record, start), need)
            earlier = profile.earliest(need, planned_length(record), second)
            assert earlier is not None
            assert earlier <= start
            settle(record, earlier)
        for record in records:
            if record.job.job_id not in kept:
                need = pool.amounts.need(record)
                settle(record, profile.earliest(need, planned_length(record), second))
        return planned


def _end(record: Record, start: int) -> int:
    return min(start + planned_length(record), FOREVER)


def _has_room(pool: Pool, profile: Profile, record: Record, start: int) -> bool:
    free = profile.least(start, _end(record, start))
    return pool.amounts.kinds.fits(free, pool.amounts.need(record))


def _hold(pool: Pool, profile: Profile, record: Record, start: int) -> None:
    profile.reserve(start, _end(record, start), pool.amounts.need(record))
