"""Whether a partition could ever hold a job, remembered: thousands of jobs ask for the same.

Place: the controller's core. The memory is emptied when nodes or partitions change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.partitions import Partition

_MOST: Final = 10_000


def could_ever_run(core: Core, job: Job, partition: Partition) -> bool:
    """Whether the partition's configured nodes could hold the job if all were up and empty."""
    spec = job.spec
    question = (
        partition.name,
        job.min_nodes,
        job.max_nodes,
        job.num_tasks,
        job.cpus_per_task,
        job.min_cpus,
        job.memory_per_node_mb,
        job.memory_per_cpu_mb,
        job.memory_cap_mb,
        job.exclusive,
        spec.num_tasks,
        spec.ntasks_per_node,
        spec.ntasks_per_socket,
        spec.ntasks_per_core,
        spec.threads_per_core,
        spec.min_cpus_node,
        spec.tmp_disk_mb,
        spec.features,
        spec.required_nodes,
        job.excluded_nodes,
        spec.contiguous,
        spec.overcommit,
        *(spec.extra.get(name) for name in ("hint", "sockets_per_node", "cores_per_socket", "spread_job", "use_min_nodes")),
        spec.gres,
        spec.tres_per_job,
        spec.tres_per_socket,
        spec.tres_per_task,
        spec.cpus_per_tres,
        spec.mem_per_tres,
        spec.gres_flags,
        job.qos_flags,
    )
    answer = core.feasible.get(question)
    if answer is None:
        if len(core.feasible) >= _MOST:
            core.feasible.clear()
        answer = core.feasible[question] = core.selector.could_ever_run(job, partition, core.tables)
    return answer
