"""Best fit on runs of consecutive nodes: which nodes a job gets out of those that could serve it.

Place: scheduling, pure; the heart of node choice without a topology. Nodes are looked at in index
order; a run is a series of neighbours that are all usable and of the same weight. Jobs get the
tightest run that holds them, so that wide runs stay whole for wide jobs; where no run does, the
largest is used up and the rest looked for in the same way.

Two forms: `alike` for nodes that can each give the same, on bitmaps alone, and `Candidates.choose`
for the general case, on vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.controller.scheduling.select.picks import Demand, Picks
from understudy.model import nodeset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.controller.tables.topology import Tree

# Up to this width the search through the digits is quicker than the fixed cost of the vectors (5
# against 27 us at 1,024 nodes, 37 against 34 at 16,384), unless so many runs have to be used up one
# by one.
_NARROW = 8192
_MANY_RUNS = 20
_HUGE = np.iinfo(np.int64).max


def alike(nodes: int, have: int, count: int) -> int:
    """`count` of the nodes, which are `have` and all equally good: the tightest run that suffices,
    else the largest and then the same with the rest.
    """
    assert 0 < count <= have
    if count == have:
        return nodes
    first = nodeset.first(nodes)
    if nodes.bit_length() - first == have:
        return nodeset.span(first, count)  # one run
    return alike_narrow(nodes, count) if nodes.bit_length() <= _NARROW else alike_wide(nodes, count)


def alike_narrow(nodes: int, count: int) -> int:
    """On the bitmap as text, which C code searches: runs of ones between blanks, the lowest node at
    the right end.
    """
    digits = f" {nodes:b} ".replace("0", " ")
    runs = digits.split()
    last = len(digits) - 2  # the place of node 0
    chosen = 0
    while True:
        lengths = set(map(len, runs))
        enough = [length for length in lengths if length >= count]
        if not enough and len(runs) > _MANY_RUNS:
            return chosen | alike_wide(nodes ^ chosen, count)
        length = min(enough) if enough else max(lengths)
        at = digits.rfind(f" {'1' * length} ") + length  # the place of the run's lowest node
        if enough:
            return chosen | ((1 << count) - 1) << (last - at)
        chosen |= ((1 << length) - 1) << (last - at)
        count -= length
        digits = f"{digits[: at - length + 1]}{' ' * length}{digits[at + 1 :]}"
        runs.remove("1" * length)


def alike_wide(nodes: int, count: int) -> int:
    """On vectors of the runs. The largest are used up until one of those left suffices for the
    rest; of these the tightest is taken.
    """
    edges = nodeset.positions_of_few(nodes ^ (nodes << 1))
    starts = edges[::2]
    lengths = edges[1::2] - starts
    order = np.argsort(-lengths, kind="stable")
    by_length = lengths[order]
    # needed when the larger ones have been used up
    rest = count - (np.cumsum(by_length) - by_length)
    used = int(np.argmax(by_length >= rest))
    need = int(rest[used])
    left = order[used:]
    suffices = lengths[left] >= need
    tightest = int(lengths[left][suffices].min())
    last = int(starts[left[lengths[left] == tightest]].min())
    chosen = ((1 << need) - 1) << last
    if used:
        taken = np.zeros(nodes.bit_length() + 1, dtype=np.int8)
        taken[starts[order[:used]]] = 1
        np.subtract.at(taken, starts[order[:used]] + by_length[:used], 1)
        chosen |= nodeset.from_flags(np.cumsum(taken, dtype=np.int8).view(np.bool_))
    return chosen


@dataclass(slots=True, eq=False)
class Candidates:
    """Usable nodes in index order: their indices, the CPUs that each could give (all > 0), their
    weights (None: all the same), which are required.

    `core`: CPUs of a core of each. So many a node keeps back for each further one that the job must
    have, whatever cores that has: where these are smaller the job may find too little.
    """

    index: NDArray[np.intp]
    cpus: NDArray[np.int64]
    weight: NDArray[np.int64] | None = None
    required: NDArray[np.bool_] | None = None
    tree: Tree | None = None
    most_leaves: int = 0  # of the tree that the nodes may be on, 0 for any number
    small_leaves: bool = False  # select/linear's way through the tree
    core: NDArray[np.int64] | int = 1

    def choose(
        self, demand: Demand, *, contiguous: bool = False, leaves_out: bool = True
    ) -> NDArray[np.intp] | None:
        """Positions (in these vectors) of the chosen nodes in the order in which they were taken,
        or None.

        When the nodes allowed do not hold enough, small ones are left out step by step and it is
        tried again, unless `leaves_out` is false.
        """
        if len(self.index) < demand.min_nodes or int(self.cpus.sum()) < demand.cpus:
            return None
        if self.tree is not None and (self.small_leaves or not contiguous):
            return self._choose_on_tree(self.tree, demand)
        found = self._attempt(demand, contiguous=contiguous)
        if found is not None or not leaves_out or demand.max_nodes >= len(self.index):
            return found
        for smallest in np.unique(self.cpus)[1:].tolist():
            keep = self.cpus >= smallest
            if self.required is not None:
                keep |= self.required
            if (
                np.count_nonzero(keep) < demand.min_nodes
                or int(self.cpus[keep].sum()) < demand.cpus
            ):
                return None
            where = np.flatnonzero(keep)
            weight = None if self.weight is None else self.weight[where]
            required = None if self.required is None else self.required[where]
            fewer = Candidates(
                self.index[where], self.cpus[where], weight, required, core=self._core_of(where)
            )
            found = fewer._attempt(demand, contiguous=contiguous)
            if found is not None:
                chosen: NDArray[np.intp] = where[found]
                return chosen
        return None

    def _core_of(self, where: NDArray[np.intp]) -> NDArray[np.int64] | int:
        return self.core if isinstance(self.core, int) else self.core[where]

    def _choose_on_tree(self, tree: Tree, demand: Demand) -> NDArray[np.intp] | None:
        """As `choose`, with the lightest nodes alone, then with heavier ones beside all of the
        lighter ones, and each time without more and more of the small ones.
        """
        forced = (
            np.zeros(len(self.index), dtype=np.bool_) if self.required is None else self.required
        )
        reach = np.ones(len(self.index), dtype=np.bool_)
        if len(tree.tops) > 1 and not self.small_leaves:
            reach = tree.below_one_top(self.index, forced, demand.min_nodes)
        weights = [0] if self.weight is None else np.unique(self.weight).tolist()
        for heaviest in weights:
            light = reach if self.weight is None else reach & (forced | (self.weight <= heaviest))
            for smallest in np.unique(self.cpus).tolist():
                where = np.flatnonzero(light & (forced | (self.cpus >= smallest)))
                if len(where) < demand.min_nodes or int(self.cpus[where].sum()) < demand.cpus:
                    break
                picks = Picks(demand, self._core_of(where))
                required = None if self.required is None else self.required[where]
                if required is not None:
                    first = np.flatnonzero(required)
                    if len(first) > demand.max_nodes:
                        return None
                    picks.take(first, self.cpus[where[first]], every=True)
                if self.weight is not None and heaviest != weights[0] and not self.small_leaves:
                    lighter = self.weight[where] < heaviest
                    if required is not None:
                        lighter &= ~required
                    first = np.flatnonzero(lighter)
                    picks.take(first, self.cpus[where[first]])
                    required = lighter if required is None else required | lighter
                pick = tree.pick_small_leaves if self.small_leaves else tree.pick
                pick(picks, self.index[where], self.cpus[where], required)
                if picks.is_empty:
                    continue
                found = where[picks.finish()]
                if len(found) < demand.min_nodes or picks.cpus > 0:
                    continue
                if (
                    self.most_leaves
                    and len(np.unique(tree.leaf_of[self.index[found]])) > self.most_leaves
                ):
                    return None  # the job waits, though other nodes might be on fewer
                return found
        return None

    def _attempt(self, demand: Demand, *, contiguous: bool) -> NDArray[np.intp] | None:
        index, cpus, required = self.index, self.cpus, self.required
        breaks = holes = index[1:] - index[:-1] != 1
        if self.weight is not None and not contiguous:
            breaks = holes | (self.weight[1:] != self.weight[:-1])
        behind = np.flatnonzero(breaks) + 1
        starts, ends = (
            np.zeros(len(behind) + 1, dtype=np.intp),
            np.empty(len(behind) + 1, dtype=np.intp),
        )
        starts[1:], ends[:-1], ends[-1] = behind, behind, len(index)
        picks = Picks(demand, self.core)
        if required is None:
            runs = _Runs(np.add.reduceat(cpus, starts), ends - starts)
        else:
            first = np.flatnonzero(required)
            if len(first) > demand.max_nodes:
                return None
            picks.take(first, cpus[first], every=True)
            in_runs = np.add.reduceat(np.where(required, 0, cpus), starts)
            is_behind_hole = np.concatenate(([True], holes[starts[1:] - 1]))
            pivots = _pivots(required, starts, ends, is_behind_hole)
            runs = _Runs(
                in_runs, np.add.reduceat((~required).astype(np.int64), starts), pivot=pivots
            )
        # a contiguous job's run may be of several weights: that of its last node counts
        if self.weight is not None:
            runs.weight = self.weight[ends - 1]
        while not picks.is_complete:
            r = runs.take_best(picks.cpus, picks.nodes - picks.spare, contiguous=contiguous)
            if r is None:
                break
            if r < 0:
                return None
            order = np.arange(starts[r], ends[r])
            in_run = cpus[starts[r] : ends[r]]
            if runs.pivot is not None and required is not None:
                pivot = int(runs.pivot[r])
                if pivot >= 0:  # from the first required node up, then down
                    order = np.concatenate(
                        (order[pivot - starts[r] :], order[: pivot - starts[r]][::-1])
                    )
                    order = order[~required[order]]
                    picks.take(order, cpus[order])
                    continue
                order = order[~required[order]]
                in_run = cpus[order]
            if picks.nodes <= 1 or picks.nodes_left == 1:
                if picks.nodes <= 1 and len(big := (in_run >= picks.cpus).nonzero()[0]):
                    best = int(big[in_run[big].argmin()])
                    picks.take(order[best : best + 1], in_run[best : best + 1])
                    break
                if picks.nodes_left == 1:
                    continue
            picks.take(order, in_run, last_must_do=True)
        if picks.is_empty:
            return None
        found = picks.finish()
        return found if len(found) >= demand.min_nodes and picks.cpus <= 0 else None

    def choose_in_order(self, order: NDArray[np.intp], demand: Demand) -> NDArray[np.intp] | None:
        """The first nodes in the given order of positions that satisfy the demand (least loaded
        first, biggest first).
        """
        forced = order[:0]
        if self.required is not None:
            wanted = self.required[order]
            forced, order = order[wanted], order[~wanted]
        if len(forced) > demand.max_nodes:
            return None
        # small nodes are left out where the allowed ones do not hold enough
        for smallest in [0, *np.unique(self.cpus[order]).tolist()]:
            left = order[self.cpus[order] >= smallest]
            if len(forced) + len(left) < demand.min_nodes:
                break
            picks = Picks(demand, self.core)
            picks.take(forced, self.cpus[forced], every=True)
            if not picks.is_complete:
                picks.take(left, self.cpus[left])
            found = picks.finish()
            if len(found) >= demand.min_nodes and picks.cpus <= 0:
                return found
        return None


def _pivots(
    required: NDArray[np.bool_],
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
    is_behind_hole: NDArray[np.bool_],
) -> NDArray[np.intp]:
    """Of each run the required node from which it is used up and down, and for which it goes before
    others; -1 without one.

    Where a run begins because the weight changes, required nodes at its very beginning do not
    count: recordings of Slurm 22.05 show it.
    """
    pivots = np.full(len(starts), -1, dtype=np.intp)
    for r in np.unique(starts.searchsorted(np.flatnonzero(required), side="right") - 1).tolist():
        wanted = required[starts[r] : ends[r]]
        from_ = (
            0 if is_behind_hole[r] else int(np.argmin(wanted)) if not wanted.all() else len(wanted)
        )
        if wanted[from_:].any():
            pivots[r] = starts[r] + from_ + int(np.argmax(wanted[from_:]))
    return pivots


@dataclass(slots=True, eq=False)
class _Runs:
    """What is left in each run of consecutive nodes; a run that has been taken has no nodes left.
    `pivot`: as of `_pivots`.
    """

    cpus: NDArray[np.int64]
    nodes: NDArray[np.int64]
    weight: NDArray[np.int64] | None = None
    pivot: NDArray[np.intp] | None = None

    def take_best(self, need_cpus: int, need_nodes: int, *, contiguous: bool) -> int | None:
        """One of the lowest weight; of those the tightest that suffices, else the largest.

        -1 if only one that suffices would do and none does, None if there are no nodes left.
        """
        if self.weight is None and self.pivot is None:
            return self._take_of_equals(need_cpus, need_nodes, contiguous=contiguous)
        among = self.nodes > 0
        if not among.any():
            return None
        with_required = among if self.pivot is None else self.pivot >= 0
        if self.pivot is not None and (among & with_required).any():
            best = self._with_required(need_cpus, need_nodes, contiguous=contiguous)
        elif self.pivot is not None and contiguous and with_required.any():
            return None
        else:
            enough = among & (self.cpus >= need_cpus) & (self.nodes >= need_nodes)
            if self.weight is not None and (not contiguous or enough.any()):
                lightest = self.weight == self.weight[enough if contiguous else among].min()
                among &= lightest
                enough &= lightest
            if enough.any():
                best = int(np.where(enough, self.cpus, _HUGE).argmin())
            elif contiguous:
                return -1
            else:
                best = int(np.where(among, self.cpus, -1).argmax())
        if best >= 0:
            self.nodes[best] = 0
        return best

    def _take_of_equals(self, need_cpus: int, need_nodes: int, *, contiguous: bool) -> int | None:
        """`take_best` where neither weights nor required nodes count: a run that has been taken has
        no CPUs left.
        """
        enough = self.cpus >= max(need_cpus, 1)
        if need_nodes > 1:
            enough &= self.nodes >= need_nodes
        places = enough.nonzero()[0]
        if len(places):
            best = int(places[self.cpus[places].argmin()])
        else:
            best = int(self.cpus.argmax())
            if not self.cpus[best]:
                return None
            if contiguous:
                return -1
        self.cpus[best] = self.nodes[best] = 0
        return best

    def _with_required(self, need_cpus: int, need_nodes: int, *, contiguous: bool) -> int:
        """Run by run, as Slurm compares them: the first with a required node goes before all that
        came earlier, whatever their weight, and gives way only to one that comes later and is of
        lower weight, or of the same and better.
        """
        assert self.pivot is not None
        best, best_weight, best_cpus, best_is_enough, best_has = -1, 0, 0, False, False
        weights = [0] * len(self.cpus) if self.weight is None else self.weight.tolist()
        rows = zip(
            self.cpus.tolist(),
            self.nodes.tolist(),
            weights,
            (self.pivot >= 0).tolist(),
            strict=True,
        )
        for r, (cpus, nodes, weight, has) in enumerate(rows):
            if not nodes or (contiguous and not has):
                continue
            is_enough = cpus >= need_cpus and nodes >= need_nodes
            if contiguous and not is_enough:
                continue
            if weight == best_weight:
                is_better = (
                    is_enough and (not best_is_enough or cpus < best_cpus)
                    if is_enough
                    else not best_is_enough and cpus > best_cpus
                )
            else:
                is_better = weight < best_weight
            if best < 0 or is_better or (has and not best_has):
                best, best_weight, best_cpus, best_is_enough, best_has = (
                    r,
                    weight,
                    cpus,
                    is_enough,
                    has,
                )
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
