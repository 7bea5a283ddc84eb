"""What became of jobs, told to a replay as it happens: each run of a job is recorded when it ends,
whatever the job table forgets later.

Place: jobs. Nothing is recorded until somebody asks to follow; then runs are
gathered, so that a message tells of many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.accounting.link import NotingJournal
from understudy.controller.later import Later
from understudy.controller.tables.chronicle import Chronicle
from understudy.controller.tables.gres_texts import allocated
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState
from understudy.model.task_numbers import format_tasks
from understudy.protocol.messages import FollowJobs, JobRun, JobRuns, Message

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job

MOST_AT_ONCE: Final = 2000  # jobs that are not over, in one answer
_NAMES: Final = {state: state.name for state in JobState}
_NOTHING: Final = Chronicle()
_OFF: Final = NodeFlag.POWERED_DOWN | NodeFlag.POWERING_DOWN


class Following:
    """Runs that have ended and of which nobody has been told."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ended: list[JobRun] = []
        self._batch = 1
        self._asked: Later | None = None
        self._is_over = False
        for job in core.tables.jobs.values():
            job.chronicle = Chronicle()
        self._nodes = NodeCounts(core)
        noting = NotingJournal(core.journal)
        noting.listeners.append(self._nodes.note_job)
        noting.note_nodes = self._nodes.note_nodes
        core.journal = noting

    def ask(self, message: FollowJobs) -> Message | Later:
        """Answer now, or when enough runs have ended. An earlier question is answered with
        nothing.
        """
        if self._is_over:
            return Later()
        if self._asked is not None:
            self._asked.give(JobRuns([]))
            self._asked = None
        self._batch = message.batch
        if not message.batch:
            unfinished = [] if message.after is None else _unfinished(self._core, message.after)
            shares = [] if message.after is None else _shares(self._core)
            return JobRuns(self.take(), unfinished, self._nodes.take(), shares)
        later = self._asked = Later()
        self._check()
        return later

    def note(self, job: Job, now: float) -> None:
        """A run of the job has ended, or the job without one."""
        if not self._is_over and (
            job.array is None or job.array_task_id is not None or job.array_tasks
        ):
            self._ended.append(job_run(self._core, job, now))
            self._check()

    def note_withdrawn(self, job: Job, tasks: int, now: float) -> None:
        """Waiting tasks (a bitmap) have been taken out of their array."""
        run = job_run(self._core, job, now)
        self._ended.append(
            msgspec.structs.replace(
                run, array_tasks=format_tasks(tasks), state=JobState.CANCELLED.name, end=int(now)
            )
        )
        self._check()

    def hand_over(self) -> None:
        """Tell all there is, if somebody listens."""
        if self._asked is not None and self._ended:
            asked, self._asked = self._asked, None
            asked.give(self.take_all())

    def end(self) -> None:
        """Tell what there is; what happens from here on is not so."""
        self.hand_over()
        self._is_over = True

    def _check(self) -> None:
        if len(self._ended) >= self._batch:
            self.hand_over()

    def take_all(self) -> JobRuns:
        """The same with what is known of the nodes."""
        return JobRuns(self.take(), nodes=self._nodes.take())

    def take(self) -> list[JobRun]:
        """Those of which nobody has been told, who is told now."""
        taken, self._ended = self._ended, []
        return taken


class NodeCounts:
    """How many nodes had jobs, were down, drained or without power, and from when on. A second has
    one line.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._idle = self._down = self._drained = self._off = 0
        self._told: tuple[int, int, int, int] | None = None
        self._lines: list[tuple[int, int, int, int, int]] = []
        self.note_nodes((1 << len(core.tables.nodes.nodes)) - 1)

    def take(self) -> list[tuple[int, int, int, int, int]]:
        """What nobody has been told of."""
        taken, self._lines = self._lines, []
        return taken

    def note_job(self, _job_id: int) -> None:
        """Something has become of a job."""
        if self._core.tables.nodes.idle_nodes != self._idle:
            self._note()

    def note_nodes(self, nodes: int) -> None:
        """The states of these (a bitmap) have changed."""
        listed = self._core.tables.nodes.nodes
        down = drained = off = 0
        for index in nodeset.indices(nodes):
            state, flags = listed[index].state, listed[index].flags
            if state is NodeState.DOWN:
                down |= 1 << index
            if flags & NodeFlag.DRAIN:
                drained |= 1 << index
            if flags & _OFF:
                off |= 1 << index
        self._down = self._down & ~nodes | down
        self._drained = self._drained & ~nodes | drained
        self._off = self._off & ~nodes | off
        self._note()

    def _note(self) -> None:
        self._idle = idle = self._core.tables.nodes.idle_nodes
        size = len(self._core.tables.nodes.nodes)
        if self._down or self._drained or self._off:
            now = self._counts(idle, (1 << size) - 1)
        else:
            now = size - idle.bit_count(), 0, 0, 0
        if now == self._told:
            return
        self._told, at = now, int(self._core.time.now())
        if self._lines and self._lines[-1][0] == at:
            self._lines.pop()
        self._lines.append((at, *now))

    def _counts(self, idle: int, every: int) -> tuple[int, int, int, int]:
        busy = every & ~idle & ~self._down
        left = every & ~busy & ~self._down
        drained = left & self._drained
        return (
            busy.bit_count(),
            self._down.bit_count(),
            drained.bit_count(),
            (left & ~drained & self._off).bit_count(),
        )


def _shares(core: Core) -> list[tuple[str, str, float]]:
    """What is due to accounts and users by fair share; nothing where there is none."""
    if core.associations is None:
        return []
    known, due = core.associations.associations, dict[int, float]()
    standings = {
        each.share.association_id: each
        for each in core.priorities.standings(core.time.now(), asks=False)
        if each.share.association_id in known
    }

    def of_all(number: int) -> float:
        """With Fair Tree a part of what is the parent's, else of the whole."""
        if number not in due:
            each = standings[number]
            parent = known[number].parent_id
            above = of_all(parent) if each.is_tree and parent in standings else 1.0
            due[number] = each.normal_shares * above if parent in standings else 1.0
        return due[number]

    return [(known[number].account, known[number].user, of_all(number)) for number in standings]


def note_run(core: Core, job: Job, now: float) -> None:
    """The job's last run has ended, or the job without one."""
    if core.following is not None:
        core.following.note(job, now)


def follow_jobs(core: Core, message: FollowJobs, sender: Sender) -> Message | Later:
    """A replay asks what became of jobs."""
    if not core.is_admin(sender.user_id):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if core.following is None:
        core.following = Following(core)
    return core.following.ask(message)


def _unfinished(core: Core, after: int) -> list[JobRun]:
    """Jobs that are not over, by number, from the one behind `after` on."""
    tables, now = core.tables, core.time.now()
    open_jobs = {**tables.pending, **tables.running, **core.completing}
    numbers = sorted(number for number in open_jobs if number > after)[:MOST_AT_ONCE]
    return [job_run(core, open_jobs[number], now) for number in numbers]


def job_run(core: Core, job: Job, now: float) -> JobRun:
    """The job as it is now."""
    held, spec = job.allocation, job.spec
    state = job.state
    memory = 0
    if held is not None:
        for group in held.groups:
            memory += group.memory_mb * group.nodes.bit_count()
    over = state >= JobState.COMPLETED
    waited_for = job.longest_wait(now)
    told = job.chronicle or _NOTHING
    return JobRun(
        job.job_id,
        "" if job.emulation is None else job.emulation.tag,
        spec.name,
        0 if job.array is None else job.array.job_id,
        ""
        if job.array is None
        else str(job.array_task_id)
        if job.array_task_id is not None
        else format_tasks(job.array_tasks),
        0 if job.het is None else job.het.job_id,
        job.het_offset,
        core.users.user_name(job.user_id),
        spec.account,
        job.partition if held is not None else ",".join(job.partitions),
        spec.qos,
        job.submit_time,
        job.eligible_time,
        job.start_time if held is not None else None,
        job.end_time if over else None,
        job.time_limit_s,
        "REQUEUED" if over and job.flags and job.flags & JobFlag.REQUEUE else _NAMES[state],
        job.exit_code,
        job.exit_signal,
        job.min_cpus if held is None else held.cpus,
        job.node_list,
        0 if held is None else held.node_count,
        memory,
        allocated(job) if held is not None and core.tables.nodes.gres is not None else "",
        job.priority,
        waited_for,
        job.reason,
        job.reason_detail if state is JobState.PENDING else "",
        job.restarts,
        job.preemptions,
        job.last_scheduler,
        job.first_promise,
        job.last_promise,
        job.promise_moves,
        told.reasons,
        told.promises,
        told.events,
    )
