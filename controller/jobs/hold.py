"""Hold, release, and what else `scontrol` does to whole jobs.

Place: jobs. Follows: scontrol(1) hold, uhold, release, requeue, requeuehold. A job
held by an administrator is released by one only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from understudy.controller.core.changes import job_changed
from understudy.controller.jobs.buffers import try_again
from understudy.controller.pending.eligibility import review
from understudy.controller.pending.prioritise import prioritise
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.burst_buffers import FAILED as BUFFER_FAILED
from understudy.controller.tables.het_job import components
from understudy.controller.tables.job import HELD_BY_ADMIN
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

ACTIONS = ("hold", "uhold", "release", "requeue", "requeuehold", "suspend", "resume", "top")
SCHEDULING_FAILED = "JobHeldAdmin, as scheduling it failed"
_BY_ADMIN = (HELD_BY_ADMIN, BUFFER_FAILED)
UNEXPECTED = 1000
ONE = re.compile(r"\d+(_\d+)?")


def hold(core: Core, job: Job, held_by: str, by_admin: bool, now: float) -> None:
    """Keep a pending job from being started. An administrator's hold is changed by administrators
    only.
    """
    if job.held_by in _BY_ADMIN and not by_admin:
        return
    job.priority, job.held_by, job.admin_priority = 0, held_by, None
    job.forget_eligible_time(now)
    if not job.is_pending:  # it is held when it is queued again
        job.reason = held_by
        job_changed(core, job, now)
        return
    job.expected_start, job.expected_nodes = None, 0
    _reviewed(core, job, now)


def set_aside(core: Core, job: Job, now: float) -> None:
    """Hold a pending job, all of it, at which a scheduler has failed."""
    for each in components(job):
        if each.is_pending:
            hold(core, each, HELD_BY_ADMIN, True, now)
            each.reason_detail = SCHEDULING_FAILED


def release(core: Core, job: Job, by_admin: bool, now: float) -> None:
    """Let a held job be started. It gets the priority of a new one."""
    if job.held_by in _BY_ADMIN and not by_admin:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if job.held_by:
        job.forget_eligible_time(now)
    if not job.is_pending:
        if job.held_by:
            job.reason = "None"
        job.priority, job.held_by = core.priorities.assign(job, now), ""
        job_changed(core, job, now)
        return
    job.priority, job.held_by, job.admin_priority = 1, "", None
    job.exit_code = job.exit_signal = 0  # of an earlier run
    advance(job, JobEvent.RELEASED, now)
    if core.tables.burst_buffers:
        try_again(core, job, now)
    _reviewed(core, job, now)


def top(core: Core, job: Job, now: float) -> None:
    """Move a pending job before its user's others of the same partition, account and QOS; they all
    give up, by their nice values, what it gains.
    """
    if not job.is_pending:
        raise SlurmError(ErrorCode.NOT_PENDING)
    if job.priority == 0:
        raise SlurmError(ErrorCode.HELD)
    if len(job.partitions) > 1:
        return

    def kind(each: Job) -> tuple[object, ...]:
        return each.user_id, each.partitions, each.spec.account, each.spec.qos

    others = [
        each
        for each in core.tables.pending.values()
        if each is not job and each.priority and kind(each) == kind(job)
    ]
    gain = max((each.priority for each in others), default=0) - job.priority
    if gain <= 0 or job.admin_priority is not None:
        return
    rest = gain
    for left, each in zip(
        range(len(others), 0, -1), sorted(others, key=lambda each: each.job_id), strict=True
    ):
        _nicer(core, each, rest // left, now)
        rest -= rest // left
    _nicer(core, job, -gain, now)
    core.changed(Note.CHANGE, now)


def _nicer(core: Core, job: Job, more: int, now: float) -> None:
    job.nice += more
    job.priority = max(job.priority - more, 1)
    if job.admin_priority is not None:
        job.admin_priority = job.priority
    job_changed(core, job, now)


def _reviewed(core: Core, job: Job, now: float) -> None:
    if not job.is_completing:
        review(core, job, now)
    prioritise(core, job, now)
    job_changed(core, job, now, Note.CHANGE)
