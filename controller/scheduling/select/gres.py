"""Generic resources in the choice of nodes: which nodes have enough, which cores go with them,
which devices a job gets.

Place: scheduling, pure. Used by selectors for jobs that ask for generic resources; others never
come here. Follows sbatch(1) --gres, --gpus and their kin, gres.conf(5) Cores.

On a node that gives a job generic resources no more cores are offered than its tasks there can use;
cores are withdrawn one by one from the socket that has most left, the first of several, highest
core first. Where devices are near some cores, first only sockets near enough devices are offered,
those with most free cores first; all others in a second attempt, unless the job insists, and then
those others are withdrawn first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.controller.tables.gres import Held, keys_of
from understudy.model import nodeset
from understudy.model.gres import GPU, GresCount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.scheduling.select.gres_needs import GresNeeds
    from understudy.controller.scheduling.select.picks import Demand, Offer
    from understudy.controller.scheduling.select.request import Request
    from understudy.controller.scheduling.select.selection import Choice
    from understudy.controller.tables.allocation import NodeShare
    from understudy.controller.tables.gres import DeviceGroup, GresTable, Layout
    from understudy.controller.tables.node import Node, NodeTable


def attempts(needs: GresNeeds, table: NodeTable, free: Free) -> tuple[bool, ...]:
    """Whether to offer only cores near the devices, in the order of the attempts. Who does not
    insist on them is asked of the present alone.
    """
    if table.gres is None or not table.gres.has_cores or needs.ignores_cores:
        return (False,)
    if needs.binds:
        return (True,)
    return (True, False) if free is table else (False,)


def cpus_needed(request: Request) -> int:
    """The CPUs that the job needs in all."""
    needs = request.gres
    if needs is None or not needs.cpus_per_gpu:
        return request.cpus
    gpus = max(
        gpus_wanted(needs.per_node) * request.min_nodes,
        gpus_wanted(needs.per_task) * request.tasks,
        gpus_wanted(needs.per_job),
    )
    return max(request.cpus, gpus * needs.cpus_per_gpu)


def with_gres(
    request: Request,
    at: NDArray[np.intp],
    cpus: NDArray[np.int64],
    unit: Any,
    table: NodeTable,
    free: Free,
    *,
    near: GresTable | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The CPUs that nodes have for the job if they have generic resources for it, else 0; and how
    many tasks they have generic resources for.

    `unit`: usable CPUs of a core. `near`: the devices to whose cores the job keeps.
    """
    needs = request.gres
    assert needs is not None
    most = most_tasks(needs, free, at)
    each = request.cpus_per_task
    cpus = np.minimum(cpus // each, most) * each
    gpus = gpus_wanted(needs.per_node)
    if needs.cpus_per_gpu:
        # no node without a GPU and its CPUs
        cpus = cpus * (cpus >= max(gpus, gpus_wanted(needs.wants) > 0) * needs.cpus_per_gpu)
    if needs.memory_per_gpu_mb:
        cpus = cpus * (free.free_memory[at] >= max(gpus, 1) * needs.memory_per_gpu_mb)
    if near is not None:
        cpus = _near_cpus(request, at, cpus, unit, table, free, near)
    if request.tasks_are_known:
        tasks = request.tasks_per_node or -(-request.tasks // request.min_nodes)
        gpus = max(
            gpus,
            gpus_wanted(needs.per_task) * tasks,
            -(-gpus_wanted(needs.per_job) // request.min_nodes),
        )
        wanted = max(tasks * each, gpus * needs.cpus_per_gpu)
        cpus = np.minimum(cpus, wanted)
    return cpus, most


def preferred(
    request: Request, at: NDArray[np.intp], weight: NDArray[np.int64], free: Free
) -> NDArray[np.int64]:
    """Weights of nodes for a job that may get different numbers of devices on them: of equal nodes
    those with more of what it wants come first.
    """
    needs = request.gres
    assert needs is not None
    wants = tuple(
        GresCount(want.name, want.type, needs.most_on_node(want)) for want in needs.per_job
    )
    wants += tuple(
        GresCount(want.name, want.type, want.count * request.tasks) for want in needs.per_task
    )
    if not wants and not needs.per_socket:
        return weight
    usable = np.zeros(len(at), dtype=np.int64)
    for want in wants:
        have = free.free_gres(_key(want))
        if have is not None:
            usable += have[at] if request.exclusive else np.minimum(have[at], want.count)
    for want in needs.per_socket:  # more than it wants counts, too
        have = free.free_gres(_key(want))
        if have is not None:
            usable += have[at]
    return (weight << 8) + 255 - np.minimum(usable, 255)


def _near_cpus(
    request: Request,
    at: NDArray[np.intp],
    cpus: NDArray[np.int64],
    unit: Any,
    table: NodeTable,
    free: Free,
    gres: GresTable,
) -> NDArray[np.int64]:
    needs = request.gres
    assert needs is not None
    found = cpus.copy()
    used = free.used_cores_of(at)
    units = unit if isinstance(unit, np.ndarray) else np.full(len(at), int(unit))
    for place, index in enumerate(at.tolist()):
        layout = gres.layouts[index]
        if not cpus[place] or not any(group.cores for group in layout):
            continue
        node = table.nodes[index]
        free_cores = (1 << node.sockets * node.cores_per_socket) - 1 & ~used[place]
        wants = _possible(
            request, gres, index, needs.on_node(_tasks_possible(request, gres, index))
        )
        all_near, beside = near_cores(
            wants, layout, gres, index, free_cores, node.sockets, node.cores_per_socket
        )
        count = all_near.bit_count()
        if all_near:
            count = max(
                count, min(_least_cores(request, int(units[place])), count + beside.bit_count())
            )
        found[place] = min(
            int(cpus[place]),
            count * int(units[place]) // request.cpus_per_task * request.cpus_per_task,
        )
    return found


def _least_cores(request: Request, unit: int) -> int:
    """Cores without which a node is of no use to the job: those of a task, or of all its tasks
    there if their number is known.
    """
    tasks = (
        (request.tasks_per_node or -(-request.tasks // request.min_nodes))
        if request.tasks_are_known
        else 1
    )
    return -(-tasks * request.cpus_per_task // unit)


def _possible(
    request: Request, gres: GresTable, index: int, wants: Sequence[GresCount]
) -> tuple[GresCount, ...]:
    """What a node might give: beside these wants as much as it has of that which is meant for the
    whole job.
    """
    needs = request.gres
    assert needs is not None
    return merged([*wants, *(_at_most_free(want, gres, index) for want in needs.per_job)])


def _at_most_free(want: GresCount, gres: GresTable, index: int) -> GresCount:
    free = gres.free.get(_key(want))
    return GresCount(want.name, want.type, 0 if free is None else min(want.count, int(free[index])))


def _tasks_possible(request: Request, gres: GresTable, index: int) -> int:
    """How many of the job's tasks a node could have devices for now: sockets are chosen for so
    many.
    """
    needs = request.gres
    assert needs is not None
    most = request.tasks
    for want in needs.per_task:
        free = gres.free.get(_key(want))
        most = min(most, 0 if free is None else int(free[index]) // want.count)
    return most


def choose_for_job(
    needs: GresNeeds, offer: Offer, demand: Demand, free: Free, *, contiguous: bool
) -> NDArray[np.intp] | None:
    """Places in the offer of nodes that together have what is meant for the whole job: best fit on
    runs, as in `best_fit`, with devices as a third demand; no more nodes than are needed, of a
    range of nodes or to be spread (seen of 22.05.8).
    """
    have = _devices_for_job(needs, offer, free)
    if have is None:
        return None
    indices, core = offer.at.tolist(), offer.core
    seek = _Seek(
        demand.cpus,
        demand.min_nodes,
        demand.max_nodes,
        [want.count for want in needs.per_job],
        offer.cpus.tolist(),
        have,
        [core] * len(indices) if isinstance(core, int) else core.tolist(),
        demand.least,
    )
    weights = offer.weight.tolist() if offer.weight is not None else [0] * len(indices)
    runs = _runs(indices, weights, across_weights=contiguous)
    if offer.required is not None:
        for place in np.flatnonzero(offer.required).tolist():
            seek.take(place)
    if contiguous:
        least = demand.min_nodes - len(seek.taken)
        runs = [run for run in runs if seek.suffices(run, least) and set(seek.taken) <= set(run)]
    while not seek.is_done and seek.nodes_left > 0 and runs:
        lightest = min(weights[run[-1]] for run in runs)
        open_runs = [run for run in runs if weights[run[-1]] == lightest]
        enough = [run for run in open_runs if seek.suffices(run)]
        run = min(enough, key=seek.cpus_in) if enough else max(open_runs, key=seek.cpus_in)
        runs.remove(run)
        if seek.take_of(run, contiguous=contiguous):
            break
    found = seek.taken
    if (
        len(found) < demand.min_nodes
        or len(found) > demand.max_nodes
        or seek.need_cpus > 0
        or not seek.holds(needs)
    ):
        return None
    return np.array(found, dtype=np.intp)


def _devices_for_job(needs: GresNeeds, offer: Offer, free: Free) -> list[list[int]] | None:
    """For each want of the whole job: how many each node could give; None if there are no such
    devices.
    """
    have: list[list[int]] = []
    for want in needs.per_job:
        vector = free.free_gres(_key(want))
        if vector is None:
            return None
        devices = np.minimum(vector[offer.at], needs.most_on_node(want))
        if needs.cpus_per_gpu and want.name == GPU:
            devices = np.minimum(devices, offer.cpus // needs.cpus_per_gpu)
        if needs.memory_per_gpu_mb and want.name == GPU:
            devices = np.minimum(devices, free.free_memory[offer.at] // needs.memory_per_gpu_mb)
        have.append(devices.tolist())
    return have


def _runs(indices: list[int], weights: list[int], *, across_weights: bool) -> list[list[int]]:
    """Places of nodes that follow each other, of one weight each unless `across_weights`."""
    runs: list[list[int]] = []
    for place, index in enumerate(indices):
        if (
            runs
            and indices[runs[-1][-1]] == index - 1
            and (across_weights or weights[runs[-1][-1]] == weights[place])
        ):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


@dataclass(slots=True, eq=False)
class _Seek:
    """What is still to be found for `choose_for_job`."""

    need_cpus: int
    need_nodes: int
    nodes_left: int
    need: list[int]
    cpus: list[int]
    have: list[list[int]]
    core: list[int]  # what a node keeps back for each further one
    least: int
    taken: list[int] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return (
            self.need_cpus <= 0 and self.need_nodes <= 0 and all(count <= 0 for count in self.need)
        )

    def cpus_in(self, run: list[int]) -> int:
        return sum(self.cpus[place] for place in run if place not in self.taken)

    def suffices(self, run: list[int], nodes: int | None = None) -> bool:
        left = [place for place in run if place not in self.taken]
        return (
            len(left) >= (self.need_nodes if nodes is None else nodes)
            and sum(self.cpus[place] for place in left) >= self.need_cpus
            and all(
                sum(each[place] for place in left) >= count
                for each, count in zip(self.have, self.need, strict=True)
            )
        )

    def take(self, place: int) -> None:
        self.taken.append(place)
        self.need_nodes -= 1
        self.nodes_left -= 1
        self.need_cpus -= min(
            self.cpus[place],
            max(self.need_cpus - self.core[place] * max(self.need_nodes, 0), self.least),
        )
        self.need = [count - each[place] for count, each in zip(self.need, self.have, strict=True)]

    def take_of(self, run: list[int], *, contiguous: bool) -> bool:
        """Take what is needed of a run; True if that was the one node that suffices alone."""
        if contiguous:  # from the first of the required nodes up, then down
            first = min(self.taken, default=run[0])
            run = [place for place in run if place >= first] + [
                place for place in reversed(run) if place < first
            ]
        left = [place for place in run if place not in self.taken]
        if self.need_nodes <= 1 and not (contiguous and self.taken):
            alone = [place for place in left if self.suffices([place])]
            if alone:
                self.take(min(alone, key=lambda place: self.cpus[place]))
                return True
        for place in left:
            if self.is_done or self.nodes_left <= 0:
                break
            self.take(place)
        return False

    def holds(self, needs: GresNeeds) -> bool:
        return all(
            sum(each[place] for place in self.taken) >= want.count
            for each, want in zip(self.have, needs.per_job, strict=True)
        )


def tasks_in_order(choice: Choice) -> list[tuple[int, int]]:
    """(node, tasks) for each node of the choice, in index order."""
    return sorted((index, tasks) for nodes, tasks in choice for index in nodeset.indices(nodes))


def merged(wants: Sequence[GresCount]) -> tuple[GresCount, ...]:
    """Each name and type once, with the largest count: --gres, --gpus-per-task and --gpus of one
    job mean the same devices.
    """
    most: dict[tuple[str, str], int] = {}
    for want in wants:
        key = (want.name, want.type)
        most[key] = max(most.get(key, 0), want.count)
    return tuple(GresCount(name, kind, count) for (name, kind), count in most.items())


def shares_of_job(
    request: Request, cores_on_node: Mapping[int, int], state: Free, gres: GresTable
) -> list[tuple[tuple[GresCount, ...], bool]]:
    """What each node gives, in index order, of that which is meant for the whole job, as
    `shares_of` says it.

    `cores_on_node`: those that the job gets there.
    """
    needs = request.gres
    assert needs is not None
    have: dict[str, dict[int, int]] = {}
    close: dict[str, dict[int, int]] = {}
    far: dict[str, dict[int, int]] = {}
    nodes = sorted(cores_on_node)
    for want in needs.per_job:
        free = {index: int(gres.free[_key(want)][index]) for index in nodes}
        counts = {index: min(count, needs.most_on_node(want)) for index, count in free.items()}
        if needs.cpus_per_gpu and want.name == GPU:
            free_cpus = state.free_cpus
            counts = {
                index: min(count, int(free_cpus[index]) // needs.cpus_per_gpu)
                for index, count in counts.items()
            }
        if needs.memory_per_gpu_mb and want.name == GPU:
            free_memory = state.free_memory
            counts = {
                index: min(count, int(free_memory[index]) // needs.memory_per_gpu_mb)
                for index, count in counts.items()
            }
        near = free
        if gres.has_cores and not needs.ignores_cores:
            near = {
                index: _near_count(want, gres, index, cores)
                for index, cores in cores_on_node.items()
            }
        close[_key(want)] = {index: min(count, near[index]) for index, count in counts.items()}
        far[_key(want)] = {index: free[index] - near[index] for index in nodes}
        have[_key(want)] = counts
    return shares_of(needs.per_job, nodes, have, close, far)


def _near_count(want: GresCount, gres: GresTable, index: int, cores: int) -> int:
    """The free devices of the node near these cores."""
    used = gres.used_devices[want.name][index]
    groups = [
        group
        for group in gres.layouts[index]
        if group.name == want.name and want.type in ("", group.type)
    ]
    if not all(group.has_files for group in groups):
        return int(gres.free[_key(want)][index])
    return sum(
        (group.devices & ~used).bit_count()
        for group in groups
        if not group.cores or group.cores & cores
    )


def part_on(request: Request, wants: Sequence[GresCount], *, consumes_memory: bool) -> Request:
    """The request as a node sees it that gives these: CPUs and memory follow the GPUs where the job
    says so.
    """
    needs = request.gres
    assert needs is not None
    gpus = gpus_wanted(wants)
    changes: dict[str, Any] = {}
    if needs.cpus_per_gpu:
        changes["memory_cpus"] = max(request.memory_cpus, gpus * needs.cpus_per_gpu)
    if needs.memory_per_gpu_mb and consumes_memory:
        changes |= {"memory_per_node_mb": gpus * needs.memory_per_gpu_mb, "memory_per_cpu_mb": None}
    return request.but(**changes) if changes else request


def cpus_counted(request: Request, share: NodeShare) -> int:
    """CPUs that the job asks for on the node, of the cores that it has there."""
    asked = max(
        share.tasks * request.cpus_per_task, request.held_cpus_per_node, request.memory_cpus
    )
    if request.gres is not None and request.gres.cpus_per_gpu:
        gpus = sum(held.amount for held in share.gres if held.name == "gpu")
        asked = max(asked, gpus * request.gres.cpus_per_gpu)
    return min(asked, share.cpus)


def cores_on(
    request: Request,
    wants: Sequence[GresCount],
    gres: GresTable,
    node: Node,
    cores: int,
    tasks: int,
    usable: int,
    taken: int,
) -> int:
    """The free cores that the job is offered on a node that gives these. `taken`: how many of them
    it will take.
    """
    needs = request.gres
    assert needs is not None
    sockets, per_socket = node.sockets, node.cores_per_socket
    layout = gres.layouts[node.index]
    first = 0  # cores of the sockets near the devices
    if not needs.ignores_cores and any(group.cores for group in layout):
        tasks_possible = _tasks_possible(request, gres, node.index) if needs.per_task else tasks
        possible = _possible(request, gres, node.index, [*wants, *needs.on_node(tasks_possible)])
        first, beside = near_cores(possible, layout, gres, node.index, cores, sockets, per_socket)
        if request.near_devices and first and (first | beside).bit_count() >= taken:
            cores = (
                first
                if first.bit_count() >= taken
                else trimmed(first | beside, taken, sockets, per_socket, first)
            )
    each = request.cpus_per_task
    most = cores.bit_count() * usable // each
    if request.tasks_are_known:
        most = request.tasks_per_node or tasks
    for want in needs.per_task:
        free = gres.free.get(_key(want))
        most = min(most, int(free[node.index]) // want.count) if free is not None else 0
    keep = max(
        -(-most * each // usable)
        if request.tasks_are_known or needs.per_task
        else most * each // usable,
        taken,
    )
    return trimmed(cores, keep, sockets, per_socket, first)


def most_tasks(needs: GresNeeds, free: Free, at: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many tasks each node (index) has generic resources for: 0 if it has too few, many if
    their number does not matter.
    """
    most = np.full(len(at), np.iinfo(np.int32).max, dtype=np.int64)
    for want in needs.per_node:
        have = free.free_gres(_key(want))
        most *= 0 if have is None else have[at] >= want.count
    for want in needs.per_task:
        have = free.free_gres(_key(want))
        most = most * 0 if have is None else np.minimum(most, have[at] // want.count)
        if needs.memory_per_gpu_mb and want.name == GPU:
            most = np.minimum(most, free.free_memory[at] // (want.count * needs.memory_per_gpu_mb))
    for want in needs.per_job:
        have = free.free_gres(_key(want))
        most *= 0 if have is None else have[at] > 0
    return most


def nodes_with_all(nodes: int, gres: GresTable, free: Free) -> int:
    """Those of the nodes (a bitmap) of whose devices none is in use."""
    at = nodeset.positions_array(nodes)
    are_free = np.ones(len(at), dtype=np.bool_)
    for name, total in gres.total.items():
        have = None if name.partition(":")[0] in gres.shared else free.free_gres(name)
        if have is not None:
            are_free &= have[at] >= total[at]
    return nodeset.from_array(at[are_free])


def nodes_having(needs: GresNeeds, nodes: int, free: Free) -> int:
    """Those of the nodes (a bitmap) that have what the job asks for of each node."""
    at = nodeset.positions_array(nodes)
    return nodeset.from_array(at[most_tasks(needs, free, at) > 0])


def _key(want: GresCount) -> str:
    return keys_of(want.name, want.type)[-1]


def gpus_wanted(wants: Sequence[GresCount]) -> int:
    """How many GPUs are among them."""
    return sum(want.count for want in wants if want.name == GPU)


def trimmed(cores: int, keep: int, sockets: int, per_socket: int, first: int = 0) -> int:
    """So many of the free cores. Those of sockets that have none in `first` are withdrawn first,
    one socket after the other; all others one by one from the socket that has most left.
    """
    left = cores.bit_count()
    if left <= keep:
        return cores
    mask = (1 << per_socket) - 1
    on_socket = [cores >> socket * per_socket & mask for socket in range(sockets)]
    counts = [each.bit_count() for each in on_socket]
    others = [
        socket for socket in range(sockets) if first and not first >> socket * per_socket & mask
    ]
    while left > keep:
        while others and not counts[others[0]]:
            others.pop(0)
        socket = others[0] if others else counts.index(max(counts))
        on_socket[socket] ^= 1 << on_socket[socket].bit_length() - 1
        counts[socket] -= 1
        left -= 1
    return sum(each << socket * per_socket for socket, each in enumerate(on_socket))


def near_cores(
    needs: Sequence[GresCount],
    layout: Layout,
    table: GresTable,
    index: int,
    cores: int,
    sockets: int,
    per_socket: int,
) -> tuple[int, int]:
    """Of the free cores those of the sockets near enough free devices, all where these are near all
    cores and none if they are too few; and those of sockets beside them that were looked at and
    have none.

    Sockets are looked at by the number of their free cores, most first, until they have what is
    wanted.
    """
    mask = (1 << per_socket) - 1
    count_on = [(cores >> socket * per_socket & mask).bit_count() for socket in range(sockets)]
    order = sorted(
        (socket for socket in range(sockets) if count_on[socket]),
        key=lambda socket: -count_on[socket],
    )
    with_devices: set[int] = set()
    seen: set[int] = set()
    for want in needs:
        groups = [
            group for group in layout if group.name == want.name and want.type in ("", group.type)
        ]
        if not any(group.cores for group in groups):
            continue
        used = table.used_devices[want.name][index]
        free = [(group.cores, (group.devices & ~used).bit_count()) for group in groups]
        near = {
            socket: sum(count for theirs, count in free if theirs >> socket * per_socket & mask)
            for socket in order
        }
        missing = (
            want.count
            - sum(count for theirs, count in free if not theirs)
            - sum(near[socket] for socket in seen)
        )
        for socket in order:
            if missing > 0 and socket not in seen:
                seen.add(socket)
                missing -= near[socket]
        with_devices.update(socket for socket in seen if near[socket])
        if missing > 0:
            return 0, 0
    if not seen:
        return cores, 0
    found = [0, 0]
    for socket in seen:
        found[socket not in with_devices] |= cores & mask << socket * per_socket
    return found[0], found[1]


def take_devices(
    wants: Sequence[GresCount],
    needs: GresNeeds,
    tasks: int,
    of_core: int,
    layout: Layout,
    table: GresTable,
    index: int,
    cores: int,
    sockets: int,
    per_socket: int,
    *,
    far: bool = False,
) -> tuple[Held, ...]:
    """What a job with these cores, and so many tasks and CPUs of a core, gets on the node: devices
    near its cores first, or last (`far`).
    """
    mask = (1 << per_socket) - 1
    ours = [socket for socket in range(sockets) if cores >> socket * per_socket & mask]
    found: dict[tuple[str, str], tuple[int, int]] = {}
    taken: dict[str, int] = {}
    for want in wants:
        groups = [
            group for group in layout if group.name == want.name and want.type in ("", group.type)
        ]
        if groups and groups[0].parts:
            found[want.name, ""] = want.count, _gpu_with_room(groups, table, index, want.count)
            continue
        used = table.used_devices[want.name][index] | taken.get(want.name, 0)
        near = [0] * len(ours)
        if any(group.cores for group in groups):
            near = [
                sum(
                    group.devices & ~used
                    for group in groups
                    if not group.cores or group.cores >> socket * per_socket & mask
                )
                for socket in ours
            ]
        here = [(cores >> socket * per_socket & mask).bit_count() * of_core for socket in ours]
        picked = 0 if far else _near_devices(want, needs, tasks, near, here)
        left = want.count - picked.bit_count()
        last = 0
        for devices in near if far else ():
            last |= devices
        others = [group.devices & ~used & ~picked for group in groups]
        for devices in [*(each & ~last for each in others), last]:
            more = nodeset.lowest(devices, min(left, devices.bit_count()))
            picked |= more
            left -= more.bit_count()
        for group in groups:
            devices = picked & group.devices
            counted = 0
            if not group.has_files:
                given = sum(count for (name, _), (count, _) in found.items() if name == group.name)
                counted = _counted(group, left, table, index, given)
                left -= counted
            if devices or counted or not want.type or group.type == want.type:
                key = (group.name, group.type)
                count, before = found.get(key, (0, 0))
                found[key] = (
                    count + devices.bit_count() + (counted if group.is_consumed else 0),
                    before | devices,
                )
        taken[want.name] = taken.get(want.name, 0) | picked
    order = {name: place for place, name in enumerate(table.names)}
    held = (Held(name, kind, count, devices) for (name, kind), (count, devices) in found.items())
    return tuple(sorted(held, key=lambda each: order.get(each.name, len(order))))


def _near_devices(
    want: GresCount, needs: GresNeeds, tasks: int, near: Sequence[int], cpus: Sequence[int]
) -> int:
    """Which of the free devices near the job's sockets it gets; of each socket the devices (bit
    masks) and how many CPUs it has there.

    What it wants of a node is taken from all sockets, one from each, before more of the first; what
    its tasks want from the sockets on which they are if each CPU has one; what is meant for the
    whole job from the first sockets.
    """
    each = max(
        (each.count for each in needs.per_task if (each.name, each.type) == (want.name, want.type)),
        default=0,
    )
    most = [want.count] * len(near)
    if any((each.name, each.type) == (want.name, want.type) for each in needs.per_node):
        rounds = [[1] * len(near), most]
    elif each:
        rounds = [[]]
        for count in cpus:
            rounds[0].append(min(count, tasks) * each)
            tasks -= min(count, tasks)
    else:
        rounds = [most]
    picked = 0
    for limits in rounds:
        for devices, limit in zip(near, limits, strict=True):
            rest = devices & ~picked
            picked |= nodeset.lowest(
                rest, min(limit, rest.bit_count(), want.count - picked.bit_count())
            )
    return picked


def _gpu_with_room(groups: Sequence[DeviceGroup], table: GresTable, index: int, parts: int) -> int:
    """The first GPU of the node (a bit mask) of which so many parts are free: all of a job's are of
    one.
    """
    return next(
        1 << gpu
        for group in groups
        for gpu, room in enumerate(table.room(group, index))
        if room >= parts
    )


def _counted(group: DeviceGroup, wanted: int, table: GresTable, index: int, given: int) -> int:
    """How many of the group the job gets that gets `given` of the name already."""
    if not group.is_consumed:
        return wanted
    of_type = int(table.free[keys_of(group.name, group.type)[-1]][index])
    return min(wanted, of_type, int(table.free[group.name][index]) - given)


def all_of(layout: Layout, table: GresTable) -> tuple[Held, ...]:
    """Everything that a node has, for a job that has it alone: GPUs whole, not in parts."""
    found: dict[tuple[str, str], Held] = {}
    for group in (group for group in layout if not group.parts):
        before = found.get((group.name, group.type), Held(group.name, group.type, 0, 0))
        count = before.amount + (group.count if group.is_consumed else 0)
        found[group.name, group.type] = Held(
            group.name, group.type, count, before.devices | group.devices
        )
    order = {name: place for place, name in enumerate(table.names)}
    return tuple(sorted(found.values(), key=lambda each: order.get(each.name, len(order))))


def shares_of(
    wants: Sequence[GresCount],
    nodes: Sequence[int],
    have: Mapping[str, Mapping[int, int]],
    near: Mapping[str, Mapping[int, int]],
    far: Mapping[str, Mapping[int, int]],
) -> list[tuple[tuple[GresCount, ...], bool]]:
    """What each of the nodes gives of that which is meant for the whole job, and whether that is
    far from its cores: each as much as it has near them, but for one for each node that comes
    later; if that leaves it nothing, one that is far. Then, node after node, what is still missing.
    """
    given: list[list[GresCount]] = [[] for _ in nodes]
    are_far = [False] * len(nodes)
    for want in wants:
        left = want.count
        free, close = have[_key(want)], near[_key(want)]
        counts = []
        for place, index in enumerate(nodes):
            count = min(close[index], left - (len(nodes) - place - 1))
            if count <= 0:
                count = min(far[_key(want)][index], 1)
                are_far[place] |= count > 0
            counts.append(count)
            left -= count
        for place, index in enumerate(nodes):
            more = max(min(left, free[index] - counts[place]), 0)
            counts[place] += more
            left -= more
            given[place].append(GresCount(want.name, want.type, counts[place], want.is_consumed))
    return [
        (tuple(each for each in here if each.count), is_far)
        for here, is_far in zip(given, are_far, strict=True)
    ]
