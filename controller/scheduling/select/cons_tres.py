"""select/cons_tres: cores, CPUs, sockets and memory of nodes are given to jobs; several jobs share
a node.

Place: scheduling, pure. Follows slurm.conf(5) SelectTypeParameters. The unit of allocation is the
core (with CR_SOCKET* the socket), with all its threads: no two jobs share one. Cores are taken from
the lowest number up.

Idle nodes that are all of one kind, the everyday case of whole-node jobs and of one-CPU nodes, are
chosen on bitmaps alone; the rest on vectors.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from understudy.controller.scheduling.select.best_fit import Candidates, alike
from understudy.controller.scheduling.select.dealing import deal, shares_of_nodes
from understudy.controller.scheduling.select.free import devices_in
from understudy.controller.scheduling.select.gres import (
    all_of,
    attempts,
    choose_for_job,
    cores_on,
    cpus_counted,
    cpus_needed,
    merged,
    nodes_having,
    nodes_with_all,
    part_on,
    preferred,
    shares_of_job,
    take_devices,
    tasks_in_order,
    with_gres,
)
from understudy.controller.scheduling.select.picks import Demand, Offer
from understudy.controller.scheduling.select.placing import place
from understudy.controller.scheduling.select.request import ALL_MEMORY, Request, Shape
from understudy.controller.scheduling.select.rows import RowView
from understudy.controller.scheduling.select.selection import ChoosingSelector
from understudy.controller.scheduling.select.sockets import SocketRules, whole_sockets
from understudy.controller.tables.allocation import Allocation, NodeShare, ShareGroup
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from understudy.controller.scheduling.api import Ask
    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.scheduling.select.selection import Choice
    from understudy.controller.tables.gres import GresTable
    from understudy.controller.tables.node import NodeKind, NodeTable
    from understudy.controller.tables.tables import Tables
    from understudy.model.gres import GresCount

_LAST = 1 << 48  # above the weights of nodes
_NONE: Final[Mapping[int, int]] = MappingProxyType({})
_FEW = 16  # nodes up to which a loop is quicker than vectors
_MOST_SHAPES: Final = 16  # kinds of nodes of which is kept what they give for a request


class _Has(NamedTuple):
    """What nodes have: numbers, or vectors of them. Those for which the request does not ask may be
    None.
    """

    cores: Any  # that the job could use
    threads: Any  # CPUs of a core
    cpus: Any
    sockets: Any
    free_memory: Any
    memory: Any
    tmp_disk: Any


class SelectConsTres(ChoosingSelector):
    """`parameters`: SelectTypeParameters in upper case, e.g. CR_CORE_MEMORY, CR_LLN. None of CR_*:
    as CR_CORE_MEMORY.
    """

    def __init__(self, parameters: frozenset[str] = frozenset()) -> None:
        super().__init__(parameters)
        consumable = {
            "CR_CPU",
            "CR_CPU_MEMORY",
            "CR_CORE",
            "CR_CORE_MEMORY",
            "CR_SOCKET",
            "CR_SOCKET_MEMORY",
            "CR_MEMORY",
        }
        if not parameters & consumable:
            self.consumes_memory = True
        self.by_socket = bool(parameters & {"CR_SOCKET", "CR_SOCKET_MEMORY"})
        self.least_loaded = "CR_LLN" in parameters
        self.one_task_per_core = "CR_ONE_TASK_PER_CORE" in parameters
        self.counts_cpus = bool(parameters & {"CR_CPU", "CR_CPU_MEMORY"})
        self.fills_sockets = self.counts_cpus or "CR_CORE_DEFAULT_DIST_BLOCK" in parameters
        # of the last bitmap: many questions are about the same nodes
        self._positions: tuple[int, NDArray[np.intp]] = (0, np.zeros(0, dtype=np.intp))

    def _request(self, ask: Ask, tables: Tables) -> Request | None:
        """With --exclusive=user or =mcs without the nodes of which MaxCPUsPerNode would keep CPUs
        back: 22.05.8 gives such a job none of them.
        """
        request, most = super()._request(ask, tables), ask.partition.max_cpus_per_node
        if request is None or most is None or not ask.job.spec.exclusive_for:
            return request
        larger = reduce(or_, (kind.nodes for kind in tables.nodes.kinds if kind.cpus > most), 0)
        return request.but(choices=tuple(each & ~larger for each in request.choices))

    # --- how much a node can give -----------------------------------------------------------------

    def _of_core(self, request: Request, threads: Any) -> Any:
        """CPUs of a core that the job's tasks may use. For numbers and for vectors."""
        least = min if isinstance(threads, int) else np.minimum
        usable = threads
        if request.threads_per_core:
            usable = least(usable, request.threads_per_core)
        if per_core := self._tasks_per_core(request):
            usable = least(usable, per_core * request.cpus_per_task)
        return usable

    def _gives_sockets(self, request: Request) -> bool:
        return self.by_socket if request.socket_rule is None else request.socket_rule

    def _tasks_per_core(self, request: Request) -> int:
        return request.tasks_per_core or (
            1
            if self.one_task_per_core and not (request.uses_threads or request.threads_per_core)
            else 0
        )

    def _rules(self, request: Request, of_core: int) -> SocketRules | None:
        """What the job or the site says of sockets, None if nothing."""
        each = request.tasks_per_socket
        whole = self._gives_sockets(request)
        if not (each or request.min_cores_per_socket or request.min_sockets or whole):
            return None
        return SocketRules(
            each,
            self._filled(request, of_core),
            request.min_cores_per_socket,
            request.min_sockets,
            whole,
        )

    def _filled(self, request: Request, of_core: Any) -> Any:
        """Cores of a socket that are full with as many tasks as may be there. For numbers and for
        vectors.
        """
        each, cpus = request.tasks_per_socket, request.cpus_per_task
        return (
            each * -(-cpus // of_core)
            if self._tasks_per_core(request)
            else -(-each * cpus // of_core)
        )

    def _free_cores(
        self,
        request: Request,
        at: NDArray[np.intp],
        table: NodeTable,
        free: Free,
        kind: NodeKind | None,
    ) -> Any:
        """Cores on each node that the job could use."""
        if self._rules(request, 1) is None:
            return (
                free.free_cpus[at]
                if kind is not None and kind.threads == 1
                else free.free_cpus[at] // self._threads(table, at, kind)
            )
        used = np.array(free.used_cores_of(at), dtype=np.object_)
        found = np.zeros(len(at), dtype=np.int64)
        for each in table.kinds:
            here = np.flatnonzero(nodeset.to_flags(each.nodes, len(table.nodes))[at])
            if len(here):
                rules = self._rules(request, self._of_core(request, each.threads_of_core))
                assert rules is not None
                found[here] = rules.count(used[here].tolist(), each.sockets, each.cores)
        return found

    @staticmethod
    def _threads(table: NodeTable, at: NDArray[np.intp], kind: NodeKind | None) -> Any:
        """CPUs of a core: a number if all nodes are of a kind."""
        return kind.threads_of_core if kind is not None else table.core_cpus[at]

    def _capacity(self, request: Request, has: _Has) -> Any:
        """CPUs for the job's tasks on such nodes, 0 if they will not do. For numbers and for
        vectors.
        """
        of_core = self._of_core(request, has.threads)
        usable = has.cores if isinstance(of_core, int) and of_core == 1 else has.cores * of_core
        if request.memory_per_cpu_mb:
            usable = self._with_memory(request, usable, has, of_core)
        if request.cpus_per_task > 1:
            usable = self._of_whole_tasks(request, usable, of_core)
        # nodes are compared by what they have, not by what the tasks may use of it
        least = max(request.min_cpus_per_node, request.cpus_per_task)
        if request.tasks_per_node:
            least = max(least, request.tasks_per_node * request.cpus_per_task)
        if least > 1:
            usable = usable * (usable >= least)
        if request.threads_per_core > 1:
            usable = usable * (has.threads >= request.threads_per_core)
        if request.tasks_per_core > 1:
            usable = usable * (has.cpus >= request.tasks_per_core * request.cpus_per_task)
        if request.tasks_per_socket:
            most = request.tasks_per_socket
            usable = usable * (
                (has.cpus // has.sockets >= most)
                & (usable >= most * request.cpus_per_task)
                & (has.sockets * most >= request.tasks_per_node)
            )
        if per_node := request.memory_per_node_mb:
            have = has.free_memory if self.consumes_memory else has.memory
            usable = usable * (have >= per_node)
        elif self._takes_all_memory(request):
            usable = usable * (has.free_memory == has.memory)
        elif request.memory_per_cpu_mb == 0 and self.consumes_memory:
            usable = usable * (has.free_memory > 0)  # it takes none, but some has to be left
        if request.tmp_disk_mb:
            usable = usable * (has.tmp_disk >= request.tmp_disk_mb)
        return usable

    def _with_memory(self, request: Request, usable: Any, has: _Has, of_core: Any) -> Any:
        """Those of the usable CPUs for which there is memory (--mem-per-cpu)."""
        per_cpu = request.memory_per_cpu_mb
        if not self.consumes_memory:  # no more is asked than that one CPU could have it
            return usable * (has.memory >= per_cpu)
        have = has.free_memory
        if self.counts_cpus and not request.exclusive:
            # CPUs that the tasks have, not all of their cores
            return np.minimum(usable, have // per_cpu)
        counted = has.threads
        if request.threads_per_core:
            counted = np.minimum(counted, request.threads_per_core)
        if request.exclusive:
            return usable * (has.cpus // has.threads * counted * per_cpu <= have)
        at_once = 1
        if self._gives_sockets(request):
            at_once = np.maximum(has.cpus // has.threads // has.sockets, 1)
        return np.minimum(usable, have // per_cpu // counted // at_once * at_once * of_core)

    def _of_whole_tasks(self, request: Request, usable: Any, of_core: Any) -> Any:
        """Those of the usable CPUs on which tasks of several CPUs fit."""
        each = request.cpus_per_task
        if self._tasks_per_core(request):  # a core is not shared by two tasks
            usable = usable // of_core // -(-each // of_core) * each
        if request.memory_per_cpu_mb and self.consumes_memory:
            usable = usable // each * each
        return usable

    def _takes_all_memory(self, request: Request) -> bool:
        """--mem=0, and jobs of which nobody says how much memory they need."""
        if (
            not self.consumes_memory
            or request.memory_per_cpu_mb is not None  # 0, of DefMemPerCPU=0, is none
            or (request.gres is not None and request.gres.memory_per_gpu_mb)
        ):
            return False
        return (request.memory_per_node_mb or ALL_MEMORY) == ALL_MEMORY

    # --- which nodes ------------------------------------------------------------------------------

    def choose(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        free: Free,
        *,
        nodes_only: bool = False,
    ) -> Choice | None:
        if request.exclusive:
            usable = self._for_one_job(usable, table, free)
            if request.max_cpus_per_node is not None:
                at = nodeset.positions_array(usable)
                usable = nodeset.from_array(at[table.cpus[at] <= request.max_cpus_per_node])
            if request.required & ~usable or usable.bit_count() < request.min_nodes:
                return None
        checks_memory = self._may_lack_memory(request)
        # what the job would hold follows from the tasks
        nodes_only = nodes_only and not checks_memory
        by_load = self.least_loaded or request.least_loaded
        if request.gres is not None:
            choice = self._choose_with_gres(request, usable, table, free, by_load=by_load)
        elif (
            not by_load
            and self._is_simple(request, table)
            and (alike := self._idle_and_alike(request, usable, table, free)) is not None
        ):
            choice = self._choose_alike(request, *alike, table, free, nodes_only=nodes_only)
        else:
            choice = self._choose_any_kind(
                request,
                usable,
                table,
                free,
                table.kind_of(usable),
                by_load=by_load,
                nodes_only=nodes_only,
            )
        if choice is not None and checks_memory:
            lacking = self._lacking_memory(request, choice, usable, table, free)
            if lacking:
                return self.choose(request, usable & ~lacking, table, free)
        return choice

    @staticmethod
    def _for_one_job(nodes: int, table: NodeTable, free: Free) -> int:
        """Those of the nodes that a job may have alone. Where it shares cores, or preempts by
        suspending, it waits for their devices for all that.
        """
        nodes &= free.idle_nodes
        return nodes if table.gres is None else nodes_with_all(nodes, table.gres, free)

    def _may_lack_memory(self, request: Request) -> bool:
        """Whether a node that has the memory for the CPUs of the tasks may not have it for all that
        the job would hold there: whole sockets.
        """
        return (
            bool(request.memory_per_cpu_mb)
            and self.consumes_memory
            and self._gives_sockets(request)
            and not request.exclusive
        )

    def _lacking_memory(
        self, request: Request, choice: Choice, usable: int, table: NodeTable, free: Free
    ) -> int:
        """If some of the chosen nodes have too little memory: all nodes that have too little for as
        many tasks.
        """
        if request.gres is not None:
            return self._lacking_memory_with_gres(request, choice, usable, table, free)
        lacking = 0
        for nodes, tasks in choice:
            unfit = 0
            for kind in table.kinds:
                for (used, memory, _), part in _alike(usable & kind.nodes, free, free.free_memory):
                    if self._share(request, kind, used, memory, tasks)[2] > memory:
                        unfit |= part
            if nodes & unfit:
                lacking |= unfit
        return lacking

    def _lacking_memory_with_gres(
        self, request: Request, choice: Choice, usable: int, table: NodeTable, free: Free
    ) -> int:
        """As `_lacking_memory`, node by node."""
        gres, needs, memory = devices_in(free, table), request.gres, free.free_memory
        assert gres is not None
        assert needs is not None
        request = request.but(view=None)  # `free` is what it sees
        shares = self._shares_with_gres(request, choice, table, free, gres)
        lacking = nodeset.from_positions(
            share.node for share in shares if share.memory_mb > memory[share.node]
        )
        for tasks in {tasks for nodes, tasks in choice if nodes & lacking}:
            wants = merged(needs.on_node(tasks))
            for index in nodeset.indices(nodes_having(needs, usable & ~lacking, free)):
                if (
                    self._part_with_gres(request, index, tasks, wants, table, free, gres)[2]
                    > memory[index]
                ):
                    lacking |= 1 << index
        return lacking

    def _is_simple(self, request: Request, table: NodeTable) -> bool:
        """Whether the job asks for nodes that are as good as all others."""
        return not (
            request.required
            or request.contiguous
            or request.spreads
            or request.cpus_left is not None
            or (request.is_serial and self.packs_serial)
            or table.tree_for(request.switches) is not None
        )

    def _idle_and_alike(
        self, request: Request, usable: int, table: NodeTable, free: Free
    ) -> tuple[int, NodeKind] | None:
        """The nodes that are not full, if they are all idle and all the same to the job, and such a
        node's kind.
        """
        nodes = nodeset.without(usable, free.full_nodes)
        if not self._are_empty(nodes, free) or any(
            0 < nodes & marked < nodes
            for marked in (request.spared, request.favoured, request.foremost)
            if marked
        ):
            return None
        kind = self._kind_for(request, nodes, table)
        return None if kind is None else (nodes, kind)

    def _kind_for(self, request: Request, nodes: int, table: NodeTable) -> NodeKind | None:
        """The kind of the nodes; of several that differ in memory and disk alone, and of which the
        job could use as much of an idle node of each, the first. None if they are not the same.
        """
        found = table.kind_of(nodes)
        if found is not None:
            return found
        for kind in table.kinds:
            if not kind.nodes & nodes:
                continue
            if found is None:
                found = kind
            elif not found.differs_in_space(kind) or (
                self._of_shape(request, kind).each != self._of_shape(request, found).each
            ):
                return None
        return found

    def _are_empty(self, nodes: int, free: Free) -> bool:
        """Whether nobody holds anything there. A row in which nobody is says nothing of memory,
        which all rows share.
        """
        return nodeset.are_among(nodes, free.idle_nodes) and not (
            self.consumes_memory and isinstance(free, RowView)
        )

    def is_plain(self, request: Request) -> bool:
        rules = (
            request.exclusive
            or request.gres is not None
            or request.tmp_disk_mb
            or request.cpus_left is not None
            or request.max_cpus_per_node
        )
        memory = self.consumes_memory or request.memory_per_cpu_mb or request.memory_per_node_mb
        return (
            request.tasks == request.cpus
            and request.min_nodes == 1
            and not (rules or memory or request.tasks_per_node or request.threads_per_core)
        )

    def might(self, request: Request, nodes: int, table: NodeTable, free: Free) -> bool:
        if request.exclusive:
            nodes = self._for_one_job(nodes, table, free)
            if nodes.bit_count() < request.min_nodes:
                return False
        if request.gres is not None:
            return self._might_with_gres(request, nodes, table, free)
        if self._is_simple(request, table):
            alike = self._idle_and_alike(request, nodes, table, free)
            if alike is not None:
                return self._choose_alike(request, *alike, table, free, nodes_only=True) is not None
        cpus = self._could_give(request, nodes, table, free, table.kind_of(nodes))[1]
        return int(np.count_nonzero(cpus)) >= request.min_nodes and int(cpus.sum()) >= request.cpus

    def _serving(self, request: Request, nodes: int, table: NodeTable, free: Free) -> Iterable[int]:
        at, cpus, _ = self._could_give(request, nodes, table, free, table.kind_of(nodes))
        found: list[int] = at[cpus > 0].tolist()
        return found

    def _choose_alike(
        self,
        request: Request,
        usable: int,
        kind: NodeKind,
        table: NodeTable,
        free: Free,
        *,
        nodes_only: bool,
    ) -> Choice | None:
        shape = self._of_shape(request, kind)
        each = shape.each
        if not each:
            return None
        for_cpus = -(-request.cpus // each)
        have = usable.bit_count()
        count = max(for_cpus, min(request.wanted_nodes, have))
        if count > have or count > request.max_nodes or count < request.min_nodes:
            return None
        # what nodes keep back for each other is more than they have
        kind_of_all = kind if nodeset.are_among(usable, kind.nodes) else None
        if count > 1 and each < shape.of_core:
            return self._choose_any_kind(
                request, usable, table, free, kind_of_all, by_load=False, nodes_only=nodes_only
            )
        on_each = request.tasks_on_node or (1 if count >= request.tasks or nodes_only else 0)
        # all that the nodes have
        if not on_each and request.tasks % count == 0 and request.cpus == each * count:
            on_each = request.tasks // count
        if (not on_each and count > 1) or count > max(for_cpus, request.min_nodes):
            return self._choose_any_kind(
                request, usable, table, free, kind_of_all, by_load=False, nodes_only=nodes_only
            )
        return [(alike(usable, have, count), on_each or request.tasks)]

    def _of_shape(self, request: Request, kind: NodeKind) -> Shape:
        """What an idle node of the kind can give."""
        for shape in request.shapes or ():
            if shape.kind is kind:
                return shape
        shape = Shape(kind)
        if request.shapes is not None:
            if len(request.shapes) >= _MOST_SHAPES:
                request.shapes.clear()
            request.shapes.append(shape)
        threads = kind.threads_of_core
        shape.of_core = of_core = self._of_core(request, threads)
        rules = self._rules(request, of_core)
        cores = (
            kind.job_cores
            if rules is None
            else rules.usable(kind.job_cores, kind.sockets, kind.cores)
        ).bit_count()
        memory = kind.memory_mb if self.consumes_memory else kind.all_memory_mb
        has = _Has(cores, threads, kind.cpus, kind.sockets, memory, memory, kind.tmp_disk_mb)
        shape.each = int(self._capacity(request, has))
        return shape

    def _could_give(
        self, request: Request, usable: int, table: NodeTable, free: Free, kind: NodeKind | None
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], Any]:
        """The nodes as positions, the CPUs that each has for the job's tasks, and those of a core
        (one number if all are of a kind).
        """
        if usable == self._positions[0]:
            at = self._positions[1]
        else:
            at = nodeset.positions_array(usable)
            self._positions = (usable, at)
        threads = self._threads(table, at, kind)
        free_memory = memory = tmp_disk = None
        if request.memory_per_cpu_mb or request.memory_per_node_mb or self.consumes_memory:
            free_memory, memory = (
                free.free_memory[at],
                (table.memory if self.consumes_memory else table.all_memory)[at],
            )
        if request.tmp_disk_mb:
            tmp_disk = table.tmp_disk[at]
        cores = self._free_cores(request, at, table, free, kind)
        cpus = sockets = None
        if (
            request.exclusive
            or request.tasks_per_core > 1
            or request.tasks_per_socket
            or self._may_lack_memory(request)
        ):
            cpus, sockets = table.cpus[at], table.sockets[at]
        has = _Has(cores, threads, cpus, sockets, free_memory, memory, tmp_disk)
        capacity = self._capacity(request, has)
        # beside devices, threads that the last core has left over are no room for tasks
        if request.gres is not None and request.tasks_per_socket:
            of_core = self._of_core(request, threads)
            tasks = -(-cores // self._filled(request, of_core)) * request.tasks_per_socket
            capacity = np.minimum(capacity, np.maximum(tasks * request.cpus_per_task, of_core))
        if request.cpus_left is not None:
            capacity = np.minimum(capacity, request.cpus_left[at])
            capacity *= capacity >= request.cpus_per_task
        return at, capacity, self._of_core(request, threads)

    def _choose_any_kind(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        free: Free,
        kind: NodeKind | None,
        *,
        by_load: bool,
        near: bool = False,
        leaves_out: bool = True,
        nodes_only: bool = False,
    ) -> Choice | None:
        request.cpus_at_most = None
        offer = self._offer(request, usable, table, free, kind, near=near)
        if offer is None:
            return None
        demand = Demand(
            request.cpus if request.gres is None else cpus_needed(request),
            request.min_nodes,
            request.wanted_nodes,
            request.max_nodes,
            max(request.min_cpus_per_node, 1),
        )
        chosen = self._pick(
            request, offer, demand, table, free, by_load=by_load, leaves_out=leaves_out
        )
        if chosen is None:
            return None
        if nodes_only:
            return [(nodeset.from_array(offer.at[chosen]), 1)]
        if request.tasks_on_node:
            return [(nodeset.from_array(offer.at[chosen]), request.tasks_on_node)]
        if len(chosen) == 1:
            return [(1 << int(offer.at[chosen[0]]), request.tasks)]
        return self._dealt(request, offer, chosen, demand, table)

    def _offer(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        free: Free,
        kind: NodeKind | None,
        *,
        near: bool,
    ) -> Offer | None:
        """What those of the nodes have that have something for the job; None if they are too few.
        `near`: only cores near the devices that the job asks for.
        """
        at, cpus, of_core = self._could_give(request, usable, table, free, kind)
        most = None
        if request.gres is not None:
            devices = devices_in(free, table) if near else None
            cpus, most = with_gres(request, at, cpus, of_core, table, free, near=devices)
        count = np.count_nonzero(cpus)
        if count < request.min_nodes:
            return None
        if count < len(at):
            having = cpus.nonzero()[0]
            at, cpus = at[having], cpus[having]
            most = None if most is None else most[having]
            if kind is None:
                of_core = of_core[having]
        if request.gres is not None and int(cpus.sum()) < request.cpus:
            return None
        required = None
        if request.required:
            required = nodeset.to_flags(request.required, len(table.nodes))[at]
            if np.count_nonzero(required) < request.required.bit_count():
                return None
        core = int(of_core) if kind is not None else of_core
        weight = self._weight(request, at, table, free, kind)
        return Offer(at, cpus, core, weight, required, most)

    @staticmethod
    def _weight(
        request: Request, at: NDArray[np.intp], table: NodeTable, free: Free, kind: NodeKind | None
    ) -> NDArray[np.int64] | None:
        """By what the nodes are ordered for the job, the least first; None if they are alike."""
        if request.gres is not None:
            weight: NDArray[np.int64] | None = preferred(request, at, table.weight[at], free)
        else:
            weight = None if kind is not None else table.weight[at]
        if request.spared:
            spared = nodeset.to_flags(request.spared, len(table.nodes))[at]
            weight = (table.weight[at] if weight is None else weight) + spared * _LAST
        if request.favoured:
            favoured = nodeset.to_flags(request.favoured, len(table.nodes))[at]
            weight = (table.weight[at] if weight is None else weight) * 2 - favoured
        if request.foremost:
            foremost = nodeset.to_flags(request.foremost, len(table.nodes))[at]
            weight = (table.weight[at] if weight is None else weight) - foremost * _LAST
        return weight

    def _pick(
        self,
        request: Request,
        offer: Offer,
        demand: Demand,
        table: NodeTable,
        free: Free,
        *,
        by_load: bool,
        leaves_out: bool,
    ) -> NDArray[np.intp] | None:
        """Places in the offer that together have what is demanded; None if there are none."""
        if request.gres is not None and request.gres.per_job:
            return choose_for_job(request.gres, offer, demand, free, contiguous=request.contiguous)
        if request.is_serial and self.packs_serial:
            return np.array([len(offer.at) - 1])
        at, cpus, required, core = offer.at, offer.cpus, offer.required, offer.core
        if request.spreads:
            return Candidates(at, cpus, None, required, core=core).choose_in_order(
                np.lexsort((at, table.weight[at])), demand
            )
        if by_load:
            weight = table.weight[at]
            return Candidates(at, cpus, weight, required, core=core).choose_in_order(
                np.lexsort((at, -free.free_cpus[at], weight)), demand
            )
        tree = table.tree_for(request.switches)
        return Candidates(
            at, cpus, offer.weight, required, tree, request.switches, core=core
        ).choose(demand, contiguous=request.contiguous, leaves_out=leaves_out)

    def _dealt(
        self,
        request: Request,
        offer: Offer,
        chosen: NDArray[np.intp],
        demand: Demand,
        table: NodeTable,
    ) -> Choice:
        """The chosen ones of the nodes with the tasks that each gets."""
        serves, core = offer.cpus[chosen], offer.core
        if not request.exclusive:
            each = core if isinstance(core, int) else core[chosen]
            if self._gives_sockets(request):
                nodes = offer.at[chosen]
                each = each * (table.cores[nodes] // table.sockets[nodes])
            serves = shares_of_nodes(serves, demand.cpus, request.min_nodes, each, demand.least)
        in_order = np.argsort(chosen)
        chosen, serves = chosen[in_order], serves[in_order]
        nodes = offer.at[chosen]
        room = serves // request.cpus_per_task
        if offer.most is not None:
            room = np.minimum(room, offer.most[chosen])
        elif request.cpus_per_task > 1 and int(np.maximum(room, 1).sum()) < request.tasks:
            limits = np.maximum(serves, request.cpus_per_task)
            request.cpus_at_most = dict(zip(nodes.tolist(), limits.tolist(), strict=True))
        at_a_time: NDArray[np.int64] | int = 1
        if request.cpus_per_task == 1:
            at_a_time = table.threads[nodes]
        return _grouped(nodes, deal(max(request.tasks, len(chosen)), room, at_a_time))

    def _choose_with_gres(
        self, request: Request, usable: int, table: NodeTable, free: Free, *, by_load: bool
    ) -> Choice | None:
        """First with cores near the devices, then with any; only then are small nodes left out to
        find room.
        """
        assert request.gres is not None
        kind = table.kind_of(usable)
        which = attempts(request.gres, table, free)
        for leaves_out in (False, True) if len(which) > 1 else (True,):
            for near in which:
                choice = self._choose_any_kind(
                    request,
                    usable,
                    table,
                    free,
                    kind,
                    by_load=by_load,
                    near=near,
                    leaves_out=leaves_out,
                )
                if choice is not None:
                    request.near_devices = near
                    return choice
        return None

    def _might_with_gres(self, request: Request, nodes: int, table: NodeTable, free: Free) -> bool:
        at, cpus, of_core = self._could_give(request, nodes, table, free, None)
        cpus, _ = with_gres(request, at, cpus, of_core, table, free)
        return int(np.count_nonzero(cpus)) >= request.min_nodes and int(cpus.sum()) >= request.cpus

    # --- what the job holds there -----------------------------------------------------------------

    def hold(self, request: Request, choice: Choice, table: NodeTable, free: Free) -> Allocation:
        if (request.gres is not None or request.exclusive) and (
            gres := devices_in(free, table)
        ) is not None:
            shares = self._shares_with_gres(request, choice, table, free, gres)
            own = None
            if self.counts_cpus and not request.exclusive:
                own = sum(cpus_counted(request, share) for share in shares)
            return Allocation.of_shares(shares, whole=request.exclusive, cpus=own)
        blocked, most = request.blocked_cores or _NONE, request.cpus_at_most or _NONE
        if len(choice) == 1 and not (blocked or most):
            ((nodes, tasks),) = choice
            kind = table.kind_of(nodes)
            if kind is not None and nodeset.are_among(nodes, free.idle_nodes):
                return self._hold_alike(request, nodes, tasks, kind)
        held: dict[tuple[int, int, int, int], int] = {}  # what a job holds on a node -> the nodes
        open_nodes = free.idle_nodes & ~sum(1 << node for node in (*blocked, *most))
        for nodes, tasks in choice:
            for kind in table.kinds:
                here = nodes & kind.nodes
                if part := here & open_nodes:
                    share = self._share(request, kind, kind.spec_cores, kind.memory_mb, tasks)
                    held[share] = held.get(share, 0) | part
                if not (rest := here & ~open_nodes):
                    continue  # what is free need not be worked out
                for (used, memory, at_most), part in _alike(
                    rest, request.view or free, free.free_memory, blocked, most
                ):
                    share = self._share(request, kind, used, memory, tasks, at_most)
                    held[share] = held.get(share, 0) | part
        groups = [ShareGroup(part, *share) for share, part in held.items()]
        cpus = None
        if self.counts_cpus and not request.exclusive:
            cpus = sum(
                nodes.bit_count() * max(tasks * request.cpus_per_task, request.held_cpus_per_node)
                for nodes, tasks in choice
            )
            if most:
                on_node = {
                    node: tasks * request.cpus_per_task
                    for nodes, tasks in choice
                    for node in nodeset.indices(nodes)
                }
                cpus -= sum(max(on_node[node] - limit, 0) for node, limit in most.items())
        return Allocation.of_groups(tuple(groups), whole=request.exclusive, cpus=cpus)

    def _hold_alike(self, request: Request, nodes: int, tasks: int, kind: NodeKind) -> Allocation:
        """What it holds with so many tasks on each of these nodes, which are idle."""
        shape = self._of_shape(request, kind)
        share = shape.shares.get(tasks)
        if share is None:
            share = shape.shares[tasks] = self._share(
                request, kind, kind.spec_cores, kind.memory_mb, tasks
            )
        count, cpus = nodes.bit_count(), share[0]
        if self.counts_cpus and not request.exclusive:
            cpus = max(tasks * request.cpus_per_task, request.held_cpus_per_node)
        return Allocation(
            nodes, cpus * count, (ShareGroup(nodes, *share),), whole=request.exclusive
        )

    def _shares_with_gres(
        self, request: Request, choice: Choice, table: NodeTable, free: Free, gres: GresTable
    ) -> list[NodeShare]:
        """Node by node: devices and the cores near them are not the same everywhere."""
        tasks_on = tasks_in_order(choice)
        needs = request.gres
        if needs is None:
            return [
                self._share_with_gres(request, index, tasks, (), table, free, gres)
                for index, tasks in tasks_on
            ]
        wants = {index: merged(needs.on_node(tasks)) for index, tasks in tasks_on}
        far: dict[int, bool] = {}
        # how much a node gives follows the cores that the job gets there, or these follow the GPUs
        if needs.per_job:
            cores = {
                index: self._share_with_gres(
                    request, index, tasks, wants[index], table, free, gres
                ).cores
                for index, tasks in tasks_on
            }
            for index, (part, is_far) in zip(
                cores, shares_of_job(request, cores, free, gres), strict=True
            ):
                wants[index], far[index] = merged(wants[index] + part), is_far
        return [
            self._share_with_gres(
                request, index, tasks, wants[index], table, free, gres, far=far.get(index, False)
            )
            for index, tasks in tasks_on
        ]

    def _share_with_gres(
        self,
        request: Request,
        index: int,
        tasks: int,
        wants: tuple[GresCount, ...],
        table: NodeTable,
        free: Free,
        gres: GresTable,
        *,
        far: bool = False,
    ) -> NodeShare:
        cpus, cores, memory, tasks_here = self._part_with_gres(
            request, index, tasks, wants, table, free, gres
        )
        needs, node = request.gres, table.nodes[index]
        if request.exclusive:
            held = all_of(gres.layouts[index], gres)
        elif needs is None:
            held = ()
        else:
            of_core = self._of_core(request, table.cpus_of_core(index))
            held = take_devices(
                wants,
                needs,
                tasks,
                of_core,
                gres.layouts[index],
                gres,
                index,
                cores,
                node.sockets,
                node.cores_per_socket,
                far=far,
            )
        return NodeShare(index, cpus, cores, memory, tasks_here, held)

    def _part_with_gres(
        self,
        request: Request,
        index: int,
        tasks: int,
        wants: tuple[GresCount, ...],
        table: NodeTable,
        free: Free,
        gres: GresTable,
    ) -> tuple[int, int, int, int]:
        """As `_share`, of the cores that the job is offered beside the devices."""
        used = (request.view or free).used_cores_of(np.array([index]))[0] | (
            request.blocked_cores or {}
        ).get(index, 0)
        kind = table.kind_of(1 << index)
        assert kind is not None
        own = request
        offered = (1 << kind.cores) - 1 & ~used
        if request.gres is not None:
            of_core = self._of_core(request, kind.threads_of_core)
            if (rules := self._rules(request, of_core)) is not None:
                offered = rules.usable(offered, kind.sockets, kind.cores)
            own = part_on(request, wants, consumes_memory=self.consumes_memory)
            count = max(
                -(-tasks * request.cpus_per_task // of_core),
                -(-own.memory_cpus // kind.threads_of_core),
            )
            offered = cores_on(
                request, wants, gres, table.nodes[index], offered, tasks, of_core, count
            )
        return self._share(
            own, kind, (1 << kind.cores) - 1 & ~offered, int(free.free_memory[index]), tasks
        )

    def _share(
        self,
        request: Request,
        kind: NodeKind,
        used: int,
        free_memory: int,
        tasks: int,
        most: int = 0,
    ) -> tuple[int, int, int, int]:
        """(CPUs, cores, memory, tasks) of a node of the kind on which the cores `used` belong to
        others; `most` CPUs, 0 for any number.
        """
        if request.exclusive:
            cpus, cores = kind.cpus, kind.job_cores
        else:
            cpus, cores = self._cores(request, kind, used, tasks, most)
        if not self.consumes_memory or request.memory_per_cpu_mb == 0:
            memory = 0
        elif request.memory_per_cpu_mb and self.counts_cpus and not request.exclusive:
            memory = request.memory_per_cpu_mb * max(
                min(tasks * request.cpus_per_task, most or _LAST), request.held_cpus_per_node
            )
        elif request.memory_per_cpu_mb:
            threads = kind.threads_of_core
            memory = (
                request.memory_per_cpu_mb
                * cpus
                // threads
                * min(threads, request.threads_per_core or threads)
            )
        else:
            memory = request.memory_per_node_mb or free_memory
        return cpus, cores, memory, tasks

    def _cores(
        self, request: Request, kind: NodeKind, used: int, tasks: int, at_most: int
    ) -> tuple[int, int]:
        """(CPUs, cores) for so many tasks, `at_most` so many CPUs if that is not 0."""
        of_core = self._of_core(request, kind.threads_of_core)
        if request.cpus_per_task > 1 and self._tasks_per_core(request):
            count = tasks * -(-request.cpus_per_task // of_core)
        else:
            count = -(-tasks * request.cpus_per_task // of_core)
        if at_most:
            count = min(count, -(-at_most // of_core))
        if least := max(request.held_cpus_per_node, request.memory_cpus):
            count = max(count, -(-least // of_core))
        free = ~used & ((1 << kind.cores) - 1)
        rules = self._rules(request, of_core)
        # sockets in use are left out already; the cores withdrawn are not in use
        if rules is not None and request.gres is not None:
            rules = replace(rules, whole=False)
        block = self.fills_sockets if request.fills_sockets is None else request.fills_sockets
        if rules is not None:
            most = rules.usable(free, kind.sockets, kind.cores)
            few = most if block else rules.usable(free, kind.sockets, kind.cores, tasks, count)
            # of a node that was found to do
            free = few if few.bit_count() >= count else most or free
        each = kind.cores // kind.sockets
        cores = place(free, count, kind.sockets, each, request.cpus_per_task, of_core, block=block)
        if self._gives_sockets(request):
            offered = free if request.gres is not None else 0
            cores = (
                whole_sockets(
                    cores, kind.sockets, kind.cores, offered, -(-request.cpus_per_task // of_core)
                )
                & kind.job_cores
            )
        return cores.bit_count() * kind.threads_of_core, cores


class SelectConsRes(SelectConsTres):
    """As `SelectConsTres`, but for GPUs of the whole job, of each task and of each socket."""

    counts_gpus = False


def _grouped(at: NDArray[np.intp], tasks: NDArray[np.int64]) -> Choice:
    """Nodes with the same number of tasks as one entry."""
    if len(at) <= _FEW:
        alike: dict[int, int] = {}
        for node, each in zip(at.tolist(), tasks.tolist(), strict=True):
            alike[each] = alike.get(each, 0) | 1 << node
        return [(alike[each], each) for each in sorted(alike, reverse=True)]
    return [
        (nodeset.from_array(at[tasks == each]), each)
        for each in sorted(set(tasks.tolist()), reverse=True)
    ]


def _alike(
    nodes: int,
    free: Free,
    memory: NDArray[np.int64],
    blocked: Mapping[int, int] = _NONE,
    most: Mapping[int, int] = _NONE,
) -> Iterable[tuple[tuple[int, int, int], int]]:
    """Nodes by what they have left, as ((cores that the job cannot have, free memory, CPUs at
    most), bitmap). A wide job meets few sorts of nodes.
    """
    if not nodes:
        return ()
    at = nodeset.positions_array(nodes)
    sorts: dict[tuple[int, int, int], list[int]] = {}
    for node, used, left in zip(
        at.tolist(), free.used_cores_of(at), memory[at].tolist(), strict=True
    ):
        sorts.setdefault((used | blocked.get(node, 0), left, most.get(node, 0)), []).append(node)
    return ((sort, nodeset.from_positions(found)) for sort, found in sorts.items())
