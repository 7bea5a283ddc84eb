"""select/linear: whole nodes, for one job at a time unless the partition lets jobs share them.

Place: scheduling, pure. Follows slurm.conf(5) SelectType=select/linear. Node sets of equal weight
are added one after the other, the lowest weight first, until they hold the job; within what has
been added runs of consecutive nodes are chosen by best fit. Where jobs share nodes
(OverSubscribe=FORCE, YES), what has been added is looked at level by level
(understudy.controller.scheduling.select.crowding).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.controller.scheduling.select.best_fit import Candidates, alike, even_tasks
from understudy.controller.scheduling.select.crowding import Crowd, crowd_for
from understudy.controller.scheduling.select.free import devices_in, restricted
from understudy.controller.scheduling.select.gres import nodes_having, take_devices
from understudy.controller.scheduling.select.picks import Demand
from understudy.controller.scheduling.select.rows import in_the_way, tiers, without
from understudy.controller.scheduling.select.selection import ChoosingSelector, spread
from understudy.controller.tables.allocation import Allocation, ShareGroup
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.scheduling.select.request import Request
    from understudy.controller.scheduling.select.selection import Choice
    from understudy.controller.tables.allocation import NodeShare
    from understudy.controller.tables.gres import GresTable
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeKind, NodeTable
    from understudy.controller.tables.tables import Tables


class SelectLinear(ChoosingSelector):
    """`parameters`: CR_MEMORY makes memory a thing that is used up; on whole nodes that matters
    only to what is shown.
    """

    whole_nodes = True
    counts_gpus = False

    most_in_group = 1

    def choose(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        free: Free,
        *,
        nodes_only: bool = False,
    ) -> Choice | None:
        usable &= free.idle_nodes
        if request.required & ~usable or usable.bit_count() < request.min_nodes:
            return None
        if request.gres is not None:
            usable &= nodes_having(request.gres, usable, free)
            if request.required & ~usable or usable.bit_count() < request.min_nodes:
                return None
        crowd = free if isinstance(free, Crowd) else None
        if crowd is not None and self.consumes_memory:
            usable &= crowd.with_memory(request, usable, table.cpus, table.memory)
        fitting = [
            (kind, part)
            for kind in table.kinds
            if (part := usable & kind.nodes) and self._room(request, kind)
        ]
        is_simple = table.tree_for(request.switches) is None and crowd is None
        if len(fitting) == 1 and is_simple and not request.required and not request.contiguous:
            return self._choose_alike(request, fitting[0][1], fitting[0][0], nodes_only=nodes_only)
        by_weight: dict[int, int] = {}
        for kind, part in fitting:
            by_weight[kind.weight] = by_weight.get(kind.weight, 0) | part
        nodes = 0
        for weight in sorted(by_weight):
            nodes |= by_weight[weight]
            # heavier ones come before fewer
            if nodes.bit_count() < request.wanted_nodes and weight != max(by_weight):
                continue
            for offer in (nodes,) if crowd is None else crowd.offers(request, nodes):
                choice = self._choose_mixed(
                    request,
                    offer,
                    [(kind, part & offer) for kind, part in fitting if part & offer],
                    table,
                )
                if choice is not None:
                    return choice
        return None

    def _views(
        self, request: Request, tables: Tables, free: Free, *, for_will_run: bool
    ) -> Iterator[Free]:
        """Who only asks when the job could run is told of any nodes that have room for one job
        more.
        """
        for tier in tiers(request, tables, free):
            yield crowd_for(request, tables, tier, for_will_run=for_will_run) or tier

    def _choose_in(
        self, request: Request, usable: int, tables: Tables, free: Free, *, nodes_only: bool = False
    ) -> Choice | None:
        """Who starts preempts whom it has to: those of the lowest tier first, of these the
        smallest. Then those are put back without whom it does as well, in the same order.
        """
        preemption = tables.preemption
        if preemption is None or not preemption.overlays or nodes_only:
            return super()._choose_in(request, usable, tables, free, nodes_only=nodes_only)
        usable = self._allowed(request, usable, tables, free)

        def choose_without(gone: list[Job]) -> Choice | None:
            tier = without(free, tables, gone) if gone else free
            view = crowd_for(request, tables, tier, for_will_run=False) or tier
            offered = restricted(view, tables.nodes, request.blocked_cores)
            found = self._choose_any(request, usable, tables.nodes, offered)
            if found is not None:
                request.view = view
            return found

        gone: list[Job] = []
        choice = choose_without(gone)
        for job in preemption.in_order(in_the_way(request, tables, free)):
            if choice is not None:
                break
            gone.append(job)
            choice = choose_without(gone)
        if choice is not None:
            for job in reversed(tuple(gone)):
                fewer = [each for each in gone if each is not job]
                instead = choose_without(fewer)
                if instead is not None:
                    gone, choice = fewer, instead
        return choice

    def might(self, request: Request, nodes: int, table: NodeTable, free: Free) -> bool:
        nodes &= free.idle_nodes
        if request.gres is not None:
            nodes &= nodes_having(request.gres, nodes, free)
        rooms = [
            (part.bit_count(), self._room(request, kind))
            for kind in table.kinds
            if (part := nodes & kind.nodes)
        ]
        return (
            sum(count for count, room in rooms if room) >= request.min_nodes
            and sum(count * room for count, room in rooms) >= request.tasks
        )

    def _choose_alike(
        self, request: Request, usable: int, kind: NodeKind, *, nodes_only: bool
    ) -> Choice | None:
        room = self._room(request, kind)
        have = usable.bit_count()
        count = max(-(-request.tasks // room), min(request.wanted_nodes, have))
        if count > have or count > request.max_nodes or count < request.min_nodes:
            return None
        if nodes_only:
            return [(alike(usable, have, count), 1)]
        return spread(alike(usable, have, count), max(request.tasks, count))

    def _choose_mixed(
        self, request: Request, nodes: int, kinds: list[tuple[NodeKind, int]], table: NodeTable
    ) -> Choice | None:
        if nodes.bit_count() < request.min_nodes or request.required & ~nodes:
            return None
        size = len(table.nodes)
        room = np.zeros(size, dtype=np.int64)
        for kind, part in kinds:
            room[nodeset.to_flags(part, size)] = self._room(request, kind)
        at = nodeset.positions_array(nodes)
        cpus = room[at] * request.cpus_per_task
        required = nodeset.to_flags(request.required, size)[at] if request.required else None
        wanted = request.min_nodes if request.contiguous else request.wanted_nodes
        demand = Demand(request.cpus, request.min_nodes, wanted, request.max_nodes)
        tree = table.tree_for(request.switches)
        candidates = Candidates(
            at,
            cpus,
            None,
            required,
            tree,
            request.switches,
            small_leaves=True,
            core=request.cpus_per_task,
        )
        if (
            tree is None
            and int(cpus.min()) != int(cpus.max())
            and request.cpus > int(cpus.min()) * request.wanted_nodes
        ):
            chosen = candidates.choose_in_order(np.lexsort((-at, -cpus)), demand)
        else:
            chosen = candidates.choose(demand, contiguous=request.contiguous)
        if chosen is None:
            return None
        where = np.sort(at[chosen])
        on_each = even_tasks(max(request.tasks, len(where)), room[where])
        return [
            (nodeset.from_array(where[on_each == each]), each)
            for each in sorted(set(on_each.tolist()), reverse=True)
        ]

    def hold(self, request: Request, choice: Choice, table: NodeTable, free: Free) -> Allocation:
        groups = []
        for nodes, tasks in choice:
            for kind in table.kinds:
                part = nodes & kind.nodes
                if part:
                    memory = 0
                    if self.consumes_memory:
                        per_cpu = request.memory_per_cpu_mb
                        memory = (
                            per_cpu * kind.cpus
                            if per_cpu
                            else request.memory_per_node_mb or kind.memory_mb
                        )
                    groups.append(ShareGroup(part, kind.cpus, kind.job_cores, memory, tasks))
        if request.gres is not None and (gres := devices_in(free, table)) is not None:
            return Allocation.of_shares(
                _with_devices(request, Allocation.of_groups(tuple(groups)).shares, table, gres),
                whole=True,
            )
        return Allocation.of_groups(tuple(groups), whole=True)

    def _room(self, request: Request, kind: NodeKind) -> int:
        """Tasks that an idle node of the kind can take, 0 if it does not suit the job."""
        # whatever is said of threads and of tasks of a core (seen of 22.05.8)
        if request.min_cpus_per_node > kind.cpus or request.tmp_disk_mb > kind.tmp_disk_mb:
            return 0
        if max(request.memory_per_node_mb or 0, request.memory_per_cpu_mb or 0) > kind.memory_mb:
            return 0
        if (
            self.consumes_memory
            and request.memory_per_cpu_mb
            and not request.if_empty
            and request.memory_per_cpu_mb * kind.cpus > kind.memory_mb
        ):
            return 0  # it would hold that of all CPUs; who is submitted is not refused for that
        room = kind.cpus // request.cpus_per_task
        if request.tasks_per_node:
            if room < min(request.tasks_per_node, request.tasks):
                return 0
            room = min(room, request.tasks_per_node)
        return room


def _with_devices(
    request: Request, shares: list[NodeShare], table: NodeTable, gres: GresTable
) -> list[NodeShare]:
    needs = request.gres
    assert needs is not None
    found = []
    for share in shares:
        node, layout = table.nodes[share.node], gres.layouts[share.node]
        held = take_devices(
            needs.per_node,
            needs,
            share.tasks,
            1,
            layout,
            gres,
            share.node,
            share.cores,
            node.sockets,
            node.cores_per_socket,
        )
        found.append(share._replace(gres=held))
    return found
