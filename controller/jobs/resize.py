"""Running jobs that shrink to fewer nodes: nodes that failed, and nodes that their owner gives
back.

Place: jobs. Follows: sbatch(1) --no-kill; scontrol(1) update JobId=, NumNodes and
NodeList of a running job. Steps lose what they had on the nodes; a daemon that stands for nodes of
both kinds ends a step only if it had no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed
from understudy.controller.jobs.orders import signal_step, terminate_parts
from understudy.controller.jobs.steps import end_steps
from understudy.controller.scheduling.api import Note
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

SIGKILL: Final = 9


def leave(core: Core, job: Job, lost: int, now: float) -> None:
    """The nodes (a bitmap) are no longer the job's."""
    allocation = job.allocation
    assert allocation is not None
    core.when_resized(job)
    job.resize_time = int(now)
    if job.steps:
        end_steps(core, job, lost)
    table = core.tables.nodes
    held = allocation if job.held is None else job.held
    left = held.without(lost)
    table.release(held, held.nodes)
    table.allocate(left)
    job.allocation, job.held = (
        (left, None) if job.held is None else (allocation.without(lost), left)
    )
    job.node_list = core.names.to_expression(job.allocation.nodes)
    table.note_departure(lost, int(now))
    core.last_node_update = now
    job_changed(core, job, now)


def keep_number(core: Core, job: Job, text: str, now: float) -> None:
    """NumNodes of a running job: it keeps the first of its nodes.

    Raises:
        SlurmError: not a number of nodes that it can be left with.
    """
    held = job.allocation
    if not text.isdecimal() or held is None:
        raise SlurmError(ErrorCode.NOT_PENDING)
    count = int(text)
    if count == held.node_count:
        return
    if not count:
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    if count > held.node_count:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    if job.required_nodes:
        raise SlurmError(ErrorCode.NOT_PENDING)
    shrink(core, job, sum(1 << node for node in nodeset.indices(held.nodes)[:count]), now)


def keep_nodes(core: Core, job: Job, kept: int, now: float) -> None:
    """NodeList of a running job (a bitmap); the node of its script has to be among them.

    Raises:
        SlurmError: not some of its nodes.
    """
    held = job.allocation
    if held is None or not kept or kept & ~held.nodes or not kept >> held.first_node & 1:
        raise SlurmError(ErrorCode.INVALID_NODE)
    job.required_nodes = kept
    if kept != held.nodes:
        shrink(core, job, kept, now)


def shrink(core: Core, job: Job, kept: int, now: float) -> None:
    """The job gives back its nodes but the kept ones (a bitmap), and what it has there ends. While
    its prolog runs its nodes stay as they are.

    Raises:
        SlurmError: its prolog runs.
    """
    held = job.allocation
    assert held is not None
    if job.prolog_nodes:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    before, lost = held.node_count, held.nodes & ~kept
    own = [(daemon, part) for daemon, part in core.parts(lost) if not daemon.nodes & kept]
    ends = [
        step
        for step in job.steps.values()
        if step.is_running and step.open_nodes and not step.open_nodes & kept
    ]
    for step in ends:
        signal_step(core, job, step, SIGKILL, ends=True)
    terminate_parts(core, job, own)
    leave(core, job, lost, now)
    job.min_nodes = job.max_nodes = kept.bit_count()
    if job.num_tasks == before:
        job.num_tasks = job.min_nodes
    core.changed(Note.FREE, now)
