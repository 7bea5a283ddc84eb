"""What a job has that says nothing of GPUs, time or memory: from its partition and the cluster.

Place: jobs. Tasks, nodes and CPUs are `tables.shape`'s. Follows: sbatch(1); slurm.conf(5)
DefMemPerCPU, MaxMemPerCPU, JobDefaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from understudy.controller.jobs.checks import no_gres
from understudy.controller.tables.shape import Shape, default_memory
from understudy.model.gres import gpus_in, is_unsaid, unsaid

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
        gpus_in(spec.cpus_per_tres)  # a number, too
    except ValueError as error:
        raise no_gres(core, error) from None
    changes = _of_each_gpu(spec, gpus) | _of_whole_nodes(spec, gpus)
    if any(gpus.values()):
        counts = core.selector.counts_gpus
        defaults = core.settings.gpu_defaults | partition.gpu_defaults if counts else {}
        if not spec.cpus_per_tres and not spec.cpus_per_task and "cpu" in defaults:
            changes["cpus_per_tres"] = unsaid(defaults["cpu"])
        if (
            not spec.mem_per_tres
            and spec.mem_per_node_mb is None
            and spec.mem_per_cpu_mb is None
            and "mem" in defaults
        ):
            changes["mem_per_tres"] = unsaid(defaults["mem"])
    return msgspec.structs.replace(spec, **changes) if changes else spec


def fit_gpus(shape: Shape, spec: JobSpec) -> Shape:
    """The shape of what was asked for, with the numbers that follow for its GPUs; `spec`: as
    `fill_gpus` made it. As 22.05.8 shows, CPUs are counted before, and nodes but in part.
    """
    per_job, per_task = gpus_in(spec.tres_per_job), gpus_in(spec.tres_per_task)
    if not (per_job or per_task or spec.gres or spec.tres_per_socket or spec.ntasks_per_tres):
        return shape
    least, most, tasks = shape.min_nodes, shape.max_nodes, spec.num_tasks or 0
    if per_job and gpus_in(spec.gres):
        least, most = spec.min_nodes or least, spec.max_nodes
    if per_job and most is not None and (spec.max_nodes or not spec.spread_job):
        most = max(min(most, per_job), least)
    each = gpus_in(spec.cpus_per_tres) * per_task or shape.cpus_per_task
    # the partition's CPUs of a GPU are the job's only where nodes are chosen for it
    asked = shape.cpus_per_task if is_unsaid(spec.cpus_per_tres) else each
    has_more_tasks = tasks > shape.min_cpus and not spec.overcommit
    return Shape(
        num_tasks=tasks
        or (shape.num_tasks if spec.ntasks_per_node else max(shape.num_tasks, least)),
        cpus_per_task=each,
        min_nodes=least,
        max_nodes=most,
        min_cpus=tasks * asked if has_more_tasks else shape.min_cpus,
    )


def _of_each_gpu(spec: JobSpec, gpus: dict[str, int]) -> dict[str, Any]:
    """What follows from --ntasks-per-gpu; `gpus` has those, too, that follow from it."""
    each = spec.ntasks_per_tres
    if not each:
        return {}
    if gpus["tres_per_job"]:
        return {"num_tasks": gpus["tres_per_job"] * each}
    if gpus["gres"]:
        tasks = (spec.min_nodes or 1) * gpus["gres"] * each
        if spec.ntasks_per_node is None:
            return {"num_tasks": tasks, "ntasks_per_node": gpus["gres"] * each}
        return {"num_tasks": tasks}
    if any(gpus.values()):
        return {}
    if spec.num_tasks is None:
        return {"num_tasks": (spec.min_nodes or 1) * each}
    if spec.num_tasks < each:
        return {}
    gpus["tres_per_job"] = spec.num_tasks // each
    return {"tres_per_job": unsaid(gpus["tres_per_job"])}


def _of_whole_nodes(spec: JobSpec, gpus: dict[str, int]) -> dict[str, Any]:
    """What follows where GPUs of the job, of a node, of a socket or of a task are asked for
    together.
    """
    per_job, per_node, per_task = (gpus[name] for name in ("tres_per_job", "gres", "tres_per_task"))
    changes: dict[str, Any] = {}
    if per_job and per_node and per_job % per_node == 0 and spec.tres_per_job.count(",") == 0:
        nodes = per_job // per_node
        if (spec.min_nodes or 1) <= nodes <= (spec.max_nodes or nodes):
            changes |= {"min_nodes": nodes, "max_nodes": nodes}
    if per_task:
        if per_job and spec.num_tasks is None:
            changes["num_tasks"] = max(per_job // per_task, 1)
        if per_node and spec.ntasks_per_node is None:
            changes["ntasks_per_node"] = max(per_node // per_task, 1)
        if gpus["tres_per_socket"] and spec.ntasks_per_socket is None:
            changes["ntasks_per_socket"] = max(gpus["tres_per_socket"] // per_task, 1)
    return changes


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


def fit_memory_cap(job: Job, partitions: list[Partition]) -> None:
    """MaxMemPerCPU refuses nobody: who asks for more memory for a CPU gets so many CPUs for a task
    that each has less, of several partitions as the strictest has it.
    """
    caps = [partition.memory_limits_mb[1] for partition in partitions]
    most = min(filter(None, caps), default=None)
    if most and job.memory_per_cpu_mb and job.memory_per_cpu_mb > most:
        times = -(-job.memory_per_cpu_mb // most)
        job.memory_per_cpu_mb = -(-job.memory_per_cpu_mb // times)
        job.cpus_per_task *= times
        job.min_cpus *= times
