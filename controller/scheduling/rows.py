"""What is free for a job that may share cores, row by row, and which nodes belong to one user.

Place: scheduling, pure. A job that may share first looks for cores that are idle, then in each row of its partition for cores that nobody has in that
row, and at last in a row of its own. Jobs that share in other partitions of no higher tier do not count there. Cores of jobs that do not share are
never shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.scheduling.free import Overlay, StateAfter
from understudy.controller.scheduling.request import shares_cores, sharing_rows
from understudy.controller.sharing import cores_of, laid_out, size
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from understudy.controller.job import Job
    from understudy.controller.nodes import NodeTable
    from understudy.controller.partitions import Partition
    from understudy.controller.scheduling.api import Tables
    from understudy.controller.scheduling.free import Free
    from understudy.controller.scheduling.request import Request
    from understudy.controller.sharing import Cores


_UNSHARED: Final = ("NO", "EXCLUSIVE")


@dataclass(slots=True, eq=False)
class RowView(Overlay):
    """A `Free` in which only some of the sharing jobs are seen."""

    table: NodeTable
    used: Cores  # cores in use, on the nodes on which jobs share
    free_cpus: NDArray[np.int64] = field(init=False)
    idle_nodes: int = field(init=False)
    full_nodes: int = field(init=False)

    def __post_init__(self) -> None:
        table, base = self.table, self.base
        self.free_cpus = base.free_cpus.copy()
        idle = full = 0
        for node, cores in self.used.items():
            free = int(table.cpus[node]) - (cores & ~table.nodes[node].spec_cores).bit_count() * table.cpus_of_core(node)
            self.free_cpus[node] = free
            idle |= 0 if cores & ~table.nodes[node].spec_cores else 1 << node
            full |= 0 if free else 1 << node
        seen = nodeset.from_positions(self.used)
        self.idle_nodes = base.idle_nodes & ~seen | idle
        self.full_nodes = base.full_nodes & ~seen | full

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Bit masks of the cores in use on these nodes (indices)."""
        return [self.used.get(node, used) for node, used in zip(nodes.tolist(), self.base.used_cores_of(nodes), strict=True)]


def views(request: Request, tables: Tables, free: Free) -> Iterator[Free]:
    """What is free for a job that may share: without sharing, then row by row of its partition, whatever jobs of others that are not higher share."""
    yield free
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


def _under(free: Free) -> Free:
    """The state of which that one shows only some jobs: who shares is the same there."""
    return _under(free.base) if isinstance(free, RowView) else free


def _shared(partition: Partition, tables: Tables, free: Free) -> tuple[Cores, Cores]:
    """The cores of sharing jobs of this partition and of others whose tier is not higher, and of those of higher ones."""
    free = _under(free)
    if free is tables.nodes:
        held = [(name, cores) for name, each in tables.nodes.sharing.held.items() for cores in each.values()]
    else:
        allocations = [job.allocation for job in _jobs_in(free, tables) if job.allocation is not None and job.allocation.shared_in]
        held = [(each.shared_in, cores_of(each)) for each in allocations]
    shared: Cores = {}
    above: Cores = {}
    for name, cores in held:
        where = tables.partitions.get(name)
        found = above if where is not None and where.priority_tier > partition.priority_tier else shared
        for node, mask in cores.items():
            found[node] = found.get(node, 0) | mask
    return shared, above


def tiers(request: Request, tables: Tables, free: Free) -> Iterator[Free]:
    """What is free for a job that may push others aside: without those that stand still, then as if those that it may push aside were not there.

    Of these first only those of the lowest tier, then tier by tier more.
    """
    preemption, partition = tables.preemption, tables.partitions[request.partition]
    assert preemption is not None
    aside: Cores = {}  # cores of jobs that stand still
    kept: Cores = {}  # of those that may not be pushed aside for this one
    lower: dict[int, Cores] = {}  # of running ones that may, by tier
    still: dict[int, Cores] = {}  # of those that stand still and may
    for job in _jobs_in(free, tables):
        may = preemption.may_push_aside(partition, job)
        if job.allocation is None or not (job.pushed_aside or may):
            continue
        cores = cores_of(job.allocation)
        if job.pushed_aside:
            _add(aside, cores)
        if may:
            _add((still if job.pushed_aside else lower).setdefault(tables.partitions[job.partition].priority_tier, {}), cores)
        else:
            _add(kept, cores)
    yield _with(free, tables.nodes, aside, {}) if aside else free
    levels = sorted(lower.keys() | still.keys())
    for place, level in enumerate(levels):
        fewer: Cores = {}
        more = dict(kept)
        for each in levels[: place + 1]:
            _add(fewer, lower.get(each, {}))
        for each in levels[place + 1 :]:
            _add(more, still.get(each, {}))
        if level in lower or place == len(levels) - 1:
            yield _with(free, tables.nodes, more, fewer)
    if not levels and aside:
        yield _with(free, tables.nodes, kept, {})


def _add(all_cores: Cores, cores: Cores) -> None:
    for node, mask in cores.items():
        all_cores[node] = all_cores.get(node, 0) | mask


def _with(free: Free, table: NodeTable, more: Cores, fewer: Cores) -> RowView:
    """That state with more cores in use, and fewer."""
    where = nodeset.positions_array(nodeset.from_positions(more.keys() | fewer.keys()))
    in_use = zip(where.tolist(), free.used_cores_of(where), strict=True)
    return RowView(free, table, {node: used & ~fewer.get(node, 0) | more.get(node, 0) for node, used in in_use})


def _rows(partition: str, table: NodeTable, free: Free) -> list[Cores]:
    """The rows in that state, the fullest first."""
    free = _under(free)
    if free is table:
        rows = table.sharing.rows.get(partition, [])
    elif isinstance(free, StateAfter):
        left = {
            id(job.allocation): cores_of(job.allocation) for job in free.jobs if job.allocation is not None and job.allocation.shared_in == partition
        }
        rows = laid_out([left[key] for key in table.sharing.order(partition) if key in left])
    else:
        rows = []
    return sorted(rows, key=lambda row: -size(row))


def nodes_of_others(request: Request, tables: Tables) -> int:
    """Nodes that the job may not use since they are another user's, or since there are jobs of others on nodes that are to be its user's.

    That counts as it is now: as long as those jobs run, not even a start after their ends is planned there.
    """
    if not request.owns and not tables.nodes.owned_nodes:
        return 0
    nodes = 0
    for job in tables.running.values():
        if job.user_id != request.user_id and job.allocation is not None and (request.owns or job.allocation.owned):
            nodes |= job.allocation.nodes
    return nodes


def nodes_of_another_kind(request: Request, tables: Tables, free: Free) -> int:
    """Nodes that the job may not use, whatever is free there: jobs that share cores and jobs that do not keep away from each other.

    A job that shares goes nowhere where one is that does not; any other job nowhere where there is one of another partition whose jobs may share.
    """
    partitions = tables.partitions
    if all(each.oversubscribe in _UNSHARED for each in partitions.values()):
        return 0
    nodes = 0
    for job in _jobs_in(free, tables):
        where = partitions.get(job.partition)
        if where is None or job.allocation is None:
            continue
        if request.shares:
            is_other = not shares_cores(where, agrees=job.spec.oversubscribe and not job.exclusive)
        else:
            is_other = where.name != request.partition and sharing_rows(where, agrees=True) > 1
        if is_other:
            nodes |= job.allocation.nodes
    return nodes


def cpus_left(request: Request, tables: Tables, free: Free) -> NDArray[np.int64]:
    """CPUs that jobs of the partition may still take on each node (MaxCPUsPerNode)."""
    left = np.full(len(tables.nodes.nodes), request.max_cpus_per_node, dtype=np.int64)
    for job in _jobs_in(free, tables):
        if job.partition == request.partition and job.allocation is not None:
            for group in job.allocation.groups:
                left[nodeset.positions_array(group.nodes)] -= group.cpus
    return np.maximum(left, 0)


def _jobs_in(free: Free, tables: Tables) -> Iterable[Job]:
    """The jobs that run in that state."""
    if free is tables.nodes:
        return tables.running.values()
    return free.jobs if isinstance(free, StateAfter) else ()
