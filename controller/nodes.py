"""The node table: every node's properties and what is free on it, as vectors, so that a whole cluster is looked at in a few operations.

Place: the controller's core, no I/O. Node sets are Python ints used as bitmaps: bit i is the node with index i (order of NodeName lines).
Only this module changes free CPUs, cores and memory; only through `allocate` and `release`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
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


@dataclass(slots=True, eq=False)
class NodeTable:
    """All nodes. Vectors have one entry a node, in index order; `*_nodes` are bitmaps."""

    nodes: list[Node]
    index_of: dict[str, int] = field(init=False)
    cpus: NDArray[np.int64] = field(init=False)
    cores: NDArray[np.int64] = field(init=False)  # cores in all
    threads: NDArray[np.int64] = field(init=False)  # per core
    memory: NDArray[np.int64] = field(init=False)  # MB
    weight: NDArray[np.int64] = field(init=False)
    free_cpus: NDArray[np.int64] = field(init=False)
    free_memory: NDArray[np.int64] = field(init=False)
    job_count: NDArray[np.int64] = field(init=False)
    used_cores: list[int] = field(init=False)  # bit masks of cores in use
    up_nodes: int = 0  # registered, neither down nor draining nor failing: new jobs may go there
    idle_nodes: int = 0  # no job holds anything there (up or not)
    completing_nodes: int = 0
    exclusive_nodes: int = 0  # held whole by one job

    def __post_init__(self) -> None:
        nodes = self.nodes
        self.index_of = {node.name: node.index for node in nodes}

        def vector(values: list[int]) -> NDArray[np.int64]:
            return np.array(values, dtype=np.int64)

        self.cpus = vector([n.cpus for n in nodes])
        self.cores = vector([n.sockets * n.cores_per_socket for n in nodes])
        self.threads = vector([n.threads_per_core for n in nodes])
        self.memory = vector([n.memory_mb for n in nodes])
        self.weight = vector([n.weight for n in nodes])
        self.free_cpus = self.cpus.copy()
        self.free_memory = self.memory.copy()
        self.job_count = np.zeros(len(nodes), dtype=np.int64)
        self.used_cores = [0] * len(nodes)
        self.idle_nodes = (1 << len(nodes)) - 1

    def allocate(self, allocation: Allocation, *, whole: bool) -> None:
        """Take the shares. `whole`: no other job may use the nodes meanwhile."""
        for share in allocation.shares:
            i = share.node
            assert self.free_cpus[i] >= share.cpus, f"node {self.nodes[i].name} over-committed"
            assert not self.used_cores[i] & share.cores, f"cores of {self.nodes[i].name} given twice"
            self.free_cpus[i] -= share.cpus
            self.free_memory[i] -= share.memory_mb
            self.used_cores[i] |= share.cores
            self.job_count[i] += 1
        self.idle_nodes &= ~allocation.nodes
        if whole:
            self.exclusive_nodes |= allocation.nodes

    def release(self, allocation: Allocation, nodes: int) -> None:
        """Give back the shares on those of the allocation's nodes that are in `nodes` (a bitmap)."""
        freed = allocation.nodes & nodes
        for share in allocation.shares:
            i = share.node
            if not nodes >> i & 1:
                continue
            self.free_cpus[i] += share.cpus
            self.free_memory[i] += share.memory_mb
            self.used_cores[i] &= ~share.cores
            self.job_count[i] -= 1
            if self.job_count[i]:
                freed &= ~(1 << i)
        self.idle_nodes |= freed
        self.exclusive_nodes &= ~freed

    def set_availability(self, node: Node) -> None:
        """Bring `up_nodes` and `completing_nodes` in line with the node's state and flags."""
        bit = 1 << node.index
        closed = NodeFlag.DRAIN | NodeFlag.FAIL | NodeFlag.NO_RESPOND | NodeFlag.POWERING_DOWN | NodeFlag.REBOOT_REQUESTED
        if node.state is NodeState.IDLE and not node.flags & closed:
            self.up_nodes |= bit
        else:
            self.up_nodes &= ~bit
        if node.flags & NodeFlag.COMPLETING:
            self.completing_nodes |= bit
        else:
            self.completing_nodes &= ~bit

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
