"""How many tasks, nodes and CPUs a job has, and how much memory: of itself, and in one partition.

Place: tables, pure. Worked out here for all who choose nodes, hold limits, show and tell. Follows:
sbatch(1) on options and their defaults; slurm.conf(5) MinNodes, MaxNodes, DefMemPerCPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from understudy.controller.tables.partition import all_memory_mb
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.shape import described_threads, nodes_for, nodes_with_tasks, uncounted_tasks

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.protocol.messages import JobSpec


class Shape(NamedTuple):
    """What a job asks for, wherever it runs. The names are those of `Job`."""

    num_tasks: int
    cpus_per_task: int
    min_nodes: int
    max_nodes: int | None  # None: any number
    min_cpus: int


class Reach(NamedTuple):
    """What its shape comes to in one partition."""

    tasks: int
    min_nodes: int
    wanted_nodes: int  # taken if there are so many; no reason to wait
    max_nodes: int


class Memory(NamedTuple):
    """None: nothing is said. Of both, the one for each CPU counts."""

    per_node_mb: int | None
    per_cpu_mb: int | None


class HasDefaultMemory(Protocol):
    """A partition, and the cluster as a whole."""

    @property
    def default_memory_per_node_mb(self) -> int | None: ...

    @property
    def default_memory_per_cpu_mb(self) -> int | None: ...


def shape_of(spec: JobSpec, all_nodes: int) -> Shape:
    """The job's shape as it was asked for. `all_nodes`: how many the cluster has.

    Raises:
        SlurmError: it contradicts itself.
    """
    cpus_per_task = spec.cpus_per_task or 1
    least, most = spec.min_nodes or 1, spec.max_nodes or None
    if (spec.min_nodes is not None and spec.min_nodes < 1) or (most is not None and most < least):
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    tasks = _tasks(spec, least, most, is_set=spec.min_nodes is not None)
    if tasks < 1:
        raise SlurmError(ErrorCode.INVALID_TASK_COUNT)
    if cpus_per_task < 1:
        raise SlurmError(ErrorCode.INVALID_CPU_COUNT)
    if spec.num_tasks is not None:
        least, most = nodes_with_tasks(tasks, least, most)
    if spec.ntasks_per_node:
        needed = max(least, nodes_for(tasks, spec.ntasks_per_node))
        least = needed if most is None else min(needed, most)
    asked = spec.min_nodes or 1 if spec.overcommit else least
    cpus = _cpus(spec, tasks, cpus_per_task, asked, most)
    if spec.spread_job and spec.num_tasks is not None and most is None:
        most = max(least, min(tasks, all_nodes))
    return Shape(tasks, cpus_per_task, least, most, cpus)


def _tasks(spec: JobSpec, least: int, most: int | None, *, is_set: bool) -> int:
    """As many as were asked for, or else as follow from the nodes. `is_set`: of these something was
    said.
    """
    if spec.num_tasks is not None:
        return spec.num_tasks
    return _uncounted(spec, least, most, is_set=is_set)[0]


def _uncounted(spec: JobSpec, least: int, most: int | None, *, is_set: bool) -> tuple[int, bool]:
    threads = None
    if is_set or spec.extra_node_info:
        threads = described_threads(
            spec.sockets_per_node, spec.cores_per_socket, spec.threads_per_core
        )
    return uncounted_tasks(least, most, spec.ntasks_per_node, threads)


def says_tasks(spec: JobSpec) -> bool:
    """Whether it said how many, be it by how many on each node or by what a node has to be."""
    if spec.num_tasks is not None or spec.ntasks_per_node or not spec.extra_node_info:
        return bool(spec.num_tasks is not None or spec.ntasks_per_node)
    least = spec.min_nodes or 1
    return _uncounted(spec, least, spec.max_nodes or None, is_set=True)[1]


def _cpus(spec: JobSpec, tasks: int, each: int, least: int, most: int | None) -> int:
    if spec.overcommit:
        return least
    is_range = most is not None and most > least
    if is_range and spec.num_tasks is None and (tasks <= each or not spec.ntasks_per_node):
        return each  # no more than one task is certain
    return max(tasks * each, least)


def name_nodes(job: Job, count: int) -> None:
    """Let a job have the nodes that it names, `count` of them, at least.

    Raises:
        SlurmError: they are more than it may have.
    """
    if job.max_nodes is not None and count > job.max_nodes:
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    job.min_nodes = max(job.min_nodes, count)
    job.num_tasks = _tasks(job.spec, job.min_nodes, job.max_nodes, is_set=True)
    cpus = _cpus(job.spec, job.num_tasks, job.cpus_per_task, job.min_nodes, job.max_nodes)
    job.min_cpus = max(job.min_cpus, cpus, count)


def reach_of(
    job: Job, partition: Partition, all_nodes: int, most_allowed: int | None, counted: int
) -> Reach | None:
    """The job's shape in the partition; None if it needs more nodes than it may have.

    `all_nodes`: of the cluster. `most_allowed`: by limits of associations and QOS; who asks for
    more waits for them. `counted`: nodes that its features count, 0 if they count none.
    """
    spec, each = job.spec, job.spec.ntasks_per_node or 0
    least = max(
        job.min_nodes,
        job.required_nodes.bit_count(),
        1 if "PartitionMinNodes" in job.qos_flags else partition.min_nodes,
        1,
    )
    tasks = (
        least
        if spec.overcommit
        else max(job.num_tasks, nodes_for(job.min_cpus, max(job.cpus_per_task, 1)), 1)
    )
    if each:
        if spec.num_tasks is None:
            tasks = max(tasks, each * least)
        least = max(least, nodes_for(tasks, each))
    most = _most_nodes(job, partition, all_nodes, least)
    if most_allowed is not None:
        most = min(most, max(most_allowed, 1 if spec.min_nodes is None else job.min_nodes))
    # a task on each node that it must have
    if spec.spread_job and spec.num_tasks is None and job.max_nodes is None:
        most = min(most, least)
    takes_many = spec.spread_job or (job.max_nodes is not None and not spec.use_min_nodes)
    wanted = max(least, most) if takes_many else least
    # the nodes that are counted may be more than there are tasks
    if counted and spec.min_nodes is None:
        most = max(most, min(counted, job.max_nodes or all_nodes))
    return Reach(tasks, least, wanted, most) if least <= most else None


def _most_nodes(job: Job, partition: Partition, all_nodes: int, least: int) -> int:
    """As many as the job and the partition allow, and none without a task that was asked for."""
    spec, each = job.spec, job.spec.ntasks_per_node or 0
    of_partition = None if "PartitionMaxNodes" in job.qos_flags else partition.max_nodes
    most = min(job.max_nodes or all_nodes, of_partition or all_nodes)
    if spec.num_tasks is None and not each:
        return most
    asked = max(spec.num_tasks or 0, each * job.min_nodes if spec.num_tasks is None else 1)
    return max(min(most, asked), least if job.max_nodes is None else min(least, job.max_nodes))


def nodes_of_size(job: Job, cpus: int) -> int:
    """How many nodes with so many CPUs Slurm thinks that the job's tasks need.

    Where it was told of several CPUs a task, tasks that do not fill a node count as one more, even
    with the nodes that were asked for.
    """
    if job.spec.ntasks_per_node and not job.spec.ntasks_per_tres:
        return max(job.asked_nodes, job.num_tasks // job.spec.ntasks_per_node)
    tasks_a_node = max(1, cpus // max(1, job.cpus_per_task))
    if job.cpus_per_task > 1 and job.spec.num_tasks is not None:
        return max(job.min_nodes, job.num_tasks // tasks_a_node) + bool(
            job.num_tasks % tasks_a_node
        )
    return max(job.min_nodes, nodes_for(job.num_tasks, tasks_a_node)) if cpus else job.min_nodes


def least_cpus(job: Job) -> int:
    """Of each node that it gets."""
    is_one = job.spec.overcommit or job.spec.num_tasks == 1
    each = 1 if is_one else job.spec.ntasks_per_node or 1
    return max(each * job.cpus_per_task, job.spec.min_cpus_node or 0)


def tasks_of(job: Job) -> int:
    """Once it has nodes: so many on each as were asked for, and no node without one."""
    if job.allocation is None:
        return job.num_tasks
    if job.spec.ntasks_per_node:
        return job.spec.ntasks_per_node * job.allocation.node_count
    return max(job.num_tasks, job.allocation.node_count)


def default_memory(where: HasDefaultMemory) -> Memory:
    """What a job has there that says nothing of memory."""
    if where.default_memory_per_cpu_mb is not None:
        return Memory(None, where.default_memory_per_cpu_mb)
    return Memory(where.default_memory_per_node_mb, None)


def memory_of(job: Job, partition: Partition) -> Memory:
    """What the job asks for, or else has in the partition."""
    own = Memory(job.memory_per_node_mb, job.memory_per_cpu_mb)
    return default_memory(partition) if own == (None, None) else own


def cpus_for_memory(job: Job, partition: Partition) -> int:
    """How many CPUs of each node MaxMemPerCPU wants for the memory of a node that the job asks for,
    0 if none.
    """
    _, most = partition.memory_limits_mb
    if not most:
        return 0
    per_node = memory_of(job, partition).per_node_mb or all_memory_mb(job, partition)
    return -(-per_node // most)


def memory_asked_mb(job: Job, nodes: int) -> int:
    """The memory of all of its CPUs, or of so many nodes; 0 if nothing is said, and for all."""
    if job.memory_per_cpu_mb is not None:
        return job.memory_per_cpu_mb * job.min_cpus
    return (job.memory_per_node_mb or 0) * nodes
