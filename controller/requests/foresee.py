"""A dry run of a submission before it is made: whether it would be refused, and whether the job
would start if it were alone.

Place: requests. No rule stands here: the job is checked as a submission is, and then
the main scheduler's own pass tries it, with a planner that starts nothing. Asked by `understudy
replay` before a run begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.jobs.site_rules import review_submission
from understudy.controller.jobs.start import Planning
from understudy.controller.jobs.take_in import check_submission, is_feasible, refuse
from understudy.controller.pending.eligibility import review
from understudy.controller.scheduling.slurm.main_pass import MainPass
from understudy.controller.scheduling.slurm.queue import PendingQueue, slurm_order
from understudy.controller.tables.burst_buffers import NO_SPACE
from understudy.controller.tables.job import BAD_CONSTRAINTS
from understudy.protocol.messages import Foreseen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.scheduling.api import Ask
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import ForeseeJob, JobSpec, SubmitJob

_DEADLINE: Final = "DeadLine"
_RESOURCES: Final = "Resources"


class _DryRun(Planning):
    """A planner that says whether the job may start, and lets it be."""

    has_started = False

    def start(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        self.has_started = self._may_start(ask, allocation, now)
        return self.has_started

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        job.reason, job.reason_detail = reason, detail

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        del job, victims, now
        return False

    def relent(self, job: Job, now: float) -> None:
        pass

    def give_up(self, job: Job, now: float) -> None:
        del now
        job.reason, job.reason_detail = _DEADLINE, ""


def foresee(core: Core, message: ForeseeJob, sender: Sender) -> Foreseen:
    """Try a submission without making it.

    Raises:
        SlurmError: it would be refused so.
    """
    submission = _at_once(message.submission)
    if core.job_submit:
        submission, _ = review_submission(core, submission, sender)
    jobs, tasks = check_submission(core, submission, sender)
    reason = ""
    for job in jobs:
        if not submission.components and not job.spec.hold and not is_feasible(core, job):
            refuse(core, job)
        reason = reason or _why_not(core, job)
    return Foreseen(sum(job.min_cpus for job in jobs), reason, tasks)


def _at_once(submission: SubmitJob) -> SubmitJob:
    """The submission without what depends on the time and on other jobs."""

    def bare(spec: JobSpec) -> JobSpec:
        return msgspec.structs.replace(spec, begin_time=None, deadline=None, dependency="")

    return msgspec.structs.replace(
        submission,
        spec=bare(submission.spec),
        components=[bare(spec) for spec in submission.components],
    )


def _why_not(core: Core, job: Job) -> str:
    """Why the job would not start if it were alone, "" if it would."""
    now, tables = core.time.now(), core.tables
    job.priority = 0 if job.spec.hold else 1
    review(core, job, now)
    if not job.is_eligible(now):
        return job.reason
    planner = _DryRun(core)
    if tables.burst_buffers.exceeds(job):
        return NO_SPACE
    job.burst_buffer = None  # alone it gets what it asks for
    main_pass = MainPass(tables, core.selector, planner, {})
    records = PendingQueue(tables, slurm_order, prefers=True, reservations=True).records_of(
        job, now
    )
    for _ in main_pass.run(records, len(records), now):
        pass
    if planner.has_started:
        return ""
    reason = job.reason if job.reason != "None" else _RESOURCES
    return (
        f"{reason} ({job.reason_detail})"
        if job.reason_detail and reason != BAD_CONSTRAINTS
        else reason
    )
