"""What sbatch says to options about generic resources that do not go together, before it asks the
controller.

Place: commands. Follows sbatch(1) --gres, --gpus and their kin, and the texts of the real command.
"""

from understudy.commands.submission.shape import tasks_told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.context import Context
    from understudy.commands.submission.job import Job
    from understudy.model.gpu_options import GpuOptions

# what Slurm's commands find out by themselves about generic resources, and say as they are
GRES_ERRORS = (2072, 2119, 2122)
INVALID = "Invalid generic resource (gres) specification"


def refuses_gres(job: "Job", context: "Context") -> bool:
    """Whether options about generic resources do not go together, which is said. A job with GPUs
    for each task has as many tasks as follow from nodes and their parts, where these are told.
    """
    if job.spec.get("tres_per_task") and "num_tasks" not in job.spec and (told := tasks_told(job)):
        job.spec["num_tasks"] = told
    said = complaint(job.spec) if job.asks_for_gres else ""
    if job.spec.get("ntasks_per_tres") and "gpu" not in _gres_types(context):
        said = _without_gpus(job)
    if said:
        if said.startswith("gres_job_state_validate") or "gpu" in _gres_types(context):
            context.error(said)
        context.error(INVALID)
    elif job.spec.get("ntasks_per_tres") and options_of(job.spec).is_for_no_gpu():
        from understudy.model.gpu_options import NO_GPU_IS_ADDED

        context.error(NO_GPU_IS_ADDED)
    return bool(said)


def _without_gpus(job: "Job") -> str:
    """What is said of --ntasks-per-gpu where no node has GPUs; "" where none come of it."""
    from understudy.model.gpu_options import GpuOptions, added_gpus

    tasks = job.spec.get("num_tasks") or tasks_told(job) or job.spec.get("min_nodes")
    each = job.spec["ntasks_per_tres"]
    if not tasks:
        return GpuOptions(tasks_per_gpu=each).conflict()
    return added_gpus(tasks // each) if tasks >= each else ""


def gres_help(context: "Context") -> str:
    """What `--gres=help` prints."""
    return "\n".join(
        ["Valid gres options are:", *(f"{name}[[:type]:count]" for name in _gres_types(context))]
    )


def _gres_types(context: "Context") -> list[str]:
    types = dict(
        context.client.query("config", ["name", "value"], {"name": ["GresTypes"]}).rows
    ).get("GresTypes", "")
    return [name for name in types.split(",") if name and name != "(null)"]


def options_of(spec: "dict[str, object]") -> "GpuOptions":
    """What the job says of GPUs, and of what must agree with it."""
    from understudy.model.gpu_options import GpuOptions
    from understudy.model.shape import described_threads

    def number(name: str) -> int:
        return int(str(spec.get(name) or 0))

    return GpuOptions(
        per_job=gpus_of(spec.get("tres_per_job")),
        per_node=gpus_of(spec.get("gres")),
        per_socket=gpus_of(spec.get("tres_per_socket")),
        per_task=gpus_of(spec.get("tres_per_task")),
        cpus_per_gpu=gpus_of(spec.get("cpus_per_tres")),
        tasks_per_gpu=number("ntasks_per_tres"),
        min_nodes=number("min_nodes"),
        max_nodes=number("max_nodes"),
        num_tasks=number("num_tasks"),
        cpus_per_task=number("cpus_per_task"),
        tasks_per_node=number("ntasks_per_node"),
        sockets_per_node=number("sockets_per_node"),
        threads_per_node=described_threads(
            *(
                spec.get(name)
                for name in ("sockets_per_node", "cores_per_socket", "threads_per_core")
            )  # type: ignore[arg-type]
        )
        or 0,
    )


def complaint(spec: "dict[str, object]") -> str:
    """The line that sbatch prints before it refuses the job; "" if the options go together."""
    options = options_of(spec)
    if spec.get("mem_per_tres", "gres:gpu:0") != "gres:gpu:0" and not options.asks_for_gpus:
        return f"Requested mem_per_tres={spec['mem_per_tres']} but did not request any GPU."
    return options.conflict()


def gpus_of(text: object) -> int:
    """How many GPUs the first word about GPUs asks for; 1 where it gives no number."""
    for word in str(text or "").split(","):
        parts = word.removeprefix("gres:").split(":")
        if parts[0] == "gpu":
            return int(parts[-1]) if len(parts) > 1 and parts[-1].isdecimal() else 1
    return 0
