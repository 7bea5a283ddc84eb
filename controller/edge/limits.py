"""The limits of associations and QOS with what they need of the controller: its clock, its jobs,
and somebody who ends those that have used up theirs.

Place: the edge; `enforcement/` is pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.alarms import next_check
from understudy.controller.enforcement.limits import JobLimits
from understudy.controller.facts.job import node_count
from understudy.controller.jobs.end import end_job
from understudy.controller.pending.arrays import split
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job_states import JobEvent
from understudy.model import nodeset

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.priority.options import PriorityOptions

PHASE_S = 1  # periods count from a second after the controller's start, as those of priorities do


class _Alarm:
    """Has jobs checked again when a period has passed; one timer at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._is_set = False

    def __call__(self, when: float) -> None:
        if not self._is_set:
            self._is_set = True
            self._core.periodically(max(when, self._core.time.now() + 1), self._matters, self._ring)

    def _matters(self) -> bool:
        """Whether time alone may let a job start: one that is kept by what was used, which becomes
        less.
        """
        limits, tables, now = self._core.job_limits, self._core.tables, self._core.time.now()
        if limits is None or not limits.enforced:
            return False
        return any(
            limits.time_may_let(job, partition)
            for job in tables.pending.values()
            if job.is_eligible(now)
            for name in job.partitions
            if (partition := tables.partitions.get(name)) is not None
        )

    def _ring(self) -> None:
        self._is_set = False
        if self._core.tables.pending:
            self._core.changed(Note.CHANGE, self._core.time.now())


class _Bailiff:
    """Ends jobs whose association or QOS has used up its minutes, when time limits are
    checked.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._is_set = False

    def __call__(self, when: float) -> None:
        if not self._is_set:
            self._is_set = True
            self._core.periodically(
                next_check(self._core, max(when, self._core.time.now() + 1)),
                self._matters,
                self._check,
            )

    def _matters(self) -> bool:
        return any(job.is_running for job in self._core.tables.running.values())

    def _check(self) -> None:
        self._is_set = False
        limits, now = self._core.job_limits, self._core.time.now()
        if limits is not None and limits.enforced:
            for job in limits.overdrawn(now):
                if job.is_running:
                    end_job(self._core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit")


def make_limits(core: Core, options: PriorityOptions, *, counts_use: bool) -> JobLimits:
    """The limits of this cluster, with nothing counted yet; `counts_use`: PriorityType does it, all
    but priority/basic.
    """
    return JobLimits(
        core.tables,
        lambda: core.associations,
        core.users.user_name,
        core.settings.enforced,
        origin=int(core.start_time) + PHASE_S,
        period_s=options.calc_period_s,
        half_life_s=options.half_life_s,
        reset_period=options.reset_period,
        takes_largest="MAX_TRES" in options,
        counts_use=counts_use,
        # who drives virtual time wants it fast, and asks about limits alone
        counts_always=not core.time.is_virtual,
        wake=_Alarm(core),
        watch=_Bailiff(core),
        split=lambda job: split(core, job, nodeset.first(job.array_tasks)),
        nodes_of=lambda job: node_count(core, job, core.time.now()),
    )
