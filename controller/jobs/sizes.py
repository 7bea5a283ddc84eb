"""What a job has that says nothing of GPUs, time or memory: from its partition and the cluster.

Place: jobs. Tasks, nodes and CPUs are `tables.shape`'s. Follows: sbatch(1); slurm.conf(5)
DefMemPerCPU, MaxMemPerCPU, JobDefaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from understudy.controller.jobs.checks import no_gres
from understudy.controller.tables.shape import default_memory
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
    if spec.mem_per_node_mb is None and spec.mem_per_cpu_mb is None:
        found = default_memory(partition)
        if found == (None, None):
            found = default_memory(core.settings)
        job.memory_per_node_mb, job.memory_per_cpu_mb = found


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
