"""Requeueing: a job that ran, or runs, waits in the queue again.

Place: jobs. Follows: scontrol(1) requeue, requeuehold; slurm.conf(5) JobRequeue,
RequeueExit, RequeueExitHold, AuthInfo cred_expire (a requeued job waits until its old credential is
worthless).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.core.log_lines import is_logged, job_name
from understudy.controller.jobs.end import end_job, give_back
from understudy.controller.pending.dependencies import watch_dependency
from understudy.controller.pending.eligibility import notify_dependents
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.chronicle import Chronicle
from understudy.controller.tables.het_job import whole
from understudy.controller.tables.job import (
    HELD_BY_ADMIN,
    HELD_BY_USER,
    NO_STEPS,
    NO_USAGE,
    NO_WAITS,
)
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

HELD_STATE: Final = "job requeued in held state"
SPECIAL_STATE: Final = "job requeued in special exit state"


def requeue(
    core: Core,
    job: Job,
    now: float,
    *,
    hold: bool,
    held_by: str = HELD_BY_USER,
    is_special: bool = False,
) -> None:
    """What `scontrol requeue` and `requeuehold` do; `is_special`: with State=SpecialExit.

    Raises:
        SlurmError: it was submitted with --no-requeue, has no script, or is pending.
    """
    if not job.requeue:
        raise SlurmError(ErrorCode.DISABLED)
    if job.job_id not in core.scripts:
        raise SlurmError(ErrorCode.NO_SCRIPT)
    if job.is_pending:
        raise SlurmError(ErrorCode.JOB_PENDING)
    hold_reason = SPECIAL_STATE if is_special else HELD_STATE if hold else ""
    requeue_job(core, job, now, hold_reason=hold_reason, held_by=held_by if hold_reason else "")
    if is_special:
        mark_special(core, job, now)


def requeue_job(
    core: Core,
    job: Job,
    now: float,
    *,
    hold_reason: str = "",
    held_by: str = "",
    event: JobEvent = JobEvent.TAKEN_BACK,
    lost_nodes: int = 0,
    begin_time: int | None = None,
) -> None:
    """Put the job back into the queue. A running one is ended first, by `event`; where nodes are
    not free of it yet it waits for that.

    `begin_time`: of an entry of a crontab that has ended; else it waits until its credential is
    worthless. A heterogeneous job goes back as a whole, whichever of its components is meant.
    """
    for each in reversed(whole(job)):  # the leader, whose end is that of all, comes last
        own = each is job
        if own or not each.is_pending:  # a component that has ended runs again with the others
            lost, begin = (lost_nodes, begin_time) if own else (0, None)
            _requeue_one(
                core,
                each,
                now,
                hold_reason=hold_reason,
                held_by=held_by,
                event=event,
                lost_nodes=lost,
                begin_time=begin,
            )


def _requeue_one(
    core: Core,
    job: Job,
    now: float,
    *,
    hold_reason: str,
    held_by: str,
    event: JobEvent,
    lost_nodes: int = 0,
    begin_time: int | None = None,
) -> None:
    if begin_time is None:
        for react in core.reactions.requeued:
            react(core, job, now)
    if job.is_active:
        end_job(core, job, event, now, reason="None", lost_nodes=lost_nodes)
        if core.following is not None:
            core.following.note(job, now)
        if event is JobEvent.TAKEN_BACK:
            core.counters.completed += 1
        elif job.flags & JobFlag.REQUEUE:
            core.counters.ended(job)
    else:
        if job.is_completing:  # its end would be noted when its nodes are free
            if core.following is not None:
                core.following.note(job, now)
            core.counters.ended(job)
        _want_again(core, job, now)
    if job.chronicle is not None:  # that of the run has been told
        job.chronicle = Chronicle()
    if is_logged():
        log.info("Requeuing %s", job_name(job))
    advance(job, JobEvent.REQUEUED, now)
    if job.dependency is not None:  # cancelled while it waited for others: it waits for them again
        watch_dependency(core, job)
    job.start_time = job.end_time = job.eligible_time = job.accrue_time = None
    job.accrues = True
    job.killed_by = None
    job.suspend_time = job.preempt_time = job.resize_time = None
    job.pre_suspend_s = job.suspended_s = 0
    job.preempt_suspended = job.as_preferred = False
    job.launch_acknowledged = False
    job.forget_promises()
    job.partition = job.partitions[0]
    if held_by:
        job.priority, job.held_by = 0, held_by
    elif job.priority == 0:  # it was held, or suspended, while it ran
        held_by = job.held_by = job.held_by or HELD_BY_ADMIN
    if job.is_completing:
        job.reason, job.reason_detail = (held_by or "BeginTime"), hold_reason
        if lost_nodes:
            give_back(core, job, lost_nodes & job.completing_nodes, now)
        job_changed(core, job, now)
        return
    enqueue_again(core, job, now, begin_time=begin_time)
    if hold_reason:
        job.reason_detail = hold_reason
    job_changed(core, job, now, Note.CHANGE)


def _want_again(core: Core, job: Job, now: float) -> None:
    """A run that is over counts as one that was requeued, and ended only now."""
    advance(job, JobEvent.WANTED_AGAIN, now)
    if not job.is_completing:
        job.end_time = int(now)
    job_changed(core, job, now)


def enqueue_again(core: Core, job: Job, now: float, *, begin_time: int | None = None) -> None:
    """A requeued job of which no node has anything any more: it is as if it were submitted now, to
    begin when its old credential is worthless.
    """
    job.allocation, job.held, job.node_list = None, None, ""
    job.restarts += 1
    job.waits, job.waits_since = NO_WAITS, now
    if job.chronicle is not None:
        job.chronicle = Chronicle()
    job.steps, job.next_step_id, job.batch_usage = NO_STEPS, 0, NO_USAGE
    job.submit_time = int(now)
    job.begin_time = begin_time or int(now) + core.settings.credential_lifetime_s + 1
    core.tables.pending[job.job_id] = job
    for react in core.reactions.queued:
        react(core, job, now)


def waits_again(core: Core, job: Job, now: float) -> bool:
    """Put a requeued job into the queue whose nodes are free: only now, as messages about its old
    run could come until here. False: it was not requeued.
    """
    if not job.is_pending:
        return False
    enqueue_again(core, job, now)
    notify_dependents(core, job, now)
    job_changed(core, job, now, Note.CHANGE)
    return True


def requeue_after_exit(
    core: Core, job: Job, now: float, *, is_well: bool, hold: bool, lost_nodes: int = 0
) -> None:
    """RequeueExit and RequeueExitHold: the script's exit code asks for another run, whether it is
    one of success or not. What is held then is a special exit.
    """
    requeue_job(
        core,
        job,
        now,
        held_by=HELD_BY_USER if hold else "",
        event=JobEvent.RUNS_AGAIN_WELL if is_well else JobEvent.RUNS_AGAIN_BADLY,
        lost_nodes=lost_nodes,
    )
    if hold:
        mark_special(core, job, now)


def mark_special(core: Core, job: Job, now: float) -> None:
    """Show a requeued job that is held as SPECIAL_EXIT."""
    advance(job, JobEvent.MARKED_SPECIAL, now)
    job_changed(core, job, now)
