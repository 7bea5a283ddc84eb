"""When nodes will do for a job, and on which nodes jobs would run if everything went as planned.

Place: scheduling, pure. The second is for those who look (`squeue --start`): no decision follows
from it. Jobs are taken in the order of their planned starts; each gets the first nodes, in the
cluster's order, on which enough CPUs are free for as long as it may run. Whoever finds too few,
because of what the plan does not look at, gets none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.controller.scheduling.plan_based.supply import expected_end
from understudy.controller.scheduling.select.free import StateWithout
from understudy.controller.scheduling.select.request import wants_whole_nodes
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from understudy.controller.scheduling.api import Ask, Selector
    from understudy.controller.scheduling.plan_based.planning import Planned
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.tables import Tables


def first_start(selector: Selector, ask: Ask, tables: Tables, second: int) -> int | None:
    """From when on the selector has nodes for the job if running jobs end at their limits, to the
    second; None: never.

    `will_run` answers that as Slurm does, who looks at many ends at once. It is asked only where
    no state of the cluster helps, or by a selector that knows no other states.
    """
    if selector.choose_in(ask, tables, tables.nodes) is not None:
        return second
    ends = sorted(
        (expected_end(job, second), job_id)
        for job_id, job in tables.running.items()
        if job.holding is not None
    )
    state = StateWithout(tables)
    if tables.nodes.completing_nodes and selector.choose_in(ask, tables, state) is not None:
        return second + 1
    for place, (end, job_id) in enumerate(ends):
        state.remove(tables.running[job_id])
        is_last = place + 1 == len(ends) or ends[place + 1][0] != end
        if is_last and selector.choose_in(ask, tables, state) is not None:
            return end
    found = selector.will_run(ask, tables, second)
    return None if found is None else max(found[0], second + 1)


def nodes_of_plan(
    tables: Tables, selector: Selector, plan: Sequence[Planned], second: int
) -> list[int]:
    """The nodes (a bitmap) of each; 0 where that cannot be said."""
    ends = sorted(
        (
            (expected_end(job, second), job.holding)
            for job in tables.running.values()
            if job.holding is not None
        ),
        key=lambda each: each[0],
    )
    calendar = _Calendar(tables, second, ends)
    found = [0] * len(plan)
    for place in sorted(
        (i for i, each in enumerate(plan) if each.start is not None),
        key=lambda i: plan[i].start or 0,
    ):
        waiting, start = plan[place]
        assert start is not None
        job = waiting.job
        is_whole = selector.whole_nodes or wants_whole_nodes(job, waiting.members[0][0].partition)
        found[place] = calendar.take(
            waiting.nodes,
            max(start, second),
            max(start, second) + waiting.length_s,
            waiting.processors,
            job.min_nodes,
            is_whole=is_whole,
        )
    return found


class _Calendar:
    """The free CPUs of each node, by step of time."""

    def __init__(self, tables: Tables, second: int, ends: list[tuple[int, Allocation]]) -> None:
        table = tables.nodes
        self._all = table.cpus
        self._times = [second]
        self._free = [table.free_cpus.copy()]
        for end, holding in ends:
            if end != self._times[-1]:
                self._times.append(end)
                self._free.append(self._free[-1].copy())
            for group in holding.groups:
                self._free[-1][nodeset.positions_array(group.nodes)] += group.cpus
        np.minimum(self._free[-1], self._all, out=self._free[-1])

    def _cut(self, when: int) -> int:
        """Let a step begin then; its number."""
        i = int(np.searchsorted(self._times, when))
        if i == len(self._times) or self._times[i] != when:
            self._times.insert(i, when)
            self._free.insert(i, self._free[i - 1].copy())
        return i

    def take(
        self, nodes: int, start: int, end: int, cpus: int, min_nodes: int, *, is_whole: bool
    ) -> int:
        """Nodes with so many CPUs in all, free from start to end; 0 if there are not enough."""
        first, behind = self._cut(start), self._cut(end)
        least: NDArray[np.int64] = np.min(self._free[first:behind], axis=0)
        least[~nodeset.to_flags(nodes, len(least))] = 0
        if is_whole:
            least[least < self._all] = 0
        at = np.flatnonzero(least > 0)
        enough = int(np.searchsorted(np.cumsum(least[at]), cpus)) + 1
        count = max(enough, min_nodes)
        if count > len(at):
            return 0
        at = at[:count]
        left = cpus
        for node in at.tolist():
            taken = int(least[node]) if is_whole else min(int(least[node]), left)
            left = max(left - taken, 0)
            for step in range(first, behind):
                self._free[step][node] -= taken
        return nodeset.from_positions(at.tolist())
