"""The end of running jobs: from the script's end to the return of the last node.

Place: jobs. A job's end has three steps: its state becomes final and `COMPLETING` is set
(`end_job`), the node daemons end what is left of it and run the epilog, and as each says so
(`epilog_complete`) its nodes are given back. What follows from each is in `edge/reactions.py`.
Follows: squeue(1) on states and reasons.
"""

from __future__ import annotations

from signal import SIGKILL
from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed, job_over
from understudy.controller.core.reactions import End
from understudy.controller.pending.awaited import REASON as PROLOG_REASON
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.het_job import others
from understudy.controller.tables.job import HELD_BY_ADMIN, HELD_BY_USER, count_suspension
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model.bits import without
from understudy.model.states import JobState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

_HELD: Final = (HELD_BY_ADMIN, HELD_BY_USER)


def end_job(
    core: Core, job: Job, event: JobEvent, now: float, *, reason: str, lost_nodes: int = 0
) -> None:
    """End a running job and have its nodes cleaned up; `lost_nodes` (a bitmap) are clean or do not
    answer, and the caller gives them back.
    """
    allocation = job.allocation
    assert allocation is not None
    if job.state is JobState.SUSPENDED:
        count_suspension(job, now)
        job.suspend_time = int(now)
        if event is JobEvent.CANCELLED:
            job.exit_signal = job.exit_signal or int(SIGKILL)  # its processes sleep
    advance(job, event, now)
    job.end_time = int(now)
    shown = PROLOG_REASON if job.prolog_nodes and reason == "None" else reason
    if shown != "None" or job.reason not in _HELD:  # it may have been held while it ran
        job.reason, job.reason_detail = shown, ""
    job.prolog_nodes = 0
    job.completing_nodes = allocation.nodes
    tables = core.tables
    del tables.running[job.job_id]
    if job.array is not None:
        job.array.running -= 1
        if job.array.limit:
            core.changed(Note.MET, now)  # another task may run now
    core.completing[job.job_id] = job
    tables.nodes.completing_nodes |= allocation.nodes
    core.last_node_update = now
    end = End(event, reason, lost_nodes)
    for react in core.reactions.ended:
        react(core, job, end, now)


def end_pending(core: Core, job: Job, event: JobEvent, now: float, *, reason: str) -> None:
    """End a job that waits: it will not run any more."""
    del core.tables.pending[job.job_id]
    advance(job, event, now)
    job.reason, job.reason_detail = reason, ""
    job.start_time = job.end_time = int(now)
    job_over(core, job, now)


def end_components(core: Core, job: Job, end: End, now: float) -> None:
    """The components of a heterogeneous job end with their leader."""
    if job.het is None:
        return
    for other in others(job):
        if not other.is_finished and other.allocation is not None and not other.is_pending:
            other.exit_code, other.exit_signal, other.killed_by = (
                job.exit_code,
                job.exit_signal,
                job.killed_by,
            )
            end_job(core, other, end.event, now, reason=end.reason)


def give_back(core: Core, job: Job, nodes: int, now: float, *, by_epilog: bool = False) -> None:
    """The nodes (a bitmap) that a completing job held are free again; `by_epilog`: they said so."""
    if not nodes:
        return
    allocation = job.allocation
    assert allocation is not None
    table = core.tables.nodes
    if job.held is None:
        table.release(allocation, nodes)
    elif job.held.nodes & nodes:
        table.release(job.held, nodes)
    job.completing_nodes = without(job.completing_nodes, nodes)
    freed = nodes
    if len(core.completing) > 1:
        for other in core.completing.values():
            freed = without(freed, other.completing_nodes)
    table.completing_nodes = without(table.completing_nodes, freed)
    table.note_departure(nodes & table.idle_nodes, int(now))
    for react in core.reactions.freed:
        react(core, job, nodes, now)
    core.last_node_update = now
    if job.completing_nodes:
        # before others start on these nodes: after a crash they must not be taken for this job's
        job_changed(core, job, now)
    else:
        _all_given_back(core, job, now)
    if job.completing_nodes:
        note = Note.PARTLY_FREE  # Slurm asks for no run before all of them are clean
    else:
        note = Note.FREE if job.script_ended or not by_epilog else Note.CLEANED
    core.changed(note, now)


def _all_given_back(core: Core, job: Job, now: float) -> None:
    del core.completing[job.job_id]
    advance(job, JobEvent.NODES_FREED, now)
    for takes in core.reactions.emptied:
        if takes(core, job, now):
            return
    job_over(core, job, now)
