"""How many jobs are on each node: what select/linear looks at where jobs share whole nodes
(OverSubscribe=FORCE, YES).

Place: scheduling, pure. Follows what select/linear of 22.05 was seen to do. All jobs on a node
count, whatever their partition. A job that starts is offered the idle nodes, then those with at
most one job, and so on up to the number that its partition allows. Before it gets any nodes of a
level it gets those of a mate: the first running job with as many nodes, all of that level, so that
both can run in turn. Who asks when a job could run is offered all levels at once, and no mates; a
job that shares with nobody is then told of nodes on which one sharing job is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from understudy.controller.scheduling.select.free import Overlay, StateAfter
from understudy.controller.scheduling.select.rows import hidden_in, under
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.scheduling.select.request import Request
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.tables import Tables


@dataclass(slots=True, eq=False)
class Crowd(Overlay):
    """A `Free` in which nodes with room for one job more are idle."""

    levels: list[int]  # bitmaps of the nodes with at most so many jobs, fewest first
    mates: list[Job]
    idle_nodes: int = field(init=False)
    full_nodes: int = 0

    def __post_init__(self) -> None:
        self.idle_nodes = self.levels[-1]

    @property
    def free_cpus(self) -> NDArray[np.int64]:
        return self.base.free_cpus

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Bit masks of the cores in use on these nodes (indices)."""
        return self.base.used_cores_of(nodes)

    def with_memory(
        self, request: Request, nodes: int, cpus: NDArray[np.int64], memory: NDArray[np.int64]
    ) -> int:
        """Those of the nodes that have the job's memory beside the other jobs; who names none takes
        all of it. The vectors: what nodes have.
        """
        at = nodeset.positions_array(nodes)
        wanted = (
            request.memory_per_cpu_mb * cpus[at]
            if request.memory_per_cpu_mb is not None
            else request.memory_per_node_mb or memory[at]
        )
        return nodeset.from_array(at[self.base.free_memory[at] >= wanted])

    def offers(self, request: Request, nodes: int) -> Iterator[int]:
        """Sets of these nodes to try, one after the other."""
        before = 0
        for level in self.levels:
            offer = nodes & level
            if offer == before:
                continue
            before = offer
            for mate in self.mates:
                theirs = mate.allocation.nodes if mate.allocation is not None else 0
                fits = (
                    theirs.bit_count() == request.wanted_nodes
                    and not theirs & ~offer
                    and not request.required & ~theirs
                )
                if fits and mate.spec.contiguous == request.contiguous:
                    yield theirs
                    break
            yield offer


def crowd_for(request: Request, tables: Tables, free: Free, *, for_will_run: bool) -> Crowd | None:
    """What the job is offered in that state; None where nobody shares, and idle nodes are all that
    there is to offer.
    """
    shares = request.rows > 1
    if not shares and not (
        for_will_run and any(held for name, held in tables.nodes.sharing.held.items() if name)
    ):
        return None
    on_each = _jobs_on_each(tables, free)
    if for_will_run:
        return Crowd(free, [nodeset.from_flags(on_each < (request.rows if shares else 2))], [])
    hidden = hidden_in(free)
    mates = sorted(
        (job for job in tables.running.values() if job.is_running and job.job_id not in hidden),
        key=lambda job: job.job_id,
    )
    return Crowd(
        free, [nodeset.from_flags(on_each <= level) for level in range(request.rows)], mates
    )


def _jobs_on_each(tables: Tables, free: Free) -> NDArray[np.int64]:
    """How many jobs each node has in that state, suspended ones counted."""
    state, hidden = under(free), hidden_in(free)
    if isinstance(state, StateAfter):
        jobs, counts = state.jobs, np.zeros(len(tables.nodes.nodes), dtype=np.int64)
    else:
        jobs, counts = (
            [job for job in tables.running.values() if job.held is not None],
            tables.nodes.job_count.copy(),
        )
        for job in jobs:
            assert job.held is not None
            for group in job.held.groups:  # what a suspended job still holds counts as one already
                counts[nodeset.positions_array(group.nodes)] -= 1
    for job in jobs:
        if job.allocation is not None:
            counts[nodeset.positions_array(job.allocation.nodes)] += 1
    for job_id in hidden:
        gone = tables.jobs[job_id].allocation  # one that is requeued runs no more, and holds them
        if gone is not None:
            counts[nodeset.positions_array(gone.nodes)] -= 1
    return counts
