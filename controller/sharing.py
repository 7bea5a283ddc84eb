"""Cores that several jobs share: partitions with OverSubscribe=FORCE, or YES where the job agrees.

Place: the controller's core, no I/O; part of the node table. The jobs that share in a partition are kept in rows. Within a row no core is given
twice; a partition has as many rows as jobs may share a core. A new job goes into the first row that has its cores. When one leaves, the others are
laid out anew, those with the lowest cores first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.job import Allocation

# Cores on each node, by the node's index.
Cores = dict[int, int]


@dataclass(slots=True, eq=False)
class SharedCores:
    """By partition: what each job holds, and the rows."""

    held: dict[str, dict[int, Cores]] = field(default_factory=dict)  # the inner key is the id() of the allocation
    rows: dict[str, list[Cores]] = field(default_factory=dict)

    def add(self, allocation: Allocation) -> Cores:
        """Take a job in; the cores of it that no sharing job had so far."""
        cores = cores_of(allocation)
        before = self.on(cores)
        self.held.setdefault(allocation.shared_in, {})[id(allocation)] = cores
        lay(self.rows.setdefault(allocation.shared_in, []), cores)
        return {node: mask & ~before[node] for node, mask in cores.items()}

    def remove(self, allocation: Allocation, nodes: int) -> Cores:
        """The job leaves these nodes (a bitmap); the cores of it that no sharing job has now."""
        held = self.held[allocation.shared_in]
        cores = held[id(allocation)]
        left = {node: cores.pop(node) for node in nodeset.indices(nodes & allocation.nodes) if node in cores}
        if not cores:
            del held[id(allocation)]
        self.rows[allocation.shared_in] = laid_out(held.values())
        others = self.on(left)
        return {node: mask & ~others[node] for node, mask in left.items()}

    def on(self, nodes: Iterable[int]) -> Cores:
        """The cores that sharing jobs hold on these nodes, whatever their partition."""
        found = dict.fromkeys(nodes, 0)
        for rows in self.rows.values():
            for row in rows:
                for node in found:
                    found[node] |= row.get(node, 0)
        return found


def cores_of(allocation: Allocation) -> Cores:
    """The cores on each of the allocation's nodes."""
    return {node: group.cores for group in allocation.groups for node in nodeset.indices(group.nodes)}


def lay(rows: list[Cores], cores: Cores) -> None:
    """Put a job into the first row in which none of its cores is given."""
    for row in rows:
        if not any(row.get(node, 0) & mask for node, mask in cores.items()):
            break
    else:
        row = {}
        rows.append(row)
    for node, mask in cores.items():
        row[node] = row.get(node, 0) | mask


def laid_out(held: Iterable[Cores]) -> list[Cores]:
    """Rows of several jobs."""
    rows: list[Cores] = []
    for cores in sorted(held, key=_lowest):
        lay(rows, cores)
    return rows


def _lowest(cores: Cores) -> tuple[int, int]:
    node = min(cores)
    return node, nodeset.first(cores[node])
