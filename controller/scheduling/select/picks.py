"""What of nodes is wanted, and what has been chosen of it so far.

Place: scheduling, pure; filled by `best_fit` and `tables/topology`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.controller.scheduling.select.dealing import shares_of_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True)
class Demand:
    """What is still to be found. `least`: CPUs of each node at least."""

    cpus: int
    min_nodes: int
    wanted_nodes: int
    max_nodes: int
    least: int = 1


@dataclass(slots=True, eq=False)
class Offer:
    """What nodes have for a job. Vectors have an element for each of the nodes `at`; other modules
    speak of these by their places in them.
    """

    at: NDArray[np.intp]
    cpus: NDArray[np.int64]  # for its tasks
    core: NDArray[np.int64] | int  # CPUs of a core that its tasks may use; one if all are alike
    weight: NDArray[np.int64] | None  # the least comes first; None: all alike
    required: NDArray[np.bool_] | None  # which it must have
    most: NDArray[np.int64] | None = None  # tasks for which there are devices; None: any number


class Picks:
    """Chosen nodes in the order in which they were taken, and what is needed still."""

    def __init__(self, demand: Demand, core: NDArray[np.int64] | int = 1) -> None:
        self.core, self.least = core, demand.least
        self.cpus, self.nodes, self.nodes_left = demand.cpus, demand.wanted_nodes, demand.max_nodes
        # of the wanted nodes those that the job need not have
        self.spare = demand.wanted_nodes - demand.min_nodes
        self.is_empty = True
        self._places: list[NDArray[np.intp]] = []

    @property
    def is_complete(self) -> bool:
        return (self.cpus <= 0 and self.nodes <= 0) or self.nodes_left <= 0

    def take(
        self,
        order: NDArray[np.intp],
        cpus: NDArray[np.int64],
        *,
        every: bool = False,
        last_must_do: bool = False,
    ) -> None:
        """The first of these places that satisfy the demand; `cpus` are those of the places.
        `every`: all of them. `last_must_do`: if it is the last node that the job may have, it must
        have all that is missing.
        """
        if not len(order):
            return
        given = sums = cpus.cumsum()
        if self.nodes - self.spare > 1:
            core = self.core if isinstance(self.core, int) else self.core[order]
            given = shares_of_nodes(
                cpus, self.cpus, self.nodes - self.spare, core, self.least
            ).cumsum()
        given = np.minimum(given, self.cpus)
        count = (
            len(order)
            if every
            else min(
                max(int(given.searchsorted(self.cpus)) + 1, self.nodes), len(order), self.nodes_left
            )
        )
        if last_must_do and count == self.nodes_left and sums[count - 1] < self.cpus:
            missing = self.cpus - int(sums[count - 1]) + int(cpus[count - 1])
            fitting = count - 1 + np.flatnonzero(cpus[count - 1 :] >= missing)[:1]
            chosen = np.concatenate((np.arange(count - 1), fitting))
            self.take(order[chosen], cpus[chosen], every=True)
            return
        self.is_empty = False
        self._places.append(order[:count])
        self.cpus -= int(given[count - 1])
        self.nodes -= count
        self.nodes_left -= count

    def finish(self) -> NDArray[np.intp]:
        """All places."""
        return self._places[0] if len(self._places) == 1 else np.concatenate(self._places)
