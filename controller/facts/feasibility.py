"""Whether a partition could ever hold a job, and on how many nodes, remembered: thousands of jobs
ask for the same. If not, what is wrong.

Place: facts. The memory is emptied when nodes or partitions change.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.request import Request, shape_key, wants_whole_nodes
from understudy.controller.tables.partition import MEMORY_LIMIT, limit_broken
from understudy.controller.tables.shape import cpus_for_memory, least_cpus
from understudy.model.bits import without

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeKind
    from understudy.controller.tables.partition import Partition

_MOST: Final = 10_000


def could_ever_run(core: Core, job: Job, partition: Partition) -> bool:
    """Whether the partition's configured nodes could hold the job if all were up and empty: those
    that it prefers, if it says so, whatever else would do (as 22.05.8 judges submissions).
    """
    return nodes_if_empty(core, job, partition) > 0


def _all_of(job: Job, partition: Partition) -> Ask:
    return Ask(job, partition, partition.nodes, prefers=bool(job.spec.prefer))


def nodes_if_empty(core: Core, job: Job, partition: Partition) -> int:
    """How many of the partition's configured nodes the job would get if all were up and empty, 0 if
    they could not hold it.
    """
    limits = core.tables.limits
    most_nodes = limits.most_nodes(job, partition) if limits.enforced else None
    question = (
        partition.name,
        most_nodes,
        *shape_key(job),
    )
    answer = core.feasible.get(question)
    if answer is None:
        if len(core.feasible) >= _MOST:
            core.feasible.clear()
        nodes = core.selector.nodes_if_empty(_all_of(job, partition), core.tables)
        answer = core.feasible[question] = 0 if nodes is None else nodes.bit_count()
    return answer


def has_too_few_nodes(core: Core, job: Job, partition: Partition) -> bool:
    """Whether the job asks for more nodes than the partition has, up or not."""
    question = (1, partition.name)
    count = core.feasible.get(question)
    if count is None:
        count = core.feasible[question] = partition.nodes.bit_count()
    return job.asked_nodes > count


def unavailable_nodes(core: Core, job: Job) -> str:
    """Which of the nodes that it could have are out of service, where it has too few others; "" if
    it has enough, or names several partitions.
    """
    if len(job.partitions) > 1:
        return ""
    all_up = core.tables.nodes.up_nodes
    partition = core.tables.partitions[job.partitions[0]]
    wanted = job.required_nodes or without(partition.nodes, job.excluded_nodes)
    missing = without(wanted, all_up)
    if not missing:
        return ""
    is_enough = not job.required_nodes and (wanted & all_up).bit_count() >= job.min_nodes
    return "" if is_enough else core.names.to_expression(missing)


def largest_node(core: Core, partitions: tuple[str, ...]) -> int:
    """The CPUs of the largest node of these partitions."""
    answer = core.feasible.get(partitions)
    if answer is None:
        nodes = reduce(
            or_,
            (
                where.nodes
                for name in partitions
                if (where := core.tables.partitions.get(name)) is not None
            ),
            0,
        )
        answer = core.feasible[partitions] = max(
            (kind.cpus for kind in core.tables.nodes.kinds if kind.nodes & nodes), default=0
        )
    return answer


def partition_limit(
    core: Core, job: Job, partition: Partition, *, for_backfill: bool = False
) -> str:
    """As `limit_broken`, and as a job that has whole nodes breaks MaxMemPerNode: by the memory of
    all of their CPUs.
    """
    reason = limit_broken(job, partition, for_backfill=for_backfill)
    most, _ = partition.memory_limits_mb
    if reason or most is None or job.memory_per_cpu_mb is None:
        return reason
    if not (core.selector.whole_nodes or wants_whole_nodes(job, partition)):
        return ""
    cpus = min(
        (kind.cpus for kind in core.tables.nodes.kinds if kind.nodes & partition.nodes), default=0
    )
    return MEMORY_LIMIT if cpus * job.memory_per_cpu_mb > most else ""


def times_for_memory(job: Job) -> int:
    """How many CPUs it has for each that it asks for, as MaxMemPerCPU is less than its memory."""
    asked, held = job.spec.mem_per_cpu_mb, job.memory_per_cpu_mb
    return 1 if not asked or not held else -(-asked // held)


def is_too_large(core: Core, job: Job, partition: Partition) -> bool:
    """Whether all of the partition has fewer CPUs than the job asks for, or allows fewer of them
    (MaxCPUsPerNode). CPUs that it gets for its memory alone (MaxMemPerCPU) do not count: who finds
    no place with them can never run.
    """
    asked = job.min_cpus // times_for_memory(job)
    if asked <= 1 and partition.nodes:
        return False
    question = (0, partition.name)
    answer = core.feasible.get(question)
    if answer is None:
        most = partition.max_cpus_per_node
        answer = core.feasible[question] = sum(
            (kind.all_cpus if most is None else most) * (kind.nodes & partition.nodes).bit_count()
            for kind in core.tables.nodes.kinds
        )
    return asked > answer


def complaint(core: Core, job: Job, partition: Partition) -> str:
    """What no node of the partition with the job's features has, "" if it is something else that
    keeps the job from running there.
    """
    spec = job.spec
    request = Request.of(_all_of(job, partition), core.tables.nodes)
    nodes = 0 if request is None else reduce(or_, request.choices, 0)
    kinds = [kind for kind in core.tables.nodes.kinds if kind.nodes & nodes]
    if not kinds:
        return ""
    cpus = max(least_cpus(job), cpus_for_memory(job, partition))
    memory = job.memory_per_node_mb or job.memory_per_cpu_mb or 0
    sockets, cores = spec.sockets_per_node or 0, spec.cores_per_socket or 0
    tests: tuple[tuple[str, Callable[[NodeKind], bool]], ...] = (
        ("CPU count per node", lambda kind: kind.cpus >= cpus),
        ("Memory specification", lambda kind: kind.memory_mb >= memory),
        ("Temporary disk specification", lambda kind: kind.tmp_disk_mb >= (spec.tmp_disk_mb or 0)),
        (
            "Socket, core and/or thread specification",
            lambda kind: (
                kind.sockets >= sockets
                and kind.cores // kind.sockets >= cores
                and kind.threads_of_core >= (spec.threads_per_core or 0)
            ),
        ),
    )
    for what, fits in tests:
        kinds = [kind for kind in kinds if fits(kind)]
        if not kinds:
            return f"{what} can not be satisfied"
    return ""
