"""Coming back: saved jobs go into the tables, as they were.

Place: saved. Running jobs go on: their node daemons know them, and what has ended
meanwhile is reported again until it is acknowledged. A job of which it is not known whether its
launch arrived is launched again when its node daemon registers
(understudy.controller.nodes.events). A job on nodes that are no longer where they were in
slurm.conf is lost, as if its nodes had failed, and so is one that waits for a node which is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.alarms import (
    wait_until,
    watch_configuration,
    watch_deadline,
    watch_limits,
)
from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import LOCAL_IDS, log
from understudy.controller.jobs.buffer_requests import request_again
from understudy.controller.jobs.buffers import resume as resume_buffers
from understudy.controller.jobs.end import end_pending
from understudy.controller.jobs.gang import takes_turns
from understudy.controller.jobs.launch import buffer_is_ready
from understudy.controller.jobs.suspend import hold_what_is_free
from understudy.controller.nodes.reboot import recover_reboots
from understudy.controller.pending.arrays import restore
from understudy.controller.pending.dependencies import watch_dependency
from understudy.controller.pending.eligibility import review
from understudy.controller.pending.prioritise import arm as arm_priorities
from understudy.controller.pending.purge import schedule_purge
from understudy.controller.reservations.over_time import watch_end
from understudy.controller.saved.node_order import wants_what_is_gone
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.het_job import restore as restore_component
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model import nodeset
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable


def recover(core: Core, jobs: Iterable[Job]) -> None:
    """Put saved jobs (by ascending id) into the tables, and set all timers that go with them. The
    policy must be there already.
    """
    now = core.time.now()
    tables = core.tables
    nodes = tables.nodes
    nodes.reconfigured()
    nodes.set_availabilities(nodes.nodes)
    count = 0
    for job in jobs:
        count += 1
        tables.jobs[job.job_id] = job
        if tables.burst_buffers and (lines := job.spec.extra.get("bb")):
            job.burst_buffer = request_again(core, lines)
        if job.array is not None:
            restore(core, job, job.array)
        if job.het is not None:
            restore_component(core.tables.jobs, job, job.het, job.het_offset)
        core.next_job_id = max(core.next_job_id, (job.job_id & LOCAL_IDS) + 1)
        if job.is_completing or job.is_active:
            if job.allocation is None or _has_moved(core, job):
                _lose(core, job, now)
            elif not _fits(core, job.allocation):
                _lose(core, job, now, "which has become smaller")
            else:
                _take_back(core, job)
        elif job.is_pending:
            tables.pending[job.job_id] = job
        else:
            schedule_purge(core, job, job.end_time or now)
    for job in tables.pending.values():
        if job.dependency is not None:
            watch_dependency(core, job)
    for job in [job for job in tables.pending.values() if wants_what_is_gone(core, job)]:
        _lose_pending(core, job, now)
    for job in list(tables.pending.values()):
        review(core, job, now)
        if job.begin_time is not None and job.begin_time > now:
            wait_until(core, job.begin_time, job.job_id)
        watch_deadline(core, job)
    if count:
        log.info("Recovered information about %d jobs", count)
    if tables.burst_buffers:
        resume_buffers(core, now, buffer_is_ready)
    recover_reboots(core, now)
    if core.gang is not None:
        core.gang.recover(now)
    if core.power is not None:
        core.power.recover(now)
    arm_priorities(core, now)
    core.changed(Note.CHANGE, now)


def _has_moved(core: Core, job: Job) -> bool:
    assert job.allocation is not None
    try:
        return core.names.to_bitmap(job.node_list) != job.allocation.nodes
    except ValueError:
        return True


def _fits(core: Core, allocation: Allocation) -> bool:
    """Whether the nodes have what the job holds of them: they may have been other ones when it
    started.
    """
    table = core.tables.nodes
    for group in allocation.groups:
        for index in nodeset.indices(group.nodes):
            node = table.nodes[index]
            cores = (1 << node.sockets * node.cores_per_socket) - 1 & ~node.spec_cores
            if group.cpus > node.effective_cpus or group.cores & ~cores:
                return False
    return True


def _lose(
    core: Core,
    job: Job,
    now: float,
    why: str = "which slurm.conf does not have any more, or elsewhere",
) -> None:
    log.error("job %d ran on %s, %s", job.job_id, job.node_list, why)
    runs_again = job.is_active and job.requeue and not job.interactive
    if job.is_active:
        advance(job, JobEvent.NODE_FAILED, now)
        job.end_time, job.reason = int(now), "NodeDown"
    advance(job, JobEvent.NODES_FREED, now)
    job.completing_nodes, job.allocation = 0, None
    if runs_again:
        advance(job, JobEvent.REQUEUED, now)
    if job.is_pending:
        job.start_time = job.end_time = job.eligible_time = None
        job.restarts += 1
        job.node_list = ""
        core.tables.pending[job.job_id] = job
    else:
        schedule_purge(core, job, now)
    job_changed(core, job, now)


def _lose_pending(core: Core, job: Job, now: float) -> None:
    """A job that waits for a node by name does not run anywhere else (as 22.05.8)."""
    wanted = job.spec.required_nodes
    log.error("job %d waits for %s, which slurm.conf does not have any more", job.job_id, wanted)
    end_pending(core, job, JobEvent.NODE_FAILED, now, reason="NodeDown")


def _is_free(nodes: NodeTable, allocation: Allocation) -> bool:
    """Whether nobody holds the cores but those with whom it shares them; two other jobs may share
    some after one was suspended and resumed.
    """
    if not allocation.nodes & ~nodes.idle_nodes:
        return True
    used, shares = nodes.used_cores, allocation.shares
    beside = nodes.sharing.on(share.node for share in shares) if allocation.is_shared else {}
    return not any(used[share.node] & share.cores & ~beside.get(share.node, 0) for share in shares)


def _take_back(core: Core, job: Job) -> None:
    """A job that holds nodes holds them again."""
    nodes = core.tables.nodes
    allocation = job.allocation
    assert allocation is not None, job.story
    if job.is_active:
        if core.gang is not None and takes_turns(job):
            nodes.allocate(allocation)
        elif (
            job.state is JobState.SUSPENDED
            or job.held is not None
            or not _is_free(nodes, allocation)
        ):
            hold_what_is_free(core, job)
        else:
            nodes.allocate(allocation)
        core.tables.running[job.job_id] = job
        core.tables.licenses.take(job.job_id, job.spec.licenses)
        watch_limits(core, job)
        # nobody knows any more what it waits for
        if job.flags & JobFlag.CONFIGURING and core.power is None:
            watch_configuration(core, job)
        watch_end(core, job)
        core.priorities.started(job, core.time.now())
        if job.array is not None:
            job.array.running += 1
        return
    # others may be on what it has given back
    job.held = allocation.without(allocation.nodes & ~job.completing_nodes)
    nodes.allocate(job.held)
    core.completing[job.job_id] = job
    nodes.completing_nodes |= job.completing_nodes
