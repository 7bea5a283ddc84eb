"""Priorities: when jobs get theirs, and when all are calculated again.

Place: the controller's core, between the handlers and the plug-in (understudy.controller.priority). A job that is held has priority 0, one whose
priority an administrator has set keeps it. Periods cost nothing while no job is pending: the plug-in brings use up to date when it is asked next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job


def settle_accrual(core: Core, now: float) -> None:
    """See whose age counts, where that is limited."""
    if core.job_limits is not None and core.job_limits.enforced:
        core.job_limits.settle_accrual(now)


def prioritise(core: Core, job: Job, now: float) -> None:
    """Give a job that is ready for the queue its priority, unless it is held or an administrator's matters; and see to the next period."""
    if job.priority and job.admin_priority is None:
        job.priority = core.priorities.assign(job, now)
    arm(core, now)


def arm(core: Core, now: float) -> None:
    """Set the timer to the next calculation."""
    if core.priority_timer is not None:
        return  # periods have one length: an earlier end than the one that is waited for does not come
    when = core.priorities.next_calculation(now)
    if when is not None:
        core.priority_timer = (when, core.at(when, _calculate, core))


def _calculate(core: Core) -> None:
    core.priority_timer = None
    now = core.time.now()
    settle_accrual(core, now)
    if core.priorities.calculate(now):
        core.last_job_update = now
        core.changed("priority", now)
    arm(core, now)
