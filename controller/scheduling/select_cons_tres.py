"""select/cons_tres: cores, CPUs, sockets and memory of nodes are given to jobs; several jobs share a node.

Place: scheduling, pure. Follows slurm.conf(5) SelectTypeParameters. The unit of allocation is the core (with CR_SOCKET* the socket), with all its
threads: no two jobs share one. Cores are taken from the lowest number up.

Idle nodes that are all of one kind, the everyday case of whole-node jobs and of one-CPU nodes, are chosen on bitmaps alone; the rest on vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.controller.job import Allocation, NodeShare, ShareGroup
from understudy.controller.scheduling.best_fit import Candidates, Demand, alike, even_tasks, packed_tasks
from understudy.controller.scheduling.gres import (
    all_of,
    attempts,
    choose_for_job,
    cores_on,
    cpus_needed,
    part_on,
    take_devices,
    wanted_on,
    with_gres,
)
from understudy.controller.scheduling.request import ALL_MEMORY, Request
from understudy.controller.scheduling.selection import ChoosingSelector, spread
from understudy.model import nodeset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.controller.gres import GresTable
    from understudy.controller.nodes import Node, NodeKind, NodeTable
    from understudy.controller.scheduling.free import Free
    from understudy.controller.scheduling.selection import Choice


_FEW = 16  # nodes up to which a loop is quicker than vectors


class SelectConsTres(ChoosingSelector):
    """`parameters`: SelectTypeParameters in upper case, e.g. CR_CORE_MEMORY, CR_LLN. None of CR_*: as CR_CORE_MEMORY."""

    def __init__(self, parameters: frozenset[str] = frozenset()) -> None:
        super().__init__(parameters)
        consumable = {"CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY", "CR_MEMORY"}
        if not parameters & consumable:
            self.consumes_memory = True
        self.by_socket = bool(parameters & {"CR_SOCKET", "CR_SOCKET_MEMORY"})
        self.least_loaded = "CR_LLN" in parameters
        self.one_task_per_core = "CR_ONE_TASK_PER_CORE" in parameters
        self.packs = "CR_PACK_NODES" in parameters
        self._positions: tuple[int, NDArray[np.intp]] = (0, np.zeros(0, dtype=np.intp))  # of the last bitmap: many questions are about the same nodes

    # --- how much a node can give ----------------------------------------------------------------------------------------------

    def _per_unit(self, request: Request, cpus: Any, cores: Any, sockets: Any) -> tuple[Any, Any]:
        """CPUs that a unit of allocation has, and those of them that the job's tasks may use. For numbers and for vectors."""
        least, most = (min, max) if isinstance(cpus, int) else (np.minimum, np.maximum)
        on_core = usable = most(cpus // cores, 1)
        per_core = request.tasks_per_core or (1 if self.one_task_per_core else 0)
        if request.one_thread_per_core:
            usable = least(usable, 1)
        elif per_core:
            usable = least(usable, per_core * request.cpus_per_task)
        if self.by_socket:
            cores_each = most(cores // sockets, 1)
            return on_core * cores_each, usable * cores_each
        return on_core, usable

    def _capacity(self, request: Request, unit: Any, usable_of_unit: Any, free_cpus: Any, free_memory: Any, memory: Any, tmp_disk: Any) -> Any:
        """CPUs for the job's tasks on a node, 0 if none: a multiple of CPUs per task. For numbers and for vectors."""
        units = free_cpus if isinstance(unit, int) and unit == 1 else free_cpus // unit
        have = free_memory if self.consumes_memory else memory
        per_cpu, per_node = request.memory_per_cpu_mb, request.memory_per_node_mb
        if per_cpu:
            units = np.minimum(units, have // per_cpu // unit)
        usable = units if isinstance(usable_of_unit, int) and usable_of_unit == 1 else units * usable_of_unit
        if request.cpus_per_task > 1:
            usable = usable // request.cpus_per_task * request.cpus_per_task
        if request.min_cpus_per_node:
            usable = usable * (usable >= request.min_cpus_per_node)
        if request.tasks_per_node:
            wanted = request.tasks_per_node * request.cpus_per_task
            usable = usable * (usable >= min(wanted, request.cpus))  # nodes are compared by what they have, not by what the tasks may use of it
        if per_node:
            usable = usable * (have >= per_node)
        elif self._takes_all_memory(request):
            usable = usable * (free_memory == memory)
        if request.tmp_disk_mb:
            usable = usable * (tmp_disk >= request.tmp_disk_mb)
        return usable

    def _takes_all_memory(self, request: Request) -> bool:
        """--mem=0, and jobs of which nobody says how much memory they need."""
        return self.consumes_memory and not request.memory_per_cpu_mb and (request.memory_per_node_mb or ALL_MEMORY) == ALL_MEMORY

    # --- which nodes -----------------------------------------------------------------------------------------------------------

    def choose(self, request: Request, usable: int, table: NodeTable, free: Free, *, asks_only: bool = False) -> Choice | None:
        if request.exclusive:
            usable &= free.idle_nodes
            if request.required & ~usable or usable.bit_count() < request.min_nodes:
                return None
        by_load = self.least_loaded or request.least_loaded
        if request.gres is not None:
            return self._choose_with_gres(request, usable, table, free, by_load=by_load)
        kind = table.kind_of(usable)
        if kind is not None and not usable & ~free.idle_nodes and not request.required and not request.contiguous and not by_load:
            return self._choose_alike(request, usable, kind, asks_only=asks_only)
        return self._choose_any_kind(request, usable, table, free, kind, by_load=by_load)

    def might(self, request: Request, nodes: int, table: NodeTable, free: Free) -> bool:
        if request.exclusive:
            nodes &= free.idle_nodes
            if nodes.bit_count() < request.min_nodes:
                return False
        if request.gres is not None:
            return self._might_with_gres(request, nodes, table, free)
        kind = table.kind_of(nodes)
        if kind is not None and not nodes & ~free.idle_nodes and not request.required and not request.contiguous:
            return self._choose_alike(request, nodes, kind, asks_only=True) is not None
        cpus = self._could_give(request, nodes, table, free, kind)[1]
        return int(np.count_nonzero(cpus)) >= request.min_nodes and int(cpus.sum()) >= request.cpus

    def _choose_alike(self, request: Request, usable: int, kind: NodeKind, *, asks_only: bool) -> Choice | None:
        unit, usable_of_unit = self._per_unit(request, kind.cpus, kind.cores, kind.sockets)
        each = int(self._capacity(request, unit, usable_of_unit, kind.cpus, kind.memory_mb, kind.memory_mb, kind.tmp_disk_mb))
        if not each:
            return None
        for_cpus = -(-request.cpus // each)
        have = usable.bit_count()
        count = max(for_cpus, min(request.wanted_nodes, have))
        if count > have or count > request.max_nodes or count < request.min_nodes:
            return None
        if asks_only:
            return [(usable, 1)]
        chosen = alike(usable, count)
        room = each // request.cpus_per_task
        if request.tasks_per_node:
            room = min(room, request.tasks_per_node)
        least = 1
        return spread(chosen, max(request.tasks, count), room, least, evenly=request.exclusive and not self.packs)

    def _could_give(
        self, request: Request, usable: int, table: NodeTable, free: Free, kind: NodeKind | None
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], Any]:
        """The nodes as positions, the CPUs that each has for the job's tasks, and those of a unit of allocation (one number if all are of a kind)."""
        if usable == self._positions[0]:
            at = self._positions[1]
        else:
            at = nodeset.positions_array(usable)
            self._positions = (usable, at)
        if kind is not None:
            unit, usable_of_unit = self._per_unit(request, kind.cpus, kind.cores, kind.sockets)
        else:
            unit, usable_of_unit = self._per_unit(request, table.cpus[at], table.cores[at], table.sockets[at])
        free_memory = memory = tmp_disk = None
        if request.memory_per_cpu_mb or request.memory_per_node_mb or self.consumes_memory:
            free_memory, memory = free.free_memory[at], table.memory[at]
        if request.tmp_disk_mb:
            tmp_disk = table.tmp_disk[at]
        return at, self._capacity(request, unit, usable_of_unit, free.free_cpus[at], free_memory, memory, tmp_disk), usable_of_unit

    def _choose_any_kind(
        self, request: Request, usable: int, table: NodeTable, free: Free, kind: NodeKind | None, *, by_load: bool, near: bool = False
    ) -> Choice | None:
        at, cpus, usable_of_unit = self._could_give(request, usable, table, free, kind)
        most = None
        if request.gres is not None:
            cpus, most = with_gres(request, at, cpus, usable_of_unit, table, free, near=near)
        having = np.flatnonzero(cpus)
        if len(having) < request.min_nodes:
            return None
        if len(having) < len(at):
            at, cpus = at[having], cpus[having]
            most = None if most is None else most[having]
            if kind is None:
                usable_of_unit = usable_of_unit[having]
        if int(cpus.sum()) < request.cpus:
            return None
        required = None
        if request.required:
            required = nodeset.to_flags(request.required, len(table.nodes))[at]
            if np.count_nonzero(required) < request.required.bit_count():
                return None
        reserve = max(int(usable_of_unit if kind is not None else usable_of_unit.min()), request.cpus_per_task)
        wanted = request.min_nodes if request.contiguous else request.wanted_nodes
        demand = Demand(request.cpus, request.min_nodes, wanted, request.max_nodes, reserve)
        if request.gres is not None:
            demand.cpus = cpus_needed(request)
        if request.gres is not None and request.gres.per_job:
            chosen = choose_for_job(request.gres, at, cpus, None if kind is not None else table.weight[at], required, demand, free)
        elif by_load:
            candidates = Candidates(at, cpus, table.weight[at], required)
            chosen = candidates.choose_in_order(np.lexsort((at, -free.free_cpus[at], table.weight[at])), demand)
        else:
            chosen = Candidates(at, cpus, None if kind is not None else table.weight[at], required).choose(demand, contiguous=request.contiguous)
        if chosen is None:
            return None
        tasks = max(request.tasks, len(chosen))
        if len(chosen) == 1:
            return [(1 << int(at[chosen[0]]), min(tasks, int(cpus[chosen[0]]) // request.cpus_per_task))]
        room = cpus[chosen] // request.cpus_per_task
        if request.tasks_per_node:
            room = np.minimum(room, request.tasks_per_node)
        if most is not None:
            room = np.minimum(room, most[chosen])
        on_each = even_tasks(tasks, room) if request.exclusive and not self.packs else packed_tasks(tasks, room)
        return _grouped(at[chosen], on_each)

    def _choose_with_gres(self, request: Request, usable: int, table: NodeTable, free: Free, *, by_load: bool) -> Choice | None:
        """First with cores near the devices, then with any."""
        assert request.gres is not None
        kind = table.kind_of(usable)
        for near in attempts(request.gres, table, free):
            choice = self._choose_any_kind(request, usable, table, free, kind, by_load=by_load, near=near)
            if choice is not None:
                return choice
        return None

    def _might_with_gres(self, request: Request, nodes: int, table: NodeTable, free: Free) -> bool:
        at, cpus, usable_of_unit = self._could_give(request, nodes, table, free, None)
        cpus, _ = with_gres(request, at, cpus, usable_of_unit, table, free, near=False)
        return int(np.count_nonzero(cpus)) >= request.min_nodes and int(cpus.sum()) >= request.cpus

    # --- what the job holds there ----------------------------------------------------------------------------------------------

    def hold(self, request: Request, choice: Choice, table: NodeTable) -> Allocation:
        if table.gres is not None and (request.gres is not None or request.exclusive):
            return Allocation.of_shares(self._shares_with_gres(request, choice, table, table.gres), whole=request.exclusive)
        groups: list[ShareGroup] = []
        shares: list[NodeShare] = []
        for nodes, tasks in choice:
            idle = nodes & table.idle_nodes
            for kind in table.kinds:
                part = idle & kind.nodes
                if part:
                    groups.append(ShareGroup(part, *self._share(request, kind, 0, kind.memory_mb, tasks)))
                    idle ^= part
                    if not idle:
                        break
            if busy := nodes & ~table.idle_nodes:
                at = nodeset.positions_array(busy)
                on_each = zip(at.tolist(), table.used_cores_of(at), table.free_memory[at].tolist(), strict=True)
                shares += [self._share_on(request, table.nodes[i], table, used, memory, tasks) for i, used, memory in on_each]
        if not shares:
            return Allocation.of_groups(tuple(groups), whole=request.exclusive)
        return Allocation.of_groups((*groups, *Allocation.of_shares(shares).groups), whole=request.exclusive)

    def _shares_with_gres(self, request: Request, choice: Choice, table: NodeTable, gres: GresTable) -> list[NodeShare]:
        """Node by node: devices and the cores near them are not the same everywhere."""
        shares = []
        for index, tasks, wants in wanted_on(request, choice, table, gres):
            node, used = table.nodes[index], table.used_cores_of(np.array([index]))[0]
            kind = table.kind_of(1 << index)
            assert kind is not None
            own = request
            offered = (1 << kind.cores) - 1 & ~used
            if wants:
                needs = request.gres
                assert needs is not None
                unit, usable_of_unit = self._per_unit(request, kind.cpus, kind.cores, kind.sockets)
                own = part_on(request, wants, consumes_memory=self.consumes_memory)
                units = max(-(-tasks * request.cpus_per_task // int(usable_of_unit)), -(-own.memory_cpus // int(unit)))
                offered = cores_on(request, wants, gres, node, offered, tasks, int(usable_of_unit), units, by_socket=self.by_socket)
            cpus, cores, memory, tasks_here = self._share(own, kind, (1 << kind.cores) - 1 & ~offered, int(table.free_memory[index]), tasks)
            if request.exclusive:
                held = all_of(gres.layouts[index], gres)
            else:
                held = take_devices(wants, gres.layouts[index], gres, index, cores, node.sockets, node.cores_per_socket)
            shares.append(NodeShare(index, cpus, cores, memory, tasks_here, held))
        return shares

    def _share_on(self, request: Request, node: Node, table: NodeTable, used: int, free_memory: int, tasks: int) -> NodeShare:
        kind = table.kind_of(1 << node.index)
        assert kind is not None
        return NodeShare(node.index, *self._share(request, kind, used, free_memory, tasks))

    def _share(self, request: Request, kind: NodeKind, used: int, free_memory: int, tasks: int) -> tuple[int, int, int, int]:
        """(CPUs, cores, memory, tasks) of a node of the kind on which the cores `used` belong to others."""
        if request.exclusive:
            cpus, cores = kind.cpus, (1 << kind.cores) - 1
        else:
            unit, usable_of_unit = self._per_unit(request, kind.cpus, kind.cores, kind.sockets)
            units = -(-tasks * request.cpus_per_task // int(usable_of_unit))
            if request.memory_cpus:
                units = max(units, -(-request.memory_cpus // int(unit)))
            cpus = units * int(unit)
            per_unit = kind.cores // kind.sockets if self.by_socket else 1
            cores = nodeset.lowest(~used & ((1 << kind.cores) - 1), units * per_unit) if used else (1 << units * per_unit) - 1
        if not self.consumes_memory:
            memory = 0
        elif request.memory_per_cpu_mb:
            memory = request.memory_per_cpu_mb * cpus
        else:
            memory = request.memory_per_node_mb or free_memory
        return cpus, cores, memory, tasks


def _grouped(at: NDArray[np.intp], tasks: NDArray[np.int64]) -> Choice:
    """Nodes with the same number of tasks as one entry."""
    if len(at) <= _FEW:
        alike: dict[int, int] = {}
        for node, each in zip(at.tolist(), tasks.tolist(), strict=True):
            alike[each] = alike.get(each, 0) | 1 << node
        return [(alike[each], each) for each in sorted(alike, reverse=True)]
    return [(nodeset.from_array(at[tasks == each]), each) for each in sorted(set(tasks.tolist()), reverse=True)]
