"""Hold, release, and what else `scontrol` does to whole jobs.

Place: the controller's core. Follows: scontrol(1) hold, uhold, release, requeue, requeuehold. A job held by an administrator is released by one only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.arrays import for_each
from understudy.controller.eligibility import review
from understudy.controller.job import HELD_BY_ADMIN, HELD_BY_USER
from understudy.controller.prioritise import prioritise
from understudy.controller.requeue import requeue
from understudy.model.errors import SlurmError
from understudy.model.states import JobFlag
from understudy.protocol.messages import JobResults

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import ControlJobs

ACTIONS = ("hold", "uhold", "release", "requeue", "requeuehold")
NOT_SUPPORTED = 2036


def control_jobs(core: Core, message: ControlJobs, sender: Sender) -> JobResults:
    """Do the same with each job named, or with all that match."""
    if message.action not in ACTIONS:
        raise SlurmError(NOT_SUPPORTED)
    now = core.time.now()

    def act(job: Job) -> None:
        _act(core, job, message.action, sender, now)

    return JobResults(for_each(core, message.job_ids, message.where, act))


def _act(core: Core, job: Job, action: str, sender: Sender, now: float) -> None:
    by_admin = core.is_admin(sender.user_id)
    if job.user_id != sender.user_id and not by_admin:
        raise SlurmError(2010)
    if action in ("requeue", "requeuehold"):
        requeue(core, job, now, hold=action == "requeuehold", held_by=HELD_BY_ADMIN if by_admin else HELD_BY_USER)
    elif action == "release":
        release(core, job, by_admin, now)
    else:
        hold(core, job, HELD_BY_ADMIN if by_admin and action == "hold" else HELD_BY_USER, by_admin, now)


def hold(core: Core, job: Job, held_by: str, by_admin: bool, now: float) -> None:
    """Keep a pending job from being started. An administrator's hold is changed by administrators only."""
    if not job.is_pending:
        raise SlurmError(2073)
    if job.held_by == HELD_BY_ADMIN and not by_admin:
        raise SlurmError(2002)
    job.priority, job.held_by, job.admin_priority = 0, held_by, None
    job.expected_start, job.expected_nodes = None, 0
    _reviewed(core, job, now)


def release(core: Core, job: Job, by_admin: bool, now: float) -> None:
    """Let a held job be started. It gets the priority of a new one."""
    if not job.is_pending:
        raise SlurmError(2073)
    if job.priority and job.admin_priority is None:
        return
    if job.held_by == HELD_BY_ADMIN and not by_admin:
        raise SlurmError(2002)
    job.priority, job.held_by, job.admin_priority = 1, "", None
    job.flags &= ~JobFlag.RESV_DEL_HOLD
    _reviewed(core, job, now)


def _reviewed(core: Core, job: Job, now: float) -> None:
    if not job.is_completing:
        review(core, job, now)
    prioritise(core, job, now)
    core.last_job_update = now
    core.journal.job(job.job_id)
    core.changed("change", now)
