"""Forgetting finished jobs, MinJobAge seconds after their end.

Place: pending. Follows: slurm.conf(5) MinJobAge; the controller checks once a minute.
0 keeps jobs for ever. Under virtual time a timer would drive time on when nothing else happens, and
a job would be gone as soon as it has ended: there the controller checks when another job ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed
from understudy.controller.tables.het_job import forget as forget_component

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

INTERVAL_S: Final = 60


def schedule_purge(core: Core, job: Job, now: float) -> None:
    """The job has ended now: forget it when it is old enough."""
    age = core.settings.min_job_age_s
    if age <= 0:
        return
    core.purge_queue.append((now + age, job.job_id))
    if core.time.is_virtual:
        _forget_old(core, now)
    elif core.purge_timer is None:
        _arm(core)


def _arm(core: Core) -> None:
    if not core.purge_queue:
        return
    rounds = max(1, math.ceil((core.purge_queue[0][0] - core.start_time) / INTERVAL_S))
    core.purge_timer = core.at(core.start_time + rounds * INTERVAL_S, _purge, core)


def _purge(core: Core) -> None:
    core.purge_timer = None
    _forget_old(core, core.time.now())
    _arm(core)


def _forget_old(core: Core, now: float) -> None:
    while core.purge_queue and core.purge_queue[0][0] <= now:
        _, job_id = core.purge_queue.popleft()
        job = core.tables.jobs.get(job_id)
        if (
            job is None
            or not job.is_finished
            or job.is_completing
            or job_id in core.tables.burst_buffers.buffers
            or (job.end_time or 0) + core.settings.min_job_age_s > now + 1
        ):
            continue  # requeued meanwhile: it is scheduled again when it ends again
        forget(core, job_id, now)


def forget(core: Core, job_id: int, now: float) -> None:
    """Take the job out of the tables."""
    job = core.tables.jobs.pop(job_id)
    core.scripts.pop(job_id, None)
    forget_component(job)
    if job.array is not None:
        job.array.records.pop(job_id, None)
        if job.array.records:
            job_changed(core, job, now)
            return  # others of the array may be waited for
        core.arrays.pop(job.array.job_id, None)
        core.dependents.pop(job.array.job_id, None)
    core.dependents.pop(job_id, None)
    job_changed(core, job, now)
