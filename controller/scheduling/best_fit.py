"""Best fit on runs of consecutive nodes: which nodes a job gets out of those that could serve it.

Place: scheduling, pure; the heart of node choice without a topology. Nodes are looked at in index order; a run is a series of neighbours that
are all usable and of the same weight. Jobs get the tightest run that holds them, so that wide runs stay whole for wide jobs; where no run does, the
largest is used up and the rest looked for in the same way.

Two forms: `alike` for nodes that can each give the same, on bitmaps alone, and `Candidates.choose` for the general case, on vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.model import nodeset

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Up to this width the search through the digits is quicker than the fixed cost of the vectors (5 against 27 us at 1,024 nodes, 37 against 34 at
# 16,384), unless so many runs have to be used up one by one.
_NARROW = 8192
_MANY_RUNS = 20
_HUGE = np.iinfo(np.int64).max


def alike(nodes: int, count: int) -> int:
    """`count` of the nodes, which are all equally good: the tightest run that suffices, else the largest and then the same with the rest."""
    have = nodes.bit_count()
    assert 0 < count <= have
    if count == have:
        return nodes
    return _alike_narrow(nodes, count) if nodes.bit_length() <= _NARROW else _alike_wide(nodes, count)


def _alike_narrow(nodes: int, count: int) -> int:
    """On the bitmap as text, which C code searches: runs of ones between blanks, the lowest node at the right end."""
    digits = f" {nodes:b} ".replace("0", " ")
    runs = digits.split()
    last = len(digits) - 2  # the place of node 0
    chosen = 0
    while True:
        lengths = set(map(len, runs))
        enough = [length for length in lengths if length >= count]
        if not enough and len(runs) > _MANY_RUNS:
            return chosen | _alike_wide(nodes ^ chosen, count)
        length = min(enough) if enough else max(lengths)
        at = digits.rfind(f" {'1' * length} ") + length  # the place of the run's lowest node
        if enough:
            return chosen | ((1 << count) - 1) << (last - at)
        chosen |= ((1 << length) - 1) << (last - at)
        count -= length
        digits = f"{digits[: at - length + 1]}{' ' * length}{digits[at + 1 :]}"
        runs.remove("1" * length)


def _alike_wide(nodes: int, count: int) -> int:
    """On vectors of the runs. The largest are used up until one of those left suffices for the rest; of these the tightest is taken."""
    size = nodes.bit_length()
    flags = nodeset.to_flags(nodes << 1, size + 2)
    edges = np.flatnonzero(flags[1:] != flags[:-1])
    starts = edges[::2]
    lengths = edges[1::2] - starts
    order = np.argsort(-lengths, kind="stable")
    by_length = lengths[order]
    rest = count - (np.cumsum(by_length) - by_length)  # needed when the larger ones have been used up
    used = int(np.argmax(by_length >= rest))
    need = int(rest[used])
    left = order[used:]
    suffices = lengths[left] >= need
    tightest = int(lengths[left][suffices].min())
    last = int(starts[left[lengths[left] == tightest]].min())
    chosen = ((1 << need) - 1) << last
    if used:
        taken = np.zeros(size + 1, dtype=np.int8)
        taken[starts[order[:used]]] = 1
        np.subtract.at(taken, starts[order[:used]] + by_length[:used], 1)
        chosen |= nodeset.from_flags(np.cumsum(taken, dtype=np.int8).view(np.bool_))
    return chosen


@dataclass(slots=True)
class Demand:
    """What is still to be found. `reserve`: CPUs kept back for each further node that the job needs."""

    cpus: int
    min_nodes: int
    wanted_nodes: int
    max_nodes: int
    reserve: int


@dataclass(slots=True, eq=False)
class Candidates:
    """Usable nodes in index order: their indices, the CPUs that each could give (all > 0), their weights (None: all the same), which are required."""

    index: NDArray[np.intp]
    cpus: NDArray[np.int64]
    weight: NDArray[np.int64] | None = None
    required: NDArray[np.bool_] | None = None

    def choose(self, demand: Demand, *, contiguous: bool = False) -> NDArray[np.intp] | None:
        """Positions (in these vectors) of the chosen nodes in the order in which they were taken, or None.

        When the nodes allowed do not hold enough, small ones are left out step by step and it is tried again.
        """
        if len(self.index) < demand.min_nodes or int(self.cpus.sum()) < demand.cpus:
            return None
        found = self._attempt(demand, contiguous=contiguous)
        if found is not None or demand.max_nodes >= len(self.index):
            return found
        for smallest in np.unique(self.cpus)[1:].tolist():
            keep = self.cpus >= smallest
            if self.required is not None:
                keep |= self.required
            if np.count_nonzero(keep) < demand.min_nodes or int(self.cpus[keep].sum()) < demand.cpus:
                return None
            where = np.flatnonzero(keep)
            weight = None if self.weight is None else self.weight[where]
            fewer = Candidates(self.index[where], self.cpus[where], weight, None if self.required is None else self.required[where])
            found = fewer._attempt(demand, contiguous=contiguous)
            if found is not None:
                chosen: NDArray[np.intp] = where[found]
                return chosen
        return None

    def _attempt(self, demand: Demand, *, contiguous: bool) -> NDArray[np.intp] | None:
        index, cpus, required = self.index, self.cpus, self.required
        breaks = index[1:] - index[:-1] != 1
        if self.weight is not None and not contiguous:
            breaks |= self.weight[1:] != self.weight[:-1]
        behind = np.flatnonzero(breaks) + 1
        starts, ends = np.zeros(len(behind) + 1, dtype=np.intp), np.empty(len(behind) + 1, dtype=np.intp)
        starts[1:], ends[:-1], ends[-1] = behind, behind, len(index)
        picks: list[NDArray[np.intp]] = []
        need_cpus, need_nodes, nodes_left = demand.cpus, demand.wanted_nodes, demand.max_nodes
        spare_nodes = demand.wanted_nodes - demand.min_nodes  # of the wanted ones those that the job need not have
        taken: NDArray[np.bool_] | None = None
        if required is None:
            runs = _Runs(np.add.reduceat(cpus, starts), ends - starts)
        else:
            first = np.flatnonzero(required)
            if len(first) > nodes_left:
                return None
            picks.append(first)
            taken = required.copy()
            given = min(int(cpus[first].sum()), need_cpus - demand.reserve * max(demand.min_nodes - len(first), 0))
            need_cpus, need_nodes, nodes_left = need_cpus - given, need_nodes - len(first), nodes_left - len(first)
            in_runs = np.add.reduceat(np.where(taken, 0, cpus), starts)
            runs = _Runs(in_runs, np.add.reduceat((~taken).astype(np.int64), starts), required=np.logical_or.reduceat(required, starts))
        if self.weight is not None:
            runs.weight = self.weight[starts]
        while (need_cpus > 0 or need_nodes > 0) and nodes_left > 0:
            r = runs.take_best(need_cpus, need_nodes - spare_nodes, contiguous=contiguous)
            if r is None:
                break
            if r < 0:
                return None
            order = np.arange(starts[r], ends[r])
            if required is not None and taken is not None:
                if runs.required is not None and runs.required[r]:
                    pivot = starts[r] + int(np.argmax(required[order]))
                    order = np.concatenate((np.arange(pivot, ends[r]), np.arange(pivot - 1, starts[r] - 1, -1)))
                order = order[~taken[order]]
            in_run = cpus[order]
            if need_nodes <= 1 or nodes_left == 1:
                big = in_run >= need_cpus
                if need_nodes <= 1 and big.any():
                    picks.append(order[[int(np.argmin(np.where(big, in_run, _HUGE)))]])
                    break
                if nodes_left == 1:
                    continue
            sums = in_run.cumsum()
            count = min(max(int(sums.searchsorted(need_cpus)) + 1, need_nodes), len(order), nodes_left)
            given = int(sums[count - 1])
            if count == nodes_left and given < need_cpus:  # the last node must have all that is missing
                missing = need_cpus - given + int(in_run[count - 1])
                fitting = count - 1 + np.flatnonzero(in_run[count - 1 :] >= missing)[:1]
                order, count = np.concatenate((order[: count - 1], order[fitting])), count - 1 + len(fitting)
                given = int(cpus[order].sum())
            picks.append(order[:count])
            given = min(given, need_cpus - demand.reserve * max(need_nodes - count - spare_nodes, 0))
            need_cpus, need_nodes, nodes_left = need_cpus - given, need_nodes - count, nodes_left - count
        if not picks:
            return None
        found = picks[0] if len(picks) == 1 else np.concatenate(picks)
        if len(found) < demand.min_nodes or int(cpus[found].sum()) < demand.cpus:
            return None
        return found

    def choose_in_order(self, order: NDArray[np.intp], demand: Demand) -> NDArray[np.intp] | None:
        """The first nodes in the given order of positions that satisfy the demand (least loaded first, biggest first)."""
        if self.required is not None:
            wanted = self.required[order]
            order = np.concatenate((order[wanted], order[~wanted]))
        enough = int(np.searchsorted(np.cumsum(self.cpus[order]), demand.cpus)) + 1
        count = max(enough, min(demand.wanted_nodes, len(order)), 0 if self.required is None else int(self.required.sum()))
        if enough > len(order) or count > demand.max_nodes or count < demand.min_nodes:
            return None
        return order[:count]


@dataclass(slots=True, eq=False)
class _Runs:
    """What is left in each run of consecutive nodes; a run that has been taken has no nodes left."""

    cpus: NDArray[np.int64]
    nodes: NDArray[np.int64]
    weight: NDArray[np.int64] | None = None
    required: NDArray[np.bool_] | None = None

    def take_best(self, need_cpus: int, need_nodes: int, *, contiguous: bool) -> int | None:
        """One of the lowest weight, of these one with required nodes; of those the tightest that suffices, else the largest.

        -1 if only one that suffices would do and none does, None if there are no nodes left.
        """
        among = self.nodes > 0
        if not among.any():
            return None
        if self.weight is not None and not contiguous:
            among &= self.weight == self.weight[among].min()
        if self.required is not None and (wanted := among & self.required).any():
            among = wanted
        enough = among & (self.cpus >= need_cpus) & (self.nodes >= need_nodes)
        if enough.any():
            best = int(np.where(enough, self.cpus, _HUGE).argmin())
        elif contiguous:
            return -1
        else:
            best = int(np.where(among, self.cpus, -1).argmax())
        self.nodes[best] = 0
        return best


def even_tasks(tasks: int, room: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tasks on each node: dealt out in turn to the nodes that still have room."""
    given = np.zeros(len(room), dtype=np.int64)
    left = tasks
    while left > 0:
        having = np.flatnonzero(given < room)
        if not len(having):
            break
        each = max(min(left // len(having), int((room - given)[having].min())), 0)
        if each:
            given[having] += each
            left -= each * len(having)
        else:
            given[having[:left]] += 1
            left = 0
    return given
