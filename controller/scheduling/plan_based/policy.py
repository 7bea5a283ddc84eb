"""sched/plan: every waiting job has a place in a plan, and a search makes the plan better.

Place: scheduling, pure; a research policy (instants of a second as the textbook's:
understudy.controller.scheduling.textbook.pools). Follows Kopanski and Rzadca (Euro-Par 2021) by
default; what else there is, understudy.controller.scheduling.plan_based.settings says.

A pass, for each place where jobs compete:

1. what will be free when (`supply`), less what jobs get that are not searched: who has waited too
   long, and the queue's first (plan_depth), each as early as it fits;
2. if any of the others could start now, a search for the order in which they are best placed;
3. the jobs whose planned start is now start, in the plan's order; all others are told theirs.

Nothing is kept but the order of the plan, and that only with plan_keep: jobs are placed anew in
it, each as early as it fits, so that the plan closes up where somebody ended early, and who is new
comes behind: into the first gap that is large enough, where it delays nobody.

Where time is real, the search lets requests in between two evaluations. What they do to the tables
is seen by the selector and the controller when jobs are started; only if what jobs ask for or may
use has changed, the pass is given up, and the next one begins.

The plan knows CPUs of sets of nodes, no nodes. Whether those that are free will do for a job, the
selector says: of jobs with special wishes it is asked beforehand when the nodes are there, if
running jobs end at their limits; and if it refuses whose turn it is, the rest of the plan is made
again with the start that it names instead. What two jobs that wait take from each other node by
node is not looked at before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor
from typing import TYPE_CHECKING, ClassVar, Final

from understudy.controller.enforcement.reasons import is_limit
from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.scheduling.plan_based.places import first_start, nodes_of_plan
from understudy.controller.scheduling.plan_based.planning import (
    Counts,
    Planned,
    Planning,
    as_easy,
    in_order,
)
from understudy.controller.scheduling.plan_based.settings import RANDOM, WORDS, ZHENG, Settings
from understudy.controller.scheduling.plan_based.supply import Supply, beside, expected_end
from understudy.controller.scheduling.plan_based.waiting import Queue
from understudy.controller.scheduling.slurm.main_pass import is_too_late, run_length
from understudy.controller.scheduling.slurm.queue import PendingQueue, slurm_order
from understudy.controller.scheduling.textbook.pools import PASS_OFFSET_S, TextbookPolicy
from understudy.controller.tables.job import BAD_CONSTRAINTS
from understudy.controller.tables.reservation import WAITS, blocked_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.plan_based.waiting import Place, Waiting
    from understudy.controller.scheduling.slurm.queue import Key, Record
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

FIGURES: Final = ("searches", "evaluations", "searched_jobs", "mean_gain_percent")  # for sdiag
# ours: of a pass over a place; whose turn comes later then waits for the next
_MOST_REFUSALS: Final = 100
# ours: of passes one after the other that are given up; the next lets nobody in
_MOST_GIVEN_UP: Final = 2
_NO_CHANGE: Final = (Note.SUBMIT, Note.FREE, Note.CLEANED, Note.PARTLY_FREE, Note.PRIORITY)


@dataclass(slots=True)
class _Pass:
    """One pass over one place. `earliest`: by job id, before which those jobs may not start."""

    supply: Supply
    second: int
    now: float
    earliest: dict[int, int] = field(default_factory=dict)
    plan: list[Planned] = field(default_factory=list)  # in the order of the plan


def _tier_order(job: Job, partition: Partition, *, is_drawn: bool = False) -> Key:
    """Partitions of higher tiers first, then what an administrator has put first, then by
    submission.
    """
    del is_drawn
    return (
        -partition.priority_tier,
        -(job.admin_priority or 0),
        job.submit_time,
        job.job_id,
        job.partitions.index(partition.name),
    )


class PlanBased(TextbookPolicy):
    """A plan for all waiting jobs, made anew in each pass in which one could start."""

    name = "plan"
    parameter_words: ClassVar[tuple[str, ...]] = (*TextbookPolicy.parameter_words, *WORDS)

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self.settings = Settings.of(parameters)
        self.planning = Planning(self.settings)
        self.figures = dict.fromkeys(FIGURES, 0)
        self.plan: list[Planned] = []  # of the last pass
        self._passes: list[_Pass] = []
        self._changes = self._given_up = 0  # that were told of; passes in a row
        self._waiting = Queue(tables, selector)
        self._supplies: dict[Place, tuple[dict[int, None], Supply]] = {}
        self._make_queue()

    def _make_queue(self) -> None:
        order = slurm_order if self.settings.by_priority else _tier_order
        self.queue = PendingQueue(self.tables, order, prefers=True, reservations=True)

    @classmethod
    def check_parameters(cls, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        super().check_parameters(parameters)
        Settings.of(parameters)

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`. Random draws go on where they were."""
        super().reconfigure(parameters)
        self._changes += 1
        self.settings = self.planning.settings = Settings.of(parameters)
        self._make_queue()

    def note(self, what: Note, now: float) -> None:
        """As in `SchedulingPolicy`."""
        self._changes += what not in _NO_CHANGE
        if what is Note.PRIORITY and self.settings.by_priority:
            self.queue.note(Note.CHANGE)
        super().note(what, now)

    def next_run(self) -> float | None:
        """Also when the next random search is due."""
        due, search_due = super().next_run(), self.planning.search_due
        if search_due is None:
            return due
        at = search_due + PASS_OFFSET_S
        return at if due is None else min(due, at)

    def decide(
        self, added: list[Record] | None, freed: bool, second: int, now: float
    ) -> Iterator[None]:
        """A pass over each place where jobs compete, given up if something changes meanwhile."""
        del added, freed
        for _ in self._decide(second, now):
            if self._given_up < _MOST_GIVEN_UP:
                before = self._changes
                yield
                if self._changes != before:
                    self._given_up += 1
                    return
        self._given_up = 0

    def _decide(self, second: int, now: float) -> Iterator[None]:
        if self.is_stale:
            self._waiting.forget()
            self._supplies.clear()
        if self.settings.search == RANDOM:
            self.planning.remember(self.tables.running)
        self.planning.search_due = None
        if not self.figures["searches"]:  # the statistics have been reset
            self.planning.counts = Counts()
        self.plan, self._passes = [], []
        for place, jobs in self._waiting.by_place(self.queue.records, now):
            admitted = [each for each in jobs if self._is_admitted(each, second, now)]
            if admitted:
                one = _Pass(self._supply(place, admitted), second, now)
                yield from self._make_plan(one, admitted)
                self._started += self._start_all(one)
                self._tell(one)
                self.plan += one.plan
                self._passes.append(one)
        for each in self._waiting.homeless:
            self._leave_out(each, self._why_never(each))
        self._count()
        self.queue.drop_departed()
        self.planning.keep(self.plan)
        if not self.plans_when_asked:
            self.complete_plan(now)

    def complete_plan(self, now: float) -> None:
        """Tell the nodes of the plan, too."""
        second = floor(now)
        for one in self._passes:
            plan = [each for each in one.plan if each.waiting.job.is_pending]
            nodes = nodes_of_plan(self.tables, self.selector, plan, second)
            for (waiting, start), found in zip(plan, nodes, strict=True):
                for job in waiting.jobs:
                    if start != job.expected_start or found != job.expected_nodes:
                        self.planner.promise(job, start, found)

    def _count(self) -> None:
        counts = self.planning.counts
        self.figures["searches"] = counts.searches
        self.figures["evaluations"] = counts.evaluations
        self.figures["searched_jobs"] = counts.jobs
        self.figures["mean_gain_percent"] = round(100 * counts.gain / max(counts.searches, 1))

    # --- who is planned ---------------------------------------------------------------------------

    def _is_admitted(self, waiting: Waiting, second: int, now: float) -> bool:
        """Whether nothing but a lack of resources can keep it from starting."""
        limits = self.tables.limits
        for records in waiting.members:
            job, partition = records[0].job, records[0].partition
            self.tables.looked_at = job
            if not job.is_pending:  # given up where it was looked at before
                return False
            if is_too_late(job, second):
                self.planner.give_up(job, now)
                return False
            reason = limits.before(job, partition, now) if limits.enforced else ""
            if job.spec.reservation and records[0].reservation is None:
                reason = WAITS
            if reason:
                self._leave_out(waiting, reason)
                return False
        return True

    def _leave_out(self, waiting: Waiting, reason: str) -> None:
        """It is not planned, for that reason."""
        for records in waiting.members:
            self.explain(records[0], reason)
            if records[0].job.expected_start is not None:
                self.planner.promise(records[0].job, None, 0)

    def _why_never(self, waiting: Waiting) -> str:
        """The reason of a job for which there is not enough even if nobody else runs: whether that
        could change.
        """
        for records in waiting.members:
            asks = (Ask(each.job, each.partition, each.partition.nodes) for each in records)
            if not any(self.selector.could_ever_run(ask, self.tables) for ask in asks):
                return BAD_CONSTRAINTS
        return next(
            (
                each.reason
                for each in self.further
                if beside(waiting, each) > each.left_to_jobs(waiting.nodes)
            ),
            "Resources",
        )

    def _supply(self, place: Place, jobs: list[Waiting]) -> Supply:
        sets, supply = self._supplies.get(place, ({}, None))
        if supply is None or any(each.nodes not in sets for each in jobs):
            sets = dict.fromkeys([*sets, *(each.nodes for each in jobs)])
            supply = Supply(self.tables, place, list(sets), self.further)
            self._supplies[place] = sets, supply
        return supply

    # --- the plan ---------------------------------------------------------------------------------

    def _make_plan(self, one: _Pass, jobs: list[Waiting]) -> Iterator[None]:
        supply, second = one.supply, one.second
        profile = supply.profile(second, one.now)
        jobs = [each for each in jobs if self._looks_ahead(one, each)]
        before = profile.copy() if self.settings.search == ZHENG else profile
        one.plan = yield from self.planning.plan(supply, profile, jobs, one.earliest)
        planned = {id(each.waiting) for each in one.plan}
        for each in jobs:
            if id(each) not in planned:
                self._leave_out(each, self._why_never(each))
        if self.settings.search == ZHENG:
            one.plan = as_easy(supply, before, one.plan, one.earliest)

    def _looks_ahead(self, one: _Pass, waiting: Waiting) -> bool:
        """Find out before when a job with special wishes may not start. False: it never may, as
        things are.
        """
        reservation, job_id = waiting.reservation, waiting.job.job_id
        if reservation is not None:
            one.earliest[job_id] = max(reservation.start(one.now), one.second)
        if waiting.is_plain or len(one.earliest) >= self.settings.tests:
            return True
        when = self._earliest(one, waiting)
        if when is None:
            self._leave_out(waiting, "Resources")
            return False
        one.earliest[job_id] = max(when, one.earliest.get(job_id, when))
        return True

    def _earliest(self, one: _Pass, waiting: Waiting) -> int | None:
        """When the selector has nodes for it, if running jobs end at their limits."""
        latest = one.second
        for records in waiting.members:
            found = [
                when
                for record in records
                if (when := self._earliest_of(record, one.second, one.now)) is not None
            ]
            if not found:
                return None
            latest = max(latest, min(found))
        return latest

    def _earliest_of(self, record: Record, second: int, now: float) -> int | None:
        tables, job, partition = self.tables, record.job, record.partition
        usable, blocked, start = self.usable(partition), None, second
        if tables.reservations:
            length_s, own = run_length(job, partition), record.reservation
            if own is None:
                leeway = tables.reservations.leeway_later(
                    job, partition, usable, now, second, length_s
                )
            else:
                start = max(own.start(now), second)
                leeway = tables.reservations.leeway(
                    job, own, partition, usable, now, start, length_s
                )
            if leeway.reason:
                return None
            usable, start = leeway.nodes, max(leeway.when, start)
            blocked = blocked_cores(leeway, own, tables.nodes)
        found = first_start(self.selector, record.ask(usable, blocked), tables, second)
        return None if found is None else max(found, start)

    # --- what comes of it -------------------------------------------------------------------------

    def _start_all(self, one: _Pass) -> int:
        """Start whose planned start has come; how many did. Who is refused is planned again, and
        all others with it, in the order of the plan.
        """
        started = refusals = 0
        is_over = False
        while not is_over:
            is_over = True
            # who has the fewest nodes to choose from first, as others may take other ones
            for waiting, start in sorted(one.plan, key=lambda each: each.waiting.choice):
                if start != one.second or not waiting.job.is_pending:
                    continue
                if self._start_one(waiting, one.now):
                    started += 1
                elif refusals < _MOST_REFUSALS:
                    refusals += 1
                    self._plan_again(one, waiting)
                    is_over = False
                    break
        one.plan = [each for each in one.plan if each.waiting.job.is_pending]
        return started

    def _plan_again(self, one: _Pass, refused: Waiting) -> None:
        """Who was refused has to wait; who is kept by what the plan knows nothing of, outside of
        it.
        """
        is_kept = self.is_kept(refused.members[0][0])
        when = None if is_kept else self._earliest(one, refused)
        if when is not None and when <= one.second:
            # there are nodes for each of its components, but not for all at once
            ends = (expected_end(job, one.second) for job in self.tables.running.values())
            when = min(ends, default=None)
        left = [each.waiting for each in one.plan if each.waiting.job.is_pending]
        if when is None:
            self._leave_out(refused, refused.job.reason if is_kept else "Resources")
            left.remove(refused)
        else:
            one.earliest[refused.job.job_id] = when
        profile = one.supply.profile(one.second, one.now)
        one.plan = in_order(one.supply, profile, left, one.earliest)

    def _start_one(self, waiting: Waiting, now: float) -> bool:
        self._refused = None
        if len(waiting.members) > 1:
            return self._start_together(waiting, now)
        for record in waiting.members[0]:
            chosen = self._choose(record, 0, now)
            if chosen is None:
                continue
            if self.planner.start(*chosen, now):
                return True
            self._refused = record.job
        return False

    def _start_together(self, waiting: Waiting, now: float) -> bool:
        """All components of a heterogeneous job, on nodes of their own."""
        taken = 0
        plans: list[tuple[Ask, Allocation]] = []
        for records in waiting.members:
            found = (self._choose(record, taken, now) for record in records)
            chosen = next((each for each in found if each is not None), None)
            if chosen is None:
                return False
            taken |= chosen[1].nodes
            plans.append(chosen)
        if self.planner.start_together(plans, now):
            return True
        self._refused = waiting.job
        return False

    def _choose(self, record: Record, taken: int, now: float) -> tuple[Ask, Allocation] | None:
        """Nodes for the job now, none of those taken."""
        tables, job, partition = self.tables, record.job, record.partition
        tables.looked_at = job
        usable = self.usable(partition) & ~tables.nodes.completing_nodes & ~taken
        blocked = None
        if tables.reservations:
            leeway = tables.reservations.leeway(
                job,
                record.reservation,
                partition,
                usable,
                now,
                floor(now),
                run_length(job, partition),
            )
            if leeway.reason:
                return None
            usable, blocked = leeway.nodes, blocked_cores(leeway, record.reservation, tables.nodes)
        ask = record.ask(usable, blocked)
        allocation = self.selector.select(ask, tables)
        return None if allocation is None else (ask, allocation)

    def _tell(self, one: _Pass) -> None:
        """Say why the others wait, and until when."""
        supply = one.supply
        free = supply.now()
        enforced = self.tables.limits.enforced
        for waiting, start in one.plan:
            reason = supply.lacking(free, supply.need(waiting))
            if not reason:
                reason = "Resources" if waiting.job.job_id in one.earliest else "Priority"
            for records in waiting.members:
                job = records[0].job
                if not (enforced and is_limit(job.reason)):
                    self.explain(records[0], reason)
                if start != job.expected_start:
                    self.planner.promise(job, start, job.expected_nodes)
