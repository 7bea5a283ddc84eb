"""Job steps' records, and the layout of a step: which of the job's nodes, which tasks and CPUs on
each.

Place: tables, pure. Follows: srun(1) on --nodes, --ntasks, --relative,
--distribution, --exact, --overlap, --exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.controller.tables.gres import Held as GresHeld
from understudy.controller.tables.transitions import tell
from understudy.model.distribution import PACKINGS
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.controller.later import Later
    from understudy.protocol.messages import StepSpec

UNSPECIFIED: Final = -1


class Place(NamedTuple):
    """What a step has on one node. `node`: index in the node table."""

    node: int
    tasks: list[int]
    cpus: int
    memory_mb: int
    gres: tuple[GresHeld, ...] = ()


@dataclass(slots=True, eq=False)
class Step:
    """One step of a job. Times as in `Job`."""

    step_id: int
    name: str
    places: list[Place]
    node_list: str
    start_time: int
    distribution: str = ""
    overlap: bool = False
    time_limit_s: int | None = None
    host: str = ""
    pid: int = 0
    submit_line: str = ""
    state: JobState = JobState.RUNNING  # moved by `step_states.py` alone
    end_time: int | None = None
    open_nodes: int = 0  # bitmap of nodes on which it has not ended
    exit_code: int = 0
    exit_signal: int = 0
    killed_by: int | None = None
    usage: dict[str, int] = field(default_factory=dict)
    takes_memory: bool = False  # it asked for memory, which no other step has meanwhile
    asked: dict[str, str] = field(default_factory=dict)  # what is shown of --gres and its kin
    token: str = ""  # of the request that made it
    awaited: list[Later] = field(default_factory=list)  # who waits for its end
    log: list[tuple[float, str]] = field(default_factory=list)  # its events, for `story`

    @property
    def story(self) -> str:
        """The step's events, for error messages."""
        return tell(
            "step", f"{self.step_id} on {self.node_list}", self.state, JobFlag.NONE, self.log
        )

    @property
    def is_running(self) -> bool:
        return self.end_time is None

    @property
    def tasks(self) -> int:
        return sum(len(place.tasks) for place in self.places)

    @property
    def cpus(self) -> int:
        return sum(place.cpus for place in self.places)

    @property
    def memory_mb(self) -> int:
        return sum(place.memory_mb for place in self.places)

    def pack(self) -> list[Any]:
        """For the saved state."""
        places = [[*place[:4], _pack_gres(place.gres)] for place in self.places]
        return [
            *(
                self.step_id,
                self.name,
                places,
                self.node_list,
                self.start_time,
                self.distribution,
                self.overlap,
                self.time_limit_s,
                self.host,
                self.pid,
            ),
            *(
                self.submit_line,
                int(self.state),
                self.end_time,
                self.open_nodes.to_bytes((self.open_nodes.bit_length() + 7) >> 3, "little"),
            ),
            *(
                self.exit_code,
                self.exit_signal,
                self.killed_by,
                self.usage,
                self.takes_memory,
                self.asked,
                self.token,
            ),
        ]

    @classmethod
    def unpack(cls, packed: list[Any]) -> Step:
        """The reverse of `pack`."""
        fields = list(packed)
        fields[2] = [
            Place(
                place[0],
                place[1],
                place[2],
                place[3],
                _unpack_gres(place[4]) if len(place) > 4 else (),
            )
            for place in packed[2]
        ]
        fields[11] = JobState(packed[11])
        fields[13] = int.from_bytes(packed[13], "little")
        return cls(*fields)


def _pack_gres(gres: tuple[GresHeld, ...]) -> list[list[Any]]:
    return [
        [*each[:3], each.devices.to_bytes((each.devices.bit_length() + 7) >> 3, "little")]
        for each in gres
    ]


def _unpack_gres(packed: list[list[Any]]) -> tuple[GresHeld, ...]:
    return tuple(
        GresHeld(name, kind, amount, int.from_bytes(devices, "little"))
        for name, kind, amount, devices in packed
    )


class Held(NamedTuple):
    """What the job has on a node, and what of it its steps use."""

    node: int
    cpus: int
    memory_mb: int
    used_cpus: int = 0
    used_memory_mb: int = 0
    memory_per_cpu_mb: int | None = None  # where it was given by CPU
    has_busy_gres: bool = False  # other steps have the generic resources that the step wants here


def lay_out(
    spec: StepSpec, held: Sequence[Held], required: Sequence[int], excluded: int
) -> list[Place]:
    """Nodes, tasks and CPUs for a step out of what the job has, in the job's order of nodes.

    `required`: node indices of --nodelist, in its order; with the distribution "arbitrary" one for
    each task. `excluded`: a bitmap.

    Raises:
        SlurmError: it can never be had; with NODES_BUSY: not as long as other steps run.
    """
    of_node = {each.node: each for each in held}
    if any(node not in of_node for node in required):
        raise SlurmError(ErrorCode.NOT_AVAILABLE)
    if spec.distribution.startswith("arbitrary") and required:
        return _arbitrary(spec, of_node, required)
    if spec.relative is not None:
        held = held[spec.relative :]
    held = [each for each in held if not excluded >> each.node & 1]
    wanted = dict.fromkeys(required)
    cpus_per_task = spec.cpus_per_task or 1
    tasks, least, most = _counts(spec, len(held), len(wanted))
    if least > len(held):
        raise SlurmError(
            ErrorCode.TOO_MANY_CPUS
            if spec.relative is None or held
            else ErrorCode.INVALID_NODE_COUNT
        )
    if (
        not spec.overcommit
        and not spec.overlap
        and tasks * cpus_per_task > sum(each.cpus for each in held)
    ):
        raise SlurmError(ErrorCode.TOO_MANY_CPUS)
    fits = _could_hold(spec, held, cpus_per_task)
    if least > len(fits):
        raise SlurmError(ErrorCode.TOO_MANY_CPUS)
    free = fits if spec.overlap else [each for each in fits if _is_free(each, spec, cpus_per_task)]
    chosen = _choose(
        free,
        list(wanted),
        least,
        most,
        tasks,
        cpus_per_task,
        overcommit=spec.overcommit or spec.overlap,
        spec=spec,
    )
    if chosen is None:
        if (
            _choose(
                fits,
                list(wanted),
                least,
                most,
                tasks,
                cpus_per_task,
                overcommit=spec.overcommit,
                spec=spec,
                idle=True,
            )
            is None
        ):
            raise SlurmError(ErrorCode.TOO_MANY_CPUS)
        raise SlurmError(ErrorCode.NODES_BUSY)
    capacity = [max(_room(each, spec) // cpus_per_task, 1) for each in chosen]
    if spec.ntasks_per_node:
        capacity = [min(room, spec.ntasks_per_node) for room in capacity]
    return _places(spec, chosen, deal(tasks, capacity, distribution_of(spec, tasks, len(chosen))))


def _counts(spec: StepSpec, nodes: int, wanted: int) -> tuple[int, int, int]:
    """(tasks, least nodes, most nodes)."""
    numbers = (
        *(spec.min_nodes, spec.max_nodes, spec.relative, spec.cpus_per_task),
        *(spec.ntasks_per_node, spec.mem_per_node_mb, spec.mem_per_cpu_mb),
    )
    has_negative = any(each is not None and each < 0 for each in numbers)
    if has_negative or (spec.num_tasks is not None and spec.num_tasks < 1):
        raise SlurmError(ErrorCode.INVALID_TASK_COUNT)
    least = (
        spec.min_nodes
        if spec.min_nodes is not None
        else wanted or (nodes if spec.num_tasks is None else 1)
    )
    least = max(least, wanted, 1)
    most = max(
        spec.max_nodes
        or (least if spec.min_nodes is not None or spec.num_tasks is None else nodes),
        least,
    )
    tasks = spec.num_tasks or (spec.ntasks_per_node or 1) * least
    if spec.ntasks_per_node:
        least = max(least, -(-tasks // spec.ntasks_per_node))
        most = max(least, most)
    least = min(least, tasks)
    return tasks, least, min(most, max(tasks, least))


def _is_exact(spec: StepSpec) -> bool:
    return spec.exact or spec.cpus_per_task is not None


def _could_hold(spec: StepSpec, held: Sequence[Held], cpus_per_task: int) -> list[Held]:
    """The nodes that have what one task needs, if no other step were there."""
    memory = [
        each
        for each in held
        if _memory(spec, each, cpus_per_task) <= each.memory_mb or not each.memory_mb
    ]
    if not memory and held:
        raise SlurmError(ErrorCode.NO_MEMORY)
    return [
        each for each in memory if each.cpus >= cpus_per_task or spec.overcommit or spec.overlap
    ]


def _memory(spec: StepSpec, held: Held, cpus: int) -> int:
    """What was asked for; else by CPU as the job has it, or all that the job has there."""
    if spec.mem_per_node_mb:
        return spec.mem_per_node_mb
    if spec.mem_per_cpu_mb:
        return spec.mem_per_cpu_mb * cpus
    if takes_memory(spec) or held.memory_per_cpu_mb is None:  # 0: all
        return held.memory_mb
    return min(held.memory_per_cpu_mb * cpus, held.memory_mb)


def takes_memory(spec: StepSpec) -> bool:
    """Whether the step asks for memory: who does not has what there is, besides others."""
    return spec.mem_per_node_mb is not None or spec.mem_per_cpu_mb is not None


def _is_free(held: Held, spec: StepSpec, cpus_per_task: int) -> bool:
    if held.has_busy_gres:
        return False
    if (
        held.memory_mb
        and takes_memory(spec)
        and held.used_memory_mb + _memory(spec, held, cpus_per_task) > held.memory_mb
    ):
        return False
    return (
        held.used_cpus == 0 if not _is_exact(spec) else held.cpus - held.used_cpus >= cpus_per_task
    )


def _room(held: Held, spec: StepSpec, *, idle: bool = False) -> int:
    return held.cpus if spec.overlap or idle else held.cpus - held.used_cpus


def _choose(
    free: Sequence[Held],
    wanted: list[int],
    least: int,
    most: int,
    tasks: int,
    cpus_per_task: int,
    *,
    overcommit: bool,
    spec: StepSpec,
    idle: bool = False,
) -> list[Held] | None:
    """Nodes for the step, the required ones among them; None if they do not suffice."""
    of_node = {each.node: each for each in free}
    if any(node not in of_node for node in wanted) or len(free) < least:
        return None
    cap = spec.ntasks_per_node or tasks

    def room(each: Held) -> int:
        return min(_room(each, spec, idle=idle) // cpus_per_task, cap)

    chosen = [of_node[node] for node in wanted]
    others = [each for each in free if each.node not in set(wanted)]
    while others and (
        len(chosen) < least
        or (not overcommit and len(chosen) < most and sum(map(room, chosen)) < tasks)
    ):
        chosen.append(others.pop(0))
    if not overcommit and sum(map(room, chosen)) < tasks:
        roomy = sorted(
            (each for each in free if each.node not in set(wanted)), key=lambda each: -room(each)
        )
        chosen = [of_node[node] for node in wanted] + roomy[: most - len(wanted)]
        if sum(map(room, chosen)) < tasks:
            return None
    order = {each.node: at for at, each in enumerate(free)}
    return sorted(chosen, key=lambda each: order[each.node])


def distribution_of(spec: StepSpec, tasks: int, nodes: int) -> str:
    """As asked for, else over nodes alone: block, or cyclic where no node has more than one
    task.
    """
    if spec.distribution and spec.distribution not in PACKINGS:
        return spec.distribution
    return "cyclic" if tasks <= nodes else "block"


_MOST_TASKS: Final = 65_533  # slurm.conf(5): the largest MaxTasksPerNode


def deal(tasks: int, capacity: Sequence[int], distribution: str) -> list[list[int]]:
    """The numbers of each node's tasks. Each node gets one at least; what is beyond all capacity is
    spread evenly.
    """
    nodes = len(capacity)
    if tasks > _MOST_TASKS * nodes:
        raise SlurmError(ErrorCode.INVALID_TASK_COUNT)
    kind, _, size = distribution.partition(",")[0].partition(":")[0].partition("=")
    if kind == "plane" and (not size.isdigit() or not int(size)):
        raise SlurmError(ErrorCode.INVALID_DISTRIBUTION)
    if kind == "block":
        counts = [1] * nodes
        left = tasks - nodes
        for at, room in enumerate(capacity):
            more = max(min(room - 1, left), 0)
            counts[at] += more
            left -= more
        for at in range(max(left, 0)):
            counts[at % nodes] += 1
        dealt, first = [], 0
        for count in counts:
            dealt.append(list(range(first, first + count)))
            first += count
        return dealt
    chunk = int(size) if kind == "plane" else 1
    dealt = [[] for _ in range(nodes)]
    number = 0
    while number < tasks:
        rooms = [at for at in range(nodes) if len(dealt[at]) < capacity[at]] or list(range(nodes))
        is_full = len(dealt[rooms[0]]) >= capacity[rooms[0]]
        for at in rooms:
            for _ in range(chunk if is_full else min(chunk, capacity[at] - len(dealt[at]))):
                if number < tasks:
                    dealt[at].append(number)
                    number += 1
    return dealt


def _places(spec: StepSpec, chosen: Sequence[Held], dealt: Sequence[list[int]]) -> list[Place]:
    places = []
    for each, tasks in zip(chosen, dealt, strict=True):
        cpus = (
            min(len(tasks) * (spec.cpus_per_task or 1), each.cpus) if _is_exact(spec) else each.cpus
        )
        places.append(Place(each.node, tasks, cpus, _memory(spec, each, cpus)))
    return places


def _arbitrary(spec: StepSpec, of_node: Mapping[int, Held], required: Sequence[int]) -> list[Place]:
    """One task for each entry of the list of nodes, in its order; the nodes themselves in the
    job's.
    """
    tasks = spec.num_tasks or len(required)
    if tasks > len(required):
        raise SlurmError(UNSPECIFIED)
    dealt: dict[int, list[int]] = {}
    for number, node in enumerate(required[:tasks]):
        dealt.setdefault(node, []).append(number)
    chosen = [each for each in of_node.values() if each.node in dealt]
    return _places(spec, chosen, [dealt[each.node] for each in chosen])
