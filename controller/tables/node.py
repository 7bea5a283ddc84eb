"""The node table: every node's properties and what is free on it, as vectors, so that a whole
cluster is looked at in a few operations.

Place: tables, no I/O. Node sets are Python ints used as bitmaps: bit i is the node
with index i (in the order of names). Only this module changes free CPUs, cores and memory; only
through `allocate` and `release`.

A job on idle nodes is written into the vectors only when somebody looks at them; until then the
bitmaps say all there is to say. Where jobs take whole nodes nobody ever looks, and a job's coming
and going costs a few operations on bitmaps however many nodes it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.tables.gres import GresTable, keys_of, room_in
from understudy.controller.tables.shared_cores import SharedCores
from understudy.controller.tables.transitions import tell
from understudy.model import nodeset
from understudy.model.gres import GPU
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from understudy.controller.tables.allocation import Allocation, ShareGroup
    from understudy.controller.tables.gres import GresTable
    from understudy.controller.tables.topology import Tree

OFF: Final = NodeFlag.POWERED_DOWN | NodeFlag.POWERING_DOWN | NodeFlag.POWERING_UP

CLOSED: Final = (
    NodeFlag.DRAIN
    | NodeFlag.FAIL
    | NodeFlag.NO_RESPOND
    | NodeFlag.POWERING_DOWN
    | NodeFlag.REBOOT_ISSUED
)
_OFF: Final = NodeFlag.POWERED_DOWN | NodeFlag.POWERING_UP  # nobody expects them to respond
BOOT_WEIGHT: Final = 1 << 40  # above all weights that can be configured
_DEPARTURES: Final = 4096  # of which a list is kept until somebody asks; most overwrite each other
# Nodes with fewer cores than this have their cores in use in a machine integer, larger ones in
# Python's.
_INT_BITS: Final = 63
# all from which the vectors of a table are made
_shape = attrgetter(
    *("cpus", "sockets", "cores_per_socket", "threads_per_core", "spec_cores"),
    *("memory_mb", "mem_spec_mb", "weight", "tmp_disk_mb"),
)


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
    # moved by `node_states.py` alone; ALLOCATED and MIXED follow from the vectors
    state: NodeState = NodeState.UNKNOWN
    flags: NodeFlag = NodeFlag.NONE
    reason: str = ""
    reason_user_id: int = 0
    reason_time: int | None = None
    boot_time: int | None = None
    slurmd_start_time: int | None = None
    last_busy: int = 0
    last_response: float = 0.0
    # after the reboot that is requested or issued; UNKNOWN: as before
    next_state: NodeState = NodeState.UNKNOWN
    boot_request_time: int = 0  # when the last reboot was issued
    daemon: str = ""  # the node daemon that stands for it
    comment: str = ""
    extra: str = ""
    cpu_bind: str = ""  # as shown: cores, sockets ...
    # a mask: cores that are the system's (CoreSpecCount, CpuSpecList), which no job gets
    spec_cores: int = 0
    mem_spec_mb: int = 0  # memory that is the system's (MemSpecLimit)
    active_features: tuple[str, ...] = ()
    log: list[tuple[float, str]] = field(default_factory=list)  # the last few events, for `story`

    def __post_init__(self) -> None:
        # none is active only after an update
        self.active_features = self.active_features or self.features

    @property
    def story(self) -> str:
        """The node's last events, for error messages."""
        return tell("node", self.name, self.state, self.flags, self.log)

    @property
    def cpus_of_core(self) -> int:
        """ThreadsPerCore, unless CPUs= says otherwise."""
        return max(self.cpus // (self.sockets * self.cores_per_socket), 1)

    @property
    def effective_cpus(self) -> int:
        """Those that jobs can have: of a node with fewer CPUs than cores (CPUs= the sockets), no
        more are the system's than leave cores too few.
        """
        return min(
            self.cpus,
            (self.sockets * self.cores_per_socket - self.spec_cores.bit_count())
            * self.cpus_of_core,
        )


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are alike in all that matters to the choice of nodes, features aside."""

    nodes: int  # bitmap
    cpus: int  # that jobs can have
    sockets: int
    cores: int  # in all
    threads: int
    memory_mb: int  # that jobs can have
    tmp_disk_mb: int
    weight: int
    spec_cores: int  # a mask: those that are the system's
    all_cpus: int
    all_memory_mb: int

    @property
    def threads_of_core(self) -> int:
        """CPUs of a core: ThreadsPerCore, unless CPUs= says otherwise."""
        return max(self.all_cpus // self.cores, 1)

    @property
    def job_cores(self) -> int:
        """A mask of the cores that jobs can have."""
        return (1 << self.cores) - 1 & ~self.spec_cores

    def differs_in_space(self, other: NodeKind) -> bool:
        """Whether memory and disk are all in which they differ."""
        return (
            self.cpus == other.cpus
            and self.weight == other.weight
            and self.sockets == other.sockets
            and self.cores == other.cores
            and self.threads == other.threads
            and self.all_cpus == other.all_cpus
            and self.spec_cores == other.spec_cores
        )


@dataclass(slots=True, eq=False)
class NodeTable:
    """All nodes. Vectors have one entry a node, in index order; `*_nodes` are bitmaps."""

    nodes: list[Node]
    gres: GresTable | None = None  # None: nobody has generic resources
    index_of: dict[str, int] = field(init=False)
    cpus: NDArray[np.int64] = field(init=False)  # that jobs can have, as memory
    most_cpus: int = field(init=False)  # of one node
    sockets: NDArray[np.int64] = field(init=False)
    cores: NDArray[np.int64] = field(init=False)  # cores in all
    threads: NDArray[np.int64] = field(init=False)  # per core
    core_cpus: NDArray[np.int64] = field(init=False)  # CPUs of a core
    # masks of cores that are the system's, of nodes that have such
    spec_cores: dict[int, int] = field(init=False)
    memory: NDArray[np.int64] = field(init=False)  # MB
    all_memory: NDArray[np.int64] = field(init=False)  # MB, the system's with it
    weight: NDArray[np.int64] = field(init=False)
    tmp_disk: NDArray[np.int64] = field(init=False)  # MB
    up_nodes: int = 0  # registered, neither down nor draining nor failing: new jobs may go there
    idle_nodes: int = 0  # no job holds anything there (up or not)
    # jobs are being cleaned up there; NodeFlag.COMPLETING is shown for them
    completing_nodes: int = 0
    exclusive_nodes: int = 0  # held whole by one job
    full_nodes: int = 0  # no free CPU
    owned_nodes: int = 0  # where only jobs of one user may run
    sharing: SharedCores = field(default_factory=SharedCores)  # of jobs that share cores
    boot_nodes: int = 0  # off, or booting: taken after all others
    boot_allowance_s: int = 0  # what such a boot may take (ResumeTimeout)
    generation: int = 0  # raised with every allocation and release
    _free_cpus: NDArray[np.int64] = field(init=False)
    _free_memory: NDArray[np.int64] = field(init=False)
    _job_count: NDArray[np.int64] = field(init=False)
    _used_cores: NDArray[np.int64] | NDArray[np.object_] = field(init=False)
    _last_busy: NDArray[np.int64] = field(init=False)
    # (nodes, when) that are not in `_last_busy` yet, in order
    _departures: list[tuple[int, int]] = field(default_factory=list)
    watcher: Callable[[Node], None] | None = None  # told of each node whose state may have changed
    tree: Tree | None = None  # the switches, where topology/tree is configured
    # by id(): each alone on its nodes, and not in the vectors yet
    _late: dict[int, Allocation] = field(default_factory=dict)
    _kinds: list[NodeKind] | None = None
    _configured_kinds: list[NodeKind] = field(default_factory=list)
    _features: dict[str, int] | None = None
    # that a node had since the controller began, and may have no more
    former_features: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        nodes = self.nodes
        self.index_of = {node.name: node.index for node in nodes}
        # most nodes are like others, for which all that follows is worked out once
        like: dict[object, int] = {}
        firsts: list[Node] = []
        kinds = []
        for node, key in zip(nodes, map(_shape, nodes), strict=True):
            kind = like.get(key)
            if kind is None:
                kind = like[key] = len(firsts)
                firsts.append(node)
            kinds.append(kind)
        of_kind = np.array(kinds, dtype=np.intp)

        def vector(values: list[int]) -> NDArray[np.int64]:
            """Of what the first of each kind has."""
            return np.array(values, dtype=np.int64)[of_kind]

        self.cpus = vector([n.effective_cpus for n in firsts])
        self.most_cpus = max((1, *(n.effective_cpus for n in firsts)))
        self.sockets = vector([n.sockets for n in firsts])
        self.cores = vector([n.sockets * n.cores_per_socket for n in firsts])
        self.threads = vector([n.threads_per_core for n in firsts])
        self.core_cpus = vector([n.cpus_of_core for n in firsts])
        self.spec_cores = {n.index: n.spec_cores for n in nodes if n.spec_cores}
        self.all_memory = vector([n.memory_mb for n in firsts])
        self.memory = self.all_memory - vector([n.mem_spec_mb for n in firsts])
        self.weight = vector([n.weight for n in firsts])
        self.tmp_disk = vector([n.tmp_disk_mb for n in firsts])
        self._free_cpus = self.cpus.copy()
        self._free_memory = self.memory.copy()
        self._job_count = np.zeros(len(nodes), dtype=np.int64)
        self._last_busy = np.zeros(len(nodes), dtype=np.int64)
        most = max((n.sockets * n.cores_per_socket for n in firsts), default=0)
        self._used_cores = (
            np.zeros(len(nodes), dtype=np.int64)
            if most < _INT_BITS
            else np.full(len(nodes), 0, dtype=np.object_)
        )
        for index, cores in self.spec_cores.items():
            self._used_cores[index] = cores
        self.idle_nodes = (1 << len(nodes)) - 1

    @property
    def free_cpus(self) -> NDArray[np.int64]:
        """Free CPUs. Not to be changed, nor kept: a later allocation may be missing in it."""
        if self._late:
            self._catch_up()
        return self._free_cpus

    @property
    def free_memory(self) -> NDArray[np.int64]:
        """Free memory in MB, as `free_cpus`."""
        if self._late:
            self._catch_up()
        return self._free_memory

    def free_gres(self, key: str) -> NDArray[np.int64] | None:
        """How many devices of a name (`gpu`) or name and type (`gpu:a`) are free on each node;
        None: nobody has them.
        """
        return None if self.gres is None else self.gres.free.get(key)

    @property
    def job_count(self) -> NDArray[np.int64]:
        """How many jobs hold something on each node, as `free_cpus`."""
        if self._late:
            self._catch_up()
        return self._job_count

    @property
    def used_cores(self) -> list[int]:
        """Bit masks of the cores in use, one a node; the system's are."""
        if self._late:
            self._catch_up()
        listed: list[int] = self._used_cores.tolist()
        return listed

    @property
    def last_busy(self) -> NDArray[np.int64]:
        """When a job was last on each node (seconds of the cluster's clock, 0: never)."""
        seen = 0
        for nodes, when in reversed(self._departures):
            if fresh := nodes & ~seen:
                self._last_busy[_places(fresh)] = when
                seen |= fresh
        self._departures.clear()
        return self._last_busy

    def note_departure(self, nodes: int, when: int) -> None:
        """A job has left the nodes (a bitmap)."""
        self._departures.append((nodes, when))
        if len(self._departures) > _DEPARTURES:
            _ = self.last_busy

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Bit masks of the cores in use on these nodes (indices)."""
        if self._late:
            self._catch_up()
        listed: list[int] = self._used_cores[nodes].tolist()
        return listed

    def allocate(self, allocation: Allocation, *, whole: bool = False) -> None:
        """Take the shares. `whole` (also the allocation's own): no other job may use the nodes
        meanwhile.
        """
        nodes = allocation.nodes
        if allocation.owned:
            self.owned_nodes |= nodes
        if allocation.is_shared:
            self._take_shared(allocation)
        elif not nodeset.are_among(nodes, self.idle_nodes) or not self._take_later(allocation):
            if self._late:
                self._catch_up()
            self._take(allocation)
        self.idle_nodes = nodeset.without(self.idle_nodes, nodes)
        if whole or allocation.whole:
            self.exclusive_nodes |= nodes
        self.generation += 1

    def _take_later(self, allocation: Allocation) -> bool:
        """On idle nodes the sizes of the nodes say all. False if that is not so simple."""
        full = 0
        for group in allocation.groups:
            if group.gres:
                return False
            for kind in self.kinds:
                if part := group.nodes & kind.nodes:
                    assert group.cpus <= kind.cpus, "nodes over-committed"
                    if group.cpus == kind.cpus:
                        full |= part
        self.full_nodes |= full
        self._late[id(allocation)] = allocation
        return True

    def _catch_up(self) -> None:
        """Write into the vectors what has been taken."""
        late, self._late = self._late, {}
        for allocation in late.values():
            self._take(allocation)

    def _take(self, allocation: Allocation) -> None:
        for group in allocation.groups:
            nodes, cores = group.nodes, group.cores
            at = _places(nodes)
            left = self._free_cpus[at] - group.cpus
            lowest = left.min()
            assert lowest >= 0, "nodes over-committed"
            used = self._used_cores[at]
            assert not (used & cores).any(), (
                f"cores of {self._first_with(nodes, cores)} given twice"
            )
            self._used_cores[at] = used | cores
            self._free_cpus[at] = left
            if group.memory_mb:
                self._free_memory[at] -= group.memory_mb
            self._job_count[at] += 1
            if group.gres and self.gres is not None:
                self.gres.take(nodeset.indices(nodes), group.gres)
            if not lowest:
                self.full_nodes |= nodes if not left.any() else nodes & ~self._with_free_cpus(nodes)

    def _take_shared(self, allocation: Allocation) -> None:
        if self._late:
            self._catch_up()
        new = self.sharing.add(allocation)
        for group in allocation.groups:
            for node in nodeset.indices(group.nodes):
                cores = new[node]
                used = int(self._used_cores[node])
                assert not used & cores, f"cores of {self.nodes[node].name} given twice"
                self._used_cores[node] = used | cores
                self._free_cpus[node] -= cores.bit_count() * self.cpus_of_core(node)
                self._free_memory[node] -= group.memory_mb
                self._job_count[node] += 1
                if not self._free_cpus[node]:
                    self.full_nodes |= 1 << node
            if group.gres and self.gres is not None:
                self.gres.take(nodeset.indices(group.nodes), group.gres)

    def _give_back_shared(self, allocation: Allocation, nodes: int) -> tuple[int, int]:
        freed = idle = 0
        gone = self.sharing.remove(allocation, nodes)
        for group in allocation.groups:
            for node in nodeset.indices(group.nodes & nodes):
                self._used_cores[node] &= ~gone[node]
                self._free_cpus[node] += gone[node].bit_count() * self.cpus_of_core(node)
                self._free_memory[node] += group.memory_mb
                self._job_count[node] -= 1
                if gone[node]:
                    freed |= 1 << node
                if not self._job_count[node]:
                    idle |= 1 << node
            if group.gres and self.gres is not None:
                self.gres.give_back(nodeset.indices(group.nodes & nodes), group.gres)
        return freed, idle

    def cpus_of_core(self, node: int) -> int:
        """CPUs of a core of the node with this index."""
        return self.nodes[node].cpus_of_core

    def _first_with(self, nodes: int, cores: int) -> str:
        return next(
            self.nodes[i].name for i in nodeset.indices(nodes) if self._used_cores[i] & cores
        )

    def release(self, allocation: Allocation, nodes: int) -> None:
        """Give back the shares on those of the allocation's nodes that are in `nodes` (a
        bitmap).
        """
        if id(allocation) in self._late and nodeset.are_among(allocation.nodes, nodes):
            del self._late[id(allocation)]
            freed = idle = allocation.nodes
        else:
            if self._late:
                self._catch_up()
            freed, idle = (self._give_back_shared if allocation.is_shared else self._give_back)(
                allocation, nodes
            )
        self.full_nodes = nodeset.without(self.full_nodes, freed)
        self.idle_nodes |= idle
        self.exclusive_nodes = nodeset.without(self.exclusive_nodes, idle)
        self.owned_nodes = nodeset.without(self.owned_nodes, idle)
        self.generation += 1

    def _give_back(self, allocation: Allocation, nodes: int) -> tuple[int, int]:
        """(nodes on which something has come free, those of them on which now nobody is)."""
        freed = idle = 0
        for group in allocation.groups:
            part = group.nodes & nodes
            if not part:
                continue
            at = _places(part)
            self._free_cpus[at] += group.cpus
            if group.memory_mb:
                self._free_memory[at] += group.memory_mb
            self._used_cores[at] &= ~group.cores
            if group.gres and self.gres is not None:
                self.gres.give_back(nodeset.indices(part), group.gres)
            left = self._job_count[at] - 1
            self._job_count[at] = left
            freed |= part
            if not left.any():
                idle |= part
            elif left.size > 1:
                idle |= part & ~nodeset.from_array(nodeset.positions_array(part)[left > 0])
        return freed, idle

    def _with_free_cpus(self, nodes: int) -> int:
        at = nodeset.positions_array(nodes)
        return nodeset.from_array(at[self._free_cpus[at] > 0])

    @property
    def kinds(self) -> list[NodeKind]:
        """The kinds of nodes, in the order of each kind's first node. Those that have to boot are
        kinds of their own, heavier than all others.
        """
        if self._kinds is None:
            alike: dict[tuple[int, ...], list[int]] = {}
            for n in self.nodes:
                cores, memory = n.sockets * n.cores_per_socket, n.memory_mb - n.mem_spec_mb
                key = (
                    n.effective_cpus,
                    n.sockets,
                    cores,
                    n.threads_per_core,
                    memory,
                    n.tmp_disk_mb,
                    n.weight,
                    n.spec_cores,
                    n.cpus,
                    n.memory_mb,
                )
                alike.setdefault(key, []).append(n.index)
            self._configured_kinds = [
                NodeKind(nodeset.from_positions(indices), *key) for key, indices in alike.items()
            ]
            self._kinds = self._configured_kinds if not self.boot_nodes else self._split_kinds()
        return self._kinds

    def _split_kinds(self) -> list[NodeKind]:
        split = [
            replace(kind, nodes=part, weight=kind.weight | heavier)
            for kind in self._configured_kinds
            for part, heavier in (
                (kind.nodes & ~self.boot_nodes, 0),
                (kind.nodes & self.boot_nodes, BOOT_WEIGHT),
            )
            if part
        ]
        return sorted(split, key=lambda kind: nodeset.first(kind.nodes))

    def set_boot(self, nodes: int, *, needs_boot: bool) -> None:
        """The nodes (a bitmap) have to boot before a job can run there, or have booted."""
        if self._late:
            self._catch_up()
        self.boot_nodes = self.boot_nodes | nodes if needs_boot else self.boot_nodes & ~nodes
        at = _places(nodes)
        if needs_boot:
            self.weight[at] |= BOOT_WEIGHT
        else:
            self.weight[at] &= ~BOOT_WEIGHT
        _ = self.kinds
        self._kinds = self._split_kinds()
        self.generation += 1

    def kind_of(self, nodes: int) -> NodeKind | None:
        """The kind to which all nodes of the bitmap belong, None if there are several."""
        for kind in self._kinds or self.kinds:
            if nodeset.are_among(nodes, kind.nodes):
                return kind
        return None

    def free_cpus_on(self, nodes: int) -> int:
        """CPUs of these nodes (a bitmap) that no job holds, taken together."""
        open_nodes = nodeset.without(nodes, self.full_nodes)
        if nodeset.are_among(open_nodes, self.idle_nodes):
            return sum((open_nodes & each.nodes).bit_count() * each.cpus for each in self.kinds)
        return int(self.free_cpus @ nodeset.to_flags(open_nodes, len(self.nodes)))

    def tree_for(self, switches: int) -> Tree | None:
        """The tree that matters to a job that asks for so many switches (0: for none)."""
        tree = self.tree
        return None if tree is None or (tree.optional and not switches) else tree

    def with_feature(self, feature: str) -> int:
        """The nodes that have the feature."""
        if self._features is None:
            found: dict[str, list[int]] = {}
            for n in self.nodes:
                for name in n.active_features:
                    found.setdefault(name, []).append(n.index)
            self._features = {
                name: nodeset.from_positions(indices) for name, indices in found.items()
            }
        return self._features.get(feature, 0)

    def reconfigured(self) -> None:
        """Look again at what is said of the nodes: to be called after a change of weight, features
        or sizes.
        """
        if self._late:
            self._catch_up()
        self._kinds = self._features = None
        self.weight[:] = [n.weight for n in self.nodes]
        if self.boot_nodes:
            self.weight[_places(self.boot_nodes)] |= BOOT_WEIGHT
        self.tmp_disk[:] = [n.tmp_disk_mb for n in self.nodes]
        self.generation += 1

    def set_availability(self, node: Node) -> None:
        """Bring `up_nodes` in line with the node's state and flags."""
        bit = 1 << node.index
        if takes_jobs(node):
            self.up_nodes |= bit
        else:
            self.up_nodes &= ~bit
        if self.watcher is not None:
            self.watcher(node)

    def set_availabilities(self, nodes: Sequence[Node]) -> None:
        """The same of many: bit by bit a bitmap of N nodes would be written N times."""
        up = nodeset.from_positions([node.index for node in nodes if takes_jobs(node)])
        looked_at = nodeset.from_positions([node.index for node in nodes])
        self.up_nodes = self.up_nodes & ~looked_at | up
        if self.watcher is not None:
            for node in nodes:
                self.watcher(node)

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


def takes_jobs(node: Node) -> bool:
    """Whether new jobs may go there: it is up, or off and can be switched on."""
    flags = node.flags
    # most have none, and arithmetic with flags is slow
    if flags and flags & CLOSED and not (flags & CLOSED == NodeFlag.NO_RESPOND and flags & _OFF):
        return False
    return node.state is NodeState.IDLE


def _places(nodes: int) -> slice | NDArray[np.intp]:
    """Where to look in a vector for the nodes: a slice if they are consecutive, which costs a
    fraction of an index vector.
    """
    start = nodeset.first(nodes)
    run = nodes >> start
    if run & (run + 1) == 0:
        return slice(start, start + run.bit_length())
    return nodeset.positions_array(nodes)


def room_beside(table: GresTable, key: str, groups: Iterable[ShareGroup]) -> NDArray[np.int64]:
    """What would be free on each node of a name that stands for parts of GPUs, if only these were
    held.
    """
    name = key.partition(":")[0]
    used: dict[int, dict[int, int]] = {}
    whole: dict[int, int] = {}
    for group in groups:
        for held in group.gres:
            if held.name not in (name, GPU):
                continue
            for index in nodeset.indices(group.nodes):
                if held.name == GPU:
                    whole[index] = whole.get(index, 0) | held.devices
                else:
                    parts, gpu = used.setdefault(index, {}), held.devices.bit_length() - 1
                    parts[gpu] = parts.get(gpu, 0) + held.amount
    found = np.zeros(len(table.layouts), dtype=np.int64)
    for index, layout in enumerate(table.layouts):
        for each in layout:
            if each.parts and key in keys_of(each.name, each.type):
                found[index] = max(
                    int(found[index]), *room_in(each, used.get(index, {}), whole.get(index, 0))
                )
    return found
