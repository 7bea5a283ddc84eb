"""A job's record.

Place: tables, pure. Its state and flags are moved by `job_states.py` alone. Follows: squeue(1) on
states, `../docs/architecture.md` on a job's life.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.controller.tables.transitions import tell
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.chronicle import Chronicle
    from understudy.controller.tables.dependency import Dependency
    from understudy.controller.tables.step import Step
    from understudy.model.burst_buffers import Request
    from understudy.protocol.messages import Emulation, JobSpec

# at hand, as classes of enumerations are slow to ask
_PENDING: Final = JobState.PENDING
_COMPLETED: Final = JobState.COMPLETED
LAUNCH_FAILURE = "JobLaunchFailure"

NO_STEPS: Final[MappingProxyType[int, Any]] = MappingProxyType({})
NO_USAGE: Final[Mapping[str, int]] = MappingProxyType({})
NO_WAITS: Final[Mapping[str, float]] = MappingProxyType({})
HELD_BY_ADMIN: Final = "JobHeldAdmin"
HELD_BY_USER: Final = "JobHeldUser"
# no partition of its own could ever hold it; also who holds it then
BAD_CONSTRAINTS: Final = "BadConstraints"
NOT_AVAILABLE: Final = "ReqNodeNotAvail"


@dataclass(slots=True, eq=False)
class JobArray:
    """What the records of a job array share. `limit`: how many tasks may run at a time, 0 for any
    number; `count`, `first`, `last` and `step` tell of the tasks as submitted.
    """

    job_id: int
    limit: int
    count: int
    first: int
    last: int
    step: int
    records: dict[int, Job] = field(default_factory=dict)  # by job id
    running: int = 0  # tasks that run or are suspended
    # tasks were cancelled that had no records yet: for who depends on it, they have failed
    has_lost_tasks: bool = False

    @property
    def is_full(self) -> bool:
        """Whether as many tasks run as may."""
        return 0 < self.limit <= self.running


@dataclass(slots=True, eq=False)
class HetJob:
    """What the components of a heterogeneous job share."""

    job_id: int  # the leader's
    components: dict[int, Job] = field(default_factory=dict)  # by offset


class Job(msgspec.Struct, eq=False):
    """One job. Times are seconds of the cluster's clock since the epoch; None where it has not
    happened.
    """

    job_id: int
    spec: JobSpec
    user_id: int
    group_id: int
    submit_time: int
    partitions: tuple[str, ...]  # candidates in order; [0] is shown while pending
    priority: int = 1  # 0: held
    # where its partitions give it different ones
    partition_priorities: dict[str, int] | None = None
    # set by an administrator, and then not recalculated; textbook policies order by this one alone
    admin_priority: int | None = None
    state: JobState = JobState.PENDING  # moved by `job_states.py` alone, as its flags
    flags: JobFlag = JobFlag.NONE
    partition: str = ""  # where it runs, or partitions[0]
    reason: str = "None"
    reason_detail: str = ""
    # seconds by reason, up to its last change; replaced, not changed
    waits: Mapping[str, float] = NO_WAITS
    # since when it waits for its present reason; None: since it was submitted
    waits_since: float | None = None
    chronicle: Chronicle | None = None  # while somebody follows what becomes of jobs
    begin_time: int | None = None  # --begin
    # from when it may run; None: held without --begin, or its dependencies are not met
    eligible_time: int | None = None
    accrue_time: int | None = None  # from when its age counts for its priority
    accrues: bool = True  # False: as many jobs' age counts as may (MaxJobsAccrue and the like)
    start_time: int | None = None
    end_time: int | None = None  # real end; while running the expected one (start + limit)
    suspend_time: int | None = None
    pre_suspend_s: int = 0  # run time before its last suspension
    suspended_s: int = 0  # how long it has been suspended in all
    preempt_suspended: bool = False  # by a job that preempted it; it resumes when its CPUs are free
    resize_time: int | None = None  # when it gave back nodes
    preempt_time: int | None = None  # when it was chosen to make room for another
    preempting_since: int | None = None  # when it last had others make room for itself
    expected_start: int | None = None  # the scheduler's promise while pending
    expected_nodes: int = 0  # bitmap
    # the starts that it was promised since it was queued, the first and the last, and how often
    # that became another
    first_promise: int | None = None
    last_promise: int | None = None
    promise_moves: int = 0
    time_limit_s: int | None = None  # None: unlimited
    time_limit_is_set: bool = True  # False: the partition's applies
    min_nodes: int = 1
    max_nodes: int | None = None
    num_tasks: int = 1
    cpus_per_task: int = 1
    min_cpus: int = 1  # tasks * cpus per task
    memory_per_node_mb: int | None = None
    memory_per_cpu_mb: int | None = None
    exclusive: bool = False
    required_nodes: int = 0  # bitmap of --nodelist
    excluded_nodes: int = 0  # bitmap of --exclude
    nice: int = 0
    # within the limits of at least one of its partitions, which may start jobs
    fits_partition: bool = True
    dependency: Dependency | None = None  # what is left of it
    allocation: Allocation | None = None  # what it holds or held in its last run
    # what it holds in the node table, where that is not its allocation: once it has been suspended
    held: Allocation | None = None
    node_list: str = ""  # the allocation's nodes as a host list expression
    completing_nodes: int = 0  # bitmap of nodes whose epilog has not been reported
    # bitmap of nodes on which its prolog has yet to end before it may begin (PrologFlags=Alloc)
    prolog_nodes: int = 0
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
    # when it was first looked at with --switches: from then it waits for few leaf switches
    switches_since: int | None = None
    used_reservation: str = ""  # the one in which it runs
    as_preferred: bool = False  # its run has the features that it prefers (--prefer)
    last_tres: str = ""  # what it had, while it waits to run again after its end
    last_sched_eval: int | None = None
    last_scheduler: str = ""  # Main, Backfill, or Submit: started as it was submitted
    # "time", "qos" or resources that an administrator set: their limits of associations and QOS do
    # not count
    lifted: tuple[str, ...] = ()
    qos_flags: tuple[str, ...] = ()  # those of its QOS that let it pass limits of partitions
    admin_comment: str = ""
    killed_by: int | None = None  # the user who cancelled it
    emulation: Emulation | None = None
    burst_buffer: Request | None = None  # what it asks for; None where burst buffers are off, too
    array: JobArray | None = None
    # None outside arrays, and for an array's record that stands for several tasks
    array_task_id: int | None = None
    array_tasks: int = 0  # bitmap of the tasks for which an array's record stands
    # those of it that were cancelled while they waited, and are still on record in accounting
    withdrawn_tasks: int = 0
    het: HetJob | None = None
    het_offset: int = 0
    interactive: bool = False  # of srun or salloc: it has no script
    # by number; a dict from the first step on
    steps: Mapping[int, Step] = NO_STEPS
    next_step_id: int = 0
    # of its script, once that has ended
    batch_usage: Mapping[str, int] = NO_USAGE
    log: list[tuple[float, str]] = []  # the last few events, for `story`

    def note_wait(self, now: float) -> None:
        """The reason for which it waits is about to change: so long it has been."""
        if self.state is _PENDING:
            since = self.submit_time if self.waits_since is None else self.waits_since
            waited_s = now - since
            if waited_s > 0 and self.reason != "None":
                self.waits = {
                    **self.waits,
                    self.reason: self.waits.get(self.reason, 0.0) + waited_s,
                }
            if waited_s > 0 and self.chronicle is not None:
                self.chronicle.waits(since, self.reason, self.reason_detail)
            self.waits_since = now

    def note_promise(self, start: int, now: float) -> None:
        """It is promised a start that is not the one before."""
        if self.chronicle is not None:
            self.chronicle.promised(now, start)
        if self.first_promise is None:
            self.first_promise = start
        else:
            self.promise_moves += 1
        self.last_promise = start

    def forget_promises(self) -> None:
        """It is queued anew."""
        self.expected_start, self.expected_nodes = None, 0
        self.first_promise = self.last_promise = None
        self.promise_moves = 0

    def longest_wait(self, now: float) -> str:
        """The reason that it waited for longest, "" if it had to wait for none."""
        self.note_wait(now)
        return (
            max((waited_s, reason) for reason, waited_s in self.waits.items())[1]
            if self.waits
            else ""
        )

    @property
    def told_as(self) -> str:
        """What a replay calls it: `job` or `job_7`, `job+1`; "" outside replays."""
        if self.emulation is None or not self.emulation.tag:
            return ""
        task = "" if self.array_task_id is None else f"_{self.array_task_id}"
        component = f"+{self.het_offset}" if self.het_offset else ""
        return f"{self.emulation.tag}{task}{component}"

    @property
    def features(self) -> str:
        """What was asked of its nodes: those that it prefers, once it has started on them."""
        return self.spec.prefer if self.as_preferred else self.spec.features

    @property
    def is_pending(self) -> bool:
        return self.state is _PENDING

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
        return self.state >= _COMPLETED

    @property
    def is_wanted_again(self) -> bool:
        """Whether its run was over, steps and all, before somebody requeued it."""
        return bool(self.flags & JobFlag.REQUEUE) and self.is_finished and not self.is_completing

    @property
    def is_completing(self) -> bool:
        return self.completing_nodes != 0

    def is_eligible(self, now: float) -> bool:
        """Whether a scheduler may start it: pending, not held, begin time reached, dependencies
        met, within a partition's and its array's limits.
        """
        eligible = self.eligible_time
        if self.array is not None and self.array.is_full:
            return False
        return (
            self.priority > 0
            and eligible is not None
            and eligible <= now
            and self.fits_partition
            and self.state is _PENDING
        )

    def forget_eligible_time(self, now: float) -> None:
        """It is held or released: since when it has been eligible is no longer told, unless it has
        become so this very second. Its age counts on.
        """
        if self.eligible_time is None or self.eligible_time >= int(now):
            return
        if self.accrues and self.accrue_time is None:
            self.accrue_time = self.eligible_time
        self.eligible_time = None

    @property
    def shown_eligible_time(self) -> int | None:
        """As it is told: of a task that waits for others of its array it is not known."""
        is_behind = self.array is not None and self.array.is_full and self.is_pending
        return None if is_behind else self.eligible_time

    @property
    def asked_nodes(self) -> int:
        """The least number of nodes that was asked for, as limits look at it: what follows from
        --ntasks-per-node alone does not count.
        """
        if self.spec.ntasks_per_node and self.spec.num_tasks is not None:
            return min(
                self.min_nodes, max(self.spec.min_nodes or 1, self.required_nodes.bit_count())
            )
        return self.min_nodes

    @property
    def is_held(self) -> bool:
        return self.priority == 0

    @property
    def story(self) -> str:
        """The job's last events, for error messages."""
        return tell("job", self.job_id, self.state, self.flags, self.log)


def count_suspension(job: Job, now: float) -> None:
    """The suspension is over, or the job is."""
    assert job.suspend_time is not None
    job.suspended_s += int(now) - job.suspend_time
