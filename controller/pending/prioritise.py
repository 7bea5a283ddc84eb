"""Priorities: when jobs get theirs, and when all are calculated again.

Place: pending, between the handlers and the plug-in (understudy.controller.priority).
A job that is held has priority 0, one whose priority an administrator has set keeps it. Periods
cost nothing while no job is pending: the plug-in brings use up to date when it is asked next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import jobs_shown_anew
from understudy.controller.scheduling.api import Note

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

LONGEST_HOPE_S: Final = 7 * 86_400
BEHIND_OTHERS: Final = ("Priority", "None")


def update_accrual(core: Core, now: float) -> None:
    """See whose age counts, where that is limited."""
    if core.job_limits is not None and core.job_limits.enforced:
        core.job_limits.update_accrual(now)


def prioritise(core: Core, job: Job, now: float) -> None:
    """Give a job that is ready for the queue its priority, unless it is held or an administrator's
    matters; and see to the next period.
    """
    if job.priority and job.admin_priority is None:
        job.priority = core.priorities.assign(job, now)
    arm(core, now)


def arm(core: Core, now: float) -> None:
    """Set the timer to the next calculation."""
    if core.priority_timer is not None:
        # periods have one length: an earlier end than the one that is waited for does not come
        return
    when = core.priorities.next_calculation(now)
    if when is not None:
        core.priority_timer = (
            when,
            core.periodically(when, lambda: _may_let_start(core), _calculate, core),
        )


def _may_let_start(core: Core) -> bool:
    """Whether other priorities could let a job start: one that may start waits for its turn behind
    others. That is not hoped for longer than age counts, and at most a week after anything else has
    happened to jobs and nodes.
    """
    tables, now = core.tables, core.time.now()
    stamp = (
        core.next_job_id,
        core.counters.started,
        len(tables.pending),
        len(tables.running),
        tables.nodes.generation,
        core.last_partition_update,
    )
    if core.order_stamp is None or core.order_stamp[1] != stamp:
        core.order_stamp = (now, stamp)
    if now - core.order_stamp[0] > min(core.priorities.longest_age_s, LONGEST_HOPE_S):
        return False
    return any(
        job.reason in BEHIND_OTHERS and job.is_eligible(now) for job in tables.pending.values()
    )


def _calculate(core: Core) -> None:
    core.priority_timer = None
    now = core.time.now()
    try:
        update_accrual(core, now)
        if core.priorities.calculate(now):
            jobs_shown_anew(core, now)
            core.changed(Note.PRIORITY, now)
    finally:
        arm(core, now)
