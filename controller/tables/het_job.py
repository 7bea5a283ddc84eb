"""Heterogeneous jobs: components with records, job ids and resources of their own that are
submitted, started and ended together.

Place: tables. Follows: sbatch(1) on `:` and `#SBATCH hetjob`, Slurm's documentation
of heterogeneous jobs. The first component, the leader, gives the whole its id and runs the script.
All components start at one instant (understudy.controller.scheduling.slurm.backfill); a component
may be ended alone once it runs, and all of them end with their leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.tables.job import HetJob, Job


def join(whole: HetJob, job: Job, offset: int) -> None:
    """The job is this component."""
    job.het, job.het_offset = whole, offset
    whole.components[offset] = job


def components(job: Job) -> list[Job]:
    """The job, or with the leader of a heterogeneous one all its components."""
    whole = job.het
    if whole is None or job.het_offset:
        return [job]
    return [whole.components[offset] for offset in sorted(whole.components)]


def whole(job: Job) -> list[Job]:
    """All components of the job of which this is one."""
    return (
        [job]
        if job.het is None
        else [job.het.components[offset] for offset in sorted(job.het.components)]
    )


def others(job: Job) -> list[Job]:
    """The components that the leader leads; none for any other job."""
    return components(job)[1:]


def require_leader(job: Job) -> None:
    """Refuse what can only be done to the whole.

    Raises:
        SlurmError: the job is another component than the leader.
    """
    if job.het_offset:
        raise SlurmError(ErrorCode.NOT_LEADER)


def require_whole(job: Job) -> None:
    """Refuse to end one component of a job that has not started.

    Raises:
        SlurmError: it is one.
    """
    if job.het_offset and job.is_pending:
        raise SlurmError(ErrorCode.NOT_WHOLE)


def require_single(job: Job) -> None:
    """Refuse what cannot be done to a component alone.

    Raises:
        SlurmError: the job is one, and not the leader.
    """
    if job.het_offset:
        raise SlurmError(ErrorCode.NOT_WHOLE)


def restore(jobs: Mapping[int, Job], job: Job, saved: HetJob, offset: int) -> None:
    """A saved component is back among the jobs; `saved` says whose."""
    leader = jobs.get(saved.job_id)
    if leader is None or leader is job:
        join(saved, job, offset)
    elif leader.het is not None:
        join(leader.het, job, offset)


def forget(job: Job) -> None:
    """The job's record goes."""
    if job.het is not None:
        job.het.components.pop(job.het_offset, None)


def id_set(job: Job) -> str:
    """The ids of all components, `17-19`; "" for any other job."""
    if job.het is None:
        return ""
    found = [each.job_id for each in job.het.components.values()]
    return f"{min(found)}-{max(found)}" if found[1:] else str(found[0])
