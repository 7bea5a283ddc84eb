"""A job's record and its state machine: one table of transitions, one function that moves a job, nothing else assigns the state.

Place: the controller's core, no I/O. Follows: squeue(1) on states, `../docs/architecture.md` on a job's life.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.controller.gres import Held
from understudy.model import nodeset as bits
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from understudy.controller.dependency import Dependency
    from understudy.controller.step import Step
    from understudy.protocol.messages import Emulation, JobSpec

NO_STEPS: Final[MappingProxyType[int, Any]] = MappingProxyType({})
NO_USAGE: Final[Mapping[str, int]] = MappingProxyType({})
NO_WAITS: Final[Mapping[str, float]] = MappingProxyType({})
HELD_BY_ADMIN: Final = "JobHeldAdmin"
HELD_BY_USER: Final = "JobHeldUser"
BAD_CONSTRAINTS: Final = "BadConstraints"  # no partition of its own could ever hold it; also who holds it then


class NodeShare(NamedTuple):
    """What a job holds on one node. `cores` is a bit mask of core numbers (socket by socket)."""

    node: int  # index in the node table
    cpus: int
    cores: int
    memory_mb: int
    tasks: int = 1
    gres: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """Nodes on which a job holds the same: `nodes` is a bitmap, the rest is meant for each node as in `NodeShare`."""

    nodes: int
    cpus: int
    cores: int
    memory_mb: int
    tasks: int = 1
    gres: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job holds: `nodes` as a bitmap of node indices, `cpus` in all, and the shares, nodes with equal shares as one group.

    Most jobs hold the same on all their nodes, and a job may hold 16,384 of them: groups keep that one entry instead of 16,384.
    `whole`: nobody else may use the nodes meanwhile.
    """

    nodes: int
    cpus: int
    groups: tuple[ShareGroup, ...]
    whole: bool = False
    shared_in: str = ""  # the partition whose other jobs may have the same cores
    owned: bool = False  # only jobs of the same user may use the nodes meanwhile
    overlaid: bool = False  # jobs of higher partitions may get the same cores, and it stands still or goes meanwhile

    @classmethod
    def of_shares(cls, shares: Iterable[NodeShare], *, whole: bool = False) -> Allocation:
        """An allocation from one share a node, in any order."""
        alike: dict[tuple[int, int, int, int, tuple[Held, ...]], int] = {}
        for share in shares:
            key = share[1:]
            alike[key] = alike.get(key, 0) | 1 << share.node
        groups = tuple(ShareGroup(nodes, *key) for key, nodes in alike.items())
        return cls.of_groups(groups, whole=whole)

    @classmethod
    def of_groups(cls, groups: tuple[ShareGroup, ...], *, whole: bool = False, cpus: int | None = None) -> Allocation:
        """An allocation from groups of disjoint nodes. `cpus`: those that count as the job's, where that is not all of its cores (CR_CPU)."""
        nodes = held = 0
        for group in groups:
            nodes |= group.nodes
            held += group.cpus * group.nodes.bit_count()
        return cls(nodes, held if cpus is None else cpus, groups, whole)

    @property
    def node_count(self) -> int:
        return self.nodes.bit_count()

    @property
    def is_shared(self) -> bool:
        """Whether other jobs may have the same cores."""
        return self.overlaid or self.shared_in != ""

    @property
    def tasks(self) -> int:
        return sum(group.tasks * group.nodes.bit_count() for group in self.groups)

    def without(self, nodes: int) -> Allocation:
        """What is left of it when those of its nodes that are in the bitmap are gone."""
        groups = tuple(replace(group, nodes=left) for group in self.groups if (left := group.nodes & ~nodes))
        return replace(self, nodes=self.nodes & ~nodes, cpus=self.cpus - self.cpus_on(nodes), groups=groups)

    @property
    def shares(self) -> list[NodeShare]:
        """One share a node, in index order. Made anew each time: 16,384 of them take some 10 ms."""
        found = [NodeShare(i, g.cpus, g.cores, g.memory_mb, g.tasks, g.gres) for g in self.groups for i in bits.indices(g.nodes)]
        if len(self.groups) > 1:
            found.sort()
        return found

    @property
    def first_node(self) -> int:
        """The index of the node that runs the batch script."""
        return bits.first(self.nodes)

    def share_on(self, node: int) -> NodeShare | None:
        """The share on the node with this index."""
        for g in self.groups:
            if g.nodes >> node & 1:
                return NodeShare(node, g.cpus, g.cores, g.memory_mb, g.tasks, g.gres)
        return None

    def cpus_on(self, nodes: int) -> int:
        """The CPUs held on those nodes of the allocation that are in the bitmap."""
        if not self.nodes & ~nodes:
            return self.cpus
        return sum(group.cpus * (group.nodes & nodes).bit_count() for group in self.groups)

    def per_node(self, what: str = "cpus") -> list[tuple[int, int]]:
        """CPUs (or "tasks", "memory_mb") of the nodes in index order, as (value, how many nodes in a row)."""
        pieces = sorted((start, length, getattr(group, what)) for group in self.groups for start, length in bits.runs(group.nodes))
        return [(value, sum(length for _, length, _ in row)) for value, row in groupby(pieces, itemgetter(2))]

    def per_node_text(self, what: str = "cpus") -> str:
        """`8(x2),4`: the form of SLURM_JOB_CPUS_PER_NODE and SLURM_TASKS_PER_NODE."""
        return ",".join(f"{value}(x{count})" if count > 1 else str(value) for value, count in self.per_node(what))

    def pack(self) -> list[Any]:
        """A form of lists, ints and bytes, for the saved state."""
        packed: list[Any] = [self.whole, self.cpus, [_pack(g) for g in self.groups], self.shared_in, self.owned]
        return [*packed, True] if self.overlaid else packed

    @classmethod
    def unpack(cls, packed: list[Any]) -> Allocation:
        """The reverse of `pack`."""
        whole, cpus, groups, shared_in, owned, *overlaid = packed
        made = cls.of_groups(tuple(_unpack(*group) for group in groups), whole=whole, cpus=cpus)
        return replace(made, shared_in=shared_in, owned=owned, overlaid=bool(overlaid)) if shared_in or owned or overlaid else made


def _pack(group: ShareGroup) -> list[Any]:
    packed: list[Any] = [_bytes(group.nodes), group.cpus, _bytes(group.cores), group.memory_mb, group.tasks]
    if group.gres:
        packed.append([[held.name, held.type, held.amount, _bytes(held.devices)] for held in group.gres])
    return packed


def _unpack(nodes: bytes, cpus: int, cores: bytes, memory_mb: int, tasks: int, gres: Iterable[list[Any]] = ()) -> ShareGroup:
    held = tuple(Held(name, kind, count, int.from_bytes(devices, "little")) for name, kind, count, devices in gres)
    return ShareGroup(int.from_bytes(nodes, "little"), cpus, int.from_bytes(cores, "little"), memory_mb, tasks, held)


def _bytes(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) >> 3, "little")


@dataclass(slots=True, eq=False)
class JobArray:
    """What the records of a job array share. `limit`: how many tasks may run at a time, 0 for any number; `count`, `first`, `last` and `step` tell of
    the tasks as submitted.
    """

    job_id: int
    limit: int
    count: int
    first: int
    last: int
    step: int
    records: dict[int, Job] = field(default_factory=dict)  # by job id
    running: int = 0  # tasks that run or are suspended

    @property
    def is_full(self) -> bool:
        """Whether as many tasks run as may."""
        return 0 < self.limit <= self.running


@dataclass(slots=True, eq=False)
class HetJob:
    """What the components of a heterogeneous job share."""

    job_id: int  # the leader's
    components: dict[int, Job] = field(default_factory=dict)  # by offset


class JobEvent(StrEnum):
    """What can happen to a job."""

    ALLOCATED = "allocated"
    EXITED_WELL = "exited well"
    EXITED_BADLY = "exited badly"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    NODE_FAILED = "node failed"
    LAUNCH_FAILED = "launch failed"
    DEADLINE_PASSED = "deadline passed"
    RAN_OUT_OF_MEMORY = "ran out of memory"
    PREEMPTED = "preempted"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    REQUEUED = "requeued"
    CANNOT_RUN = "cannot run"


_RUNNING_ENDS: Final = {
    JobEvent.EXITED_WELL: JobState.COMPLETED,
    JobEvent.EXITED_BADLY: JobState.FAILED,
    JobEvent.TIMED_OUT: JobState.TIMEOUT,
    JobEvent.CANCELLED: JobState.CANCELLED,
    JobEvent.NODE_FAILED: JobState.NODE_FAIL,
    JobEvent.LAUNCH_FAILED: JobState.FAILED,
    JobEvent.DEADLINE_PASSED: JobState.DEADLINE,
    JobEvent.RAN_OUT_OF_MEMORY: JobState.OUT_OF_MEMORY,
    JobEvent.PREEMPTED: JobState.PREEMPTED,
}

TRANSITIONS: Final[Mapping[tuple[JobState, JobEvent], JobState]] = {
    (JobState.PENDING, JobEvent.ALLOCATED): JobState.RUNNING,
    (JobState.PENDING, JobEvent.CANCELLED): JobState.CANCELLED,
    (JobState.PENDING, JobEvent.DEADLINE_PASSED): JobState.DEADLINE,
    (JobState.PENDING, JobEvent.CANNOT_RUN): JobState.FAILED,
    **{(JobState.RUNNING, event): state for event, state in _RUNNING_ENDS.items()},
    **{(JobState.SUSPENDED, event): state for event, state in _RUNNING_ENDS.items()},
    (JobState.RUNNING, JobEvent.SUSPENDED): JobState.SUSPENDED,
    (JobState.SUSPENDED, JobEvent.RESUMED): JobState.RUNNING,
    **{(state, JobEvent.REQUEUED): JobState.PENDING for state in JobState},
}


class InvalidTransition(AssertionError):  # noqa: N818 - a bug, not an error that somebody handles
    """An event that cannot happen in the job's state: a bug. Carries the job's story."""


@dataclass(slots=True, eq=False)
class Job:
    """One job. Times are seconds of the cluster's clock since the epoch; None where it has not happened."""

    job_id: int
    spec: JobSpec
    user_id: int
    group_id: int
    submit_time: int
    partitions: tuple[str, ...]  # candidates in order; [0] is shown while pending
    priority: int = 1  # 0: held
    partition_priorities: dict[str, int] | None = None  # where its partitions give it different ones
    admin_priority: int | None = None  # set by an administrator, and then not recalculated; textbook policies order by this one alone
    state: JobState = JobState.PENDING
    flags: JobFlag = JobFlag.NONE
    partition: str = ""  # where it runs, or partitions[0]
    reason: str = "None"
    reason_detail: str = ""
    waits: Mapping[str, float] = field(default_factory=lambda: NO_WAITS)  # seconds by reason, up to its last change; replaced, not changed
    waits_since: float | None = None  # since when it waits for its present reason; None: since it was submitted
    reason_is_fixed: bool = False  # the reason says why it ended; nothing overwrites it
    begin_time: int | None = None  # --begin
    eligible_time: int | None = None  # from when it may run; None: held without --begin, or its dependencies are not met
    accrue_time: int | None = None  # from when its age counts for its priority
    accrues: bool = True  # False: as many jobs' age counts as may (MaxJobsAccrue and the like)
    start_time: int | None = None
    end_time: int | None = None  # real end; while running the expected one (start + limit)
    suspend_time: int | None = None
    pre_suspend_s: int = 0  # run time before its last suspension
    suspended_s: int = 0  # how long it has been suspended in all
    pushed_aside: bool = False  # suspended by a job that preempted it
    resize_time: int | None = None  # when it gave back nodes
    preempt_time: int | None = None  # when it was chosen to make room for another
    preempting_since: int | None = None  # when it last had others make room for itself
    expected_start: int | None = None  # the scheduler's promise while pending
    expected_nodes: int = 0  # bitmap
    time_limit_s: int | None = None  # None: unlimited
    time_limit_is_set: bool = True  # False: the partition's applies
    min_nodes: int = 1
    max_nodes: int | None = None
    num_tasks: int = 1
    cpus_per_task: int = 1
    min_cpus: int = 1  # tasks * cpus per task
    memory_per_node_mb: int | None = None
    memory_per_cpu_mb: int | None = None
    memory_cap_mb: int | None = None  # MaxMemPerCPU where it was submitted: whoever needs more memory on a node gets more CPUs there
    exclusive: bool = False
    required_nodes: int = 0  # bitmap of --nodelist
    excluded_nodes: int = 0  # bitmap of --exclude
    nice: int = 0
    fits_partition: bool = True  # within the limits of at least one of its partitions, which may start jobs
    dependency: Dependency | None = None  # what is left of it
    allocation: Allocation | None = None  # what it holds or held in its last run
    held: Allocation | None = None  # what it holds in the node table, where that is not its allocation: once it has been suspended
    node_list: str = ""  # the allocation's nodes as a host list expression
    completing_nodes: int = 0  # bitmap of nodes whose epilog has not been reported
    prolog_nodes: int = 0  # bitmap of nodes on which its prolog has yet to end before it may begin (PrologFlags=Alloc)
    notice: str = ""  # what srun or salloc are told of its end
    launch_acknowledged: bool = False  # the node daemon has it
    script_ended: bool = False  # by itself: nobody had to tell its node
    kill_sent: bool = False  # warned by --signal before its limit
    exit_code: int = 0
    exit_signal: int = 0
    derived_exit_code: int = 0
    restarts: int = 0
    preemptions: int = 0  # how often it made room for others
    requeue: bool = True
    held_by: str = ""  # HELD_BY_ADMIN, HELD_BY_USER, BAD_CONSTRAINTS or ""
    switches_since: int | None = None  # when it was first looked at with --switches: from then it waits for few leaf switches
    most_switches: int = 0  # leaf switches that its nodes may be on, as long as it waits for that
    prefers: bool = False  # asked for with its preferred features in place of the required ones
    used_reservation: str = ""  # the one in which it runs, or is asked for
    blocked_cores: dict[int, int] | None = None  # asked for without these (masks by node), which are reserved
    last_sched_eval: int | None = None
    last_scheduler: str = ""  # Main, Backfill, or Submit: started as it was submitted
    lifted: tuple[str, ...] = ()  # "time", "qos" or resources that an administrator set: their limits of associations and QOS do not count
    qos_flags: tuple[str, ...] = ()  # those of its QOS that let it pass limits of partitions
    admin_comment: str = ""
    killed_by: int | None = None  # the user who cancelled it
    emulation: Emulation | None = None
    array: JobArray | None = None
    array_task_id: int | None = None  # None outside arrays, and for an array's record that stands for several tasks
    array_tasks: int = 0  # bitmap of the tasks for which an array's record stands
    withdrawn_tasks: int = 0  # those of it that were cancelled while they waited, and are still on record in accounting
    het: HetJob | None = None
    het_offset: int = 0
    interactive: bool = False  # of srun or salloc: it has no script
    steps: Mapping[int, Step] = field(default_factory=lambda: NO_STEPS)  # by number; a dict from the first step on
    next_step_id: int = 0
    batch_usage: Mapping[str, int] = field(default_factory=lambda: NO_USAGE)  # of its script, once that has ended
    log: list[tuple[float, str]] = field(default_factory=list)  # the last few events, for `story`

    def note_wait(self, now: float) -> None:
        """The reason for which it waits is about to change: so long it has been."""
        if self.state is JobState.PENDING:
            waited_s = now - (self.submit_time if self.waits_since is None else self.waits_since)
            if waited_s > 0 and self.reason != "None":
                self.waits = {**self.waits, self.reason: self.waits.get(self.reason, 0.0) + waited_s}
            self.waits_since = now

    def longest_wait(self, now: float) -> str:
        """The reason that it waited for longest, "" if it had to wait for none."""
        self.note_wait(now)
        return max((waited_s, reason) for reason, waited_s in self.waits.items())[1] if self.waits else ""

    @property
    def is_pending(self) -> bool:
        return self.state is JobState.PENDING

    @property
    def is_running(self) -> bool:
        return self.state is JobState.RUNNING

    @property
    def is_active(self) -> bool:
        """Running or suspended."""
        return self.state in (JobState.RUNNING, JobState.SUSPENDED)

    @property
    def holding(self) -> Allocation | None:
        """What it holds in the node table."""
        return self.allocation if self.held is None else self.held

    @property
    def is_finished(self) -> bool:
        return self.state >= JobState.COMPLETED

    @property
    def is_completing(self) -> bool:
        return self.completing_nodes != 0

    def is_eligible(self, now: float) -> bool:
        """Whether a scheduler may start it: pending, not held, begin time reached, dependencies met, within a partition's and its array's limits."""
        eligible = self.eligible_time
        if self.array is not None and self.array.is_full:
            return False
        return self.priority > 0 and eligible is not None and eligible <= now and self.fits_partition and self.state is JobState.PENDING

    @property
    def asked_nodes(self) -> int:
        """The least number of nodes that was asked for, as limits look at it: what follows from --ntasks-per-node alone does not count."""
        if self.spec.ntasks_per_node and self.spec.num_tasks is not None:
            return min(self.min_nodes, max(self.spec.min_nodes or 1, self.required_nodes.bit_count()))
        return self.min_nodes

    @property
    def is_held(self) -> bool:
        return self.priority == 0

    @property
    def story(self) -> str:
        """The job's last events, for error messages."""
        return f"job {self.job_id} {self.state.name}: " + "; ".join(f"{t:.3f} {what}" for t, what in self.log)


def advance(job: Job, event: JobEvent, now: float) -> None:
    """Move the job's base state.

    Raises:
        InvalidTransition: with the job's story; the job is unchanged.
    """
    after = TRANSITIONS.get((job.state, event))
    if after is None:
        raise InvalidTransition(f"{event} while {job.state.name}: {job.story}")
    job.log.append((now, event))
    del job.log[:-8]
    if job.state is JobState.PENDING:
        job.note_wait(now)
    job.state = after
