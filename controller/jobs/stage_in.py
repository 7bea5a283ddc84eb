"""Whose buffers are staged in when, as far as that is not the turn of a single job in the queue.

Place: jobs; between schedulers (`scheduling/api.py`, Planner) and the lives of buffers
(`jobs/buffers.py`). Follows Slurm's guide to burst buffers, and slurm.conf(5) bb_array_stage_cnt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.jobs.buffers import revoke, stage_in
from understudy.controller.pending.arrays import split
from understudy.controller.tables.burst_buffers import BufferState
from understudy.model.burst_buffers import DATAWARP, reserved_space

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

AHEAD_S: Final = 36_000  # jobs expected to start later get no buffer yet


def stage_expected(core: Core, now: float) -> None:
    """A pass is over: those that are expected to start soon get buffers, in the order of that, up
    to the first for which there is no space. Who asks for more than there is is passed over.
    """
    table = core.tables.burst_buffers
    due = [
        (job.expected_start, job.job_id, job)
        for job in core.tables.pending.values()
        if job.burst_buffer is not None
        and not job.array_tasks
        and job.job_id not in table.buffers
        and job.expected_start is not None
        and job.expected_start <= now + AHEAD_S
        and job.is_eligible(now)
    ]
    for _, _, job in sorted(due, key=lambda each: each[:2]):
        if table.exceeds(job) or stage_in(core, job, now):
            continue
        if not table.is_free(table.wanted(job), job.spec.reservation):
            if table.kind == DATAWARP:
                _revoke_for(core, job, now)
            return


def _revoke_for(core: Core, job: Job, now: float) -> None:
    """Space for the job, of what is staged for jobs that are expected later, the latest first: if
    that is enough.
    """
    table, jobs = core.tables.burst_buffers, core.tables.jobs
    missing = {
        name: amount - table.pools[name].free
        for name, amount in table.wanted(job).items()
        if amount > table.pools[name].free
    }
    coming = [
        buffer
        for buffer in table.buffers.values()
        if buffer.state is BufferState.TEARDOWN and jobs[buffer.job_id].is_pending
    ]
    later = [
        other
        for buffer in table.buffers.values()
        if buffer.state in (BufferState.STAGING_IN, BufferState.STAGED_IN)
        and not buffer.has_failed
        and (other := jobs[buffer.job_id]).is_pending
        and (other.expected_start is None or other.expected_start > (job.expected_start or 0))
        and not missing.keys().isdisjoint(buffer.space)
    ]
    later.sort(key=lambda each: (-(each.expected_start or 2**62), -each.job_id))
    for buffer in coming:
        _count(missing, buffer.space)
    chosen: list[Job] = []
    while missing and later:
        chosen.append(later.pop(0))
        _count(missing, table.buffers[chosen[-1].job_id].space)
    if not missing:
        for each in chosen:
            revoke(core, each, now)


def _count(missing: dict[str, int], space: dict[str, int]) -> None:
    """That much will be free."""
    for name, amount in space.items():
        if name in missing:
            missing[name] -= amount
            if missing[name] <= 0:
                del missing[name]


def prepare(core: Core, now: float) -> None:
    """A pass is about to look at the queue."""
    table = core.tables.burst_buffers
    default = core.settings.burst_buffer.default_pool or next(iter(table.pools), "")
    table.reserved = {
        each.name: reserved_space(each.burst_buffer, table.kind, default)
        for each in core.tables.reservations
        if each.burst_buffer and each.is_active(now)
    }
    if core.policy.stages_buffers:
        _split_arrays(core)


def _split_arrays(core: Core) -> None:
    """Of arrays that ask for buffers some tasks get records of their own, as the array's has no
    buffer: of those that are held or wait for others, too.
    """
    for array in core.arrays.values():
        records = list(array.records.values())
        whole = next((job for job in records if job.array_tasks and job.is_pending), None)
        if whole is None or whole.burst_buffer is None:
            continue
        alone = sum(1 for job in records if job.is_pending and not job.array_tasks)
        while whole.array_tasks and alone < core.settings.array_stage_count:
            split(core, whole, (whole.array_tasks & -whole.array_tasks).bit_length() - 1)
            alone += 1
