"""What is free for a job that may share cores, row by row, and which nodes belong to one user.

Place: scheduling, pure. A job that may share first looks for cores that are idle, then in each row
of its partition for cores that nobody has in that row, and at last in a row of its own. Jobs that
share in other partitions of no higher tier do not count there. Cores of jobs that do not share are
never shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.scheduling.select.free import Overlay, StateAfter, StateWithout
from understudy.controller.scheduling.select.request import shares_cores, sharing_rows
from understudy.controller.tables.shared_cores import cores_of, laid_out, size
from understudy.model import nodeset
from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.scheduling.select.request import Request
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.preemption import Preemption
    from understudy.controller.tables.shared_cores import Cores
    from understudy.controller.tables.tables import Tables

_UNSHARED: Final = ("NO", "EXCLUSIVE")


@dataclass(slots=True, eq=False)
class RowView(Overlay):
    """A `Free` in which only some of the sharing jobs are seen."""

    table: NodeTable
    used: Cores  # cores in use, on the nodes on which jobs share
    free_cpus: NDArray[np.int64] = field(init=False)
    idle_nodes: int = field(init=False)
    full_nodes: int = field(init=False)
    # ids of jobs that are taken not to be there, where not just their cores matter
    hidden: frozenset[int] = frozenset()
    memory: NDArray[np.int64] | None = None  # free MB, where it is not that of the state below

    def __post_init__(self) -> None:
        table, base = self.table, self.base
        self.free_cpus = base.free_cpus.copy()
        idle = full = 0
        for node, cores in self.used.items():
            free = int(table.cpus[node]) - (
                cores & ~table.nodes[node].spec_cores
            ).bit_count() * table.cpus_of_core(node)
            self.free_cpus[node] = free
            idle |= 0 if cores & ~table.nodes[node].spec_cores else 1 << node
            full |= 0 if free else 1 << node
        seen = nodeset.from_positions(self.used)
        self.idle_nodes = base.idle_nodes & ~seen | idle
        self.full_nodes = base.full_nodes & ~seen | full

    @property
    def free_memory(self) -> NDArray[np.int64]:
        return self.base.free_memory if self.memory is None else self.memory

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Bit masks of the cores in use on these nodes (indices)."""
        return [
            self.used.get(node, used)
            for node, used in zip(nodes.tolist(), self.base.used_cores_of(nodes), strict=True)
        ]


def views(request: Request, tables: Tables, free: Free) -> Iterator[Free]:
    """What is free for a job that shares, row by row of its partition, whatever jobs of others that
    are not higher share.
    """
    table = tables.nodes
    shared, above = _shared(tables.partitions[request.partition], tables, free)
    if not shared:
        return
    rows = _rows(request.shared_in, table, free)
    where = nodeset.positions_array(nodeset.from_positions(shared))
    in_use = zip(where.tolist(), free.used_cores_of(where), strict=True)
    others = {node: used & ~shared[node] | above.get(node, 0) for node, used in in_use}
    seen = rows[: request.rows]
    if len(rows) < request.rows:
        seen = [*rows, {}]
    for row in seen:
        yield RowView(free, table, {node: used | row.get(node, 0) for node, used in others.items()})


def under(free: Free) -> Free:
    """The state of which that one shows only some jobs: who shares is the same there."""
    return under(free.base) if isinstance(free, RowView) else free


def hidden_in(free: Free) -> frozenset[int]:
    """The ids of the jobs that are taken not to be there."""
    return free.hidden if isinstance(free, RowView) else frozenset()


def _shared(partition: Partition, tables: Tables, free: Free) -> tuple[Cores, Cores]:
    """The cores of sharing jobs of this partition and of others whose tier is not higher, and those
    that nobody here shares: of higher ones' jobs.

    Where higher partitions suspend lower ones, cores of a suspended job may be another's, who
    shares them with nobody or may not be overlaid.
    """
    hidden, free = hidden_in(free), under(free)
    if free is tables.nodes:
        held = [
            (name, cores)
            for name, each in tables.nodes.sharing.held.items()
            if name
            for cores in each.values()
        ]
    else:
        allocations = [
            job.allocation
            for job in _jobs_in(free, tables)
            if job.allocation is not None and job.allocation.shared_in
        ]
        held = [(each.shared_in, cores_of(each)) for each in allocations]
    shared: Cores = {}
    above: Cores = {}
    for name, cores in held:
        where = tables.partitions.get(name)
        found = (
            above if where is not None and where.priority_tier > partition.priority_tier else shared
        )
        _add(found, cores)
    if tables.preemption is not None and tables.preemption.overlays:
        for job in _jobs_in(free, tables):
            where = tables.partitions.get(job.partition)
            if job.allocation is None or where is None or job.job_id in hidden:
                continue
            if not job.allocation.shared_in or where.priority_tier < partition.priority_tier:
                _add(above, cores_of(job.allocation))
    return shared, above


def tiers(request: Request, tables: Tables, free: Free) -> Iterator[Free]:
    """What is free for a job that may preempt others: beside all of them, then as if those that
    may have to make room were not there.

    Of these first only those of the lowest tier, then tier by tier more. Whether they run or stand
    still does not matter.
    """
    preemption, partition = tables.preemption, tables.partitions[request.partition]
    if preemption is None or not preemption.overlays:
        yield free
        return
    free = _remembering(free, tables, preemption, partition)
    yield free
    lower: dict[int, list[Job]] = {}  # by tier
    for job in in_the_way(request, tables, free):
        lower.setdefault(tables.partitions[job.partition].priority_tier, []).append(job)
    levels = sorted(lower)
    for place in range(len(levels)):
        yield without(free, tables, [job for level in levels[: place + 1] for job in lower[level]])


def in_the_way(request: Request, tables: Tables, free: Free) -> list[Job]:
    """The jobs of that state whose cores the job may have; they make room once it starts."""
    preemption, partition = tables.preemption, tables.partitions[request.partition]
    jobs = () if preemption is None else _jobs_in(under(free), tables)
    return [job for job in jobs if preemption and preemption.may_overlay(partition, job)]


def _remembering(free: Free, tables: Tables, preemption: Preemption, partition: Partition) -> Free:
    """That state, but who could be suspended keeps his memory: Slurm, looking ahead, suspends him
    at once and never takes him to end.

    Recorded from 22.05.8: a job that wants the memory of one whom it could suspend is promised no
    start at all.
    """
    if not isinstance(free, StateAfter):
        return free
    left = {job.job_id for job in free.jobs}
    memory: NDArray[np.int64] | None = None
    for job in tables.running.values():
        if (
            job.job_id in left
            or job.allocation is None
            or not preemption.may_overlay(partition, job)
            or not preemption.suspends(job)
        ):
            continue
        for group in job.allocation.groups:
            if group.memory_mb:
                memory = free.free_memory.copy() if memory is None else memory
                memory[nodeset.positions_array(group.nodes)] -= group.memory_mb
    if memory is None:
        return free
    view = RowView(free, tables.nodes, {})
    view.memory = memory
    return view


def without(free: Free, tables: Tables, gone: list[Job]) -> RowView:
    """That state with the cores of some jobs free, as far as those of others are not the same
    ones.
    """
    table, hidden = tables.nodes, frozenset(job.job_id for job in gone)
    left = [job for job in _jobs_in(under(free), tables) if job.job_id not in hidden]
    fewer: Cores = {}
    more: Cores = {}
    for jobs, cores in ((gone, fewer), (left, more)):
        for job in jobs:
            if job.holding is not None:
                _add(cores, cores_of(job.holding))
    where = nodeset.positions_array(nodeset.from_positions(fewer))
    in_use = zip(where.tolist(), free.used_cores_of(where), strict=True)
    view = RowView(
        free, table, {node: used & ~fewer[node] | more.get(node, 0) for node, used in in_use}
    )
    view.hidden = hidden
    return view


def _add(all_cores: Cores, cores: Cores) -> None:
    for node, mask in cores.items():
        all_cores[node] = all_cores.get(node, 0) | mask


def _rows(partition: str, table: NodeTable, free: Free) -> list[Cores]:
    """The rows in that state, the fullest first."""
    free = under(free)
    if free is table:
        rows = table.sharing.rows.get(partition, [])
    elif isinstance(free, StateAfter):
        left = {
            id(job.allocation): cores_of(job.allocation)
            for job in free.jobs
            if job.allocation is not None and job.allocation.shared_in == partition
        }
        rows = laid_out([left[key] for key in table.sharing.order(partition) if key in left])
    else:
        rows = []
    return sorted(rows, key=lambda row: -size(row))


def nodes_of_others(request: Request, tables: Tables) -> int:
    """Nodes that the job may not use since they are another user's, or since there are jobs of
    others on nodes that are to be its user's.

    That counts as it is now: as long as those jobs run, not even a start after their ends is
    planned there.
    """
    if not request.owns and not tables.nodes.owned_nodes:
        return 0
    nodes = 0
    for job in tables.running.values():
        if (
            job.user_id != request.user_id
            and job.allocation is not None
            and (request.owns or job.allocation.owned)
        ):
            nodes |= job.allocation.nodes
    return nodes


def nodes_of_another_kind(request: Request, tables: Tables, free: Free) -> int:
    """Nodes that the job may not use, whatever is free there: jobs that share cores and jobs that
    do not keep away from each other.

    A job that shares goes nowhere where one is that does not; any other job nowhere where there is
    one of another partition whose jobs may share. Who has been suspended, and has no cores, is in
    nobody's way.
    """
    partitions = tables.partitions
    for each in partitions.values():
        if each.oversubscribe not in _UNSHARED:
            break
    else:
        return 0
    nodes = 0
    for job in _jobs_in(free, tables):
        where = partitions.get(job.partition)
        if where is None or job.allocation is None or _has_given_up(job):
            continue
        if request.shares:
            is_other = not shares_cores(where, agrees=job.spec.oversubscribe and not job.exclusive)
        else:
            is_other = where.name != request.partition and sharing_rows(where, agrees=True) > 1
        if is_other:
            nodes |= job.allocation.nodes
    return nodes


def count_cpus_left(request: Request, tables: Tables, free: Free) -> None:
    """Note with the request which CPUs jobs of its partition may still take on each node in that
    state (MaxCPUsPerNode). Who has been suspended, and has no cores, takes none.
    """
    if request.max_cpus_per_node is None:
        return
    left = np.full(len(tables.nodes.nodes), request.max_cpus_per_node, dtype=np.int64)
    for job in _jobs_in(free, tables):
        if job.partition == request.partition and job.allocation and not _has_given_up(job):
            for group in job.allocation.groups:
                left[nodeset.positions_array(group.nodes)] -= group.cpus
    request.cpus_left = np.maximum(left, 0)


def _has_given_up(job: Job) -> bool:
    """Whether the job has been suspended, and its cores are others' to have."""
    return job.state is JobState.SUSPENDED and job.held is not None


def _jobs_in(free: Free, tables: Tables) -> Iterable[Job]:
    """The jobs that run in that state."""
    if free is tables.nodes:
        return tables.running.values()
    return free.jobs if isinstance(free, StateAfter | StateWithout) else ()
