"""Whether a pending job may be considered by the scheduler, and the reason that is shown if not.

Place: pending. Called after everything that could change the answer: submission, hold, release,
updates, the end of another job, a begin time that has come. Follows: squeue(1) "JOB REASON CODES";
slurm.conf(5) EnforcePartLimits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.alarms import wait_until
from understudy.controller.core.changes import job_changed, job_over
from understudy.controller.facts.feasibility import is_too_large, partition_limit
from understudy.controller.pending.access import explain_access
from understudy.controller.pending.arrays import split, split_all
from understudy.controller.pending.dependencies import evaluate, forget_dependency, next_test
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.dependency import CORRESPONDING, Outlook
from understudy.controller.tables.job import HELD_BY_ADMIN, HELD_BY_USER
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.partition import (
    ACCOUNT_NOT_ALLOWED,
    MEMORY_LIMIT,
    PARTITION_NODE_LIMIT,
    PARTITION_TIME_LIMIT,
    QOS_NOT_ALLOWED,
)
from understudy.controller.tables.reservation import WAITS
from understudy.model.reservations import TIME_FLOAT

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

NONE: Final = "None"
PARTITION_DOWN: Final = "PartitionDown"
PARTITION_CONFIG: Final = "PartitionConfig"
PARTITION_INACTIVE: Final = "PartitionInactive"
DEPENDENCY: Final = "Dependency"
NEVER_SATISFIED: Final = "DependencyNeverSatisfied"
BEGIN_TIME: Final = "BeginTime"
# Reasons that this module gives, and so may take away; the others belong to the scheduler or tell
# how a job ended.
_OWN: Final = frozenset(
    {
        PARTITION_TIME_LIMIT,
        PARTITION_NODE_LIMIT,
        PARTITION_CONFIG,
        PARTITION_DOWN,
        PARTITION_INACTIVE,
        MEMORY_LIMIT,
    }
    | {DEPENDENCY, NEVER_SATISFIED, BEGIN_TIME}
    | {ACCOUNT_NOT_ALLOWED, QOS_NOT_ALLOWED, HELD_BY_ADMIN, HELD_BY_USER}
)


def split_corresponding(core: Core, job: Job, other: Job, now: float) -> None:
    """A task of an array on which this one depends task by task has ended: the corresponding task
    need not wait for the others.
    """
    array, task = other.array, other.array_task_id
    if (
        array is None
        or task is None
        or not other.is_finished
        or other.is_completing
        or not job.array_tasks >> task & 1
        or job.dependency is None
    ):
        return
    if any(
        term.kind == CORRESPONDING and term.job_id == array.job_id for term in job.dependency.terms
    ):
        own = split(core, job, task)
        review(core, own, now)
        if own.dependency is None:
            core.changed(Note.CHANGE, now)


def split_ended(core: Core, job: Job, now: float) -> None:
    """A new array depends on others task by task: look at which of those have ended already."""
    if job.dependency is None:
        return
    for term in job.dependency.terms:
        if term.kind != CORRESPONDING:
            continue
        if term.job_id in core.arrays:
            for other in list(core.arrays[term.job_id].records.values()):
                split_corresponding(core, job, other, now)
        # of a job that is no array each task waits for all of it
        core.unsplit[job.job_id] = None
    if not job.array_tasks:
        review(core, job, now)


def split_waiting(core: Core, now: float) -> None:
    """A pass is about to look at the queue: arrays that wait task by task for others get records
    for all tasks.
    """
    for job_id in list(core.unsplit):
        job = core.tables.pending.get(job_id)
        if job is not None and not job.priority:
            continue
        del core.unsplit[job_id]
        if job is not None and job.array is not None and job.dependency is not None:
            split_all(core, job)
            for each in list(job.array.records.values()):
                if each.is_pending:
                    review(core, each, now)


def partition_reason(core: Core, job: Job, *, for_backfill: bool = False) -> str:
    """Why the job may start in none of its partitions, "" if it may in one; `for_backfill`: as
    `limit_broken`.
    """
    first = ""
    for name in job.partitions:
        partition = core.tables.partitions.get(name)
        if partition is None:
            reason = PARTITION_DOWN
        elif partition.can_schedule and is_too_large(core, job, partition):
            reason = PARTITION_CONFIG
        else:
            reason = partition_limit(core, job, partition, for_backfill=for_backfill)
            if not reason and not partition.can_schedule:
                reason = PARTITION_INACTIVE if partition.state == "INACTIVE" else PARTITION_DOWN
        if not reason:
            return ""
        first = first or reason
    return first


def review(core: Core, job: Job, now: float, *, is_looked_at: bool = True) -> None:
    """Bring the job's eligible time and reason in line with holds, dependencies, begin time and its
    partitions' limits.

    Not `is_looked_at`: whether its dependency is met is left for later.
    """
    outlook = Outlook.MET
    if job.dependency is not None and (job.is_held or not is_looked_at):
        outlook = Outlook.WAITING  # whether it is met is seen once the job is released
    elif job.dependency is not None:
        outlook = _review_dependency(core, job, now)
        if job.is_finished:
            return
    begin = job.begin_time
    is_early = bool(core.tables.reservations) and _is_early(core, job, now)
    _set_eligible_time(core, job, now, is_met=outlook is Outlook.MET, is_early=is_early)
    if not job.is_eligible(now):
        job.expected_start, job.expected_nodes = None, 0
    limits = partition_reason(core, job)
    job.fits_partition = not limits or (
        bool(job.spec.time_min_s) and not partition_reason(core, job, for_backfill=True)
    )
    reason = NONE
    if job.priority == 0:
        reason = job.held_by or HELD_BY_USER
    elif is_early:
        reason = WAITS
    elif outlook is not Outlook.MET:
        reason = DEPENDENCY if outlook is Outlook.WAITING else NEVER_SATISFIED
    elif begin is not None and begin > now:
        reason = BEGIN_TIME
    elif limits:
        reason = limits
    if reason != job.reason and (reason != NONE or job.reason in _OWN):
        job.note_wait(now)
        job.reason, job.reason_detail = reason, ""
        if reason in (ACCOUNT_NOT_ALLOWED, QOS_NOT_ALLOWED):
            job.reason_detail = next(
                filter(
                    None,
                    (explain_access(job, core.tables.partitions[name]) for name in job.partitions),
                ),
                "",
            )


def _is_early(core: Core, job: Job, now: float) -> bool:
    """Whether its reservation has not begun; it is looked at again then."""
    reservations = core.tables.reservations
    if not reservations.keeps(job, now):
        return False
    for reservation in reservations.of(job):
        if reservation.start(now) > now and not reservation.flags & TIME_FLOAT:
            wait_until(core, reservation.start_time, job.job_id)
    return True


def _set_eligible_time(core: Core, job: Job, now: float, *, is_met: bool, is_early: bool) -> None:
    begin = job.begin_time
    if begin is not None and begin > now:
        if job.eligible_time != begin:
            job.eligible_time = begin
            wait_until(core, begin, job.job_id)
    elif not is_met:
        job.eligible_time = None
    elif job.priority == 0:
        if job.eligible_time is not None and job.eligible_time > now:
            job.eligible_time = None
    elif job.eligible_time is None or job.eligible_time > now:
        job.eligible_time = None if is_early else int(now)


def review_all(core: Core, now: float, *, partition: str | None = None) -> None:
    """Look again at all pending jobs, or those that name the partition."""
    for job in list(core.tables.pending.values()):
        if partition is None or partition in job.partitions:
            review(core, job, now)


def notify_dependents(core: Core, job: Job, now: float) -> None:
    """The job has started or ended, or its resources are free: look at those that depend on it."""
    if not core.dependents and not core.singletons:
        return
    waiting = list(core.dependents.get(job.job_id, ()))
    if job.array is not None and job.array.job_id != job.job_id:
        waiting += core.dependents.get(job.array.job_id, ())
    if core.singletons:
        waiting += core.singletons.get((job.user_id, job.spec.name), ())
    for job_id in waiting:
        other = core.tables.jobs.get(job_id)
        if other is not None and other.is_pending and other is not job:
            if other.array_tasks and job.array is not None and other.dependency is not None:
                split_corresponding(core, other, job, now)
            had = other.dependency
            review(core, other, now)
            is_met = had is not None and other.dependency is None
            job_changed(core, other, now, Note.MET if is_met else None)


def begin_time_has_come(core: Core, job: Job, now: float) -> None:
    """The job has waited for a time that is here, or for a delay of its dependency. That its
    reservation has begun asks nobody to schedule yet.
    """
    was_early = job.reason == WAITS
    review(core, job, now)
    job_changed(core, job, now)
    if job.is_eligible(now) and not was_early:
        core.changed(Note.MET, now)


def _review_dependency(core: Core, job: Job, now: float) -> Outlook:
    left = evaluate(job, core.tables.jobs, now)
    before, job.dependency = job.dependency, left
    assert before is not None
    if left is None:
        forget_dependency(core, job)
        return Outlook.MET
    outlook = left.outlook
    kills = job.spec.kill_on_invalid_dep
    if kills is None:
        kills = core.settings.kill_invalid_dependency
    if outlook is Outlook.NEVER and kills and job.is_pending and not job.is_completing:
        job.reason, job.reason_detail = NEVER_SATISFIED, ""
        core.tables.pending.pop(job.job_id, None)
        advance(job, JobEvent.CANCELLED, now)
        job.start_time = job.end_time = int(now)
        job_over(core, job, now)
        return outlook
    delayed = next_test(left, core.tables.jobs)
    if delayed is not None and delayed > now:
        wait_until(core, delayed, job.job_id)
    return outlook
