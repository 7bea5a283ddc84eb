"""Whether what a job depends on has come to pass, and who has to be looked at when a job starts or
ends.

Place: pending. Follows: sbatch(1) --dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.tables.dependency import (
    BURST_BUFFER,
    CORRESPONDING,
    SINGLETON,
    Dependency,
    Outlook,
    Term,
)
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


def check_circle(
    job: Job, dependency: Dependency | None, jobs: Mapping[int, Job], depth: int
) -> None:
    """Refuse a dependency by which the job would wait for itself. No more than `depth` jobs are
    tested (max_depend_depth).

    Raises:
        SlurmError: one of the jobs for which it would wait, or for which those wait, waits for the
        job.
    """
    if dependency is None:
        return
    own = {job.job_id} if job.array is None else {job.job_id, job.array.job_id}
    open_terms = [term for term in reversed(dependency.terms) if term.job_id]
    seen: set[int] = set()
    while open_terms and len(seen) < depth:
        term = open_terms.pop()
        for other in _meant(term, jobs):
            if other.job_id in seen or other.dependency is None or not other.is_pending:
                continue
            seen.add(other.job_id)
            further = [
                each
                for each in other.dependency.terms
                if each.job_id and each.outlook is Outlook.WAITING
            ]
            if any(each.job_id in own and _means(each, job) for each in further):
                raise SlurmError(ErrorCode.CIRCULAR_DEPENDENCY)
            open_terms += reversed(further)


def _means(term: Term, job: Job) -> bool:
    """Whether the term, which names the job or its array, waits for that job."""
    return job.array is None or _is_meant(term, job)


def evaluate(job: Job, jobs: Mapping[int, Job], now: float) -> Dependency | None:
    """What is left of the job's dependency: terms that are met go, None when nothing is left to
    wait for.
    """
    dependency = job.dependency
    if dependency is None:
        return None
    terms = tuple(
        _seen(term, job, jobs, now) if term.outlook is Outlook.WAITING else term
        for term in dependency.terms
    )
    changed = Dependency(terms, dependency.any_suffices)
    if changed.outlook is Outlook.MET:
        return None
    return Dependency(
        tuple(term for term in terms if term.outlook is not Outlook.MET), dependency.any_suffices
    )


def next_test(dependency: Dependency, jobs: Mapping[int, Job]) -> int | None:
    """When a delay (`after:17+10`) ends by itself, if one is running."""
    times = [
        other.start_time + 60 * term.delay_min
        for term in dependency.terms
        if term.delay_min
        and (other := jobs.get(term.job_id)) is not None
        and other.start_time is not None
        and not other.is_pending
    ]
    return min(times, default=None)


def _seen(term: Term, job: Job, jobs: Mapping[int, Job], now: float) -> Term:
    others = _meant(term, jobs)
    is_array = term.task is None and any(
        other.array is not None and other.array.job_id == term.job_id for other in others
    )
    return Term(
        term.kind,
        term.job_id,
        term.delay_min,
        _outlook(term, job, jobs, others, now),
        term.task,
        is_array,
    )


def _meant(term: Term, jobs: Mapping[int, Job]) -> list[Job]:
    """The records of the job or array on which the term depends; empty if there are none (any
    more).
    """
    other = jobs.get(term.job_id)
    if other is None or other.array is None or other.array.job_id != term.job_id:
        if other is not None or term.kind == SINGLETON:
            return [other] if other is not None else []
        # The record that had the array's id may be forgotten while other tasks are left.
        return [
            each
            for each in jobs.values()
            if each.array is not None and each.array.job_id == term.job_id and _is_meant(term, each)
        ]
    return [each for each in other.array.records.values() if _is_meant(term, each)]


def _is_meant(term: Term, job: Job) -> bool:
    return (
        term.task is None
        or job.array_task_id == term.task
        or bool(job.array_tasks >> term.task & 1)
    )


def _outlook(
    term: Term, job: Job, jobs: Mapping[int, Job], others: list[Job], now: float
) -> Outlook:
    """What the term amounts to: for an array, what it amounts to for all its tasks together."""
    if term.kind == SINGLETON:
        return Outlook.WAITING if _has_earlier_namesake(job, jobs) else Outlook.MET
    if term.kind == CORRESPONDING:
        if job.array is None or term.task is not None:
            return _combined(Term("afterok", term.job_id), job, others, now)
        if job.array_task_id is None:
            return Outlook.WAITING  # its tasks are looked at one by one
        term = Term("afterok", term.job_id, task=job.array_task_id)
        # without a counterpart: after all
        others = [other for other in others if _is_meant(term, other)] or others
    return _combined(term, job, others, now)


def _combined(term: Term, job: Job, others: list[Job], now: float) -> Outlook:
    if not others:
        return _outlook_at(term, job, None, now)
    outlooks = [_outlook_at(term, job, other, now) for other in others]
    if Outlook.WAITING in outlooks:
        return Outlook.WAITING
    array = others[0].array if term.task is None else None
    has_lost = array is not None and array.job_id == term.job_id and array.has_lost_tasks
    if term.kind == "afternotok":  # one that failed suffices
        return Outlook.MET if has_lost or Outlook.MET in outlooks else Outlook.NEVER
    if has_lost and term.kind == "afterok":
        return Outlook.NEVER
    return Outlook.NEVER if Outlook.NEVER in outlooks else Outlook.MET


def _outlook_at(term: Term, job: Job, other: Job | None, now: float) -> Outlook:
    if other is None:  # never there, or forgotten since: nobody waits for it, whatever for
        return Outlook.MET
    if term.kind == "after":
        if other.is_pending:
            return Outlook.WAITING
        since = other.start_time if other.start_time is not None else now
        return Outlook.MET if now >= since + 60 * term.delay_min else Outlook.WAITING
    if not other.is_finished or other.is_completing:
        return Outlook.WAITING
    # Slurm's guide: of two jobs with burst buffers the second waits for the first's stage-out, too
    if other.flags & JobFlag.STAGE_OUT and (
        term.kind == BURST_BUFFER or job.burst_buffer is not None
    ):
        return Outlook.WAITING
    if term.kind in {"afterany", BURST_BUFFER}:
        return Outlook.MET
    ended_well = other.state is JobState.COMPLETED
    return Outlook.MET if ended_well == (term.kind == "afterok") else Outlook.NEVER


def _has_earlier_namesake(job: Job, jobs: Mapping[int, Job]) -> bool:
    name, user_id, own = job.spec.name, job.user_id, job.job_id
    return any(
        other.user_id == user_id
        and other.job_id < own
        and other.spec.name == name
        and (not other.is_finished or other.is_completing)
        for other in jobs.values()
    )


def watch_dependency(core: Core, job: Job) -> None:
    """Note on whom the job depends, so that it is looked at when they change."""
    assert job.dependency is not None
    for other in job.dependency.job_ids:
        core.dependents.setdefault(other, {})[job.job_id] = None
    if any(term.kind == SINGLETON for term in job.dependency.terms):
        core.singletons.setdefault((job.user_id, job.spec.name), {})[job.job_id] = None


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
