"""The environment of a step's tasks, as far as srun knows it.

Place: under srun. The node daemons add what belongs to a node or a task. Which variable tells what:
`model/environment.py`.
"""

from understudy.commands.shared.locate import DEFAULT_PORT
from understudy.commands.shared.task_counts import compressed, counts
from understudy.commands.submission.export import exported, limits, submitter
from understudy.model.environment import (
    COMPONENT,
    NOT_OWN_TASKS,
    SRUN,
    TMP,
    UNSET,
    distribution,
    is_for,
    read,
    told,
    working_cluster,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.srun.srun_settings import Settings
    from understudy.commands.srun.step import Step


def environment_of(
    step: "Step", settings: "Settings", of_job: list[str], names: list[str], host: str
) -> dict[str, str]:
    """The environment of a part's tasks, without what belongs to a node or a task. `of_job`: what
    the controller says, `names`: nodes, `host`: ours.
    """
    spec = settings.job.spec
    environ = step.context.environ
    wanted = settings.own.get("export")
    chosen = exported(environ, wanted, overwrites=False)
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_TASK_PID"):
        chosen.pop(name, None)
    chosen |= {
        name: value
        for name, value in read(of_job).items()
        if not step.owns_job or not is_for(NOT_OWN_TASKS, name)
    }
    if step.whole.components:
        chosen |= _of_the_whole(step, names)
    facts = _facts(step, settings, names, host)
    facts["name"] = chosen.get("SLURM_JOB_NAME") or spec.get("name", "")
    controller = (
        step.context.client.location.controller.removeprefix("tcp:") or f"127.0.0.1:{DEFAULT_PORT}"
    )
    facts["working_cluster"] = working_cluster(chosen.get("SLURM_CLUSTER_NAME", ""), controller)
    chosen = {
        **told(UNSET, facts),
        **chosen,
        **told(SRUN, facts),
        **limits(settings.own.get("propagate")),
    }
    if settings.own.get("cpu_bind") or settings.implied_binding:
        from understudy.commands.srun.bindings import cpu_variables

        chosen |= cpu_variables(settings.own.get("cpu_bind", ""), settings.implied_binding)
    if binding := settings.job.extra.get("mem_bind"):
        from understudy.commands.srun.bindings import memory_variables

        chosen |= memory_variables(binding)
    if "preserve_env" in settings.own:
        for name in ("SLURM_NNODES", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"):
            chosen.pop(name, None)
            if name in environ:
                chosen[name] = environ[name]
    if not step.owns_job and (cpus := chosen.get("SLURM_JOB_CPUS_PER_NODE")):
        chosen.setdefault("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", cpus)
    return chosen


def _facts(step: "Step", settings: "Settings", names: list[str], host: str) -> "dict[str, object]":
    """What tasks are told of their step."""
    spec = settings.job.spec
    by_default = "cyclic" if step.size <= len(names) else "block"
    facts = {
        **{name: value for name, value in spec.items() if value},
        **submitter(),
        **distribution(spec.get("distribution") or ("" if step.owns_job else by_default)),
        "temporary_dir": TMP,
        "host": "127.0.0.1" if host.startswith("127.") else host,
        "port": step.io.port,
        "loudness": 3 + settings.verbose - settings.quiet,
        "label": "label" in settings.own,
        "node_count": len(names),
        "num_tasks": step.size,
        "tasks_per_node": compressed([len(tasks) for tasks in step.tasks]),
        "step_id": step.step_id,
        "step_nodes": step.nodes,
    }
    if spec.get("hint") in {"nomultithread", "compute_bound"}:
        facts["threads_per_core"] = 1
    return facts


def _of_the_whole(step: "Step", names: list[str]) -> dict[str, str]:
    """What a step in a heterogeneous job is told in place of what a component would be."""
    cpus = [
        each
        for _, allocation in step.parts
        for each in counts(allocation.environment.get("SLURM_JOB_CPUS_PER_NODE", "1"))
    ]
    is_one = len(step.parts) == 1
    facts = {
        "job_id": step.whole.job_id,
        "cpus_per_node": compressed(cpus),
        "nodes": step.allocation.environment["SLURM_JOB_NODELIST"] if is_one else step.nodes,
    }
    return told(COMPONENT, facts if is_one else {**facts, "node_count": len(names)})
