"""A backfill pass: it starts jobs out of order where that delays no promise.

Place: scheduling, pure; used by sched/backfill, and by forecasts. Follows slurm.conf(5)
SchedulerParameters bf_*.

Each pass walks the queue and gives every job that cannot start a promise: a time at which it could
start if the running jobs end at their limits, and nodes. Promised nodes are taken out of the plan
(understudy.controller.scheduling.slurm.plan) for as long as the job may run; jobs further down must
fit around them. The running jobs are not in the plan: the selector's `will_run` sees them.

A pass costs no time of the cluster unless understudy_cost_backfill_us says so
(understudy.controller.scheduling.slurm.charge); else bf_max_time and the yields have nothing to
end.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from understudy.controller.enforcement.reasons import is_limit
from understudy.controller.scheduling.slurm.charge import Charge
from understudy.controller.scheduling.slurm.main_pass import (
    Reserves,
    is_too_late,
    run_length,
    switches,
    take_place,
)
from understudy.controller.scheduling.slurm.plan import Slots
from understudy.controller.tables.burst_buffers import Readiness
from understudy.controller.tables.reservation import WAITS, blocked_cores
from understudy.model.scheduler_parameters import number
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from understudy.controller.scheduling.api import Ask, Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.reservation import Leeway
    from understudy.controller.tables.tables import Tables

_DAY_S: Final = 86_400
_AS_IT_IS: Final = nullcontext()


def _planned_length(job: Job, partition: Partition) -> int:
    """The seconds for which a plan has room for the job: whole minutes."""
    return max(-(-run_length(job, partition, job.spec.time_min_s) // 60) * 60, 60)


@contextmanager
def _least_time(job: Job) -> Iterator[None]:
    """Limits of associations and qualities of service hold for the time of --time-min, which is all
    that backfill gives (as seen of 22.05.8).
    """
    asked_s, job.time_limit_s = job.time_limit_s, job.spec.time_min_s
    try:
        yield
    finally:
        if not job.is_active:  # it waits, or is over, as by its deadline
            job.time_limit_s = asked_s


@dataclass(slots=True, eq=False)
class Walk:
    """What one walk over the queue has come to. `second`: of `now`; times are in seconds."""

    now: float
    second: int
    slots: Slots
    # jobs seen, by user, partition, both, and association (bf_max_job_user and its like)
    seen: dict[object, int] = field(default_factory=dict)
    promised: dict[int, int] = field(default_factory=dict)  # job id -> start


class BackfillPass:
    """One walk over the queue; `started` and `promised` tell how many jobs the last one started,
    and how many it told when they would start.
    """

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        self.tables, self.selector, self.planner = tables, selector, planner
        self.reserves = Reserves(parameters)
        self.resolution_s = number(parameters, "bf_resolution", 60, least=1, most=3600)
        self.window_s = number(parameters, "bf_window", 1440, least=1, most=43_200) * 60
        self.longest_switch_wait_s = number(parameters, "max_switch_wait", 300)
        self.max_tests = number(parameters, "bf_max_job_test", 500, least=1, most=1_000_000)
        self.max_starts = number(parameters, "bf_max_job_start", 0, most=10_000)
        self.max_slots = number(
            parameters, "bf_node_space_size", self.max_tests, least=2, most=2_000_000
        )
        self.max_of_user = number(parameters, "bf_max_job_user", 0)
        self.max_of_partition = number(parameters, "bf_max_job_part", 0)
        self.max_of_user_in_partition = number(parameters, "bf_max_job_user_part", 0)
        self.max_of_association = number(parameters, "bf_max_job_assoc", 0)
        self.max_array_promises = number(parameters, "bf_max_job_array_resv", 20, most=1000)
        self.continues = "bf_continue" in parameters
        self._is_limited = False  # a limit of an association or QOS kept the last job from starting
        self.promises_once = "bf_one_resv_per_job" in parameters
        self.plans_running = "bf_running_job_reserve" in parameters
        self.charge = Charge.of_backfill(parameters)
        self.starts_parts_at_once = "bf_hetjob_immediate" in parameters
        # for components that could start now, by leader and offset
        self._ready: dict[int, dict[int, Ask]] = {}
        # of these there are no nodes in the window: by leader, offsets
        self._lost: dict[int, set[int]] = {}
        # Partitions in which a component has none, by its number
        self._in_vain: dict[int, set[str]] = {}
        self.started = self.promised = 0
        self.promised_nodes = 0  # a bitmap
        self.promises_anew = False  # some of them to more than one job
        # False: promises that can decide nothing now are made when somebody asks for them
        self.plans_ahead = True
        self.is_complete = True  # none has been left out of the last pass
        self._free_on: dict[int, int] = {}  # free CPUs on the nodes that were looked at last
        self._free_when = -1  # the node table's generation then

    def _may_leave_out(self) -> bool:
        """Whether free CPUs and promises tell for sure that a job cannot start now."""
        tables = self.tables
        if self.window_s < _DAY_S or self.reserves.are_few:
            # which nodes are promised decides when the next pass comes, and here that is not plain
            return False
        if (
            self.plans_ahead
            or tables.limits.enforced
            or tables.preemption is not None
            or tables.reservations
            or tables.burst_buffers  # promises decide whose are staged in
            or self.charge.cost_us
        ):
            return False
        return self.selector.needs_free_cpus

    def _last_that_could_start(
        self, records: list[Record], last: int, first: int, walk: Walk
    ) -> int:
        """The last place in the queue, from `last` back to `first`, of a job that might start now;
        less than `first` if there is none.
        """
        while last >= first and not self._could_start(records[last], walk):
            last -= 1
        return last

    def _could_start(self, record: Record, walk: Walk) -> bool:
        """Whether the nodes that are promised to nobody while the job would run have the CPUs for
        it now.
        """
        job, partition = record.job, record.partition
        if job.spec.overcommit or partition.oversubscribe.startswith(("FORCE", "YES")):
            return True
        table = self.tables.nodes
        nodes = (
            walk.slots.free_until(walk.second + _planned_length(job, partition))
            & partition.nodes
            & table.up_nodes
            & ~table.full_nodes
        )
        if nodes.bit_count() < job.min_nodes:
            return False
        if self._free_when != table.generation:
            self._free_when = table.generation
            self._free_on.clear()
        free = self._free_on.get(nodes)
        if free is None:
            free = self._free_on[nodes] = table.free_cpus_on(nodes)
        return free >= job.min_cpus

    def run(self, records: list[Record], now: float) -> Iterator[float | None]:
        """Start and promise, record by record."""
        walk = self._begin(now)
        tables, charge = self.tables, self.charge
        may_leave_out, last_useful = self._may_leave_out(), len(records) - 1
        tested = 0
        for place, record in enumerate(records):
            if may_leave_out:
                last_useful = self._last_that_could_start(records, last_useful, place, walk)
                if last_useful < place:
                    self._leave_out(len(records) - place)
                    break
            self._is_limited = False
            is_content = self.tables.limits.enforced and record.job.spec.time_min_s
            with _least_time(record.job) if is_content else _AS_IT_IS:
                if not self._is_to_be_tried(record, walk):
                    continue
                tested += 1
                if tested > self.max_tests or len(walk.slots) >= self.max_slots:
                    break
                self._start_or_promise(record, walk)
            if self.max_starts and self.started >= self.max_starts:
                break
            version = tables.version
            if charge.cost_us:
                charge.test()
                if charge.is_used_up:
                    break
                if charge.pause():
                    yield charge.now
                    walk.now, walk.second = charge.now, int(charge.now)
            yield None
            if tables.version != version and not self.continues:
                break
        if self.is_complete:
            self._take_back(records, walk)
        for parts in self._ready.values():
            tables.looked_at = parts[min(parts)].job
            if tables.looked_at.is_pending:
                self._start_together(parts, walk.now)
        if charge.cost_us:
            yield charge.now

    def _take_back(self, records: list[Record], walk: Walk) -> None:
        """Jobs that were not tried, or not come to, have no promise any more."""
        for record in records:
            job = record.job
            if (
                job.expected_start is not None
                and job.is_pending
                and job.job_id not in walk.promised
            ):
                self.planner.promise(job, None, 0)

    def _begin(self, now: float) -> Walk:
        self.started = self.promised = self.promised_nodes = 0
        self.promises_anew = False
        self.is_complete = True
        self._is_limited = False
        self._ready.clear()
        self._lost.clear()
        self._in_vain.clear()
        self._free_on.clear()
        self.charge.begin(now)
        second, nodes = int(now), (1 << len(self.tables.nodes.nodes)) - 1
        walk = Walk(now, second, Slots(second, self.window_s, self.resolution_s, nodes))
        if self.plans_running:
            self._plan_running(walk.slots, second)
        return walk

    def _plan_running(self, slots: Slots, second: int) -> None:
        """Jobs that run on whole nodes are in the plan, too, until they ought to end."""
        for job in self.tables.running.values():
            if job.allocation is not None and job.allocation.whole and job.start_time is not None:
                slots.promise(
                    second,
                    max(job.start_time + (job.time_limit_s or YEAR), second + 1),
                    job.allocation.nodes,
                )

    def _leave_out(self, count: int) -> None:
        """The last so many jobs get no promise, as none of them could start now."""
        self.is_complete = False
        self.promises_anew = count > 1  # that is all but sure where several jobs wait
        self.promised_nodes = -1  # any

    def _is_to_be_tried(self, record: Record, walk: Walk) -> bool:
        """Whether nothing but a lack of resources can keep the job from starting."""
        job, partition = record.job, record.partition
        self.tables.looked_at = job
        if not job.is_pending or not partition.can_schedule:
            return False
        if is_too_late(job, walk.second):
            self.planner.give_up(job, walk.now)
            return False
        if job.spec.reservation and record.reservation is None:
            return False
        if job.het is not None and self._waits_for_others(job, walk):
            return False
        limits = self.tables.limits
        if limits.enforced and (reason := limits.before(job, partition, walk.now)):
            self._meet_limit(record, reason)
            return False
        # Who lacks licences counts, who has met a limit that does not ask for what he wants does
        # not (as seen of 22.05.8).
        is_one_too_many = self._is_one_too_many(record, walk.seen)
        return not is_one_too_many and self._has_licenses(record, walk.now)

    def _waits_for_others(self, job: Job, walk: Walk) -> bool:
        """Whether another component's reservation has not begun, or there are no nodes in the
        window for one that was looked at before: it need not be looked at either (as seen of
        22.05.8).
        """
        if self.tables.reservations.keeps_whole(job, walk.now):
            self._explain(job, WAITS)
        elif job.het is not None and self._lost.get(job.het.job_id):
            self._explain(job, "Resources")
        else:
            return False
        return True

    def _start_or_promise(self, record: Record, walk: Walk) -> None:
        """Try the job, or its tasks, and note what it is promised."""
        job, promised = record.job, walk.promised
        start = self._try(record, walk) if job.array is None else self._try_tasks(record, walk)
        if (
            self.tables.limits.enforced
            and not self._is_limited
            and job.is_pending
            and is_limit(job.reason)
        ):
            self.planner.explain(job, "None")
        if job.het is not None and job.is_pending and not self._is_limited and not record.prefers:
            has_nodes = start is not None or job.job_id in promised
            self._note_component(record, has_nodes=has_nodes)
        if start is not None:
            self.promised += 1
            promised[job.job_id] = min(start, promised.get(job.job_id, start))
        elif job.is_pending and job.job_id not in promised and job.expected_start is not None:
            self.planner.promise(job, None, 0)

    def _note_component(self, record: Record, *, has_nodes: bool) -> None:
        """A component is lost that has nodes in none of its partitions."""
        job = record.job
        assert job.het is not None
        lost = self._lost.setdefault(job.het.job_id, set())
        in_vain = self._in_vain.setdefault(job.job_id, set())
        if has_nodes:
            in_vain.clear()
            lost.discard(job.het_offset)
        else:
            in_vain.add(record.partition.name)
            if in_vain.issuperset(job.partitions):
                lost.add(job.het_offset)

    def _meet_limit(self, record: Record, reason: str) -> None:
        """A limit of an association or QOS keeps the job from starting."""
        job = record.job
        self._is_limited = True
        self._explain(job, reason)
        if job.expected_start is not None:
            self.planner.promise(job, None, 0)

    def _explain(self, job: Job, reason: str) -> None:
        if job.reason != reason or job.reason_detail:
            self.planner.explain(job, reason)

    def _is_one_too_many(self, record: Record, seen: dict[object, int]) -> bool:
        user, partition = record.job.user_id, record.partition.name
        limits: tuple[tuple[int, object], ...] = (
            (self.max_of_user, user),
            (self.max_of_partition, partition),
            (self.max_of_user_in_partition, (user, partition)),
            (self.max_of_association, (record.job.spec.account, user, "")),
        )
        for limit, what in limits:
            if limit and seen.get(what, 0) >= limit:
                return True
        for limit, what in limits:
            if limit:
                seen[what] = seen.get(what, 0) + 1
        return False

    def _try_tasks(self, record: Record, walk: Walk) -> int | None:
        """Start tasks of an array, then promise nodes to some of the others; the first promised
        start.
        """
        job, array = record.job, record.job.array
        assert array is not None
        first: int | None = None
        promises = 0
        while job.is_pending and not array.is_full and self._has_licenses(record, walk.now):
            started = self.started
            start = self._try(record, walk, shows=first is None)
            if self.started > started:
                if self.max_starts and self.started >= self.max_starts:
                    break
                continue
            if start is None:
                break
            first = start if first is None else first
            promises += 1
            left = array.limit - array.running if array.limit else self.max_array_promises
            if promises >= min(max(job.array_tasks.bit_count(), 1), self.max_array_promises, left):
                break
        return first

    def _try(self, record: Record, walk: Walk, *, shows: bool = True) -> int | None:
        """Start the job or promise it nodes; the promised start, None if there is no promise.
        `shows`: record the promise with the job.
        """
        job, partition = record.job, record.partition
        table, second = self.tables.nodes, walk.second
        most_switches = 0
        if table.tree is not None:
            most_switches, _ = switches(self.planner, job, second, self.longest_switch_wait_s)
        length = _planned_length(job, partition)
        window = walk.slots.window(length, partition.nodes & table.up_nodes & ~job.excluded_nodes)
        start, last = second, second + self.window_s
        least = (
            job.min_nodes
            if job.spec.overcommit
            else max(job.min_nodes, -(-job.min_cpus // table.most_cpus))
        )
        while True:
            leeway = blocked = None
            if self.tables.reservations:
                leeway = self._leeway(record, walk.now, start, length)
                if leeway.reason:
                    return None
                start, blocked = leeway.when, blocked_cores(leeway, record.reservation, table)
            usable, later = window.at(start)
            if leeway is not None:
                usable &= leeway.nodes
                if leeway.overlaps:
                    later = self._after_reservations(later, start, walk)
            found = None
            if usable.bit_count() >= least and not job.required_nodes & ~usable:
                ask = record.ask(usable, blocked, most_switches)
                until = second if record.prefers else last if later is None else later
                found = self.selector.will_run(ask, self.tables, second, until)
            if found is None:
                if later is None or record.prefers:
                    return None
                start = later
                continue
            when, nodes = max(found[0], start), found[1]
            if when <= second:
                if self._start_ready(ask, walk.now):
                    return None
                if self._lacks_buffer(job):
                    return self._expect_buffer(record, walk, shows=shows)
                if job.het is None:
                    when = second + 1
            if later is not None and when > later:
                start = later
                continue
            if when > last or not self._may_promise(record, walk):
                return None
            end = when + length + (table.boot_allowance_s if nodes & table.boot_nodes else 0)
            if walk.slots.conflicts(when, end, nodes):
                # What may happen by rounding down alone, when the start does not move, ends with
                # the slot.
                later = when if when > start else later
                if later is None:
                    return None
                start = later
                continue
            self._promise(record, walk, when, end, nodes)
            if shows:
                self._show(record, walk, when, nodes)
            return when

    def _show(self, record: Record, walk: Walk, when: int, nodes: int) -> None:
        """Record the promise with the job, unless it has an earlier one in another partition."""
        job = record.job
        if when < walk.promised.get(job.job_id, inf) and (
            when != job.expected_start or nodes != job.expected_nodes
        ):
            self.planner.promise(job, when, nodes)
        if job.het is not None:  # the main scheduler does not look at it
            self._explain(job, "Resources")

    def _start_ready(self, ask: Ask, now: float) -> bool:
        """There are nodes for the job now. Whether it has started, or a limit keeps it."""
        job = ask.job
        if job.het is not None:
            parts = self._ready.setdefault(job.het.job_id, {})
            parts[job.het_offset] = ask
            return self.starts_parts_at_once and self._start_together(parts, now)
        if job.burst_buffer is not None and not self._has_buffer(job, Readiness.READY):
            return False
        return self._start(ask, now) or self._is_limited

    def _has_buffer(self, job: Job, *readiness: Readiness) -> bool:
        return self.tables.burst_buffers.readiness(job) in readiness

    def _lacks_buffer(self, job: Job) -> bool:
        """Whether its buffer is neither there nor being staged in."""
        return (
            job.het is None
            and job.burst_buffer is not None
            and not self._has_buffer(job, Readiness.READY, Readiness.STAGING)
        )

    def _expect_buffer(self, record: Record, walk: Walk, *, shows: bool) -> int | None:
        """Nodes are free for the job, and its burst buffer has not begun to be staged in: none are
        kept for it. When it may expect space, None if a limit forbids what it asks for.
        """
        job, limits = record.job, self.tables.limits
        if limits.enforced and (reason := limits.by_request(job, record.partition, walk.now)):
            self._is_limited = True
            self._explain(job, reason)
            return None
        start = self.tables.burst_buffers.expected(job, self.tables.jobs, walk.second)
        if shows and start != job.expected_start:
            self.planner.promise(job, start, 0)
        return start

    def _may_promise(self, record: Record, walk: Walk) -> bool:
        """Whether nodes are kept for the job: for a wish (--prefer) none are."""
        job = record.job
        return (
            not record.prefers
            and not (self.promises_once and job.job_id in walk.promised)
            and self.reserves.holds_back(job, walk.second)
        )

    def _promise(self, record: Record, walk: Walk, when: int, end: int, nodes: int) -> None:
        """Keep the nodes for the job, unless a limit keeps it from starting, and may for longer: it
        is shown all the same when there would be nodes for it.
        """
        job, partition, limits = record.job, record.partition, self.tables.limits
        if limits.enforced:
            if reason := limits.by_request(job, partition, walk.now):
                self._is_limited = True
                self._explain(job, reason)
                return
            if limits.keeps_no_nodes(job, partition):
                return
        if job.spec.qos in self.tables.unreserving_qos:
            return
        walk.slots.promise(when, end, nodes)
        self.promises_anew |= bool(nodes & self.promised_nodes)
        self.promised_nodes |= nodes

    def _leeway(self, record: Record, now: float, start: int, length: int) -> Leeway:
        """What reservations leave to the job from `start` on, or later if they forbid that."""
        table, partition, own = self.tables.reservations, record.partition, record.reservation
        nodes = partition.nodes & self.tables.nodes.up_nodes
        if own is not None:
            return table.leeway(record.job, own, partition, nodes, now, start, length)
        return table.leeway_later(record.job, partition, nodes, now, start, length)

    def _after_reservations(self, later: int | None, start: int, walk: Walk) -> int | None:
        """The next time to try: when a slot ends, or right behind the next end of a reservation."""
        end, last = self.tables.reservations.next_end(start, walk.now), walk.second + self.window_s
        if end is None or end + 1 >= last or (later is not None and later <= end):
            return later
        return end + 1

    def _has_licenses(self, record: Record, now: float) -> bool:
        job, reservations = record.job, self.tables.reservations
        if not job.spec.licenses:
            return True
        held_back = None
        if reservations:
            held_back = reservations.licenses_held_back(
                record.reservation, now, run_length(job, record.partition)
            )
        return self.tables.licenses.are_free(job.spec.licenses, held_back)

    def _start(self, ask: Ask, now: float) -> bool:
        """Start the job on usable nodes, unless nodes on which it would run still are
        completing.
        """
        completing = ask.usable & self.tables.nodes.completing_nodes
        job, partition = ask.job, ask.partition
        if completing:
            ask = ask._replace(usable=ask.usable & ~completing)
        allocation = self.selector.select(ask, self.tables)
        limits = self.tables.limits
        if allocation is not None and limits.enforced:
            reason = limits.before(job, partition, now) or limits.by_allocation(
                job, partition, allocation, now
            )
            if reason:
                self._is_limited = True
                self._explain(job, reason)
                return False
        if allocation is None and self.tables.preemption is not None and not self._is_limited:
            allocation, reason = take_place(
                self.tables, self.selector, self.planner, ask, completing, now
            )
            if reason:
                self._is_limited = True
                self._explain(job, reason)
        self.planner.tried(job, "Backfill")
        if allocation is None:
            return False
        if job.spec.time_min_s:  # all that backfill has made room for, and Slurm leaves it at that
            ask = ask._replace(time_limit_s=job.spec.time_min_s)
        has_started = self.planner.start(ask, allocation, now)
        self.started += has_started
        return has_started

    def _start_together(self, parts: dict[int, Ask], now: float) -> bool:
        """Start a heterogeneous job if all of its components can start now; each gets nodes of its
        own. Whether it has started.
        """
        whole = parts[min(parts)].job.het
        if whole is None or any(
            job.is_pending and offset not in parts for offset, job in whole.components.items()
        ):
            return False
        plans: list[tuple[Ask, Allocation]] = []
        taken = self.tables.nodes.completing_nodes
        for _, ask in sorted(parts.items()):
            here = ask._replace(usable=ask.usable & ~taken)
            allocation = self.selector.select(here, self.tables)
            if allocation is None or allocation.nodes & taken:
                return False
            taken |= allocation.nodes
            plans.append((here, allocation))
        for ask, _ in plans:
            self.planner.tried(ask.job, "Backfill")
        if not self.planner.start_together(plans, now):
            return False
        self.started += len(plans)
        return True


class PlansOnly:
    """A planner that starts nothing and explains nothing."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        self._planner.promise(job, start, nodes)

    def await_switches(self, job: Job, now: int) -> None:
        self._planner.await_switches(job, now)

    def stage_in(self, job: Job, now: float) -> bool:
        del job, now
        return False

    def stage_expected(self, now: float) -> None:
        pass

    def start(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        del ask, allocation, now
        return False

    def start_together(self, plans: Sequence[tuple[Ask, Allocation]], now: float) -> bool:
        del plans, now
        return False

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        del job, victims, now
        return False

    def relent(self, job: Job, now: float) -> None:
        pass

    def give_up(self, job: Job, now: float) -> None:
        pass

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        pass

    def tried(self, job: Job, scheduler: str) -> None:
        pass

    def ask_for_whole_nodes(self, job: Job) -> None:
        pass
