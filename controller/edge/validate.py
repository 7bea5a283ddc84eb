"""What must always be true of the controller's tables; checked in tests after every stimulus.

Place: edge. Errors carry the story of the job concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.tables.node import takes_jobs
from understudy.model.states import JobFlag, JobState, NodeFlag

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


def validate(core: Core) -> None:
    """Raise AssertionError if the tables contradict each other."""
    tables = core.tables
    for job_id, job in tables.jobs.items():
        assert job.job_id == job_id, job.story
        _validate_job(core, job)
    for listed in (tables.pending, tables.running, core.completing):
        for job_id, job in listed.items():
            assert tables.jobs.get(job_id) is job, f"not in the table: {job.story}"
    _validate_nodes(core)
    _validate_buffers(core)
    for waiting in core.dependents.values():
        for job_id in waiting:
            job_or_none = tables.jobs.get(job_id)
            assert (
                job_or_none is None or job_or_none.dependency is not None or job_or_none.is_finished
            ), job_or_none.story


def _validate_job(core: Core, job: Job) -> None:
    tables = core.tables
    pending, running, completing = (
        job.job_id in listed for listed in (tables.pending, tables.running, core.completing)
    )
    assert pending + running + completing <= 1, f"in two lists: {job.story}"
    assert running == (job.state in (JobState.RUNNING, JobState.SUSPENDED)), (
        f"running list: {job.story}"
    )
    assert completing == job.is_completing, f"completing list: {job.story}"
    assert bool(job.flags & JobFlag.COMPLETING) == completing, f"completing flag: {job.story}"
    assert pending == (job.state is JobState.PENDING and not completing), (
        f"pending list: {job.story}"
    )
    if running or completing:
        assert job.allocation is not None, job.story
        assert job.start_time is not None or completing, job.story
        assert not job.completing_nodes & ~job.allocation.nodes, job.story
    if pending:
        assert job.allocation is None, job.story
        assert job.start_time is None, job.story
        assert (job.priority == 0) == bool(job.held_by), (
            f"priority {job.priority}, held by {job.held_by!r}: {job.story}"
        )
    if job.is_finished:
        assert job.end_time is not None, job.story


def _validate_buffers(core: Core) -> None:
    """Space is with buffers or free, and none is given twice; a buffer has a job that asked for
    it.
    """
    table = core.tables.burst_buffers
    held = [*table.buffers.values(), *table.persistent.values()]
    for name, pool in table.pools.items():
        used = sum(buffer.space.get(name, 0) for buffer in held)
        assert pool.used == used, f"pool {name}: {pool.used} used, buffers have {used}"
    for job_id in table.buffers:
        job = core.tables.jobs.get(job_id)
        assert job is not None, f"a buffer of job {job_id}, which is not there"
        assert job.burst_buffer is not None, job.story
    for job in core.tables.running.values():
        assert job.burst_buffer is None or job.job_id in table.buffers, f"no buffer: {job.story}"


def _validate_nodes(core: Core) -> None:
    nodes = core.tables.nodes
    cpus, memory, count = nodes.cpus.copy(), nodes.memory.copy(), [0] * len(nodes.nodes)
    used = [node.spec_cores for node in nodes.nodes]
    shared = [0] * len(nodes.nodes)
    busy = completing = 0
    for listed in (core.tables.running, core.completing):
        for job in listed.values():
            assert job.allocation is not None
            holding = job.holding
            assert holding is not None
            held = job.completing_nodes & holding.nodes if job.is_completing else holding.nodes
            busy |= held
            completing |= job.completing_nodes
            for share in holding.shares:
                if held >> share.node & 1:
                    cpus[share.node] -= share.cpus if not job.allocation.is_shared else 0
                    memory[share.node] -= share.memory_mb
                    count[share.node] += 1
                    assert not used[share.node] & share.cores, f"cores given twice: {job.story}"
                    if job.allocation.is_shared:
                        shared[share.node] |= share.cores
                    else:
                        assert not shared[share.node] & share.cores, (
                            f"cores given to a job that does not share: {job.story}"
                        )
                        used[share.node] |= share.cores
    for node, cores in enumerate(shared):
        if cores:
            assert not used[node] & cores, (
                f"cores of {nodes.nodes[node].name} shared by a job that does not share"
            )
            used[node] |= cores
            cpus[node] -= cores.bit_count() * nodes.cpus_of_core(node)
    assert (cpus == nodes.free_cpus).all(), "free CPUs are not what jobs leave"
    assert (cpus >= 0).all(), "more CPUs given than there are"
    assert (memory == nodes.free_memory).all(), "free memory is not what jobs leave"
    assert used == nodes.used_cores, "cores in use are not those of the jobs"
    assert count == nodes.job_count.tolist(), "number of jobs on nodes"
    assert nodes.idle_nodes == core.names.all & ~busy, "idle nodes"
    assert nodes.completing_nodes == completing, "completing nodes"
    up = sum(1 << node.index for node in nodes.nodes if takes_jobs(node))
    assert nodes.up_nodes == up, "up nodes"
    boot = sum(
        1 << node.index
        for node in nodes.nodes
        if node.flags & (NodeFlag.POWERED_DOWN | NodeFlag.POWERING_UP)
    )
    assert nodes.boot_nodes == boot or core.power is None, "nodes that have to boot"
