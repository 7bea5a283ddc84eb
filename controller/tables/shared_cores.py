"""Cores that several jobs have: in partitions with OverSubscribe=FORCE (YES where the job agrees),
and where higher partitions suspend lower ones.

Place: tables, no I/O; part of the node table. The jobs that share in a partition are
kept in rows. Within a row no core is given twice; a partition has as many rows as jobs may share a
core. A new job goes into the first row that has its cores. When some have left, the others are laid
out anew, those with the lowest cores first; of those that begin with the same core, those of the
emptiest row. That is done when somebody asks for the rows: in how many messages, and in which order
nodes said that those who left are gone, makes no difference. Jobs that share with nobody of their
partition, and only make room for those of higher ones, are in no row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.tables.allocation import Allocation

# Cores on each node, by the node's index.
Cores = dict[int, int]


@dataclass(slots=True, eq=False)
class SharedCores:
    """By partition: what each job holds, and the rows."""

    # the inner key is the id() of the allocation; "": those in no row
    held: dict[str, dict[int, Cores]] = field(default_factory=dict)
    # what each of them holds of a node, by the node's index
    masks: dict[int, list[int]] = field(default_factory=dict)
    # the rows, and who is in each of them
    _rows: dict[str, list[Cores]] = field(default_factory=dict)
    _members: dict[str, list[list[int]]] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)  # the partitions whose rows are to be laid out

    def add(self, allocation: Allocation) -> Cores:
        """Take a job in; the cores of it that no sharing job had so far."""
        cores = cores_of(allocation)
        before = self.on(cores)
        name, key = allocation.shared_in, id(allocation)
        self._lay_out()
        self.held.setdefault(name, {})[key] = cores
        for node, mask in cores.items():
            self.masks.setdefault(node, []).append(mask)
        if name:
            lay(self._rows.setdefault(name, []), cores, self._members.setdefault(name, []), key)
        return {node: mask & ~before[node] for node, mask in cores.items()}

    def remove(self, allocation: Allocation, nodes: int) -> Cores:
        """The job leaves these nodes (a bitmap); the cores of it that no sharing job has now."""
        name = allocation.shared_in
        held = self.held[name]
        cores = held[id(allocation)]
        left = {
            node: cores.pop(node)
            for node in nodeset.indices(nodes & allocation.nodes)
            if node in cores
        }
        for node, mask in left.items():
            self.masks[node].remove(mask)
        if not cores:
            del held[id(allocation)]
        if name:
            self._left.add(name)
        others = self.on(left)
        return {node: mask & ~others[node] for node, mask in left.items()}

    @property
    def rows(self) -> dict[str, list[Cores]]:
        """By partition: the cores that are given in each of its rows."""
        self._lay_out()
        return self._rows

    def order(self, partition: str) -> list[int]:
        """The allocations as they are taken to be laid out anew: row by row, the emptiest first."""
        self._lay_out()
        return self._order(partition)

    def _lay_out(self) -> None:
        """Lay out anew who is left in the partitions from which jobs have gone."""
        for partition in self._left:
            held, order = self.held[partition], self._order(partition)
            self._rows[partition], self._members[partition] = [], []
            for key in sorted(order, key=lambda each: lowest(held[each])):
                lay(self._rows[partition], held[key], self._members[partition], key)
        self._left.clear()

    def _order(self, partition: str) -> list[int]:
        held = self.held.get(partition, {})
        rows = [[key for key in row if key in held] for row in self._members.get(partition, [])]
        return [
            key
            for row in sorted(rows, key=lambda row: sum(size(held[key]) for key in row))
            for key in row
        ]

    def on(self, nodes: Iterable[int]) -> Cores:
        """The cores that such jobs hold on these nodes, whatever their partition."""
        found = dict.fromkeys(nodes, 0)
        for node in found:
            for mask in self.masks.get(node, ()):
                found[node] |= mask
        return found


def cores_of(allocation: Allocation) -> Cores:
    """The cores on each of the allocation's nodes."""
    return {
        node: group.cores for group in allocation.groups for node in nodeset.indices(group.nodes)
    }


def lay(
    rows: list[Cores], cores: Cores, members: list[list[int]] | None = None, key: int = 0
) -> None:
    """Put a job into the first row in which none of its cores is given; `members`: who is in each
    row, to which its `key` is added.
    """
    number = 0
    while number < len(rows) and any(
        rows[number].get(node, 0) & mask for node, mask in cores.items()
    ):
        number += 1
    if number == len(rows):
        rows.append({})
        if members is not None:
            members.append([])
    row = rows[number]
    for node, mask in cores.items():
        row[node] = row.get(node, 0) | mask
    if members is not None:
        members[number].append(key)


def laid_out(held: Iterable[Cores]) -> list[Cores]:
    """Rows of several jobs, which are given in the order of `SharedCores.order`."""
    rows: list[Cores] = []
    for cores in sorted(held, key=lowest):
        lay(rows, cores)
    return rows


def lowest(cores: Cores) -> tuple[int, int]:
    """The first of these cores, as (node, core)."""
    node = min(cores)
    return node, nodeset.first(cores[node])


def size(cores: Cores) -> int:
    """How many cores these are."""
    return sum(mask.bit_count() for mask in cores.values())
