"""The environment of a step's tasks, as far as srun knows it.

Place: under srun. The node daemons add what belongs to a node or a task. Follows srun(1), "OUTPUT
ENVIRONMENT VARIABLES".
"""

import os

from understudy.commands.shared.locate import DEFAULT_PORT
from understudy.commands.shared.task_counts import compressed, counts
from understudy.commands.submission.export import exported, limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.srun.srun_settings import Settings
    from understudy.commands.srun.step import Step

_OF_SCRIPTS = frozenset(
    (
        "SLURM_GPUS",
        "SLURM_GPUS_PER_NODE",
        "SLURM_GPUS_PER_SOCKET",
        "SLURM_GPUS_PER_TASK",
        "SLURM_GPU_BIND",
    )
)


def environment_of(
    step: "Step", settings: "Settings", told: list[str], names: list[str], host: str
) -> dict[str, str]:
    """The environment of a part's tasks, without what belongs to a node or a task. `told`: what the
    controller says, `names`: nodes, `host`: ours.
    """
    spec = settings.job.spec
    environ = step.context.environ
    wanted = settings.own.get("export")
    chosen = exported(environ, wanted)
    for name in ("SLURM_EXPORT_ENV", "SLURM_CPUS_PER_TASK", "SLURM_TASK_PID"):
        chosen.pop(name, None)
    chosen |= {
        name: value
        for name, _, value in (entry.partition("=") for entry in told)
        if not step.owns_job or name not in _OF_SCRIPTS
    }
    if step.whole.components:
        chosen |= _of_the_whole(step, names)
    per_node = compressed([len(tasks) for tasks in step.tasks])
    umask = os.umask(0)
    os.umask(umask)
    port = str(step.io.port)
    chosen |= {
        "SLURM_JOB_NAME": chosen.get("SLURM_JOB_NAME") or spec.get("name", ""),
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1" if host.startswith("127.") else host,
        "SLURM_NNODES": str(len(names)),
        "SLURM_NPROCS": str(step.size),
        "SLURM_NTASKS": str(step.size),
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_SRUN_COMM_HOST": "127.0.0.1" if host.startswith("127.") else host,
        "SLURM_SRUN_COMM_PORT": port,
        "SLURM_STEPID": str(step.step_id),
        "SLURM_STEP_ID": str(step.step_id),
        "SLURM_STEP_LAUNCHER_PORT": port,
        "SLURM_STEP_NODELIST": step.nodes,
        "SLURM_STEP_NUM_NODES": str(len(names)),
        "SLURM_STEP_NUM_TASKS": str(step.size),
        "SLURM_STEP_TASKS_PER_NODE": per_node,
        "SLURM_TASKS_PER_NODE": per_node,
        "SLURM_UMASK": f"{umask:04o}",
        **limits(settings.own.get("propagate")),
        "SRUN_DEBUG": "3",
    }
    chosen.setdefault("SLURM_SUBMIT_DIR", os.getcwd())
    chosen.setdefault("SLURM_SUBMIT_HOST", os.uname().nodename.partition(".")[0])
    chosen.setdefault("TMPDIR", "/tmp")  # noqa: S108  what Slurm gives
    controller = (
        step.context.client.location.controller.removeprefix("tcp:") or f"127.0.0.1:{DEFAULT_PORT}"
    )
    chosen["SLURM_WORKING_CLUSTER"] = (
        f"{chosen.get('SLURM_CLUSTER_NAME', '')}:{controller}:9728:109"
    )
    if spec.get("cpus_per_task"):
        chosen["SLURM_CPUS_PER_TASK"] = str(spec["cpus_per_task"])
    for name, field in (
        ("SLURM_NTASKS_PER_CORE", "ntasks_per_core"),
        ("SLURM_NTASKS_PER_SOCKET", "ntasks_per_socket"),
        ("SLURM_NTASKS_PER_TRES", "ntasks_per_tres"),
        ("SLURM_THREADS_PER_CORE", "threads_per_core"),
    ):
        if spec.get(field):
            chosen[name] = str(spec[field])
    extra = settings.job.extra
    if spec.get("hint") in {"nomultithread", "compute_bound"}:
        chosen["SLURM_THREADS_PER_CORE"] = "1"
    if settings.own.get("cpu_bind") or settings.implied_binding:
        from understudy.commands.srun.bindings import cpu_variables

        chosen |= cpu_variables(settings.own.get("cpu_bind", ""), settings.implied_binding)
    if extra.get("mem_bind"):
        from understudy.commands.srun.bindings import memory_variables

        chosen |= memory_variables(extra["mem_bind"])
    if "preserve_env" in settings.own:
        for name in ("SLURM_NNODES", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"):
            chosen.pop(name, None)
            if name in environ:
                chosen[name] = environ[name]
    if "label" in settings.own:
        chosen["SLURM_LABELIO"] = "1"
    if not step.owns_job:
        if cpus := chosen.get("SLURM_JOB_CPUS_PER_NODE"):
            chosen.setdefault("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", cpus)
        chosen["SLURM_DISTRIBUTION"] = spec.get("distribution") or (
            "cyclic" if step.size <= len(names) else "block"
        )
    elif spec.get("distribution"):
        chosen["SLURM_DISTRIBUTION"] = spec["distribution"]
    kind, _, plane = chosen.get("SLURM_DISTRIBUTION", "").partition("=")
    if plane:
        chosen["SLURM_DISTRIBUTION"], chosen["SLURM_DIST_PLANESIZE"] = kind, plane
    return chosen


def _of_the_whole(step: "Step", names: list[str]) -> dict[str, str]:
    """What a step in a heterogeneous job is told in place of what a component would be."""
    cpus = [
        each
        for _, allocation in step.parts
        for each in counts(allocation.environment.get("SLURM_JOB_CPUS_PER_NODE", "1"))
    ]
    nodes = {
        "SLURM_JOB_NODELIST": step.nodes,
        "SLURM_NODELIST": step.nodes,
        "SLURM_JOB_NUM_NODES": str(len(names)),
    }
    if len(step.parts) == 1:
        own = step.allocation.environment
        nodes = {
            "SLURM_JOB_NODELIST": own["SLURM_JOB_NODELIST"],
            "SLURM_NODELIST": own["SLURM_JOB_NODELIST"],
        }
    whole = str(step.whole.job_id)
    return nodes | {
        "SLURM_JOB_ID": whole,
        "SLURM_JOBID": whole,
        "SLURM_JOB_CPUS_PER_NODE": compressed(cpus),
    }
