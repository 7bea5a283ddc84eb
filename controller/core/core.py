"""The controller's core: what all request handlers work on.

Place: the controller's core, no I/O: it gets the time, the wire, the store and users' names through
understudy.controller.ports. The handlers are functions in modules by concern (submit, start,
complete, cancel, hold, requeue ...), named in understudy.controller.edge.rpc.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.core.reactions import Reactions
from understudy.controller.core.rights import Right, right_of
from understudy.controller.priority.basic import BasicPriority
from understudy.controller.rhythm import Rhythm
from understudy.controller.scheduling.api import OF_WAITING
from understudy.controller.tables.alarms import Alarms
from understudy.controller.tables.counters import Counters
from understudy.controller.tables.crontabs import Crontabs
from understudy.controller.tables.submissions import Submissions
from understudy.controller.tables.triggers import Triggers
from understudy.model import nodeset
from understudy.model.associations import AssociationState
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import Ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.clock.pauses import Pauses
    from understudy.controller.core.agents import Agents
    from understudy.controller.core.parts import Following, Gang, Mailer, Power
    from understudy.controller.enforcement.limits import JobLimits
    from understudy.controller.later import Later
    from understudy.controller.ports import (
        Clock,
        Journal,
        Sender,
        Signer,
        StepSigner,
        TimerHandle,
        Users,
    )
    from understudy.controller.priority.api import PriorityPlugin
    from understudy.controller.scheduling.api import Note, SchedulingPolicy, Selector
    from understudy.controller.tables.burst_buffers import BufferScript
    from understudy.controller.tables.job import Job, JobArray
    from understudy.controller.tables.settings import Settings
    from understudy.controller.tables.tables import Tables
    from understudy.model.hostlist import NodeNames
    from understudy.protocol.messages import AssociationsChanged, AwaitJob, FederationPlace, Message

LOCAL_ID_BITS: Final = 26  # of a job's number; above them is that of the cluster in its federation
LOCAL_IDS: Final = (1 << LOCAL_ID_BITS) - 1
log = logging.getLogger("understudy.controller")


@dataclass(slots=True, eq=False)
class DaemonRecord:
    """A node daemon: where it listens and for which nodes (a bitmap) it stands."""

    name: str
    address: str
    nodes: int
    is_registered: bool = False
    is_responding: bool = True
    start_time: float = 0.0
    last_response: float = 0.0
    is_pinged: bool = False  # and has not answered, nor failed to


@dataclass(slots=True, eq=False)
class Pattern:
    """A job as it was submitted, for others that ask for the same."""

    job: Job
    is_as_asked: bool  # nothing was filled in in its specification
    may_wait: bool | None = None  # whether it could ever run; None: nobody has asked


def _raise(error: Exception) -> None:
    raise error


@dataclass(slots=True, eq=False)
class Core:
    """Tables, and what belongs to them beside."""

    tables: Tables
    names: NodeNames
    settings: Settings
    time: Clock
    agents: Agents
    journal: Journal
    users: Users
    signer: Signer | None
    selector: Selector
    policy: SchedulingPolicy = field(init=False)
    # jobs whose resources are not all given back
    completing: dict[int, Job] = field(default_factory=dict)
    scripts: dict[int, str] = field(default_factory=dict)
    # jobs that are suspended until those are over which preempted them
    preempt_suspended: dict[int, Job] = field(default_factory=dict)
    # resumed jobs that share CPUs with others
    crowded: dict[int, Job] = field(default_factory=dict)
    daemons: dict[str, DaemonRecord] = field(default_factory=dict)
    # the nodes (a bitmap) that a daemon may register, unless any may join the cluster
    stands_for: dict[str, int] = field(default_factory=dict)
    daemon_of_node: list[DaemonRecord | None] = field(init=False)
    next_job_id: int = 1
    arrays: dict[int, JobArray] = field(default_factory=dict)  # by the array's job id
    # arrays that wait task by task, until a pass first looks at them
    unsplit: dict[int, None] = field(default_factory=dict)
    priorities: PriorityPlugin = field(default_factory=BasicPriority)
    # for the end of the period in which priorities are calculated again
    priority_timer: tuple[float, TimerHandle] | None = None
    # since when nothing but priorities has changed; and what would tell that something has
    order_stamp: tuple[float, object] | None = None
    job_limits: JobLimits | None = None  # limits of associations and QOS, where accounting is kept
    # the controller's copy of accounting; empty without
    associations: AssociationState = field(default_factory=AssociationState)
    submissions: Submissions = field(default_factory=Submissions)
    # job id -> ids of jobs that depend on it
    dependents: dict[int, dict[int, None]] = field(default_factory=dict)
    # (user, name) -> ids of jobs that wait for their turn
    singletons: dict[tuple[int, str], dict[int, None]] = field(default_factory=dict)
    # answers of feasibility.nodes_if_empty
    feasible: dict[tuple[object, ...], int] = field(default_factory=dict)
    # jobs that were submitted, by who may submit them and their specification without the name
    patterns: dict[tuple[int, int, bool, bytes], Pattern] = field(default_factory=dict)
    # of pending jobs: (was it held, nodes that it would get)
    node_estimates: dict[int, tuple[bool, int]] = field(default_factory=dict)
    alarms: Alarms = field(default_factory=Alarms)
    reactions: Reactions = field(default_factory=Reactions)
    # (when to forget it, job id) of finished jobs, oldest first
    purge_queue: deque[tuple[float, int]] = field(default_factory=deque)
    purge_timer: TimerHandle | None = None
    gang: Gang | None = None  # None: jobs that share cores run side by side
    power: Power | None = None  # None: nodes are never switched off
    reboots: int = 0  # nodes (a bitmap) that are to boot when they are idle
    launch_s: float = 0.0  # work of the emulated machine for each job that it launches
    # emulated jobs of this moment that are to be launched: (job, its run, where)
    launching: list[tuple[Job, int, DaemonRecord]] = field(default_factory=list)
    launches_until: float = 0.0  # when all are launched that have been sent
    step_signer: StepSigner | None = None
    # by job id: who waits for what of it
    awaited: dict[int, list[tuple[AwaitJob, Later]]] = field(default_factory=dict)
    # by job id: since when nobody has been there for it, None: somebody is
    silent: dict[int, float | None] = field(default_factory=dict)
    awaiting_empty: list[Later] = field(default_factory=list)
    following: Following | None = None  # who is told of each job that ends
    # ids of jobs at whose start virtual time stops
    breakpoints: set[int] = field(default_factory=set)
    start_time: float = 0.0  # when the controller started
    last_job_update: float = 0.0
    last_node_update: float = 0.0
    last_partition_update: float = 0.0
    last_reservation_update: float = 0.0
    # for the next begin or end of a reservation
    reservation_timer: tuple[float, TimerHandle] | None = None
    reservation_stamp: object = None  # what reservations that repeat could matter to, as last seen
    # the edge's: something has been handled
    after_event: Callable[[], None] = field(default=lambda: None)
    # the edge's: the same in the midst of something, of which listings may tell already
    shown_anew: Callable[[], None] = field(default=lambda: None)
    counters: Counters = field(default_factory=Counters)  # for sdiag
    pauses: Pauses | None = None  # of the event loop, for sdiag; None: nobody looks
    shut_down: Callable[[], None] = field(default=lambda: None)  # the edge's: end the daemon
    # the edge's: go on all the same, or end the run
    failed: Callable[[Exception], None] = field(default=_raise)
    # the edge's: what is measured of the daemon itself, for `GetStatistics`
    measure_daemon: Callable[[], dict[str, int]] = field(default=dict)
    # for `scontrol show config`
    show_configuration: Callable[[], list[tuple[str, str]]] = field(default=list)
    triggers: Triggers = field(default_factory=Triggers)  # of strigger
    crontabs: Crontabs = field(default_factory=Crontabs)  # of scrontab
    # the edge's: whether a trigger's program can be run
    is_executable: Callable[[str], bool] = field(default=lambda _program: True)
    # the edge's, for triggers
    run_program: Callable[[int, int, str, str], None] = field(
        default=lambda _user, _group, _program, _argument: None
    )
    run_script: Callable[[list[str], dict[str, str], Callable[[int], None]], None] = field(
        default=lambda _words, _environment, _done: None
    )  # the edge's
    # the edge's: a stage of a burst buffer runs (`jobs/buffers.py`), and ends with a message, ""
    # if all is well, and what it tells
    run_stage: Callable[[Any, Callable[[str, str], None]], None] = field(
        default=lambda _stage, _done: None
    )
    buffer_script: BufferScript | None = None  # the edge's, where a site's burst_buffer.lua runs
    # the edge's: what the site's program says of the burst buffers, asked with these words
    ask_buffers: Callable[[list[str], Callable[[str], None]], None] = field(
        default=lambda _words, done: done("")
    )
    # plug-ins that are asked about new jobs and changes: see job_submit.py
    job_submit: list[Any] = field(default_factory=list)
    in_prolog: set[int] = field(default_factory=set)  # jobs whose PrologSlurmctld runs
    in_pre_run: set[int] = field(default_factory=set)  # whose burst buffers are made ready
    mailer: Mailer | None = None
    # the edge's: for Reconfigure
    read_configuration: Callable[[], None] = field(default=lambda: None)
    # the edge's: keys with other values for now
    change_configuration: Callable[[dict[str, str]], None] = field(default=lambda _changes: None)
    # the edge's: act when accounting knows all
    when_recorded: Callable[[Callable[[], None]], None] = field(default=lambda action: action())
    # the edge's: a running job is about to give back nodes
    when_resized: Callable[[Job], None] = field(default=lambda _job: None)
    federation: FederationPlace | None = None  # the cluster's, as accounting tells of it
    # by `name@server`, as accounting tells of them
    remote_licenses: dict[str, int] = field(default_factory=dict)
    # the edge's: accounting has changed
    take_associations: Callable[[AssociationsChanged], Message | Later] = field(
        default=lambda _message: Ok()
    )

    def __post_init__(self) -> None:
        self.daemon_of_node = [None] * len(self.tables.nodes.nodes)
        self.next_job_id = self.settings.first_job_id
        self.start_time = self.counters.since = self.time.now()
        self.tables.rhythm = Rhythm(self.start_time, self.settings.cadence)
        self.count_licenses()
        self.tables.reservations.groups_of = self.users.groups_of
        self.tables.completing, self.tables.complete_wait_s = (
            self.completing,
            self.settings.complete_wait_s,
        )

    def at(self, when: float, action: Callable[..., None], *args: Any) -> TimerHandle:
        """Call `action` at a time of the cluster's clock, then let the edge settle."""
        return self.time.call_at(when, self._run_timer, action, args)

    def periodically(
        self, when: float, matters: Callable[[], bool], action: Callable[..., None], *args: Any
    ) -> TimerHandle:
        """The same for what comes again and again: virtual time does not go on for its sake, unless
        `matters` says that it must.
        """
        return self.time.call_periodically(when, matters, self._run_timer, action, args)

    def after_wait(self, delay_s: float, action: Callable[..., None], *args: Any) -> TimerHandle:
        """The same after having waited so long for another daemon."""
        return self.time.call_after_wait(delay_s, self._run_timer, action, args)

    def _run_timer(self, action: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            action(*args)
        except Exception as error:  # noqa: BLE001 - one failure must not end the controller
            self.fail(f"{action.__module__}.{action.__qualname__}", error)
        self.after_event()

    def fail(self, what: str, error: Exception) -> None:
        """Something has failed that never should: a plug-in, or this program. It is logged and
        counted, and the edge is told.
        """
        log.error("%s failed", what, exc_info=error)
        self.counters.failures += 1
        self.failed(error)

    def is_slurm_user(self, user_id: int) -> bool:
        """Root, SlurmUser, or who started the cluster."""
        return user_id == 0 or user_id in self.settings.admin_ids

    def forget_feasibility(self) -> None:
        """Nodes or partitions have changed: what could ever run may be another."""
        self.feasible.clear()
        self.patterns.clear()
        self.node_estimates.clear()

    def right_of(self, user_id: int) -> Right:
        """What the user may do."""
        return right_of(self.associations, self.settings, self.users, user_id)

    def is_admin(self, user_id: int) -> bool:
        """The same, and accounting's administrators."""
        return self.right_of(user_id) >= Right.ADMINISTRATOR

    def is_operator(self, user_id: int) -> bool:
        """The same, and accounting's operators."""
        return self.right_of(user_id) >= Right.OPERATOR

    def require_admin(self, sender: Sender, code: int = ErrorCode.INVALID_USER) -> None:
        """Refuse the request unless an administrator sent it."""
        if not self.is_admin(sender.user_id):
            raise SlurmError(code)

    def job(self, text: str) -> Job:
        """The job that a user names: by its id, or as a task of an array (`17_3`), which may have
        no record of its own yet.

        Raises:
            SlurmError: there is no such job.
        """
        number, _, task = text.partition("_")
        job = self.tables.jobs.get(int(text)) if text.isdecimal() else None
        if (
            task.isdecimal()
            and number.isdecimal()
            and (array := self.arrays.get(int(number))) is not None
        ):
            job = next(
                (
                    each
                    for each in array.records.values()
                    if each.array_task_id == int(task) or each.array_tasks >> int(task) & 1
                ),
                None,
            )
        if job is None:
            raise SlurmError(ErrorCode.INVALID_JOB)
        return job

    def count_licenses(self) -> None:
        """What slurm.conf has of licences, and accounting for this cluster, has changed."""
        self.tables.licenses.totals = {**self.settings.licenses, **self.remote_licenses}

    def take_job_id(self) -> int:
        """The next free job id; after MaxJobId it goes on from FirstJobId. In a federation the
        cluster's number is above it.
        """
        above = 0 if self.federation is None else self.federation.number << LOCAL_ID_BITS
        job_id = self.next_job_id
        if len(self.tables.jobs) > self.settings.max_job_id - self.settings.first_job_id:
            raise SlurmError(ErrorCode.TRY_AGAIN)
        while job_id | above in self.tables.jobs or job_id > self.settings.max_job_id:
            job_id = job_id + 1 if job_id < self.settings.max_job_id else self.settings.first_job_id
        self.next_job_id = job_id + 1
        return job_id | above

    def changed(self, what: Note, now: float) -> None:
        """Tell the policy that something happened that could let a job start."""
        self.tables.version += 1
        if what not in OF_WAITING:
            self.tables.held_version += 1
        self.policy.note(what, now)
        for react in self.reactions.changed:
            react(self)

    def add_daemon(self, name: str, address: str, nodes: int) -> DaemonRecord:
        """Note which daemon stands for the nodes (a bitmap), in addition to those that it has."""
        record = self.daemons.get(name)
        if record is None:
            record = self.daemons[name] = DaemonRecord(name, address, 0)
        record.address = address
        record.nodes |= nodes
        self.agents.add_daemon(name, address)
        for other in self.daemons.values():
            if other is not record:
                other.nodes &= ~nodes
        for index in nodeset_indices(nodes):
            self.daemon_of_node[index] = record
        return record

    def parts(self, nodes: int) -> list[tuple[DaemonRecord, int]]:
        """The daemons that stand for the nodes (a bitmap), each with its part of them. Nodes
        without a daemon are in no part.
        """
        if not nodes:
            return []
        first = self.daemon_of_node[(nodes & -nodes).bit_length() - 1]
        if first is not None and not nodes & ~first.nodes:
            return [(first, nodes)]
        return [
            (record, part) for record in self.daemons.values() if (part := nodes & record.nodes)
        ]

    def check_empty(self) -> None:
        """Answer those who wait for the last job to end."""
        pending = (
            self.tables.pending.keys() - self.crontabs.entries.keys()
            if self.awaiting_empty and self.crontabs.entries
            else self.tables.pending
        )
        if self.awaiting_empty and not (
            pending or self.tables.running or self.completing or self.tables.burst_buffers.buffers
        ):
            if self.following is not None:
                self.following.hand_over()
            waiting, self.awaiting_empty = self.awaiting_empty, []
            for later in waiting:
                self.when_recorded(lambda later=later: later.give(Ok()))  # type: ignore[misc]


def nodeset_indices(nodes: int) -> list[int]:
    """Indices of a bitmap's nodes, quick for the usual single node."""
    if nodes and not nodes & (nodes - 1):
        return [nodes.bit_length() - 1]
    return nodeset.indices(nodes)
