"""The main scheduler: one pass over the sorted queue that starts what fits and never lets a job
pass a waiting one of the same nodes.

Place: scheduling, pure; used by sched/builtin and sched/backfill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.enforcement.reasons import is_limit, is_of_resources
from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.request import Request, wants_whole_nodes
from understudy.controller.scheduling.slurm.charge import Charge
from understudy.controller.scheduling.victims import place_of
from understudy.controller.scheduling.victims import victims as victims_of
from understudy.controller.tables.burst_buffers import NO_SPACE, STAGES_IN, Readiness
from understudy.controller.tables.job import BAD_CONSTRAINTS, NOT_AVAILABLE
from understudy.controller.tables.licenses import REASON as LICENSES
from understudy.controller.tables.partition import limit_broken
from understudy.controller.tables.reservation import BUSY, MAINTENANCE, WAITS, blocked_cores
from understudy.model import nodeset
from understudy.model.hostlist import compress
from understudy.model.reservations import FLEX
from understudy.model.scheduler_parameters import number
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeKind
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.reservation import Leeway
    from understudy.controller.tables.tables import Tables

NODES_DOWN: Final = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)
CLOSED: Final = {"DOWN": "PartitionDown", "INACTIVE": "PartitionInactive"}


def run_length(job: Job, partition: Partition, least_s: int | None = None) -> int:
    """For how many seconds the job may run at most, a year if there is no limit; `least_s`: it
    would be content with that (--time-min).
    """
    return min(
        least_s or (YEAR if job.time_limit_s is None else job.time_limit_s),
        (not job.qos_flags and partition.max_time_s) or YEAR,
    )


def is_too_late(job: Job, now: int) -> bool:
    """Whether the job, or the least of it that would do, can no longer be over by its deadline."""
    deadline = job.spec.deadline
    return deadline is not None and now + (job.spec.time_min_s or job.time_limit_s or 0) > deadline


class Reserves:
    """Which pending jobs hold others back (bf_min_age_reserve, bf_min_prio_reserve)."""

    def __init__(self, parameters: PolicyParameters) -> None:
        self.min_age_s = number(parameters, "bf_min_age_reserve", 0, most=2_592_000)
        self.min_priority = number(parameters, "bf_min_prio_reserve", 0)

    @property
    def are_few(self) -> bool:
        """Whether nodes are not kept for every job."""
        return bool(self.min_age_s or self.min_priority)

    def holds_back(self, job: Job, now: int) -> bool:
        """Whether nodes are kept for the job."""
        waited = now - (job.eligible_time if job.eligible_time is not None else now)
        return waited >= self.min_age_s and job.priority >= self.min_priority


def kept_back(
    selector: Selector, job: Job, partition: Partition, leeway: Leeway, tables: Tables
) -> str:
    """Why the job could not run on what reservations leave to it, even if nobody else did; "" if it
    could.

    A job that wants its nodes alone waits for those of them that are in use, and for no
    reservation, however much it needs.
    """
    if leeway.reason or not leeway.overlaps:
        return leeway.reason
    nodes = leeway.nodes & ~job.excluded_nodes
    wants_whole = wants_whole_nodes(job, partition) or selector.whole_nodes
    if wants_whole and nodes & ~tables.nodes.idle_nodes:
        return ""
    if nodes.bit_count() >= job.min_nodes and selector.could_ever_run(
        Ask(job, partition, nodes), tables
    ):
        return ""
    return MAINTENANCE if leeway.is_maintenance else BUSY


def switches(planner: Planner, job: Job, now: int, longest_s: int) -> tuple[int, int | None]:
    """(the leaf switches that the job's nodes may be on, as it asked for with
    --switches=COUNT[@TIME], until when it waits for that); (0, None) if it does not, or no more.
    """
    spec = job.spec
    if spec.switches is None:
        return 0, None
    since = job.switches_since
    if since is None:
        planner.await_switches(job, now)
        since = now
    wait_s = longest_s if spec.switches_wait_s is None else min(spec.switches_wait_s, longest_s)
    if not spec.switches or now >= since + wait_s:
        return 0, None
    return spec.switches, since + wait_s


def take_place(
    tables: Tables, selector: Selector, planner: Planner, ask: Ask, ending: int, now: float
) -> tuple[Allocation | None, str]:
    """Preempt whom the job may and has to preempt: (what it gets at once, as most of them take a
    while to end; the limit that forbids it, or "").

    Limits come first: nobody goes for a job that could not have what it would get in their place.
    While they run, what they use still counts. `ending`: nodes beside the usable ones that are
    about to be.
    """
    limits, preemption = tables.limits, tables.preemption
    if preemption is None:
        return None, ""
    later = ask._replace(usable=ask.usable | ending)
    victims = victims_of(preemption, tables, later, selector, int(now))
    if not victims:
        return None, ""
    if limits.enforced:
        place = place_of(preemption, tables, victims, later, selector)
        reason = limits.before(ask.job, ask.partition, now) or (
            "" if place is None else limits.by_allocation(ask.job, ask.partition, place, now)
        )
        if reason:
            return None, reason
    if not planner.preempt(ask.job, victims, now):
        return None, ""
    allocation = selector.select(ask, tables)
    if allocation is None:  # select/linear: suspended jobs count where jobs share nodes
        planner.relent(ask.job, now)
    return allocation, ""


class _Waiting:
    """For whom those behind them make way: what a pass could not start so far."""

    def __init__(self) -> None:
        self.nodes = 0  # a bitmap: which those behind do not get
        self.partitions: set[str] = set()  # in which nobody is tried any more
        self.reservations: set[str] = set()
        self.arrays: set[tuple[int, str]] = set()  # of which no task is tried in that partition
        self.tested_in: dict[str, int] = {}  # by partition: jobs tried (partition_job_depth)

    def for_nodes_of(self, partition: Partition) -> None:
        """A job waits for any nodes of the partition."""
        self.partitions.add(partition.name)
        self.nodes |= partition.nodes


class MainPass:
    """`started` and `saw_all` tell about the last pass."""

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        self.tables, self.selector, self.planner = tables, selector, planner
        self.reserves = Reserves(parameters)
        self.partition_depth = number(parameters, "partition_job_depth", 0)
        self.max_starts = number(parameters, "sched_max_job_start", 0)
        self.longest_switch_wait_s = number(parameters, "max_switch_wait", 300)
        self.stops_at_limits = "assoc_limit_stop" in parameters
        # a limit of an association or QOS keeps the job that was just tried from starting
        self._is_limited = False
        self._stops = False  # and nobody passes it
        self.charge = Charge.of_main(parameters)
        self.started = 0
        self.saw_all = True
        self.lacks_buffers = False  # a job of the last pass waits for its burst buffer
        # when the first of the jobs seen will wait no longer for few switches
        self.switches_due: int | None = None
        self._waiting = _Waiting()

    def run(self, records: list[Record], depth: int, now: float) -> Iterator[float | None]:
        """Try the first `depth` + 1 records, not counting those of partitions in which a job
        already waits for nodes.
        """
        self.started, self.saw_all, self.switches_due = 0, False, None
        self.lacks_buffers = False
        tables, charge = self.tables, self.charge
        if tables.preemption is not None:
            tables.preemption.spared_until = None
        charge.begin(now)
        waiting = self._waiting = _Waiting()
        tested = 0
        for record in records:
            job = record.job
            if not job.is_pending:
                continue
            # most of a long queue: it waits as before (`_is_behind`, in short)
            if (
                job.reason == "Priority"
                and record.partition.name in waiting.partitions
                and record.reservation is None
                and not job.reason_detail
                and not job.spec.reservation
            ):
                continue
            tables.looked_at = job
            if self._is_behind(record) or not self._may_start(record, now):
                continue
            tested += 1
            if tested > depth + 1 or charge.is_used_up:
                return
            charge.test()
            if self._is_left_out(record) or not self._has_licenses(record, now):
                continue
            if tables.burst_buffers and not self._has_buffer(record, now):
                continue
            self._try(record, now)
            if self.max_starts and self.started >= self.max_starts:
                return
            yield None
        self.saw_all = True

    def _is_behind(self, record: Record) -> bool:
        """Whether a job before it waits for nodes of the same partition or reservation; or it waits
        for its reservation.
        """
        job, reservation = record.job, record.reservation
        if reservation is None and not job.spec.reservation:
            if record.partition.name not in self._waiting.partitions:
                return False
            # which was not looked at again
            if (
                job.reason not in (WAITS, NOT_AVAILABLE)
                and job.het is None  # backfill tells of these
                and not (self.tables.limits.enforced and is_limit(job.reason))
                and job.reason not in (NO_SPACE, STAGES_IN)
            ):
                self._explain(job, "Priority")
            return True
        if reservation is None:
            self._explain(job, WAITS)
            return True
        if reservation.name not in self._waiting.reservations:
            return False
        if job.spec.reservation:
            self._explain(job, "Priority")
        return True

    def _may_start(self, record: Record, now: float) -> bool:
        """Whether the job may start by what its partition and it itself say of that."""
        job, partition = record.job, record.partition
        if not partition.can_schedule:
            self._explain(job, CLOSED.get(partition.state, "PartitionDown"))
            return False
        if is_too_late(job, int(now)):
            self.planner.give_up(job, now)
            return False
        # it has a record for backfill, which may give it less time
        if job.spec.time_min_s and (reason := limit_broken(job, partition)):
            if len(job.partitions) == 1:
                self._explain(job, reason)
            return False
        # components start together, which backfill alone can see to: the others wait for that
        if job.het is not None:
            if self.tables.reservations.keeps_whole(job, now):
                self._explain(job, WAITS)
            else:
                self._waiting.for_nodes_of(partition)
            return False
        return True

    def _is_left_out(self, record: Record) -> bool:
        """Whether enough of its partition's jobs, or of its array's tasks, have been tried."""
        array, name = record.job.array, record.partition.name
        if self.partition_depth:
            tested_in = self._waiting.tested_in
            tested_in[name] = tested_in.get(name, 0) + 1
            if tested_in[name] > self.partition_depth:
                return True
        return array is not None and (array.is_full or (array.job_id, name) in self._waiting.arrays)

    def _try(self, record: Record, now: float) -> None:
        """Start the job, or have those behind it make way for it."""
        job, partition, waiting = record.job, record.partition, self._waiting
        table, own = self.tables.nodes, record.reservation
        if own is not None and own.flags & FLEX and own.nodes:
            # what its nodes could never hold, backfill alone gives others (seen of 22.05.8)
            ask = Ask(job, partition, own.nodes & partition.nodes)
            if not self.selector.could_ever_run(ask, self.tables):
                return
        usable = partition.nodes & table.up_nodes & ~table.completing_nodes & ~waiting.nodes
        blocked: Mapping[int, int] | None = None
        self._is_limited = self._stops = False
        if self.tables.reservations and self._are_enough_left(job, partition):
            allowed, blocked = self._allowed(record, now)
            if not allowed:
                if job.required_nodes.bit_count() >= job.min_nodes and record.reservation is None:
                    waiting.nodes |= job.required_nodes
                return
            usable &= allowed
        if self._start_all(record, record.ask(usable, blocked), now):
            if self._stops:
                waiting.for_nodes_of(partition)
        elif not record.prefers or self._could_run_as_it_prefers(job, partition):
            # nodes that it prefers are in use: backfill alone gives it others meanwhile
            self._make_wait(record, int(now))

    def _could_run_as_it_prefers(self, job: Job, partition: Partition) -> bool:
        """Whether enough of the nodes that it prefers are up."""
        up_nodes = partition.nodes & self.tables.nodes.up_nodes
        ask = Ask(job, partition, up_nodes, prefers=True)
        return self.selector.could_ever_run(ask, self.tables)

    def _remember_whole_nodes(self, ask: Ask) -> None:
        """As in the partition where it was looked for, the job asks from now on for whole nodes in
        the others, too; not where that one has no nodes of the size and features that it needs,
        whatever their devices (seen of 22.05.8).
        """
        job, partition = ask.job, ask.partition
        if not wants_whole_nodes(job, partition) or job.required_nodes & ~partition.nodes:
            return
        request = Request.of(ask, self.tables.nodes)
        if request is not None and _has_nodes_for(request, self.tables.nodes.kinds):
            self.planner.ask_for_whole_nodes(job)

    def _make_wait(self, record: Record, second: int) -> None:
        """The job has not started: what those behind it do not get for that."""
        job, partition, waiting = record.job, record.partition, self._waiting
        limits = self.tables.limits
        if record.reservation is not None:
            waiting.reservations.add(record.reservation.name)
            return
        if job.array is not None:
            waiting.arrays.add((job.array.job_id, partition.name))
        if not self._could_ever_run(job, partition):
            # who has come to ask for whole nodes may wait for what he never gets, as in 22.05.8
            came_to_be_whole = job.exclusive and not job.spec.exclusive
            if not came_to_be_whole and not any(
                self._could_ever_run(job, each) for each in self._partitions_of(job)
            ):
                self._explain(job, BAD_CONSTRAINTS)
        elif job.required_nodes and job.required_nodes.bit_count() >= job.min_nodes:
            waiting.nodes |= job.required_nodes
        elif self.reserves.holds_back(job, second) and not (
            limits.enforced and limits.keeps_no_nodes(job, partition)
        ):
            waiting.for_nodes_of(partition)

    def _partitions_of(self, job: Job) -> list[Partition]:
        return [
            partition
            for name in job.partitions
            if (partition := self.tables.partitions.get(name)) is not None
        ]

    def _could_ever_run(self, job: Job, partition: Partition) -> bool:
        return self.selector.could_ever_run(Ask(job, partition, partition.nodes), self.tables)

    def _start_all(self, record: Record, ask: Ask, now: float) -> bool:
        """Start the job; of an array one task after the other. Whether nothing of it that may run
        now waits for nodes.
        """
        job = record.job
        while not self._meets_limit(record, now) and self._start(record, ask, now):
            self.started += 1
            is_over = not job.is_pending or job.array is None or job.array.is_full
            if (
                is_over
                or (self.max_starts and self.started >= self.max_starts)
                or not self._has_licenses(record, now)
            ):
                return True
        return self._is_limited

    def _meets_limit(self, record: Record, now: float) -> bool:
        """Whether an association's or a QOS's limit keeps the job from starting; it waits alone."""
        limits = self.tables.limits
        if not limits.enforced:
            return False
        job, partition = record.job, record.partition
        reason = limits.before(job, partition, now) or limits.by_request(
            job, partition, now, whole=False
        )
        if reason:
            self._meet_limit(job, reason)
        return bool(reason)

    def _meet_limit(self, job: Job, reason: str) -> None:
        """A limit keeps the job from starting. If it is one of resources, then with
        assoc_limit_stop it is as if the job waited for nodes; limits of jobs and of time stop
        nobody, and backfill goes by neither (each kind was tried with 22.05.8).
        """
        self._is_limited = True
        self._stops = self.stops_at_limits and is_of_resources(reason)
        self._explain(job, reason)

    def _allowed(self, record: Record, now: float) -> tuple[int, Mapping[int, int]]:
        """(the nodes of the partition that reservations leave to the job, whether they are free or
        not, 0 if it may not start for them; cores there that it may not have).
        """
        job, partition, own = record.job, record.partition, record.reservation
        up_nodes = partition.nodes & self.tables.nodes.up_nodes
        leeway = self.tables.reservations.leeway(
            job, own, partition, up_nodes, now, int(now), run_length(job, partition)
        )
        reason = kept_back(self.selector, job, partition, leeway, self.tables)
        if not reason:
            return leeway.nodes, blocked_cores(leeway, own, self.tables.nodes)
        if own is None or job.spec.reservation:
            self._explain(job, WAITS, "" if reason == WAITS else reason)
        return 0, {}

    def _are_enough_left(self, job: Job, partition: Partition) -> bool:
        """Whether the partition still has as many nodes as the job needs that are up and for which
        no higher job waits.
        """
        return (
            partition.nodes & self.tables.nodes.up_nodes & ~self._waiting.nodes
        ).bit_count() >= job.min_nodes

    def _has_licenses(self, record: Record, now: float) -> bool:
        """Whether its licences are free; a job that waits for them waits alone."""
        job = record.job
        if not job.spec.licenses:
            return True
        reservations = self.tables.reservations
        held_back = None
        if reservations:
            held_back = reservations.licenses_held_back(
                record.reservation, now, run_length(job, record.partition)
            )
        if self.tables.licenses.are_free(job.spec.licenses, held_back):
            return True
        self._explain(job, LICENSES)
        return False

    def _has_buffer(self, record: Record, now: float) -> bool:
        """Whether the job's burst buffer is there, or it wants none. Whose turn it is gets one if
        there is space, however long it still waits for nodes, but for a limit; it waits alone.
        """
        job = record.job
        if job.burst_buffer is None:
            return True
        ready = self.tables.burst_buffers.readiness(job)
        if ready is Readiness.READY:
            return True
        if ready is Readiness.WAITING and self._meets_limit(record, now):
            return False
        self.lacks_buffers = True
        has_begun = ready is Readiness.STAGING or self.planner.stage_in(job, now)
        self._explain(job, STAGES_IN if has_begun else NO_SPACE)
        return False

    def _start(self, record: Record, ask: Ask, now: float) -> bool:
        job, usable = record.job, ask.usable
        if (
            usable & ~job.excluded_nodes
        ).bit_count() < job.min_nodes or job.required_nodes & ~usable & ~self.tables.nodes.up_nodes:
            self._explain_nodes(job, record.partition)
            return False
        if self.tables.nodes.tree is not None:
            most, due = switches(self.planner, job, int(now), self.longest_switch_wait_s)
            ask = ask._replace(switches=most)
            if due is not None and (self.switches_due is None or due < self.switches_due):
                self.switches_due = due
        allocation = self.selector.select(ask, self.tables)
        if allocation is None and len(job.partitions) > 1 and not job.exclusive:
            self._remember_whole_nodes(ask)
        limits = self.tables.limits
        if limits.enforced:
            partition = record.partition
            reason = (
                limits.by_request(job, partition, now)
                if allocation is None
                else limits.by_allocation(job, partition, allocation, now)
            )
            if reason:
                self._meet_limit(job, reason)
                return False
        self.planner.tried(job, "Main")
        if allocation is not None and self.planner.start(ask, allocation, now):
            return True
        if (
            allocation is None
            and self.tables.preemption is not None
            and self._takes_place(record, ask, now)
        ):
            return True
        if self._is_limited:
            return False
        if record.reservation is None or job.spec.reservation:
            self._explain(job, "Resources")
        return False

    def _explain_nodes(self, job: Job, partition: Partition) -> None:
        """Too few nodes are free: because others have them, or because they are out of service. Who
        chose among the nodes is told which are.
        """
        up = self.tables.nodes.up_nodes
        if (
            not self._are_enough_left(job, partition)
            and (partition.nodes & up).bit_count() >= job.min_nodes
        ):
            self._explain(job, "Resources", NODES_DOWN)
            return
        wanted = job.required_nodes or partition.nodes & ~job.excluded_nodes
        out = wanted & ~up
        if not (
            job.required_nodes & out
            or (partition.nodes & up & ~job.excluded_nodes).bit_count() < job.min_nodes
        ):
            self._explain(job, "Resources")
        elif out and (job.required_nodes or job.excluded_nodes):
            nodes = self.tables.nodes.nodes
            names = compress([nodes[index].name for index in nodeset.indices(out)])
            self._explain(job, NOT_AVAILABLE, f"{NOT_AVAILABLE}, UnavailableNodes:{names}")
        else:
            self._explain(job, "Resources", NODES_DOWN)

    def _takes_place(self, record: Record, ask: Ask, now: float) -> bool:
        """Whether the job has started in place of those whom it has preempted."""
        job, partition = record.job, record.partition
        ending = (
            partition.nodes
            & self.tables.nodes.up_nodes
            & self.tables.nodes.completing_nodes
            & ~self._waiting.nodes
        )
        if self.tables.reservations:
            ending &= self._allowed(record, now)[0]
        allocation, reason = take_place(self.tables, self.selector, self.planner, ask, ending, now)
        if reason:
            self._meet_limit(job, reason)
        return allocation is not None and self.planner.start(ask, allocation, now)

    def _explain(self, job: Job, reason: str, detail: str = "") -> None:
        if job.reason != reason or job.reason_detail != detail:
            self.planner.explain(job, reason, detail)


def _has_nodes_for(request: Request, kinds: Sequence[NodeKind]) -> bool:
    """Whether nodes with the job's features have its size, were they idle."""
    least = max(request.cpus_per_task * max(request.tasks_per_node, 1), request.min_cpus_per_node)
    large = [
        kind
        for kind in kinds
        if kind.cpus >= least
        and kind.memory_mb >= (request.memory_per_node_mb or 0)
        and kind.tmp_disk_mb >= request.tmp_disk_mb
        and kind.sockets >= request.min_sockets
        and kind.cores // kind.sockets >= request.min_cores_per_socket
    ]
    return any(
        sum((kind.nodes & nodes).bit_count() for kind in large) >= request.min_nodes
        and sum((kind.nodes & nodes).bit_count() * kind.cpus for kind in large) >= request.cpus
        for nodes in request.choices
    )
