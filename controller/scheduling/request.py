"""What a job asks for, in the terms of node selection: numbers and bitmaps, every default filled in.

Place: scheduling, pure. Made from a `Job` and a `Partition` for one question to a selector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.controller.scheduling.features import counted_features, counted_nodes, feature_sets
from understudy.controller.scheduling.gres import GresNeeds
from understudy.model.errors import SlurmError

if TYPE_CHECKING:
    from understudy.controller.job import Job
    from understudy.controller.nodes import NodeTable
    from understudy.controller.partitions import Partition

ALL_MEMORY = 0  # of --mem=0: all memory of a node on which none is in use


@dataclass(slots=True)
class Request:
    """One job's needs in one partition."""

    tasks: int
    cpus_per_task: int
    min_nodes: int
    wanted_nodes: int  # taken if there are so many; no reason to wait
    max_nodes: int
    tasks_per_node: int  # 0: any number
    min_cpus_per_node: int
    threads_per_core: int  # to be used, 0: all
    tasks_per_core: int  # 0: any number
    memory_per_node_mb: int | None
    memory_per_cpu_mb: int | None
    tmp_disk_mb: int
    exclusive: bool
    contiguous: bool
    least_loaded: bool
    required: int  # bitmap
    choices: tuple[int, ...]  # bitmaps of allowed nodes, features considered; tried in order
    tasks_on_node: int = 0  # that each node of the job gets, where that is said
    tasks_per_socket: int = 0
    min_sockets: int = 0  # with at least min_cores_per_socket free cores
    min_cores_per_socket: int = 0
    spreads: bool = False  # over many nodes, in index order
    fills_sockets: bool = False  # one socket after the other, in place of a core from each in turn
    memory_cpus: int = 0  # CPUs that it holds at least on each node, for its memory (MaxMemPerCPU)
    gres: GresNeeds | None = None
    tasks_are_known: bool = False  # how many run on each node that it gets: `tasks_per_node`, or all of one node, or one on each
    blocked_cores: dict[int, int] | None = None  # reserved cores (masks by node), which it may not have
    switches: int = 0  # leaf switches that its nodes may be on, 0 for any number
    counted: tuple[tuple[int, int], ...] = ()  # (bitmap, how many of its nodes the job must have at least)

    @property
    def cpus(self) -> int:
        return self.tasks * self.cpus_per_task

    @classmethod
    def of(cls, job: Job, partition: Partition, table: NodeTable) -> Request | None:
        """The job's request; None if it contradicts itself (more nodes than allowed, an unreadable feature list)."""
        spec = job.spec
        cpus_per_task = max(job.cpus_per_task, 1)
        least = 1 if "PartitionMinNodes" in job.qos_flags else partition.min_nodes
        min_nodes = max(job.min_nodes, least, 1)
        tasks = min_nodes if spec.overcommit else max(job.num_tasks, -(-job.min_cpus // cpus_per_task), 1)
        tasks_per_node = spec.ntasks_per_node or 0
        if tasks_per_node:
            if spec.num_tasks is None:
                tasks = max(tasks, tasks_per_node * min_nodes)
            min_nodes = max(min_nodes, -(-tasks // tasks_per_node))
        all_nodes = len(table.nodes)
        most = None if "PartitionMaxNodes" in job.qos_flags else partition.max_nodes
        max_nodes = min(job.max_nodes or all_nodes, most or all_nodes)
        if spec.num_tasks is not None or tasks_per_node:
            asked = max(spec.num_tasks or 0, tasks_per_node * job.min_nodes if spec.num_tasks is None else 1)
            max_nodes = max(min(max_nodes, asked), min_nodes if job.max_nodes is None else min(min_nodes, job.max_nodes))
        spreads = "spread_job" in spec.extra
        wanted = min_nodes
        if (job.max_nodes is not None and "use_min_nodes" not in spec.extra) or spreads:
            wanted = max(min_nodes, max_nodes)
        features = spec.prefer if job.prefers else spec.features
        if "*" in features and spec.min_nodes is None:  # the nodes that are counted may be more than there are tasks
            max_nodes = max(max_nodes, min(counted_nodes(features), job.max_nodes or all_nodes))
        if min_nodes > max_nodes:
            return None
        gres = GresNeeds.of(job)
        if gres is not None and table.gres is None:
            return None
        per_node, per_cpu = job.memory_per_node_mb, job.memory_per_cpu_mb
        if per_node is None and per_cpu is None:
            per_node, per_cpu = partition.default_memory_per_node_mb, partition.default_memory_per_cpu_mb
            if per_cpu is not None:
                per_node = None
        memory_cpus = -(-per_node // job.memory_cap_mb) if per_node and job.memory_cap_mb else 0
        allowed = partition.nodes & ~job.excluded_nodes
        choices: tuple[int, ...] = (allowed,)
        counted: tuple[tuple[int, int], ...] = ()
        if features:
            try:
                if "*" in features:
                    allowed, counted = counted_features(features, table.with_feature, allowed)
                    choices = (allowed,)
                else:
                    choices = feature_sets(features, table.with_feature, allowed)
            except SlurmError:
                return None
        return cls(
            tasks=max(tasks, min_nodes),
            cpus_per_task=cpus_per_task,
            min_nodes=min_nodes,
            wanted_nodes=wanted,
            max_nodes=max_nodes,
            tasks_per_node=tasks_per_node,
            min_cpus_per_node=max(spec.min_cpus_node or 0, memory_cpus),
            tasks_on_node=1 if spec.overcommit or spec.num_tasks == 1 else tasks_per_node,
            spreads=spreads,
            tasks_per_socket=spec.ntasks_per_socket or 0,
            min_sockets=int(spec.extra.get("sockets_per_node", 0)),
            min_cores_per_socket=int(spec.extra.get("cores_per_socket", 0)),
            threads_per_core=spec.threads_per_core or 0,
            tasks_per_core=spec.ntasks_per_core or 0,
            memory_per_node_mb=per_node,
            memory_per_cpu_mb=per_cpu,
            tmp_disk_mb=spec.tmp_disk_mb or 0,
            exclusive=job.exclusive or partition.oversubscribe.upper() == "EXCLUSIVE",
            contiguous=spec.contiguous,
            least_loaded=partition.least_loaded_nodes,
            required=job.required_nodes,
            choices=choices,
            counted=counted,
            switches=job.most_switches,
            fills_sockets=_fills_sockets(spec.distribution),
            memory_cpus=memory_cpus,
            gres=gres,
            tasks_are_known=tasks_per_node > 0
            or (
                spec.num_tasks is not None
                and min_nodes == max_nodes
                and max_nodes in (job.max_nodes, partition.max_nodes, tasks)
                and max_nodes in (1, tasks)
            ),
            blocked_cores=job.blocked_cores or None,
        )


def _fills_sockets(distribution: str) -> bool:
    """Whether tasks go to the cores of one socket after the other (-m plane=N, *:block)."""
    if not distribution:
        return False
    first, *others = distribution.partition(",")[0].lower().split(":")
    return first.startswith("plane") or others[:1] == ["block"]
