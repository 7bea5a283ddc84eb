"""topology/tree: the switches between the nodes, and node choice that crosses as few of them as it
can.

Place: tables, pure; `best_fit` asks it where a tree is configured. Follows topology.conf(5);
the order of preference is that of recordings of Slurm 22.05. Leaf switches are used up one after
the other. Each time they are compared in the order of the file: one takes the place of the best so
far if it is nearer to the leaves in use and no worse a fit, or as near and a better fit.

A fit is judged from the leaves upwards: of two switches that hold all nodes still wanted the
smaller is better, else the one that does; where neither does, the switches above them are judged,
and under a common one the larger is better. Of several top switches one is chosen before all that.

select/linear goes its own way: the smallest switch that suffices, and below it the smallest leaves
first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from understudy.model.conf_companions import SwitchConf


class Picks(Protocol):
    """What has been chosen so far. `nodes` and `cpus`: how many are still wanted; `spare`: of these
    nodes those that the job need not have.
    """

    nodes: int
    cpus: int
    spare: int

    @property
    def is_complete(self) -> bool: ...

    def take(self, index: NDArray[np.intp], cpus: NDArray[np.int64]) -> None: ...


@dataclass(slots=True, eq=False)
class Switch:
    """`nodes`: a bitmap of all nodes below it, `level` 0 for a leaf, `parent` a place in the list
    of switches (-1: none), `below` as configured.
    """

    name: str
    level: int
    link_speed: int
    nodes: int
    parent: int
    below: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Tree:
    """The switches, leaves first in the order of the file, then level by level."""

    switches: list[Switch]
    size: int  # nodes of the cluster
    optional: bool = False  # TopologyParam=TopoOptional: only jobs that ask for switches mind
    leaves: int = field(init=False)
    leaf_of: NDArray[np.intp] = field(init=False)  # by node index; -1 for nodes on no switch
    distance: NDArray[np.int64] = field(init=False)  # between leaves: links on the way
    tops: tuple[int, ...] = field(init=False)  # switches with none above them
    _ancestors: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = sum(switch.level == 0 for switch in self.switches)
        self.tops = tuple(at for at, each in enumerate(self.switches) if each.parent < 0)
        self.leaf_of = np.full(self.size, -1, dtype=np.intp)
        for number in range(self.leaves - 1, -1, -1):
            self.leaf_of[nodeset.positions_array(self.switches[number].nodes)] = number
        self._ancestors = [self._upwards(number) for number in range(self.leaves)]
        far = 2 * len(self.switches)
        self.distance = np.full((self.leaves, self.leaves), far, dtype=np.int64)
        for i, mine in enumerate(self._ancestors):
            at = {switch: up for up, switch in enumerate(mine)}
            for j, theirs in enumerate(self._ancestors):
                self.distance[i, j] = next(
                    (up + at[switch] for up, switch in enumerate(theirs) if switch in at), far
                )

    @classmethod
    def of(
        cls, conf: Sequence[SwitchConf], index_of: Mapping[str, int], *, optional: bool = False
    ) -> Tree | None:
        """The tree of topology.conf, which has been checked; None without switches."""
        if not conf:
            return None
        by_name = {each.name: each for each in conf}
        levels: dict[str, int] = {}

        def level(name: str) -> int:
            if name not in levels:
                levels[name] = 1 + max(
                    (level(below) for below in by_name[name].switches if below in by_name),
                    default=-1,
                )
            return levels[name]

        ordered = sorted(conf, key=lambda each: level(each.name))
        place = {each.name: number for number, each in enumerate(ordered)}
        parent = {
            place[below]: place[each.name]
            for each in ordered
            for below in each.switches
            if below in place
        }
        nodes = [
            nodeset.from_positions(index_of[name] for name in each.nodes if name in index_of)
            for each in ordered
        ]
        for number, above in sorted(parent.items()):
            nodes[above] |= nodes[number]
        switches = [
            Switch(
                each.name,
                levels[each.name],
                each.link_speed,
                nodes[number],
                parent.get(number, -1),
                tuple(each.switches),
            )
            for number, each in enumerate(ordered)
        ]
        return cls(switches, len(index_of), optional)

    def _upwards(self, number: int) -> list[int]:
        found = []
        while number >= 0:
            found.append(number)
            number = self.switches[number].parent
        return found

    def leaves_of(self, nodes: int) -> int:
        """How many leaf switches the nodes (a bitmap) are on."""
        return len(np.unique(self.leaf_of[nodeset.positions_array(nodes)]))

    def below_one_top(
        self, index: NDArray[np.intp], required: NDArray[np.bool_], least: int
    ) -> NDArray[np.bool_]:
        """Which of the nodes `index` are below the top switch to which the job goes: those of
        others no switch connects with them.

        It is of the highest level that has all required nodes and as many as the job needs at
        least, whatever their CPUs, and of equals the last in the file (as seen of 22.05.8).
        """
        top_of = np.array([ancestors[-1] for ancestors in self._ancestors] + [-1])
        tops = top_of[self.leaf_of[index]]
        for top in sorted(self.tops, key=lambda each: (self.switches[each].level, each))[::-1]:
            below: NDArray[np.bool_] = tops == top
            if below.sum() >= least and below[required].all():
                return below
        return np.zeros(len(index), dtype=np.bool_)

    def pick(
        self,
        picks: Picks,
        index: NDArray[np.intp],
        cpus: NDArray[np.int64],
        required: NDArray[np.bool_] | None,
    ) -> None:
        """Let `picks` take what it needs of the nodes `index`, which can give `cpus`; the required
        ones it has already.
        """
        leaf = self.leaf_of[index]
        counts = self._counts(leaf)
        free = leaf >= 0
        used = np.zeros(self.leaves, dtype=np.bool_)
        distance = np.zeros(self.leaves, dtype=np.int64)
        starts: list[int] = []
        if required is not None:
            free &= ~required
            starts = np.unique(leaf[required & (leaf >= 0)]).tolist()
        order = np.flatnonzero(free)
        order = order[np.argsort(leaf[order], kind="stable")]
        bounds = np.searchsorted(leaf[order], np.arange(self.leaves + 1))
        used[bounds[1:] == bounds[:-1]] = True
        for number in starts:
            used[number] = True
            distance += self.distance[number]
        for number in starts:
            if not picks.is_complete:
                here = order[bounds[number] : bounds[number + 1]]
                picks.take(here, cpus[here])
        while not picks.is_complete and not used.all():
            number = self._best(np.flatnonzero(~used), distance, counts, picks.nodes)
            used[number] = True
            distance += self.distance[number]
            here = order[bounds[number] : bounds[number + 1]]
            picks.take(here, cpus[here])

    def pick_small_leaves(
        self,
        picks: Picks,
        index: NDArray[np.intp],
        cpus: NDArray[np.int64],
        required: NDArray[np.bool_] | None,
    ) -> None:
        """As `pick`, in select/linear: below the smallest switch that has as many as the job must
        have, though it would take more, the leaves of required nodes, then the smallest ones.
        """
        leaf = self.leaf_of[index]
        free = leaf >= 0
        starts: set[int] = set()
        if required is not None:
            free &= ~required
            starts.update(leaf[required & (leaf >= 0)].tolist())
        nodes, sums = self._counts(leaf[free]), self._counts(leaf[free], cpus[free])
        enough = [
            number
            for number in range(len(self.switches))
            if nodes[number] >= picks.nodes - picks.spare
            and sums[number] >= picks.cpus
            and all(number in self._ancestors[start] for start in starts)
        ]
        if not enough:
            return
        above = min(enough, key=lambda number: nodes[number])
        leaves = [
            number
            for number in range(self.leaves)
            if nodes[number] and above in self._ancestors[number]
        ]
        for number in sorted(leaves, key=lambda each: (each not in starts, nodes[each])):
            if not picks.is_complete:
                here = np.flatnonzero(free & (leaf == number))
                picks.take(here, cpus[here])

    def _counts(
        self, leaf: NDArray[np.intp], weights: NDArray[np.int64] | None = None
    ) -> list[int]:
        """Usable nodes below each switch, or the sums of their weights."""
        counts: list[int] = np.bincount(
            leaf[leaf >= 0],
            None if weights is None else weights[leaf >= 0],
            minlength=len(self.switches),
        ).tolist()
        for number, switch in enumerate(self.switches):
            if switch.parent >= 0:
                counts[switch.parent] += counts[number]
        return counts

    def _best(
        self, leaves: NDArray[np.intp], distance: NDArray[np.int64], counts: list[int], wanted: int
    ) -> int:
        """The leaf to go on with. Of those alike in all that counts only the first is looked at."""
        alike: dict[tuple[int, int, int], int] = {}
        for number, far in zip(leaves.tolist(), distance[leaves].tolist(), strict=True):
            alike.setdefault((self.switches[number].parent, counts[number], far), number)
        best = best_far = -1
        for (_, _, far), number in alike.items():
            if best >= 0:
                better = self._compare(number, best, counts, wanted)
                if not ((far < best_far and better >= 0) or (far == best_far and better > 0)):
                    continue
            best, best_far = number, far
        return best

    def _compare(self, i: int, j: int, counts: list[int], wanted: int) -> int:
        """Above 0 if the leaf i is a better fit than j, below if worse."""
        a, b = i, j
        while True:
            if counts[a] >= wanted and counts[b] >= wanted:
                return counts[b] - counts[a]
            if counts[a] >= wanted or counts[b] >= wanted:
                return 1 if counts[a] >= wanted else -1
            above, beside = self.switches[a].parent, self.switches[b].parent
            if above == beside or above < 0 or beside < 0:
                return counts[a] - counts[b]
            a, b = above, beside
