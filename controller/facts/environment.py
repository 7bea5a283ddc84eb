"""The variables of jobs, steps and programs of the site that only the controller knows. The node
daemon adds what belongs to its node.

Place: facts. Follows: sbatch(1) "OUTPUT ENVIRONMENT VARIABLES"; slurm.conf(5) "Prolog and Epilog
Scripts".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.facts.streams import std_in, std_out
from understudy.controller.tables.het_job import whole
from understudy.model import nodeset
from understudy.model.gres import GPU, SHARED

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.gres import GresTable, Held, Layout
    from understudy.controller.tables.job import Job

_OF_THE_WHOLE: Final = frozenset(
    (
        *(
            "SLURM_CLUSTER_NAME",
            "SLURM_JOB_GID",
            "SLURM_JOB_UID",
            "SLURM_JOB_USER",
            "SLURM_JOBID",
            "SLURM_NNODES",
            "SLURM_NODELIST",
        ),
        *(
            "SLURM_RESTART_COUNT",
            "CUDA_VISIBLE_DEVICES",
            "GPU_DEVICE_ORDINAL",
            "ROCR_VISIBLE_DEVICES",
        ),
    )
)
NO_ENVIRONMENT: Final[list[str]] = []
OF_JOB: Final = -1  # the step id in a credential that is for the job's nodes rather than for a step


def array_environment(job: Job) -> dict[str, object]:
    """SLURM_ARRAY_* of a task."""
    array = job.array
    if array is None or job.array_task_id is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": array.job_id,
        "SLURM_ARRAY_TASK_COUNT": array.count,
        "SLURM_ARRAY_TASK_ID": job.array_task_id,
        "SLURM_ARRAY_TASK_MAX": array.last,
        "SLURM_ARRAY_TASK_MIN": array.first,
        "SLURM_ARRAY_TASK_STEP": array.step,
    }


def group_environment(environments: list[dict[str, object]]) -> dict[str, object]:
    """What the script is told of all components, given what each would be told alone. The older
    names (PACK) are there, too.
    """
    found: dict[str, object] = {
        "SLURM_HET_SIZE": len(environments),
        "SLURM_PACK_SIZE": len(environments),
    }
    for group, own in enumerate(environments):
        for name, value in own.items():
            if name not in _OF_THE_WHOLE and value != "":
                found[f"{name}_HET_GROUP_{group}"] = found[f"{name}_PACK_GROUP_{group}"] = value
    return found


def node_environment(core: Core, job: Job, *, is_over: bool) -> list[str]:
    """For Prolog (or, when the job is over, Epilog) on its nodes; nothing where there is none."""
    settings = core.settings
    if settings.emulates_jobs or not (settings.has_epilog if is_over else settings.has_prolog):
        return []
    variables = environment(core, job)
    for name in ("SLURM_JOB_ACCOUNT", "SLURM_JOB_GROUP", "SLURM_JOB_NAME"):
        del variables[name]
    variables |= {
        "SLURM_NODELIST": variables.pop("SLURM_JOB_NODELIST"),
        "SLURM_UID": str(job.user_id),
    }
    if is_over:
        variables |= exit_environment(job)
    return [f"{name}={value}" for name, value in variables.items()]


def environment(core: Core, job: Job) -> dict[str, str]:
    """What all are told of a job."""
    spec, now = job.spec, core.time.now()
    found: dict[str, object] = {
        **array_environment(job),
        "SLURM_CLUSTER_NAME": core.settings.cluster_name,
        "SLURM_JOBID": job.job_id,
        "SLURM_JOB_ACCOUNT": spec.account or "(null)",
        "SLURM_JOB_COMMENT": spec.comment,
        "SLURM_JOB_CONSTRAINTS": spec.features,
        "SLURM_JOB_GID": job.group_id,
        "SLURM_JOB_GROUP": core.users.group_name(job.group_id),
        "SLURM_JOB_ID": job.job_id,
        "SLURM_JOB_LICENSES": spec.licenses,
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_NODELIST": job.node_list or "(null)",
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_RESERVATION": spec.reservation,
        "SLURM_JOB_RESTART_COUNT": job.restarts,
        "SLURM_JOB_UID": job.user_id,
        "SLURM_JOB_USER": core.users.user_name(job.user_id),
        "SLURM_JOB_WORK_DIR": spec.work_dir,
    }
    if not job.interactive:
        found |= {
            "SLURM_JOB_STDIN": std_in(core, job, now),
            "SLURM_JOB_STDOUT": std_out(core, job, now),
        }
    if job.allocation is not None:
        found |= {
            "SLURM_JOB_CPUS_PER_NODE": job.allocation.per_node_text(),
            "SLURM_JOB_NUM_NODES": job.allocation.node_count,
        }
    return {name: str(value) for name, value in found.items() if value != ""}


def exit_environment(job: Job) -> dict[str, str]:
    """How it ended."""
    return {
        "SLURM_JOB_DERIVED_EC": str(job.derived_exit_code),
        "SLURM_JOB_EXIT_CODE": str(job.exit_code << 8 | job.exit_signal),
        "SLURM_JOB_EXIT_CODE2": f"{job.exit_code}:{job.exit_signal}",
    }


def job_environment(core: Core, job: Job) -> list[str]:
    """What only the controller knows for the job's environment. The node daemon adds what belongs
    to its node.
    """
    variables = own_environment(core, job)
    if job.het is not None:
        variables |= group_environment([own_environment(core, each) for each in whole(job)])
    return [f"{name}={value}" for name, value in variables.items() if value != ""]


def own_environment(core: Core, job: Job) -> dict[str, object]:
    """What follows from the job itself; "" where nothing does."""
    allocation = job.allocation
    assert allocation is not None
    spec = job.spec
    count = allocation.node_count
    variables: dict[str, object] = {
        **array_environment(job),
        "SLURM_CLUSTER_NAME": core.settings.cluster_name,
        "SLURM_CPUS_PER_TASK": job.cpus_per_task if spec.cpus_per_task else "",
        "SLURM_JOB_ACCOUNT": spec.account,
        "SLURM_JOB_CPUS_PER_NODE": allocation.per_node_text("cpus"),
        "SLURM_JOB_GID": job.group_id,
        "SLURM_JOB_ID": job.job_id,
        "SLURM_JOBID": job.job_id,
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_NODELIST": job.node_list,
        "SLURM_JOB_NUM_NODES": count,
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_QOS": spec.qos,
        "SLURM_JOB_UID": job.user_id,
        "SLURM_JOB_USER": core.users.user_name(job.user_id),
        "SLURM_MEM_PER_CPU": _memory(job, job.memory_per_cpu_mb, spec.mem_per_cpu_mb),
        "SLURM_MEM_PER_NODE": _memory(job, job.memory_per_node_mb, spec.mem_per_node_mb),
        "SLURM_NNODES": count,
        "SLURM_NODELIST": job.node_list,
        "SLURM_NPROCS": job.num_tasks if spec.num_tasks else "",
        "SLURM_NTASKS": job.num_tasks if spec.num_tasks else "",
        "SLURM_NTASKS_PER_NODE": spec.ntasks_per_node or "",
        "SLURM_RESTART_COUNT": job.restarts or "",
        "SLURM_TASKS_PER_NODE": _tasks_per_node(job, allocation),
    }
    if spec.gres or spec.tres_per_job or spec.tres_per_socket or spec.tres_per_task:
        variables |= gres_environment(job, core.tables.nodes.gres)
    return variables


def _memory(job: Job, held: int | None, asked: int | None) -> int | str:
    """What a job is told of its memory: what it asked for, and a batch script of a default, too;
    nothing where it has all of the node.
    """
    return "" if not held or (job.interactive and asked is None) or job.spec.mem_per_tres else held


def _tasks_per_node(job: Job, allocation: Allocation) -> str:
    """As many tasks as were asked for, or else as fit on the CPUs."""
    spec = job.spec
    if spec.num_tasks is not None and spec.overcommit and allocation.node_count == 1:
        return str(job.num_tasks)
    if spec.num_tasks is None and not spec.ntasks_per_node and not spec.overcommit:
        rows = [
            (max(cpus // (spec.cpus_per_task or 1), 1), count)
            for cpus, count in allocation.per_node()
        ]
        return ",".join(f"{tasks}(x{count})" if count > 1 else str(tasks) for tasks, count in rows)
    return allocation.per_node_text("tasks")


def gres_environment(job: Job, table: GresTable | None) -> dict[str, object]:
    """What a job with generic resources is told of them; the GPUs are those of its first node,
    where the batch script runs.
    """
    allocation, spec = job.allocation, job.spec
    assert allocation is not None
    share = allocation.share_on(allocation.first_node)
    held = (
        []
        if share is None
        else [
            each
            for each in share.gres
            if each.name == GPU or (each.name in SHARED and each.devices)
        ]
    )
    parts = {each.name: each for each in held if each.name in SHARED}
    devices = ",".join(str(device) for each in held for device in nodeset.indices(each.devices))
    by_mps = parts.get("mps")
    of_all = "" if by_mps else devices  # what not only CUDA knows
    return {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": ""
        if by_mps is None or table is None
        else percentage(by_mps, table.layouts[share.node] if share else ()),
        "CUDA_VISIBLE_DEVICES": devices,
        "GPU_DEVICE_ORDINAL": of_all,
        "ROCR_VISIBLE_DEVICES": of_all,
        "SLURM_CPUS_PER_GPU": _plain(spec.cpus_per_tres),
        "SLURM_GPUS": _plain(spec.tres_per_job),
        "SLURM_GPUS_ON_NODE": sum(1 if each.name in SHARED else each.amount for each in held) or "",
        "SLURM_GPUS_PER_NODE": spec.extra.get("gpus_per_node", ""),
        "SLURM_GPUS_PER_SOCKET": _plain(spec.tres_per_socket),
        "SLURM_GPUS_PER_TASK": _plain(spec.tres_per_task),
        "SLURM_GPU_BIND": spec.extra.get("tres_bind", "").removeprefix("gpu:"),
        "SLURM_GPU_FREQ": spec.extra.get("tres_freq", "").removeprefix("gpu:"),
        "SLURM_JOB_GPUS": devices,
        "SLURM_MEM_PER_GPU": _plain(spec.mem_per_tres),
        "SLURM_SHARDS_ON_NODE": parts["shard"].amount if "shard" in parts else "",
    }


def percentage(held: Held, layout: Layout) -> int:
    """How much of its GPU a job has."""
    gpu = held.devices.bit_length() - 1
    return next(
        (
            held.amount * 100 // group.parts[gpu]
            for group in layout
            if group.name == held.name and group.parts and group.parts[gpu]
        ),
        0,
    )


def _plain(text: str) -> str:
    return text.replace("gres:gpu:", "")


def daemons_of(core: Core, nodes: int) -> list[tuple[str, str, str]]:
    """Name, address and nodes of the daemons that stand for the nodes (a bitmap)."""
    return [
        (daemon.name, daemon.address, core.names.to_expression(part))
        for daemon, part in core.parts(nodes)
    ]
