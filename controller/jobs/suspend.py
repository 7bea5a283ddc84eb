"""Suspended jobs: their processes stand still, and their clock with them; others may have their
CPUs, while memory, licences and GRES stay theirs.

Place: jobs. Follows: scontrol(1) suspend, resume. What a suspended job still holds
of the node table is its memory and its generic resources. A job that is resumed does not wait for
its CPUs: where another has them by then, both run on them, and the table counts them once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from understudy.controller.core.alarms import watch_configuration, watch_limits
from understudy.controller.core.changes import job_changed
from understudy.controller.jobs.orders import signal_job, signal_steps
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.allocation import Allocation, NodeShare
from understudy.controller.tables.job import count_suspension
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.shared_cores import cores_of
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable

_SIGCONT: Final = 18
_SIGSTOP: Final = 19


def suspend(core: Core, job: Job, now: float) -> None:
    """What `scontrol suspend` does; a job that is suspended already stays so, and is not resumed by
    gang scheduling any more.

    Raises:
        SlurmError: it is pending or over.
    """
    _require_active(job)
    core.preempt_suspended.pop(job.job_id, None)
    job.priority, job.preempt_suspended = 0, False
    if core.gang is not None and core.gang.has(job):
        was_its_turn = job.is_running
        if was_its_turn:
            stop(core, job, now, in_row=True)
        core.gang.remove(job, now)
        if was_its_turn:  # one that waits for its turn keeps its place
            give_up(core, job)
        core.changed(Note.CHANGE, now)
    elif job.is_running:
        stop(core, job, now)
    job_changed(core, job, now)


def resume(core: Core, job: Job, now: float) -> None:
    """What `scontrol resume` does. The job gets the priority of a new one, even if it was held.

    Raises:
        SlurmError: it is pending, over, or not suspended.
    """
    _require_active(job)
    if job.is_running or (core.gang is not None and core.gang.has(job)):
        raise SlurmError(ErrorCode.NOT_SUSPENDED)
    if not job.priority:
        job.priority, job.held_by = core.priorities.assign(job, now), ""
    continue_job(core, job, now, in_row=job.held is None)
    if (
        core.gang is not None
        and job.held is None
        and job.allocation is not None
        and job.allocation.is_shared
    ):
        core.gang.add_running(job)


def _require_active(job: Job) -> None:
    if job.is_pending:
        raise SlurmError(ErrorCode.JOB_PENDING)
    if not job.is_active:
        raise SlurmError(ErrorCode.ALREADY_DONE)


def stop(core: Core, job: Job, now: float, *, in_row: bool = False) -> None:
    """Suspend a running job; `in_row`: it keeps its place among jobs that run in turn, and its CPUs
    there.
    """
    assert job.allocation is not None
    assert job.start_time is not None
    signal_job(core, job, _SIGSTOP, batch_only=False)
    signal_steps(core, job, _SIGSTOP)
    advance(job, JobEvent.SUSPENDED, now)
    job.pre_suspend_s += int(now) - (
        job.start_time if job.suspend_time is None else job.suspend_time
    )
    job.suspend_time = int(now)
    if in_row:
        _changed(core, job, now, what=Note.TURN)
        return
    give_up(core, job)
    _changed(core, job, now)


def continue_job(core: Core, job: Job, now: float, *, in_row: bool = False) -> None:
    """Resume a suspended job. The time that it stood still does not count against its limit.
    `in_row`: as in `stop`.
    """
    assert job.suspend_time is not None
    core.preempt_suspended.pop(job.job_id, None)
    job.preempt_suspended = False
    advance(job, JobEvent.RESUMED, now)
    count_suspension(job, now)
    if job.end_time is not None and job.preempt_time is None:
        job.end_time += int(now) - job.suspend_time
    job.suspend_time = int(now)
    watch_limits(core, job)
    if job.flags & JobFlag.CONFIGURING:  # its nodes may have come up while it stood still
        watch_configuration(core, job)
    if not in_row:
        hold_again(core, job)
    signal_steps(core, job, _SIGCONT)
    signal_job(core, job, _SIGCONT, batch_only=False)
    _changed(core, job, now, what=Note.TURN if in_row else Note.CHANGE)


def preempt_suspend(core: Core, job: Job, now: float) -> None:
    """Suspend a job that another preempts, until its CPUs are free again."""
    job.preempt_suspended = True
    core.preempt_suspended[job.job_id] = job
    if core.gang is None or not core.gang.has(job):
        stop(core, job, now)
        return
    if job.is_running:
        stop(core, job, now, in_row=True)
    core.gang.remove(job, now)  # in its row it would keep all others from running
    give_up(core, job)
    core.changed(Note.CHANGE, now)


def resume_preempted(core: Core, now: float) -> None:
    """Something has come free: jobs suspended by preemption resume where all their CPUs are free,
    those of higher partitions first.
    """

    def rank(job: Job) -> tuple[int, int, int]:
        partition = core.tables.partitions.get(job.partition)
        return (
            -partition.priority_tier if partition is not None else 0,
            job.suspend_time or 0,
            job.job_id,
        )

    for job in sorted(core.preempt_suspended.values(), key=rank):
        if job.state is not JobState.SUSPENDED:
            del core.preempt_suspended[job.job_id]
        elif _has_its_cores(core.tables.nodes, job):
            continue_job(core, job, now)
            if core.gang is not None and job.allocation is not None and job.allocation.is_shared:
                core.gang.add(job, now)


def _has_its_cores(table: NodeTable, job: Job) -> bool:
    assert job.allocation is not None
    if job.allocation.nodes & table.exclusive_nodes:
        return False
    used = table.used_cores
    return not any(used[share.node] & share.cores for share in job.allocation.shares)


def _changed(core: Core, job: Job, now: float, *, what: Note = Note.CHANGE) -> None:
    """`what`: a turn is news to the backfill scheduler alone, since nobody else's CPUs have come
    free.
    """
    core.last_node_update = now
    job_changed(core, job, now, what)


# --- what such jobs hold in the node table --------------------------------------------------------


def give_up(core: Core, job: Job) -> None:
    """The job's CPUs are free; its memory is not."""
    held = job.holding
    assert held is not None
    core.tables.nodes.release(held, held.nodes)
    job.held = Allocation.of_groups(
        tuple(
            structs.replace(group, cpus=0, cores=0)
            for group in held.groups
            if group.memory_mb or group.gres
        )
    )
    if job.held.nodes:
        core.tables.nodes.allocate(job.held)
    core.crowded.pop(job.job_id, None)
    reclaim_shared(core)


def hold_again(core: Core, job: Job) -> None:
    """The job's CPUs are its own again, as far as nobody else has them."""
    if job.held is not None and job.held.nodes:
        core.tables.nodes.release(job.held, job.held.nodes)
    if core.gang is not None and _may_share(core.tables.nodes, job):
        assert job.allocation is not None
        job.held = None
        core.tables.nodes.allocate(job.allocation)
    else:
        take_what_is_free(core, job)


def _may_share(table: NodeTable, job: Job) -> bool:
    """Whether whoever has the job's cores shares them."""
    allocation = job.allocation
    if allocation is None or not allocation.is_shared or allocation.nodes & table.exclusive_nodes:
        return False
    cores, used = cores_of(allocation), table.used_cores
    shared = table.sharing.on(cores)
    return not any(used[node] & ~shared[node] & mask for node, mask in cores.items())


def take_what_is_free(core: Core, job: Job) -> None:
    """Count in the table what of the job's allocation nobody else holds."""
    allocation, table = job.allocation, core.tables.nodes
    assert allocation is not None
    job.held = _uncontested(table, allocation)
    core.crowded.pop(job.job_id, None)
    if job.held is not None:
        core.crowded[job.job_id] = job
    held = job.holding
    assert held is not None
    if held.nodes:
        table.allocate(held, whole=allocation.whole)


def _uncontested(table: NodeTable, allocation: Allocation) -> Allocation | None:
    """What of the allocation nobody else has; None: all."""
    if not allocation.nodes & ~table.idle_nodes:
        return None
    used, memory = table.used_cores, table.free_memory
    shares = []
    is_whole = True
    for share in allocation.shares:
        cores = share.cores & ~used[share.node]
        cpus = share.cpus * cores.bit_count() // max(share.cores.bit_count(), 1)
        left = min(share.memory_mb, int(memory[share.node]))
        is_whole = is_whole and (cores, left) == (share.cores, share.memory_mb)
        shares.append(NodeShare(share.node, cpus, cores, left, share.tasks, share.gres))
    return None if is_whole and not allocation.whole else Allocation.of_shares(shares)


def hold_what_is_free(core: Core, job: Job) -> None:
    """After a restart: as before, a suspended job holds its memory, and one that was resumed what
    it does not share.
    """
    take_what_is_free(core, job)
    if job.state is JobState.SUSPENDED:
        give_up(core, job)
    if job.preempt_suspended:
        core.preempt_suspended[job.job_id] = job


def reclaim_shared(core: Core, _now: float = 0.0) -> None:
    """Something has come free: jobs that shared CPUs hold them alone now."""
    for job in list(core.crowded.values()):
        if job.state is not JobState.RUNNING:
            del core.crowded[job.job_id]
            continue
        held = job.holding
        assert held is not None
        if held.nodes:
            core.tables.nodes.release(held, held.nodes)
        take_what_is_free(core, job)
