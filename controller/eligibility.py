"""Whether a pending job may be considered by the scheduler, and the reason that is shown if not.

Place: the controller's core. Called after everything that could change the answer: submission, hold, release, updates, the end of another job,
a begin time that has come. Follows: squeue(1) "JOB REASON CODES"; slurm.conf(5) EnforcePartLimits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.alarms import wait_until
from understudy.controller.dependency import SINGLETON, Outlook, evaluate, next_test
from understudy.controller.enforcement.access import explain_access
from understudy.controller.feasibility import is_too_large
from understudy.controller.job import HELD_BY_ADMIN, HELD_BY_USER, JobEvent, advance
from understudy.controller.partitions import (
    ACCOUNT_NOT_ALLOWED,
    MEMORY_LIMIT,
    PARTITION_NODE_LIMIT,
    PARTITION_TIME_LIMIT,
    QOS_NOT_ALLOWED,
    limit_broken,
)
from understudy.controller.purge import schedule_purge

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job

NONE: Final = "None"
PARTITION_DOWN: Final = "PartitionDown"
PARTITION_CONFIG: Final = "PartitionConfig"
PARTITION_INACTIVE: Final = "PartitionInactive"
DEPENDENCY: Final = "Dependency"
NEVER_SATISFIED: Final = "DependencyNeverSatisfied"
BEGIN_TIME: Final = "BeginTime"

# Reasons that this module gives, and so may take away; the others belong to the scheduler or tell how a job ended.
_OWN: Final = frozenset(
    {PARTITION_TIME_LIMIT, PARTITION_NODE_LIMIT, PARTITION_CONFIG, PARTITION_DOWN, PARTITION_INACTIVE, MEMORY_LIMIT}
    | {DEPENDENCY, NEVER_SATISFIED, BEGIN_TIME}
    | {ACCOUNT_NOT_ALLOWED, QOS_NOT_ALLOWED, HELD_BY_ADMIN, HELD_BY_USER}
)


def partition_reason(core: Core, job: Job, *, for_backfill: bool = False) -> str:
    """Why the job may start in none of its partitions, "" if it may in one; `for_backfill`: as `limit_broken`."""
    settings = core.settings
    max_memory = (settings.max_memory_per_node_mb, settings.max_memory_per_cpu_mb)
    first = ""
    for name in job.partitions:
        partition = core.tables.partitions.get(name)
        if partition is None:
            reason = PARTITION_DOWN
        elif partition.can_schedule and is_too_large(core, job, partition):
            reason = PARTITION_CONFIG
        else:
            reason = limit_broken(job, partition, max_memory, for_backfill=for_backfill)
            if not reason and not partition.can_schedule:
                reason = PARTITION_INACTIVE if partition.state == "INACTIVE" else PARTITION_DOWN
        if not reason:
            return ""
        first = first or reason
    return first


def review(core: Core, job: Job, now: float, *, is_looked_at: bool = True) -> None:
    """Bring the job's eligible time and reason in line with holds, dependencies, begin time and its partitions' limits.

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
    if begin is not None and begin > now:
        if job.eligible_time != begin:
            job.eligible_time = begin
            wait_until(core, begin, job.job_id)
    elif outlook is not Outlook.MET:
        job.eligible_time = None
    elif job.priority == 0:
        if job.eligible_time is not None and job.eligible_time > now:
            job.eligible_time = None
    elif job.eligible_time is None or job.eligible_time > now:
        job.eligible_time = int(now)
    limits = partition_reason(core, job)
    job.fits_partition = not limits or (bool(job.spec.time_min_s) and not partition_reason(core, job, for_backfill=True))
    reason = NONE
    if job.priority == 0:
        reason = job.held_by or HELD_BY_USER
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
            job.reason_detail = next(filter(None, (explain_access(job, core.tables.partitions[name]) for name in job.partitions)), "")


def review_all(core: Core, now: float, *, partition: str | None = None) -> None:
    """Look again at all pending jobs, or those that name the partition."""
    for job in list(core.tables.pending.values()):
        if partition is None or partition in job.partitions:
            review(core, job, now)


def watch_dependency(core: Core, job: Job) -> None:
    """Note on whom the job depends, so that it is looked at when they change."""
    assert job.dependency is not None
    for other in job.dependency.job_ids:
        core.dependents.setdefault(other, {})[job.job_id] = None
    if any(term.kind == SINGLETON for term in job.dependency.terms):
        core.singletons.setdefault((job.user_id, job.spec.name), {})[job.job_id] = None


def notify_dependents(core: Core, job: Job, now: float) -> None:
    """The job has started or ended, or its resources are free: look at those that depend on it."""
    waiting = list(core.dependents.get(job.job_id, ()))
    if job.array is not None and job.array.job_id != job.job_id:
        waiting += core.dependents.get(job.array.job_id, ())
    if core.singletons:
        waiting += core.singletons.get((job.user_id, job.spec.name), ())
    for job_id in waiting:
        other = core.tables.jobs.get(job_id)
        if other is not None and other.is_pending and other is not job:
            if other.array_tasks and job.array is not None and other.dependency is not None:
                from understudy.controller.arrays import split_corresponding  # noqa: PLC0415 - arrays review what they split

                split_corresponding(core, other, job, now)
            had = other.dependency
            review(core, other, now)
            core.journal.job(job_id)
            if had is not None and other.dependency is None:
                core.changed("met", now)


def note_end(core: Core, job: Job, now: float) -> None:
    """The job will not go on, and holds nothing any more: those that waited for it, and in time it is forgotten."""
    core.last_job_update = now
    if core.awaited:
        from understudy.controller.allocate import tell_waiting  # noqa: PLC0415 - it submits and ends jobs through this module

        tell_waiting(core, job)
    core.counters.ended(job)
    if core.following is not None:
        core.following.note(job, now)
    if core.dependents or core.singletons:
        notify_dependents(core, job, now)
    schedule_purge(core, job, now)
    core.journal.job(job.job_id)
    core.check_empty()


def begin_time_has_come(core: Core, job: Job, now: float) -> None:
    """The job has waited for a time that is here, or for a delay of its dependency."""
    review(core, job, now)
    core.journal.job(job.job_id)
    if job.is_eligible(now):
        core.changed("met", now)


def _review_dependency(core: Core, job: Job, now: float) -> Outlook:
    left = evaluate(job, core.tables.jobs, now)
    before, job.dependency = job.dependency, left
    assert before is not None
    if left is None:
        forget_dependency(core, job)
        return Outlook.MET
    outlook = left.outlook
    kills = job.spec.extra.get("kill_on_invalid_dep", "yes" if core.settings.kill_invalid_dependency else "no") == "yes"
    if outlook is Outlook.NEVER and kills and job.is_pending and not job.is_completing:
        job.reason, job.reason_detail = NEVER_SATISFIED, ""
        core.tables.pending.pop(job.job_id, None)
        advance(job, JobEvent.CANCELLED, now)
        job.start_time = job.end_time = int(now)
        note_end(core, job, now)
        return outlook
    delayed = next_test(left, core.tables.jobs)
    if delayed is not None and delayed > now:
        wait_until(core, delayed, job.job_id)
    return outlook


def forget_dependency(core: Core, job: Job) -> None:
    """The job depends on nobody any more."""
    for other in [other for other, waiting in core.dependents.items() if job.job_id in waiting]:
        del core.dependents[other][job.job_id]
        if not core.dependents[other]:
            del core.dependents[other]
    own = (job.user_id, job.spec.name)
    if job.job_id in core.singletons.get(own, ()):
        del core.singletons[own][job.job_id]
        if not core.singletons[own]:
            del core.singletons[own]
