"""Generic resources in the choice of nodes: which nodes have enough, which cores go with them, which devices a job gets.

Place: scheduling, pure. Used by selectors for jobs that ask for generic resources; others never come here. Follows sbatch(1) --gres, --gpus and
their kin, gres.conf(5) Cores.

On a node that gives a job generic resources no more cores are offered than its tasks there can use; cores are withdrawn one by one from the
socket that has most left, the first of several, highest core first. Where devices are near some cores, first only sockets near enough devices are
offered, those with most free cores first; all others in a second attempt, unless the job insists.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.controller.gres import Held, keys_of
from understudy.model import nodeset
from understudy.model.gres import GPU, GresCount, read_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from understudy.controller.gres import DeviceGroup, GresTable, Layout
    from understudy.controller.job import Job
    from understudy.controller.nodes import Node, NodeTable
    from understudy.controller.scheduling.best_fit import Demand
    from understudy.controller.scheduling.free import Free
    from understudy.controller.scheduling.request import Request
    from understudy.controller.scheduling.selection import Choice


@dataclass(frozen=True, slots=True)
class GresNeeds:
    """What a job asks for. Names and types; counts by node, by task and for the whole job."""

    per_node: tuple[GresCount, ...] = ()
    per_task: tuple[GresCount, ...] = ()
    per_job: tuple[GresCount, ...] = ()
    cpus_per_gpu: int = 0
    memory_per_gpu_mb: int = 0
    binds: bool = False  # --gres-flags=enforce-binding: only cores near the devices
    ignores_cores: bool = False  # --gres-flags=disable-binding
    per_socket: tuple[GresCount, ...] = ()  # what of `per_node` was asked for by socket

    @classmethod
    def of(cls, job: Job) -> GresNeeds | None:
        """The job's needs; None if it asks for nothing. Its texts have been checked when it was submitted."""
        spec = job.spec
        if not (spec.gres or spec.tres_per_job or spec.tres_per_task or spec.tres_per_socket):
            return None
        per_node = read_request(spec.gres)
        sockets = int(spec.extra.get("sockets_per_node", "1"))
        per_socket = tuple(GresCount(want.name, want.type, want.count * sockets) for want in read_request(spec.tres_per_socket))
        per_node += per_socket
        needs = cls(
            per_node,
            read_request(spec.tres_per_task),
            read_request(spec.tres_per_job),
            _first_count(spec.cpus_per_tres),
            _first_count(spec.mem_per_tres),
            binds="enforce-binding" in spec.gres_flags,
            ignores_cores="disable-binding" in spec.gres_flags,
            per_socket=per_socket,
        )
        return needs if needs.wants else None

    @property
    def wants(self) -> tuple[GresCount, ...]:
        return self.per_node + self.per_task + self.per_job

    def most_on_node(self, want: GresCount) -> int:
        """How much of what the whole job wants one node gives at most: what each was asked for, if that was said."""
        return max((each.count for each in self.per_node if (each.name, each.type) == (want.name, want.type)), default=want.count)

    def on_node(self, tasks: int) -> tuple[GresCount, ...]:
        """What a node with so many tasks must give, apart from its part of what is meant for the whole job."""
        return self.per_node + tuple(GresCount(want.name, want.type, want.count * tasks) for want in self.per_task)


def untyped_names(job: Job) -> frozenset[str]:
    """The names that the job asks for without a type."""
    needs = GresNeeds.of(job)
    return frozenset() if needs is None else frozenset(want.name for want in needs.wants if not want.type)


def _first_count(text: str) -> int:
    counts = read_request(text)
    return counts[0].count if counts else 0


def attempts(needs: GresNeeds, table: NodeTable, free: Free) -> tuple[bool, ...]:
    """Whether to offer only cores near the devices, in the order of the attempts. Which cores are free is known only of the present."""
    if table.gres is None or not table.gres.has_cores or free is not table or needs.ignores_cores:
        return (False,)
    return (True,) if needs.binds else (True, False)


def cpus_needed(request: Request) -> int:
    """The CPUs that the job needs in all."""
    needs = request.gres
    if needs is None or not needs.cpus_per_gpu:
        return request.cpus
    gpus = max(gpus_wanted(needs.per_node) * request.min_nodes, gpus_wanted(needs.per_task) * request.tasks, gpus_wanted(needs.per_job))
    return max(request.cpus, gpus * needs.cpus_per_gpu)


def with_gres(
    request: Request,
    at: NDArray[np.intp],
    cpus: NDArray[np.int64],
    unit: Any,
    table: NodeTable,
    free: Free,
    *,
    near: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The CPUs that nodes have for the job if they have generic resources for it, else 0; and how many tasks they have generic resources for.

    `unit`: usable CPUs of a core. `near`: only of cores near the devices.
    """
    needs = request.gres
    assert needs is not None
    most = most_tasks(needs, free, at)
    each = request.cpus_per_task
    cpus = np.minimum(cpus, most * each)
    gpus = gpus_wanted(needs.per_node)
    if needs.cpus_per_gpu:
        cpus = cpus * (cpus >= max(gpus, gpus_wanted(needs.wants) > 0) * needs.cpus_per_gpu)  # no node without a GPU and its CPUs
    if needs.memory_per_gpu_mb:
        cpus = cpus * (free.free_memory[at] >= max(gpus, 1) * needs.memory_per_gpu_mb)
    if near:
        cpus = _near_cpus(request, at, cpus, unit, table)
    if request.tasks_are_known:
        tasks = request.tasks_per_node or -(-request.tasks // request.min_nodes)
        gpus = max(gpus, gpus_wanted(needs.per_task) * tasks, -(-gpus_wanted(needs.per_job) // request.min_nodes))
        wanted = max(tasks * each, gpus * needs.cpus_per_gpu)
        cpus = np.minimum(cpus, wanted)
    return cpus, most


def preferred(request: Request, at: NDArray[np.intp], weight: NDArray[np.int64], free: Free) -> NDArray[np.int64]:
    """Weights of nodes for a job that may get different numbers of devices on them: of equal nodes those with more of what it wants come first."""
    needs = request.gres
    assert needs is not None
    wants = tuple(GresCount(want.name, want.type, needs.most_on_node(want)) for want in needs.per_job)
    wants += tuple(GresCount(want.name, want.type, want.count * request.tasks) for want in needs.per_task)
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


def _near_cpus(request: Request, at: NDArray[np.intp], cpus: NDArray[np.int64], unit: Any, table: NodeTable) -> NDArray[np.int64]:
    needs, gres = request.gres, table.gres
    assert needs is not None
    assert gres is not None
    found = cpus.copy()
    used = table.used_cores_of(at)
    units = unit if isinstance(unit, np.ndarray) else np.full(len(at), int(unit))
    for place, index in enumerate(at.tolist()):
        layout = gres.layouts[index]
        if not cpus[place] or not any(group.cores for group in layout):
            continue
        node = table.nodes[index]
        free_cores = (1 << node.sockets * node.cores_per_socket) - 1 & ~used[place]
        wants = needs.on_node(_tasks_possible(request, gres, index)) + tuple(_at_most_free(want, gres, index) for want in needs.per_job)
        keep = _cores_kept(request, wants, int(units[place]))
        cores = near_cores(wants, layout, gres, index, free_cores, node.sockets, node.cores_per_socket, keep)
        found[place] = min(int(cpus[place]), cores.bit_count() * int(units[place]) // request.cpus_per_task * request.cpus_per_task)
    return found


def _at_most_free(want: GresCount, gres: GresTable, index: int) -> GresCount:
    free = gres.free.get(_key(want))
    return GresCount(want.name, want.type, 0 if free is None else min(want.count, int(free[index])))


def _tasks_possible(request: Request, gres: GresTable, index: int) -> int:
    """How many of the job's tasks a node could have devices for now: sockets are chosen for so many."""
    needs = request.gres
    assert needs is not None
    most = request.tasks
    for want in needs.per_task:
        free = gres.free.get(_key(want))
        most = min(most, 0 if free is None else int(free[index]) // want.count)
    return most


def _cores_kept(request: Request, wants: Sequence[GresCount], unit: int) -> int:
    """Cores that a node must offer: what its tasks need if their number is known."""
    needs = request.gres
    assert needs is not None
    tasks = 0
    if request.tasks_are_known:
        tasks = request.tasks_per_node or -(-request.tasks // request.min_nodes)
    return -(-max(tasks * request.cpus_per_task, gpus_wanted(wants) * needs.cpus_per_gpu) // unit)


def choose_for_job(
    needs: GresNeeds,
    at: NDArray[np.intp],
    cpus: NDArray[np.int64],
    weight: NDArray[np.int64] | None,
    required: NDArray[np.bool_] | None,
    demand: Demand,
    free: Free,
) -> NDArray[np.intp] | None:
    """Positions of nodes that together have what is meant for the whole job: best fit on runs, as in `best_fit`, with devices as a third demand."""
    have: list[list[int]] = []
    for want in needs.per_job:
        vector = free.free_gres(_key(want))
        if vector is None:
            return None
        devices = np.minimum(vector[at], needs.most_on_node(want))
        if needs.cpus_per_gpu and want.name == GPU:
            devices = np.minimum(devices, cpus // needs.cpus_per_gpu)
        if needs.memory_per_gpu_mb and want.name == GPU:
            devices = np.minimum(devices, free.free_memory[at] // needs.memory_per_gpu_mb)
        have.append(devices.tolist())
    seek = _Seek(demand.cpus, demand.wanted_nodes, demand.max_nodes, [want.count for want in needs.per_job], cpus.tolist(), have, demand.reserve)
    indices = at.tolist()
    weights = weight.tolist() if weight is not None else [0] * len(indices)
    runs: list[list[int]] = []
    for place, index in enumerate(indices):
        if runs and indices[runs[-1][-1]] == index - 1 and weights[runs[-1][-1]] == weights[place]:
            runs[-1].append(place)
        else:
            runs.append([place])
    if required is not None:
        for place in np.flatnonzero(required).tolist():
            seek.take(place)
    while not seek.is_done and seek.nodes_left > 0 and runs:
        lightest = min(weights[run[0]] for run in runs)
        open_runs = [run for run in runs if weights[run[0]] == lightest]
        enough = [run for run in open_runs if seek.suffices(run)]
        run = min(enough, key=seek.cpus_in) if enough else max(open_runs, key=seek.cpus_in)
        runs.remove(run)
        left = [place for place in run if place not in seek.taken]
        if seek.need_nodes <= 1:
            alone = [place for place in left if seek.suffices([place])]
            if alone:
                seek.take(min(alone, key=lambda place: seek.cpus[place]))
                break
        for place in left:
            if seek.is_done or seek.nodes_left <= 0:
                break
            seek.take(place)
    found = seek.taken
    if len(found) < demand.min_nodes or len(found) > demand.max_nodes or not seek.holds(demand.cpus, needs):
        return None
    return np.array(found, dtype=np.intp)


@dataclass(slots=True, eq=False)
class _Seek:
    """What is still to be found for `choose_for_job`."""

    need_cpus: int
    need_nodes: int
    nodes_left: int
    need: list[int]
    cpus: list[int]
    have: list[list[int]]
    reserve: int
    taken: list[int] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self.need_cpus <= 0 and self.need_nodes <= 0 and all(count <= 0 for count in self.need)

    def cpus_in(self, run: list[int]) -> int:
        return sum(self.cpus[place] for place in run if place not in self.taken)

    def suffices(self, run: list[int]) -> bool:
        left = [place for place in run if place not in self.taken]
        return (
            len(left) >= self.need_nodes
            and sum(self.cpus[place] for place in left) >= self.need_cpus
            and all(sum(each[place] for place in left) >= count for each, count in zip(self.have, self.need, strict=True))
        )

    def take(self, place: int) -> None:
        self.taken.append(place)
        self.need_nodes -= 1
        self.nodes_left -= 1
        self.need_cpus -= max(min(self.cpus[place], self.need_cpus - self.reserve * max(self.need_nodes, 0)), 0)
        self.need = [count - each[place] for count, each in zip(self.need, self.have, strict=True)]

    def holds(self, cpus: int, needs: GresNeeds) -> bool:
        enough = all(sum(each[place] for place in self.taken) >= want.count for each, want in zip(self.have, needs.per_job, strict=True))
        return enough and sum(self.cpus[place] for place in self.taken) >= cpus


def wanted_on(request: Request, choice: Choice, table: NodeTable, gres: GresTable) -> Iterator[tuple[int, int, tuple[GresCount, ...]]]:
    """(node, tasks, what it gives) for each node of the choice, in index order."""
    tasks_on = sorted((index, tasks) for nodes, tasks in choice for index in nodeset.indices(nodes))
    needs = request.gres
    if needs is None:
        for index, tasks in tasks_on:
            yield index, tasks, ()
        return
    shared: list[tuple[GresCount, ...]] = [()] * len(tasks_on)
    if needs.per_job:
        nodes = [index for index, _ in tasks_on]
        shared = _shares(needs, nodes, tasks_on, request, table, gres)
    for (index, tasks), part in zip(tasks_on, shared, strict=True):
        yield index, tasks, merged(needs.on_node(tasks) + part)


def merged(wants: Sequence[GresCount]) -> tuple[GresCount, ...]:
    """Each name and type once, with the largest count: --gres, --gpus-per-task and --gpus of one job mean the same devices."""
    most: dict[tuple[str, str], int] = {}
    for want in wants:
        key = (want.name, want.type)
        most[key] = max(most.get(key, 0), want.count)
    return tuple(GresCount(name, kind, count) for (name, kind), count in most.items())


def _shares(
    needs: GresNeeds, nodes: list[int], tasks_on: list[tuple[int, int]], request: Request, table: NodeTable, gres: GresTable
) -> list[tuple[GresCount, ...]]:
    have: dict[str, dict[int, int]] = {}
    close: dict[str, dict[int, int]] = {}
    for want in needs.per_job:
        counts = {index: min(int(gres.free[_key(want)][index]), needs.most_on_node(want)) for index in nodes}
        if needs.cpus_per_gpu and want.name == GPU:
            free_cpus = table.free_cpus
            counts = {index: min(count, int(free_cpus[index]) // needs.cpus_per_gpu) for index, count in counts.items()}
        if needs.memory_per_gpu_mb and want.name == GPU:
            free_memory = table.free_memory
            counts = {index: min(count, int(free_memory[index]) // needs.memory_per_gpu_mb) for index, count in counts.items()}
        close[_key(want)] = counts
        if gres.has_cores and not needs.ignores_cores:
            close[_key(want)] = {index: min(counts[index], _near_count(want, index, tasks, request, table, gres)) for index, tasks in tasks_on}
        have[_key(want)] = counts
    return shares_of(needs.per_job, nodes, have, close)


def _near_count(want: GresCount, index: int, tasks: int, request: Request, table: NodeTable, gres: GresTable) -> int:
    """The free devices near the cores that so many tasks would get on the node."""
    node, layout = table.nodes[index], gres.layouts[index]
    free_cores = (1 << node.sockets * node.cores_per_socket) - 1 & ~table.used_cores_of(np.array([index]))[0]
    one = (GresCount(want.name, want.type, 1),)
    cores = near_cores(one, layout, gres, index, free_cores, node.sockets, node.cores_per_socket, 1)
    if cores.bit_count() * node.cpus_of_core < tasks * request.cpus_per_task:
        cores = free_cores
    used = gres.used_devices[want.name][index]
    groups = [group for group in layout if group.name == want.name and want.type in ("", group.type)]
    if not all(group.has_files for group in groups):
        return want.count
    return sum((group.devices & ~used).bit_count() for group in groups if not group.cores or group.cores & cores)


def part_on(request: Request, wants: Sequence[GresCount], *, consumes_memory: bool) -> Request:
    """The request as a node sees it that gives these: CPUs and memory follow the GPUs where the job says so."""
    needs = request.gres
    assert needs is not None
    gpus = gpus_wanted(wants)
    changes: dict[str, Any] = {}
    if needs.cpus_per_gpu:
        changes["memory_cpus"] = max(request.memory_cpus, gpus * needs.cpus_per_gpu)
    if needs.memory_per_gpu_mb and consumes_memory:
        changes |= {"memory_per_node_mb": gpus * needs.memory_per_gpu_mb, "memory_per_cpu_mb": None}
    return replace(request, **changes) if changes else request


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
    """The free cores that the job is offered on a node that gives these. `taken`: how many of them it will take."""
    needs = request.gres
    assert needs is not None
    sockets, per_socket = node.sockets, node.cores_per_socket
    layout = gres.layouts[node.index]
    if not needs.ignores_cores and any(group.cores for group in layout):
        possible = merged([*wants, *needs.on_node(_tasks_possible(request, gres, node.index))]) if needs.per_task else wants
        near = near_cores(possible, layout, gres, node.index, cores, sockets, per_socket, _cores_kept(request, wants, usable))
        if near.bit_count() >= taken:
            cores = near
    each = request.cpus_per_task
    most = cores.bit_count() * usable // each
    if request.tasks_are_known:
        most = request.tasks_per_node or tasks
    for want in needs.per_task:
        free = gres.free.get(_key(want))
        most = min(most, int(free[node.index]) // want.count) if free is not None else 0
    keep = max(-(-most * each // usable) if request.tasks_are_known or needs.per_task else most * each // usable, taken)
    return trimmed(cores, keep, sockets, per_socket)


def most_tasks(needs: GresNeeds, free: Free, at: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many tasks each node (index) has generic resources for: 0 if it has too few, many if their number does not matter."""
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


def nodes_having(needs: GresNeeds, nodes: int, free: Free) -> int:
    """Those of the nodes (a bitmap) that have what the job asks for of each node."""
    at = nodeset.positions_array(nodes)
    return nodeset.from_array(at[most_tasks(needs, free, at) > 0])


def _key(want: GresCount) -> str:
    return keys_of(want.name, want.type)[-1]


def gpus_wanted(wants: Sequence[GresCount]) -> int:
    """How many GPUs are among them."""
    return sum(want.count for want in wants if want.name == GPU)


def trimmed(cores: int, keep: int, sockets: int, per_socket: int, unit: int = 1) -> int:
    """So many of the free cores: withdrawn from the fullest socket until that many are left. `unit`: cores that are withdrawn together."""
    left = cores.bit_count()
    if left <= keep:
        return cores
    mask = (1 << per_socket) - 1
    on_socket = [cores >> socket * per_socket & mask for socket in range(sockets)]
    counts = [each.bit_count() for each in on_socket]
    while left > keep:
        fullest = max(counts)
        socket = counts.index(fullest)
        for _ in range(min(unit, fullest)):
            on_socket[socket] ^= 1 << on_socket[socket].bit_length() - 1
            counts[socket] -= 1
            left -= 1
    return sum(each << socket * per_socket for socket, each in enumerate(on_socket))


def near_cores(needs: Sequence[GresCount], layout: Layout, table: GresTable, index: int, cores: int, sockets: int, per_socket: int, keep: int) -> int:
    """Of the free cores those of the sockets near enough free devices, and of more sockets as long as they are fewer than `keep`.

    0 if the devices near free cores are too few.
    """
    mask = (1 << per_socket) - 1
    chosen = 0  # bit mask of sockets
    order = sorted(range(sockets), key=lambda socket: -(cores >> socket * per_socket & mask).bit_count())
    for want in needs:
        groups = [group for group in layout if group.name == want.name and want.type in ("", group.type)]
        if not any(group.cores for group in groups):
            continue
        used = table.used_devices[want.name][index]
        anywhere = sum((group.devices & ~used).bit_count() for group in groups if not group.cores)
        on_socket = [
            sum((group.devices & ~used).bit_count() for group in groups if group.cores >> socket * per_socket & mask) for socket in range(sockets)
        ]
        enough = [socket for socket in order if on_socket[socket] + anywhere >= want.count and cores >> socket * per_socket & mask]
        if chosen and any(chosen >> socket & 1 for socket in enough):
            continue
        if enough:
            chosen |= 1 << enough[0]
            continue
        missing = want.count - anywhere - sum(count for socket, count in enumerate(on_socket) if chosen >> socket & 1)
        for socket in sorted(order, key=lambda socket: -on_socket[socket]):
            if missing > 0 and not chosen >> socket & 1 and on_socket[socket] and cores >> socket * per_socket & mask:
                chosen |= 1 << socket
                missing -= on_socket[socket]
        if missing > 0:
            return 0
    if not chosen:
        return cores
    near = sum((cores >> socket * per_socket & mask) << socket * per_socket for socket in range(sockets) if chosen >> socket & 1)
    if near.bit_count() < keep:
        rest = cores & ~near
        near |= trimmed(rest, keep - near.bit_count(), sockets, per_socket)
        return near
    return near


def take_devices(
    wants: Sequence[GresCount], layout: Layout, table: GresTable, index: int, cores: int, sockets: int, per_socket: int
) -> tuple[Held, ...]:
    """What a job with these cores gets on the node: devices near its cores first, one from each of its sockets in turn, then the lowest numbers."""
    mask = (1 << per_socket) - 1
    ours = [socket for socket in range(sockets) if cores >> socket * per_socket & mask]
    found: dict[tuple[str, str], tuple[int, int]] = {}
    taken: dict[str, int] = {}
    for want in wants:
        groups = [group for group in layout if group.name == want.name and want.type in ("", group.type)]
        if groups and groups[0].parts:
            found[want.name, ""] = want.count, _gpu_with_room(groups, table, index, want.count)
            continue
        used = table.used_devices[want.name][index] | taken.get(want.name, 0)
        left = want.count
        picked = 0
        if any(group.cores for group in groups):
            near = [sum(group.devices for group in groups if not group.cores or group.cores >> socket * per_socket & mask) for socket in ours]
            while left and any(devices & ~used & ~picked for devices in near):
                for devices in near:
                    rest = devices & ~used & ~picked
                    if rest and left:
                        picked |= rest & -rest
                        left -= 1
        for group in groups:
            rest = group.devices & ~used & ~picked
            while rest and left:
                picked |= rest & -rest
                rest &= rest - 1
                left -= 1
        for group in groups:
            devices = picked & group.devices
            counted = 0
            if not group.has_files:
                counted = _counted(group, left, table, index)
                left -= counted
            if devices or counted or not want.type or group.type == want.type:
                key = (group.name, group.type)
                count, before = found.get(key, (0, 0))
                found[key] = (count + devices.bit_count() + (counted if group.is_consumed else 0), before | devices)
        taken[want.name] = taken.get(want.name, 0) | picked
    order = {name: place for place, name in enumerate(table.names)}
    held = (Held(name, kind, count, devices) for (name, kind), (count, devices) in found.items())
    return tuple(sorted(held, key=lambda each: order.get(each.name, len(order))))


def _gpu_with_room(groups: Sequence[DeviceGroup], table: GresTable, index: int, parts: int) -> int:
    """The first GPU of the node (a bit mask) of which so many parts are free: all of a job's are of one."""
    return next(1 << gpu for group in groups for gpu, room in enumerate(table.room(group, index)) if room >= parts)


def _counted(group: DeviceGroup, wanted: int, table: GresTable, index: int) -> int:
    if not group.is_consumed:
        return wanted
    return min(wanted, int(table.free[keys_of(group.name, group.type)[-1]][index]))


def all_of(layout: Layout, table: GresTable) -> tuple[Held, ...]:
    """Everything that a node has, for a job that has it alone: GPUs whole, not in parts."""
    found: dict[tuple[str, str], Held] = {}
    for group in (group for group in layout if not group.parts):
        before = found.get((group.name, group.type), Held(group.name, group.type, 0, 0))
        count = before.amount + (group.count if group.is_consumed else 0)
        found[group.name, group.type] = Held(group.name, group.type, count, before.devices | group.devices)
    order = {name: place for place, name in enumerate(table.names)}
    return tuple(sorted(found.values(), key=lambda each: order.get(each.name, len(order))))


def shares_of(
    wants: Sequence[GresCount], nodes: Sequence[int], have: Mapping[str, Mapping[int, int]], near: Mapping[str, Mapping[int, int]]
) -> list[tuple[GresCount, ...]]:
    """What each of the nodes gives of that which is meant for the whole job: each as much as it has near its cores, but for one for each that comes
    later; then, node after node, what is still missing.
    """
    given: list[list[GresCount]] = [[] for _ in nodes]
    for want in wants:
        left = want.count
        free, close = have[_key(want)], near[_key(want)]
        counts = []
        for place, index in enumerate(nodes):
            counts.append(min(max(min(close[index], left - (len(nodes) - place - 1)), 1), free[index]))  # none goes away empty-handed, as in Slurm
            left -= counts[-1]
        for place, index in enumerate(nodes):
            more = max(min(left, free[index] - counts[place]), 0)
            counts[place] += more
            left -= more
            given[place].append(GresCount(want.name, want.type, counts[place], want.is_consumed))
    return [tuple(each for each in wants_here if each.count) for wants_here in given]
