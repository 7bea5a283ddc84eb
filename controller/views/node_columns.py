"""The columns of the nodes table: one function each, from a node to the value that
understudy.model.records describes.

Place: views; read by understudy.controller.views.query. What needs a look at all
nodes (who is in which partition, memory in use) is prepared once per query in `NodeView`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.facts.job import memory_text
from understudy.controller.facts.tres import NodeBills, node_counts, tres_text
from understudy.controller.reservations.over_time import shown_nodes
from understudy.controller.tables.gres_texts import (
    node_gres,
    node_gres_used,
    used_counts,
)
from understudy.controller.tables.node import OFF
from understudy.controller.views.columns import Attribute, Constant
from understudy.controller.views.job_columns import cpus_of
from understudy.model import nodeset
from understudy.model.records import NODES
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.tables.node import Node

_CLOSED: Final = int(NodeFlag.DRAIN)
_COMPLETING: Final = int(NodeFlag.COMPLETING)
_PLANNED: Final = int(NodeFlag.PLANNED)
_OFF: Final = int(OFF | NodeFlag.POWER_DOWN)
_MAINT: Final = int(NodeFlag.MAINT)
_RESERVED: Final = int(NodeFlag.RESERVED)
_ALLOCATED, _MIXED, _IDLE = int(NodeState.ALLOCATED), int(NodeState.MIXED), int(NodeState.IDLE)


class _EffectiveCpus(dict[int, int]):
    """By the node's place in the table; several columns are made of them."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__()
        self._nodes = nodes

    def __missing__(self, index: int) -> int:
        self[index] = count = self._nodes[index].effective_cpus
        return count


class NodeView:
    """The node table as one query sees it, vectors turned into lists once."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.table = core.tables.nodes
        self.effective_cpus = _EffectiveCpus(self.table.nodes)
        # texts by CPUs and memory, as many nodes have the same
        self.plain_tres: dict[tuple[int, int, int], str] = {}
        self.bills = NodeBills(core)

    @cached_property
    def free_cpus(self) -> list[int]:
        listed: list[int] = self.table.free_cpus.tolist()
        return listed

    @cached_property
    def free_memory(self) -> list[int]:
        listed: list[int] = self.table.free_memory.tolist()
        return listed

    @cached_property
    def last_busy(self) -> list[int]:
        listed: list[int] = self.table.last_busy.tolist()
        return listed

    def _flags(self, nodes: int) -> list[bool]:
        listed: list[bool] = nodeset.to_flags(nodes, len(self.table.nodes)).tolist()
        return listed

    @cached_property
    def idle(self) -> list[bool]:
        return self._flags(self.table.idle_nodes)

    @cached_property
    def whole(self) -> list[bool]:
        return self._flags(self.table.exclusive_nodes)

    @cached_property
    def completing(self) -> list[bool]:
        return self._flags(self.table.completing_nodes)

    @cached_property
    def planned(self) -> list[bool]:
        promised = 0
        for job in self.core.tables.pending.values():
            promised |= job.expected_nodes
        return self._flags(promised & self.table.idle_nodes)

    @cached_property
    def reserved(self) -> tuple[list[bool], list[bool]]:
        """Whether each node is under maintenance, and whether it is reserved otherwise."""
        maintained, reserved = shown_nodes(self.core, self.core.time.now())
        return self._flags(maintained), self._flags(reserved)

    @cached_property
    def partitions(self) -> list[list[str]]:
        names: list[list[str]] = [[] for _ in self.table.nodes]
        for partition in self.core.tables.partitions.values():
            for index in nodeset.indices(partition.nodes):
                names[index].append(partition.name)
        return names


def state(view: NodeView, node: Node) -> int:
    base = int(node.state)
    index = node.index
    if base != _IDLE or view.idle[index]:
        return base
    return _ALLOCATED if view.free_cpus[index] == 0 or view.whole[index] else _MIXED


def flags(view: NodeView, node: Node) -> int:
    bits = int(node.flags)
    if view.completing[node.index]:
        bits |= _COMPLETING
    if view.planned[node.index]:
        bits |= _PLANNED
    if view.core.tables.reservations:
        maintained, reserved = view.reserved
        if maintained[node.index]:
            bits |= _MAINT | _RESERVED
        if reserved[node.index]:
            bits |= _RESERVED
    return bits


def alloc_cpus(view: NodeView, node: Node) -> int:
    """CPUs held; all of them where one job holds the node alone."""
    index = node.index
    cpus = view.effective_cpus[index]
    return cpus if view.whole[index] else cpus - view.free_cpus[index]


def _is_usable(node: Node) -> bool:
    return node.state is NodeState.IDLE and not int(node.flags) & _CLOSED


def idle_cpus(view: NodeView, node: Node) -> int:
    return node.cpus - alloc_cpus(view, node) if _is_usable(node) else 0


def other_cpus(view: NodeView, node: Node) -> int:
    return 0 if _is_usable(node) else node.cpus - alloc_cpus(view, node)


def alloc_memory_mb(view: NodeView, node: Node) -> int:
    return node.memory_mb - node.mem_spec_mb - view.free_memory[node.index]


def tres_configured(view: NodeView, node: Node) -> str:
    cpus, memory = view.effective_cpus[node.index], node.memory_mb
    bill = view.bills.of(node)
    plain = view.plain_tres.get((cpus, memory, bill))
    if plain is None:
        counted, billed = f"cpu={cpus}," if cpus else "", f",billing={bill}" if bill else ""
        plain = f"{counted}mem={memory_text(memory)}{billed}"
        view.plain_tres[cpus, memory, bill] = plain
    gres = view.table.gres
    return plain if gres is None else plain + tres_text(view.core, node_counts(view.core, node))


def tres_allocated(view: NodeView, node: Node) -> str:
    cpus, memory = alloc_cpus(view, node), alloc_memory_mb(view, node)
    if not cpus and not memory:
        return ""
    if view.core.selector.whole_nodes:  # its jobs have all of it, whatever they asked for
        return tres_configured(view, node)
    plain = f"cpu={cpus}" + (f",mem={memory_text(memory)}" if memory else "")
    return (
        plain
        if view.table.gres is None
        else plain + tres_text(view.core, used_counts(view.table, node.index))
    )


def cpu_load(view: NodeView, node: Node) -> float | None:
    """An emulated node is loaded by the CPUs that jobs hold."""
    return (
        None
        if node.boot_time is None
        else float(view.effective_cpus[node.index] - view.free_cpus[node.index])
    )


def last_busy(view: NodeView, node: Node) -> int | None:
    if int(node.flags) & _OFF:
        return view.last_busy[node.index] or None
    return view.last_busy[node.index] or node.slurmd_start_time


def owner(view: NodeView, node: Node) -> str | None:
    """Whose jobs alone may run there, as `ann(1000)`."""
    if not view.core.tables.nodes.owned_nodes >> node.index & 1:
        return None
    for job in view.core.tables.running.values():
        if (
            job.allocation is not None
            and job.allocation.owned
            and job.allocation.nodes >> node.index & 1
        ):
            return f"{view.core.users.user_name(job.user_id)}({job.user_id})"
    return None


NODE_COLUMNS: Final[dict[str, Callable[[NodeView, Node], Any]]] = {
    "index": Attribute("index"),
    "name": Attribute("name"),
    "address": Attribute("address"),
    "hostname": Attribute("hostname"),
    "port": Attribute("port"),
    "cluster": lambda v, _n: v.core.settings.cluster_name,
    "state": state,
    "flags": flags,
    "next_state": lambda _v, n: int(n.next_state),
    "reason": Attribute("reason"),
    "reason_user": lambda v, n: v.core.users.user_name(n.reason_user_id) if n.reason else "",
    "reason_user_id": Attribute("reason_user_id"),
    "reason_time": Attribute("reason_time"),
    "boot_time": Attribute("boot_time"),
    "slurmd_start_time": Attribute("slurmd_start_time"),
    "last_busy": last_busy,
    "version": lambda v, n: "" if n.boot_time is None else v.core.settings.version,
    "os": lambda _v, n: "" if n.boot_time is None else "Linux",
    "arch": lambda _v, n: "" if n.boot_time is None else "x86_64",
    "owner": owner,
    "cpus": Attribute("cpus"),
    "effective_cpus": lambda v, n: v.effective_cpus[n.index],
    "boards": Attribute("boards"),
    "sockets": Attribute("sockets"),
    "cores_per_socket": Attribute("cores_per_socket"),
    "threads_per_core": Attribute("threads_per_core"),
    "memory_mb": Attribute("memory_mb"),
    "tmp_disk_mb": Attribute("tmp_disk_mb"),
    "weight": Attribute("weight"),
    "features": lambda _v, n: list(n.features),
    "active_features": lambda _v, n: list(n.active_features),
    "gres": lambda v, n: node_gres(v.table, n),
    "gres_drain": lambda _v, _n: "N/A",
    "gres_used": lambda v, n: node_gres_used(v.table, n),
    "alloc_cpus": alloc_cpus,
    "idle_cpus": idle_cpus,
    "other_cpus": other_cpus,
    "alloc_memory_mb": alloc_memory_mb,
    "free_memory_mb": lambda v, n: None if n.boot_time is None else v.free_memory[n.index],
    "cpu_load": cpu_load,
    "tres_configured": tres_configured,
    "tres_allocated": tres_allocated,
    "partitions": lambda v, n: v.partitions[n.index],
    "comment": Attribute("comment"),
    "extra": Attribute("extra"),
    "cpu_bind": Attribute("cpu_bind"),
    "core_spec_count": lambda _v, n: n.spec_cores.bit_count(),
    "cpu_spec_list": lambda _v, n: cpus_of(n, n.spec_cores) if n.spec_cores else "",
    "mem_spec_limit_mb": Attribute("mem_spec_mb"),
    "daemon": Attribute("daemon"),
}


for _name, _column in NODES.items():  # what is not emulated
    if _name not in NODE_COLUMNS:
        NODE_COLUMNS[_name] = Constant(None if _column.optional else _column.kind())
