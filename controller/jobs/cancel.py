"""Cancelling and signalling jobs.

Place: jobs. Follows: scancel(1): only the owner, operators and coordinators of the
account may; a pending job ends at once, a running one is completing until its nodes are free of it;
jobs that are ending already are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed, job_over
from understudy.controller.jobs.end import end_job
from understudy.controller.pending.dependencies import forget_dependency
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job_states import JobEvent, advance

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

SIGKILL: Final = 9
SIGCONT: Final = 18
SIGSTOP: Final = 19


def cancel(core: Core, job: Job, now: float) -> None:
    """End the job now, whatever it is doing."""
    if job.is_active:
        end_job(core, job, JobEvent.CANCELLED, now, reason="None")
        return
    waited = core.tables.pending.pop(job.job_id, None)
    advance(job, JobEvent.CANCELLED, now)
    job.start_time = job.end_time = int(now)
    job.expected_start, job.expected_nodes = None, 0
    if job.dependency is not None:
        forget_dependency(core, job)
    job_changed(core, job, now)
    if job.is_completing:
        return  # requeued, and its nodes are not free yet; `give_back` does the rest
    job_over(core, job, now)
    if waited is not None:
        core.changed(Note.CHANGE, now)
