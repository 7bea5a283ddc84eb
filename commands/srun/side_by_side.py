"""Several programs in a job that has no components: one step, in which each has nodes of its own.

Place: under srun. What it says was observed at 22.05.8.
"""

from understudy.commands.shared.context import Context
from understudy.commands.shared.task_counts import counts
from understudy.commands.srun.srun_settings import (
    Settings,
    StepError,
    drop_contrary_tasks,
)
from understudy.commands.submission.allocation import Allocation
from understudy.model.hostlist import compress, expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.submission.job import Job


def side_by_side(parts: list[Settings], whole: Allocation, context: Context) -> "list[Any]":
    """Several programs in an ordinary job are one step, in which each has nodes of its own: which
    tasks run which. Changes the first part's settings, which are the step's.
    """
    held = expand(whole.environment.get("SLURM_JOB_NODELIST", ""))
    cpus = dict(
        zip(held, counts(whole.environment.get("SLURM_JOB_CPUS_PER_NODE", "")), strict=False)
    )
    nodes = list[str]()
    programs: list[Any] = []
    for part in parts:
        drop_contrary_tasks(part, context)
        own, tasks = nodes_of(part.job, held, nodes, context, whole.job_id)
        if tasks * int(part.job.spec.get("cpus_per_task") or 1) > sum(
            cpus.get(name, 0) for name in own
        ) and not part.job.spec.get("overcommit"):
            context.error(
                f"Unable to create step for job {whole.job_id}: More processors requested "
                "than permitted"
            )
            raise StepError
        first = len(nodes)
        for place, name in enumerate(own):
            nodes += [name] * (tasks // len(own) + (place < tasks % len(own)))
        programs.append((list(range(first, len(nodes))), part.command))
    used = len(dict.fromkeys(nodes))
    spec = parts[0].job.spec
    spec |= {"num_tasks": len(nodes), "min_nodes": used, "max_nodes": used}
    spec |= {"required_nodes": ",".join(nodes), "distribution": "arbitrary"}
    spec.pop("excluded_nodes", None)
    return programs


def nodes_of(
    job: "Job", held: list[str], taken: list[str], context: Context, job_id: int
) -> tuple[list[str], int]:
    """The nodes that one of several parts has of those that the job holds and others have not taken
    before, and its number of tasks.

    Raises:
        StepError: there are none; which is said.
    """
    spec = job.spec
    try:
        excluded = dict.fromkeys([*taken, *expand(spec.get("excluded_nodes") or "")])
    except ValueError:
        context.error(f"Unable to create step for job {job_id}: Invalid node name specified")
        raise StepError from None
    try:
        named = list(dict.fromkeys(expand(spec.get("required_nodes") or "")))
    except ValueError:
        named = [""]  # which no job holds
    tasks = spec.get("num_tasks")
    if tasks is None:
        tasks = max(spec.get("min_nodes") or 1, len(named))
        tasks *= int(spec.get("ntasks_per_node") or 1)
    count = max(spec.get("min_nodes") or len(named) or min(tasks, len(held)), len(named))
    free = [name for name in held if name not in excluded]
    said = ""
    if count > len(held):
        said = f"Only allocated {len(held)} nodes asked for {count}"
    elif not set(named).issubset(held):
        said = f"Unable to create step for job {job_id}: Requested node configuration is not "
        said += "available"
    elif count > len(free):
        said = f"Allocation failure of {count} nodes: job size of {len(held)}, already "
        said += f"allocated {len(excluded)} nodes to previous components."
    elif excluded.keys() & set(named):
        said = f"Requested nodelist {compress(named)} overlaps with excluded "
        context.error(f"{said}{compress(excluded)}.")
        said = "Job not submitted."
    if said:
        context.error(said)
        raise StepError
    return named + [name for name in free if name not in named][: count - len(named)], tasks
