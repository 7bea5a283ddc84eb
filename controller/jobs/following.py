"""What became of jobs, told to a replay as it happens: each run of a job is recorded when it ends,
whatever the job table forgets later.

Place: jobs. Nothing is recorded until somebody asks to follow; then runs are
gathered, so that a message tells of many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.later import Later
from understudy.controller.tables.chronicle import Chronicle
from understudy.controller.tables.gres_texts import allocated
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag, JobState
from understudy.model.task_numbers import format_tasks
from understudy.protocol.messages import FollowJobs, JobRun, JobRuns, Message

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job

MOST_AT_ONCE: Final = 2000  # jobs that are not over, in one answer
_NAMES: Final = {state: state.name for state in JobState}
_NOTHING: Final = Chronicle()


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
            return JobRuns(self.take(), unfinished)
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
            asked.give(JobRuns(self.take()))

    def end(self) -> None:
        """Tell what there is; what happens from here on is not so."""
        self.hand_over()
        self._is_over = True

    def _check(self) -> None:
        if len(self._ended) >= self._batch:
            self.hand_over()

    def take(self) -> list[JobRun]:
        """Those of which nobody has been told, who is told now."""
        taken, self._ended = self._ended, []
        return taken


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
