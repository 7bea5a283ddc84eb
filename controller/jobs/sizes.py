"""How many tasks, nodes, CPUs and how much memory a job has, from what was asked for and what its
partition says.

Place: jobs. Follows: sbatch(1); slurm.conf(5) DefMemPerCPU, MaxMemPerCPU.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.controller.jobs.checks import no_gres
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gres import gpus_in

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.protocol.messages import JobSpec


def fill_gpus(core: Core, spec: JobSpec, partition: Partition) -> JobSpec:
    """The specification with what follows for a job with GPUs: numbers of tasks and nodes, and the
    defaults for CPUs and memory for each GPU.
    """
    if not (
        spec.gres
        or spec.tres_per_job
        or spec.tres_per_socket
        or spec.tres_per_task
        or spec.ntasks_per_tres
    ):
        return spec
    try:
        gpus = {
            name: gpus_in(getattr(spec, name))
            for name in ("gres", "tres_per_job", "tres_per_task", "tres_per_socket")
        }
    except ValueError as error:
        raise no_gres(error) from None
    changes: dict[str, Any] = {}
    if spec.ntasks_per_tres:
        if gpus["tres_per_job"]:
            changes["num_tasks"] = max(
                spec.num_tasks or 0, gpus["tres_per_job"] * spec.ntasks_per_tres
            )
        elif gpus["gres"]:
            changes["num_tasks"] = max(
                spec.num_tasks or 0, (spec.min_nodes or 1) * gpus["gres"] * spec.ntasks_per_tres
            )
            if spec.ntasks_per_node is None:
                changes["ntasks_per_node"] = gpus["gres"] * spec.ntasks_per_tres
        elif spec.num_tasks is not None and not any(gpus.values()):
            changes["tres_per_job"] = f"gres:gpu:{-(-spec.num_tasks // spec.ntasks_per_tres)}"
            gpus["tres_per_job"] = 1
    if gpus["tres_per_job"] and gpus["gres"] and spec.tres_per_job.count(",") == 0:
        nodes = gpus["tres_per_job"] // gpus["gres"]
        if nodes and gpus["tres_per_job"] % gpus["gres"] == 0 and not spec.max_nodes:
            changes |= {"min_nodes": nodes, "max_nodes": nodes}
    if gpus["tres_per_job"] and gpus["tres_per_task"] and spec.num_tasks is None:
        changes["num_tasks"] = max(gpus["tres_per_job"] // gpus["tres_per_task"], 1)
    if any(gpus.values()):
        defaults = core.settings.gpu_defaults | partition.gpu_defaults
        if not spec.cpus_per_tres and not spec.cpus_per_task and "cpu" in defaults:
            changes["cpus_per_tres"] = f"gres:gpu:{defaults['cpu']}"
        if (
            not spec.mem_per_tres
            and spec.mem_per_node_mb is None
            and spec.mem_per_cpu_mb is None
            and "mem" in defaults
        ):
            changes["mem_per_tres"] = f"gres:gpu:{defaults['mem']}"
    return msgspec.structs.replace(spec, **changes) if changes else spec


def size(spec: JobSpec) -> tuple[int, int, int, int | None, int]:
    """(tasks, CPUs per task, least nodes, most nodes, least CPUs) with sbatch's defaults."""
    cpus_per_task = spec.cpus_per_task or 1
    min_nodes = spec.min_nodes or 1
    max_nodes = spec.max_nodes or None
    if (spec.min_nodes is not None and spec.min_nodes < 1) or (
        max_nodes is not None and max_nodes < min_nodes
    ):
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    if spec.num_tasks is not None:
        tasks = spec.num_tasks
        if tasks < 1:
            raise SlurmError(ErrorCode.INVALID_TASK_COUNT)
    elif spec.ntasks_per_node:
        tasks = spec.ntasks_per_node * min_nodes
    else:
        tasks = min_nodes
        # a task for each thread of the nodes described
        if spec.min_nodes is not None or spec.extra_node_info:
            described = (spec.sockets_per_node, spec.cores_per_socket, spec.threads_per_core or 1)
            is_range = max_nodes is not None and max_nodes > min_nodes
            threads = prod(1 if count is None else count for count in described)
            tasks = max((1 if is_range else min_nodes) * threads, min_nodes)
    if cpus_per_task < 1:
        raise SlurmError(ErrorCode.INVALID_CPU_COUNT)
    if spec.num_tasks is not None and min_nodes > tasks and spec.min_nodes is not None:
        # Fewer tasks than nodes: sbatch lowers the number of nodes, as no node may be without a
        # task.
        min_nodes = tasks
        max_nodes = (
            None
            if max_nodes is None
            else max(tasks, 1)
            if max_nodes == spec.min_nodes
            else max_nodes
        )
    if spec.num_tasks is not None and max_nodes is not None:
        max_nodes = max(min(max_nodes, tasks), 1)
    if spec.ntasks_per_node:
        min_nodes = max(min_nodes, -(-tasks // spec.ntasks_per_node))
        if max_nodes is not None and max_nodes < min_nodes:
            raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    min_cpus = min_nodes if spec.overcommit else max(tasks * cpus_per_task, min_nodes)
    if (
        spec.num_tasks is None
        and not (spec.ntasks_per_node or spec.overcommit)
        and max_nodes is not None
        and max_nodes > min_nodes
    ):
        min_cpus = cpus_per_task  # of a range, no more than one task is certain
    return tasks, cpus_per_task, min_nodes, max_nodes, min_cpus


def set_time_limit(job: Job, partition: Partition, asked_s: int | None) -> None:
    """The limit asked for (0 and -1: unlimited; whole minutes, rounded up by the command), else the
    partition's.
    """
    if asked_s is None:
        job.time_limit_is_set = False
        job.time_limit_s = (
            partition.default_time_s
            if partition.default_time_s is not None
            else partition.max_time_s
        )
    else:
        job.time_limit_is_set = True
        job.time_limit_s = None if asked_s <= 0 else asked_s


def set_memory(core: Core, job: Job, partition: Partition) -> None:
    """Memory asked for, else DefMemPerCPU or DefMemPerNode of the partition, else the cluster's."""
    spec = job.spec
    job.memory_per_node_mb, job.memory_per_cpu_mb = spec.mem_per_node_mb, spec.mem_per_cpu_mb
    if spec.mem_per_tres:
        job.memory_per_node_mb = 0
        return
    if spec.mem_per_node_mb is not None or spec.mem_per_cpu_mb is not None:
        return
    settings = core.settings
    if partition.default_memory_per_cpu_mb is not None:
        job.memory_per_cpu_mb = partition.default_memory_per_cpu_mb
    elif partition.default_memory_per_node_mb is not None:
        job.memory_per_node_mb = partition.default_memory_per_node_mb
    elif settings.default_memory_per_cpu_mb is not None:
        job.memory_per_cpu_mb = settings.default_memory_per_cpu_mb
    elif settings.default_memory_per_node_mb is not None:
        job.memory_per_node_mb = settings.default_memory_per_node_mb


def fit_memory_cap(core: Core, job: Job, partitions: list[Partition]) -> None:
    """MaxMemPerCPU refuses nobody: who asks for more memory for a CPU gets so many CPUs for a task
    that each has less.
    """
    general = core.settings.max_memory_per_cpu_mb
    caps = [
        general if partition.max_memory_per_cpu_mb is None else partition.max_memory_per_cpu_mb
        for partition in partitions
    ]
    job.memory_cap_mb = min(filter(None, caps), default=None)
    if (
        job.memory_cap_mb is not None
        and job.memory_per_cpu_mb is not None
        and job.memory_per_cpu_mb > job.memory_cap_mb
    ):
        times = -(-job.memory_per_cpu_mb // job.memory_cap_mb)
        job.memory_per_cpu_mb = -(-job.memory_per_cpu_mb // times)
        job.cpus_per_task *= times
        job.min_cpus *= times
