"""What a job holds: nodes, with cores, memory and devices of each; alike ones are kept together.

Place: tables; values alone.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import structs

from understudy.controller.tables.gres import Held
from understudy.model import nodeset as bits

if TYPE_CHECKING:
    from collections.abc import Iterable


class NodeShare(NamedTuple):
    """What a job holds on one node. `cores` is a bit mask of core numbers (socket by socket)."""

    node: int  # index in the node table
    cpus: int
    cores: int
    memory_mb: int
    tasks: int = 1
    gres: tuple[Held, ...] = ()


class ShareGroup(msgspec.Struct, frozen=True):
    """Nodes on which a job holds the same: `nodes` is a bitmap, the rest is meant for each node as
    in `NodeShare`.
    """

    nodes: int
    cpus: int
    cores: int
    memory_mb: int
    tasks: int = 1
    gres: tuple[Held, ...] = ()


def rows_text(rows: Iterable[tuple[int, int]]) -> str:
    """`8(x2),4`: of each value on how many nodes in a row."""
    return ",".join(
        f"{value}(x{count})" if count > 1 else str(value) for value, count in rows if count
    )


class Allocation(msgspec.Struct, frozen=True):
    """What a job holds: `nodes` as a bitmap of node indices, `cpus` in all, and the shares, nodes
    with equal shares as one group.

    Most jobs hold the same on all their nodes, and a job may hold 16,384 of them: groups keep that
    one entry instead of 16,384. `whole`: nobody else may use the nodes meanwhile.
    """

    nodes: int
    cpus: int
    groups: tuple[ShareGroup, ...]
    whole: bool = False
    shared_in: str = ""  # the partition whose other jobs may have the same cores
    owned: bool = False  # only jobs of the same user may use the nodes meanwhile
    # jobs of higher partitions may get the same cores, and it stands still or goes meanwhile
    overlaid: bool = False

    @classmethod
    def of_shares(
        cls, shares: Iterable[NodeShare], *, whole: bool = False, cpus: int | None = None
    ) -> Allocation:
        """An allocation from one share a node, in any order; `cpus` as of `of_groups`."""
        alike: dict[tuple[int, int, int, int, tuple[Held, ...]], int] = {}
        for share in shares:
            key = share[1:]
            alike[key] = alike.get(key, 0) | 1 << share.node
        groups = tuple(ShareGroup(nodes, *key) for key, nodes in alike.items())
        return cls.of_groups(groups, whole=whole, cpus=cpus)

    @classmethod
    def of_groups(
        cls, groups: tuple[ShareGroup, ...], *, whole: bool = False, cpus: int | None = None
    ) -> Allocation:
        """An allocation from groups of disjoint nodes. `cpus`: those that count as the job's, where
        that is not all of its cores (CR_CPU).
        """
        nodes = held = 0
        for group in groups:
            nodes |= group.nodes
            held += group.cpus * group.nodes.bit_count()
        return cls(nodes, held if cpus is None else cpus, groups, whole)

    @property
    def node_count(self) -> int:
        return self.nodes.bit_count()

    @property
    def is_shared(self) -> bool:
        """Whether other jobs may have the same cores."""
        return self.overlaid or self.shared_in != ""

    @property
    def tasks(self) -> int:
        return sum(group.tasks * group.nodes.bit_count() for group in self.groups)

    def without(self, nodes: int) -> Allocation:
        """What is left of it when those of its nodes that are in the bitmap are gone."""
        groups = tuple(
            structs.replace(group, nodes=left)
            for group in self.groups
            if (left := group.nodes & ~nodes)
        )
        return structs.replace(
            self, nodes=self.nodes & ~nodes, cpus=self.cpus - self.cpus_on(nodes), groups=groups
        )

    @property
    def shares(self) -> list[NodeShare]:
        """One share a node, in index order. Made anew each time: 16,384 of them take some 10 ms."""
        found = [
            NodeShare(i, g.cpus, g.cores, g.memory_mb, g.tasks, g.gres)
            for g in self.groups
            for i in bits.indices(g.nodes)
        ]
        if len(self.groups) > 1:
            found.sort()
        return found

    @property
    def first_node(self) -> int:
        """The index of the node that runs the batch script."""
        return bits.first(self.nodes)

    def share_on(self, node: int) -> NodeShare | None:
        """The share on the node with this index."""
        for g in self.groups:
            if g.nodes >> node & 1:
                return NodeShare(node, g.cpus, g.cores, g.memory_mb, g.tasks, g.gres)
        return None

    def cpus_on(self, nodes: int) -> int:
        """The CPUs held on those nodes of the allocation that are in the bitmap."""
        if bits.are_among(self.nodes, nodes):
            return self.cpus
        return sum(group.cpus * (group.nodes & nodes).bit_count() for group in self.groups)

    def per_node(self, what: str = "cpus") -> list[tuple[int, int]]:
        """CPUs (or "tasks", "memory_mb") of the nodes in index order, as (value, how many nodes in
        a row).
        """
        pieces = sorted(
            (start, length, getattr(group, what))
            for group in self.groups
            for start, length in bits.runs(group.nodes)
        )
        return [
            (value, sum(length for _, length, _ in row))
            for value, row in groupby(pieces, itemgetter(2))
        ]

    def per_node_text(self, what: str = "cpus") -> str:
        """`8(x2),4`: the form of SLURM_JOB_CPUS_PER_NODE and SLURM_TASKS_PER_NODE."""
        return rows_text(self.per_node(what))

    def pack(self) -> list[Any]:
        """A form of lists, ints and bytes, for the saved state."""
        packed: list[Any] = [
            self.whole,
            self.cpus,
            [_pack(g) for g in self.groups],
            self.shared_in,
            self.owned,
        ]
        return [*packed, True] if self.overlaid else packed

    @classmethod
    def unpack(cls, packed: list[Any]) -> Allocation:
        """The reverse of `pack`."""
        whole, cpus, groups, shared_in, owned, *overlaid = packed
        made = cls.of_groups(tuple(_unpack(*group) for group in groups), whole=whole, cpus=cpus)
        return (
            structs.replace(made, shared_in=shared_in, owned=owned, overlaid=bool(overlaid))
            if shared_in or owned or overlaid
            else made
        )


def _pack(group: ShareGroup) -> list[Any]:
    packed: list[Any] = [
        _bytes(group.nodes),
        group.cpus,
        _bytes(group.cores),
        group.memory_mb,
        group.tasks,
    ]
    if group.gres:
        packed.append(
            [[held.name, held.type, held.amount, _bytes(held.devices)] for held in group.gres]
        )
    return packed


def _unpack(
    nodes: bytes,
    cpus: int,
    cores: bytes,
    memory_mb: int,
    tasks: int,
    gres: Iterable[list[Any]] = (),
) -> ShareGroup:
    held = tuple(
        Held(name, kind, count, int.from_bytes(devices, "little"))
        for name, kind, count, devices in gres
    )
    return ShareGroup(
        int.from_bytes(nodes, "little"),
        cpus,
        int.from_bytes(cores, "little"),
        memory_mb,
        tasks,
        held,
    )


def _bytes(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) >> 3, "little")
