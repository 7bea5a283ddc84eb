"""The rows of the table of steps: those of running jobs, batch scripts among them.

Place: views; read by understudy.controller.views.query. The columns are described
in understudy.model.records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.facts.job import memory_text, run_time_s, step_memory_mb
from understudy.controller.facts.tres import tres_text as gres_tres
from understudy.controller.tables.gres_texts import held_counts
from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.gres import Held
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.step import Step

ASKED: Final = (
    *(
        "cpus_per_tres",
        "memory_per_tres",
        "tres_bind",
        "tres_freq",
        "tres_per_step",
        "tres_per_node",
        "tres_per_socket",
        "tres_per_task",
    ),
)
_LIVE: Final = frozenset((JobState.RUNNING, JobState.SUSPENDED))


def step_rows(core: Core, job: Job, now: float) -> list[dict[str, Any]]:
    """The steps of the job that have not ended, in Slurm's order: the batch script last."""
    rows = [_numbered(core, job, step, now) for step in job.steps.values() if step.is_running]
    if (
        job.state in _LIVE
        and not job.interactive
        and job.allocation is not None
        and job.start_time is not None
    ):
        rows.append(_batch(core, job, now))
    return rows


def _common(core: Core, job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "array_job_id": job.array.job_id if job.array is not None else 0,
        "array_task_id": job.array_task_id,
        "user_id": job.user_id,
        "user_name": core.users.user_name(job.user_id),
        "partition": job.partition,
        "cluster": core.settings.cluster_name,
    }


def _run_time_s(core: Core, job: Job, step: Step, now: float) -> int:
    """Without the time for which its job was suspended."""
    start, changed = job.start_time, job.suspend_time
    if start is None or changed is None or changed <= step.start_time:
        return max(int(now) - step.start_time, 0)
    return max(run_time_s(core, job, now) - (step.start_time - start), 0)


def _numbered(core: Core, job: Job, step: Step, now: float) -> dict[str, Any]:
    return {
        **_common(core, job),
        "step": str(step.step_id),
        "name": step.name,
        "state": int(JobState.RUNNING),  # of a suspended job, too, as in 22.05.8
        "start_time": step.start_time,
        "run_time_s": _run_time_s(core, job, step, now),
        "time_limit_s": step.time_limit_s,
        "nodes": step.node_list,
        "node_count": len(step.places),
        "cpus": step.cpus,
        "num_tasks": step.tasks,
        "memory_mb": step.memory_mb,
        "tres_allocated": tres_text(
            core,
            step.cpus,
            step.memory_mb,
            len(step.places),
            [held for place in step.places for held in place.gres],
        ),
        "distribution": step.distribution,
        "host": step.host,
        "pid": step.pid,
        **{name: step.asked.get(name, "") for name in ASKED},
    }


def _batch(core: Core, job: Job, now: float) -> dict[str, Any]:
    allocation = job.allocation
    assert allocation is not None
    share = allocation.share_on(allocation.first_node)
    assert share is not None
    assert job.start_time is not None
    return {
        **_common(core, job),
        "step": "batch",
        "name": "batch",
        "state": int(JobState.RUNNING),
        "start_time": job.start_time,
        "run_time_s": run_time_s(core, job, now),
        "time_limit_s": None,
        "nodes": core.tables.nodes.nodes[allocation.first_node].name,
        "node_count": 1,
        "cpus": share.cpus,
        "num_tasks": 1,
        "memory_mb": share.memory_mb,
        "tres_allocated": tres_text(core, share.cpus, share.memory_mb, 1, share.gres),
        "distribution": "",
        "host": "",
        "pid": 0,
        **dict.fromkeys(ASKED, ""),
    }


def tres_text(core: Core, cpus: int, memory_mb: int, nodes: int, gres: Iterable[Held]) -> str:
    """`cpu=2,gres/gpu=2,mem=100M,node=1`."""
    memory = step_memory_mb(core, memory_mb)
    return (
        f"cpu={cpus}{gres_tres(core, held_counts(gres))},mem="
        f"{memory_text(memory) if memory else 0},node={nodes}"
    )
