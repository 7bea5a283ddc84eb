"""The facts that jobs, steps and programs of the site are told and that only the controller knows.
Which variables tell them, and whom, `model/environment.py` says.

Place: facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from understudy.controller.facts.streams import std_in, std_out
from understudy.controller.tables.allocation import rows_text
from understudy.controller.tables.het_job import whole
from understudy.model import nodeset
from understudy.model.environment import GROUP, JOB, NODES, SITE, of_components, told, written
from understudy.model.gres import GPU, SHARED
from understudy.model.hostlist import expand

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.gres import GresTable, Held, Layout
    from understudy.controller.tables.job import Job

# told of a job that has none, too
_OF_GPUS: Final = {"gpu_bind": "tres_bind", "gpu_freq": "tres_freq"}
NO_ENVIRONMENT: Final[list[str]] = []
OF_JOB: Final = -1  # the step id in a credential that is for the job's nodes rather than for a step


def job_environment(
    core: Core, job: Job, who: int = JOB, more: dict[str, object] | None = None
) -> list[str]:
    """What one is told of a job that has its nodes. The node daemon adds what belongs to its node.
    `more`: facts of his alone.
    """
    facts = _allocated(core, job) | (more or {})
    if job.het is None:
        return written(told(who, facts)) + _of_buffer(core, job)
    components = [told(GROUP, _allocated(core, each)) for each in whole(job)]
    return written(told(who, facts | {"components": len(components)}) | of_components(components))


def _of_buffer(core: Core, job: Job) -> list[str]:
    """What a site's script of burst buffers gives the job."""
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    return [] if buffer is None else buffer.environment or []


def site_environment(core: Core, job: Job, **facts: object) -> dict[str, str]:
    """For the site's programs beside the controller: what they are told of any job, and these
    facts.
    """
    return told(SITE, _of_programs(core, job) | facts)


def node_environment(core: Core, job: Job, *, is_over: bool) -> list[str]:
    """For Prolog (or, when the job is over, Epilog) on its nodes; nothing where there is none."""
    settings = core.settings
    if settings.emulates_jobs or not (settings.has_epilog if is_over else settings.has_prolog):
        return []
    end = end_facts(job) if is_over else {}
    return written(told(NODES, _of_programs(core, job) | end))


def end_facts(job: Job) -> dict[str, object]:
    """How it ended."""
    return {
        "derived_exit_code": job.derived_exit_code,
        "status": job.exit_code << 8 | job.exit_signal,
        "code_and_signal": f"{job.exit_code}:{job.exit_signal}",
    }


def _of_programs(core: Core, job: Job) -> dict[str, object]:
    facts, now = _facts(core, job), core.time.now()
    if not job.interactive:
        facts |= {"std_in_path": std_in(core, job, now), "std_out_path": std_out(core, job, now)}
    return facts | {
        "account": job.spec.account or "(null)",
        "group": core.users.group_name(job.group_id),
        "nodes": job.node_list or "(null)",
    }


def _facts(core: Core, job: Job) -> dict[str, object]:
    """What is true of any job: its options, and what became of them."""
    allocation, array = job.allocation, job.array
    facts = {name: value for name, value in asdict(job.spec).items() if value} | {
        "cluster": core.settings.cluster_name,
        "group_id": job.group_id,
        "job_id": job.job_id,
        "nodes": job.node_list,
        "partition": job.partition,
        "restarts": job.restarts,
        "user": core.users.user_name(job.user_id),
        "user_id": job.user_id,
    }
    if array is not None and job.array_task_id is not None:
        facts |= {
            "array_job_id": array.job_id,
            "array_count": array.count,
            "array_task_id": job.array_task_id,
            "array_last": array.last,
            "array_first": array.first,
            "array_step": array.step,
        }
    if allocation is not None:
        facts |= {
            "cpus_per_node": allocation.per_node_text(),
            "node_count": allocation.node_count,
        }
    return facts


def _allocated(core: Core, job: Job) -> dict[str, object]:
    """What is true of a job that has its nodes."""
    allocation, spec = job.allocation, job.spec
    assert allocation is not None
    facts = _facts(core, job) | {
        "cpus_per_task": job.cpus_per_task if spec.cpus_per_task else None,
        "mem_per_cpu_mb": _memory(job, job.memory_per_cpu_mb, spec.mem_per_cpu_mb),
        "mem_per_node_mb": _memory(job, job.memory_per_node_mb, spec.mem_per_node_mb),
        "num_tasks": job.num_tasks if spec.num_tasks or spec.ntasks_per_node else None,
        "restarted": job.restarts or None,
        "tasks_per_node": _tasks_per_node(job, allocation),
    }
    extra = spec.extra
    facts |= {name: extra.get(key, "").removeprefix("gpu:") for name, key in _OF_GPUS.items()}
    if spec.gres or spec.tres_per_job or spec.tres_per_socket or spec.tres_per_task:
        facts |= _gres(job, core.tables.nodes.gres)
    return facts


def _memory(job: Job, held: int | None, asked: int | None) -> int | None:
    """What a job is told of its memory: what it asked for, and a batch script of a default, too;
    nothing where it has all of the node.
    """
    is_told = not (job.interactive and asked is None) and not job.spec.mem_per_tres
    return held or None if is_told else None


def _tasks_per_node(job: Job, allocation: Allocation) -> str:
    """As many tasks as were asked for, or else as fit on the CPUs."""
    spec = job.spec
    if spec.overcommit and (spec.num_tasks is not None or spec.ntasks_per_node):
        # no CPU says how many, so that they are dealt out evenly
        each, more = divmod(job.num_tasks, allocation.node_count)
        return rows_text([(each + 1, more), (each, allocation.node_count - more)])
    if spec.num_tasks is None and not spec.ntasks_per_node and not spec.overcommit:
        return rows_text(
            (max(cpus // (spec.cpus_per_task or 1), 1), count)
            for cpus, count in allocation.per_node()
        )
    return allocation.per_node_text("tasks")


def _gres(job: Job, table: GresTable | None) -> dict[str, object]:
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
    return {
        "mps_percentage": None
        if by_mps is None or table is None
        else percentage(by_mps, table.layouts[share.node] if share else ()),
        "devices": devices,
        "whole_devices": None if by_mps else devices,  # what not only CUDA knows
        "cpus_per_gpu": _plain(spec.cpus_per_tres),
        "gpus": _plain(spec.tres_per_job),
        "gpus_on_node": sum(1 if each.name in SHARED else each.amount for each in held) or None,
        "gpus_per_node": spec.extra.get("gpus_per_node"),
        "gpus_per_socket": _plain(spec.tres_per_socket),
        "gpus_per_task": _plain(spec.tres_per_task),
        "mem_per_gpu": _plain(spec.mem_per_tres),
        "shards": parts["shard"].amount if "shard" in parts else None,
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
    """Name, address and nodes of the daemons that stand for the nodes (a bitmap); of each
    node where each is a hop of its own.
    """
    if core.agents.fan_out is not None:
        return [
            (name, daemon.address, name)
            for daemon, part in core.parts(nodes)
            for name in expand(core.names.to_expression(part))
        ]
    return [
        (daemon.name, daemon.address, core.names.to_expression(part))
        for daemon, part in core.parts(nodes)
    ]
