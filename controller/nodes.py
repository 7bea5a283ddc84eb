"""The node table: every node's properties and what is free on it, as vectors, so that a whole cluster is looked at in a few operations.

Place: the controller's core, no I/O. Node sets are Python ints used as bitmaps: bit i is the node with index i (order of NodeName lines).
Only this module changes free CPUs, cores and memory; only through `allocate` and `release`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from understudy.model import nodeset
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from understudy.controller.job import Allocation


@dataclass(slots=True, eq=False)
class Node:
    """What is said or configured of one node beside the vectors."""

    name: str
    index: int
    cpus: int
    boards: int
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mb: int
    tmp_disk_mb: int
    weight: int
    features: tuple[str, ...]
    gres: str
    address: str
    hostname: str
    port: int
    state: NodeState = NodeState.UNKNOWN  # base as set: UNKNOWN, DOWN, IDLE, FUTURE; ALLOCATED and MIXED follow from the vectors
    flags: NodeFlag = NodeFlag.NONE
    reason: str = ""
    reason_user_id: int = 0
    reason_time: int | None = None
    boot_time: int | None = None
    slurmd_start_time: int | None = None
    last_busy: int = 0
    last_response: float = 0.0
    daemon: str = ""  # the node daemon that stands for it
    comment: str = ""
    extra: str = ""
    active_features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are alike in all that matters to the choice of nodes, features aside."""

    nodes: int  # bitmap
    cpus: int
    sockets: int
    cores: int
    threads: int
    memory_mb: int
    tmp_disk_mb: int
    weight: int


@dataclass(slots=True, eq=False)
class NodeTable:
    """All nodes. Vectors have one entry a node, in index order; `*_nodes` are bitmaps."""

    nodes: list[Node]
    index_of: dict[str, int] = field(init=False)
    cpus: NDArray[np.int64] = field(init=False)
    sockets: NDArray[np.int64] = field(init=False)
    cores: NDArray[np.int64] = field(init=False)  # cores in all
    threads: NDArray[np.int64] = field(init=False)  # per core
    memory: NDArray[np.int64] = field(init=False)  # MB
    weight: NDArray[np.int64] = field(init=False)
    tmp_disk: NDArray[np.int64] = field(init=False)  # MB
    free_cpus: NDArray[np.int64] = field(init=False)
    free_memory: NDArray[np.int64] = field(init=False)
    job_count: NDArray[np.int64] = field(init=False)
    used_cores: list[int] = field(init=False)  # bit masks of cores in use
    up_nodes: int = 0  # registered, neither down nor draining nor failing: new jobs may go there
    idle_nodes: int = 0  # no job holds anything there (up or not)
    completing_nodes: int = 0  # jobs are being cleaned up there; NodeFlag.COMPLETING is shown for them
    exclusive_nodes: int = 0  # held whole by one job
    full_nodes: int = 0  # no free CPU
    generation: int = 0  # raised with every allocation and release
    _kinds: list[NodeKind] | None = None
    _features: dict[str, int] | None = None

    def __post_init__(self) -> None:
        nodes = self.nodes
        self.index_of = {node.name: node.index for node in nodes}

        def vector(values: list[int]) -> NDArray[np.int64]:
            return np.array(values, dtype=np.int64)

        self.cpus = vector([n.cpus for n in nodes])
        self.sockets = vector([n.sockets for n in nodes])
        self.cores = vector([n.sockets * n.cores_per_socket for n in nodes])
        self.threads = vector([n.threads_per_core for n in nodes])
        self.memory = vector([n.memory_mb for n in nodes])
        self.weight = vector([n.weight for n in nodes])
        self.tmp_disk = vector([n.tmp_disk_mb for n in nodes])
        self.free_cpus = self.cpus.copy()
        self.free_memory = self.memory.copy()
        self.job_count = np.zeros(len(nodes), dtype=np.int64)
        self.used_cores = [0] * len(nodes)
        self.idle_nodes = (1 << len(nodes)) - 1

    def allocate(self, allocation: Allocation, *, whole: bool = False) -> None:
        """Take the shares. `whole` (also the allocation's own): no other job may use the nodes meanwhile."""
        used = self.used_cores
        for group in allocation.groups:
            nodes, cores = group.nodes, group.cores
            at = _places(nodes)
            left = self.free_cpus[at] - group.cpus
            lowest = left.min()
            assert lowest >= 0, "nodes over-committed"
            self.free_cpus[at] = left
            if group.memory_mb:
                self.free_memory[at] -= group.memory_mb
            self.job_count[at] += 1
            for i in _listed(at, nodes):
                assert not used[i] & cores, f"cores of {self.nodes[i].name} given twice"
                used[i] |= cores
            if not lowest:
                self.full_nodes |= nodes if not left.any() else nodes & ~self._with_free_cpus(nodes)
        self.idle_nodes &= ~allocation.nodes
        if whole or allocation.whole:
            self.exclusive_nodes |= allocation.nodes
        self.generation += 1

    def release(self, allocation: Allocation, nodes: int) -> None:
        """Give back the shares on those of the allocation's nodes that are in `nodes` (a bitmap)."""
        used = self.used_cores
        freed = idle = 0
        for group in allocation.groups:
            part = group.nodes & nodes
            if not part:
                continue
            at, keep = _places(part), ~group.cores
            self.free_cpus[at] += group.cpus
            if group.memory_mb:
                self.free_memory[at] += group.memory_mb
            for i in _listed(at, part):
                used[i] &= keep
            left = self.job_count[at] - 1
            self.job_count[at] = left
            freed |= part
            if not left.any():
                idle |= part
            elif left.size > 1:
                idle |= part & ~nodeset.from_array(nodeset.positions_array(part)[left > 0])
        self.full_nodes &= ~freed
        self.idle_nodes |= idle
        self.exclusive_nodes &= ~idle
        self.generation += 1

    def _with_free_cpus(self, nodes: int) -> int:
        at = nodeset.positions_array(nodes)
        return nodeset.from_array(at[self.free_cpus[at] > 0])

    @property
    def kinds(self) -> list[NodeKind]:
        """The kinds of nodes, in the order of each kind's first node."""
        if self._kinds is None:
            alike: dict[tuple[int, ...], list[int]] = {}
            for n in self.nodes:
                key = (n.cpus, n.sockets, n.sockets * n.cores_per_socket, n.threads_per_core, n.memory_mb, n.tmp_disk_mb, n.weight)
                alike.setdefault(key, []).append(n.index)
            self._kinds = [NodeKind(nodeset.from_positions(indices), *key) for key, indices in alike.items()]
        return self._kinds

    def kind_of(self, nodes: int) -> NodeKind | None:
        """The kind to which all nodes of the bitmap belong, None if there are several."""
        for kind in self.kinds:
            if not nodes & ~kind.nodes:
                return kind
        return None

    def with_feature(self, feature: str) -> int:
        """The nodes that have the feature."""
        if self._features is None:
            found: dict[str, list[int]] = {}
            for n in self.nodes:
                for name in n.active_features or n.features:
                    found.setdefault(name, []).append(n.index)
            self._features = {name: nodeset.from_positions(indices) for name, indices in found.items()}
        return self._features.get(feature, 0)

    def reconfigured(self) -> None:
        """Look again at what is said of the nodes: to be called after a change of weight, features or sizes."""
        self._kinds = self._features = None
        self.weight[:] = [n.weight for n in self.nodes]
        self.tmp_disk[:] = [n.tmp_disk_mb for n in self.nodes]
        self.generation += 1

    def set_availability(self, node: Node) -> None:
        """Bring `up_nodes` in line with the node's state and flags."""
        bit = 1 << node.index
        closed = NodeFlag.DRAIN | NodeFlag.FAIL | NodeFlag.NO_RESPOND | NodeFlag.POWERING_DOWN | NodeFlag.REBOOT_REQUESTED
        if node.state is NodeState.IDLE and not node.flags & closed:
            self.up_nodes |= bit
        else:
            self.up_nodes &= ~bit

    def shown_state(self, node: Node) -> NodeState:
        """The base state as commands show it: IDLE becomes ALLOCATED or MIXED by what is in use."""
        if node.state is not NodeState.IDLE:
            return node.state
        free = self.free_cpus[node.index]
        if self.idle_nodes >> node.index & 1:
            return NodeState.IDLE
        if free == 0 or self.exclusive_nodes >> node.index & 1:
            return NodeState.ALLOCATED
        return NodeState.MIXED


def _places(nodes: int) -> slice | NDArray[np.intp]:
    """Where to look in a vector for the nodes: a slice if they are consecutive, which costs a fraction of an index vector."""
    start = nodeset.first(nodes)
    run = nodes >> start
    if run & (run + 1) == 0:
        return slice(start, start + run.bit_length())
    return nodeset.positions_array(nodes)


def _listed(at: slice | NDArray[np.intp], nodes: int) -> Iterable[int]:
    if isinstance(at, slice):
        return range(at.start, at.start + nodes.bit_count())
    listed: list[int] = at.tolist()
    return listed
