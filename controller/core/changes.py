"""What is to be done whenever a job has changed, and when it is over, in one verb each.

Place: core. Who changes a job calls this when it is as it is to be; it must not know what changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.scheduling.api import Note
    from understudy.controller.tables.job import Job


def job_changed(core: Core, job: Job, now: float, note: Note | None = None) -> None:
    """The job's record was added, changed or forgotten: `squeue` has news from now on
    (`last_job_update`), the record is saved, and all hear of it that follow the journal: limits,
    accounting, mail, the log of completed jobs.

    `note`: others may start because of it; the policy is told so, what was planned counts no more,
    and reservations are checked again. To be called when the job is as it is to be: followers see
    it as it is now.
    """
    core.last_job_update = now
    core.journal.job(job.job_id)
    if note is not None:
        core.changed(note, now)


def jobs_shown_anew(core: Core, now: float) -> None:
    """Only what is shown of jobs has changed, a reason or priorities: it is worked out again after
    a restart, and nobody follows it.
    """
    core.last_job_update = now


def job_over(core: Core, job: Job, now: float) -> None:
    """The job will not go on, and holds nothing: all react that are to."""
    for react in core.reactions.over:
        react(core, job, now)
