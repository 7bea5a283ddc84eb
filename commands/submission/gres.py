"""What sbatch says to options about generic resources that do not go together, before it asks the
controller.

Place: commands. Follows sbatch(1) --gres, --gpus and their kin, and the texts of the real command.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.client import Context
    from understudy.commands.submission.job import Job

# what Slurm's commands find out by themselves about generic resources, and say as they are
GRES_ERRORS = (2072, 2119)
INVALID = "Invalid generic resource (gres) specification"


def refuses_gres(job: "Job", context: "Context") -> bool:
    """Whether options about generic resources do not go together, which is said."""
    said = complaint(job.spec) if job.asks_for_gres else ""
    if said:
        if said.startswith("gres_job_state_validate") or "gpu" in _gres_types(context):
            context.error(said)
        context.error(INVALID)
    return bool(said)


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


def complaint(spec: "dict[str, object]") -> str:
    """The line that sbatch prints before it refuses the job; "" if the options go together."""
    gpus = gpus_of(spec.get("tres_per_job"))
    per_node, per_socket, per_task = (
        gpus_of(spec.get(name)) for name in ("gres", "tres_per_socket", "tres_per_task")
    )
    if spec.get("mem_per_tres", "gres:gpu:0") != "gres:gpu:0" and not (
        gpus or per_node or per_socket or per_task
    ):
        return f"Requested mem_per_tres={spec['mem_per_tres']} but did not request any GPU."
    if spec.get("cpus_per_tres") and spec.get("cpus_per_task"):
        return "--cpus-per-gpu is mutually exclusive with --cpus-per-task"
    if per_socket and "sockets_per_node" not in spec:
        return "--gpus-per-socket option requires --sockets-per-node specification"
    if per_task:
        if not gpus and not spec.get("num_tasks") and not spec.get("min_nodes"):
            return (
                "Failed to validate job spec. --gpus-per-task used without either --gpus "
                "or -n/--ntasks is not allowed."
            )
        if gpus and gpus % per_task:
            return "Failed to validate job spec, --gpus not multiple of --gpus-per-task"
    if gpus and gpus < int(str(spec.get("min_nodes") or 0)):
        return "Failed to validate job spec, --gpus < -N"
    each_gpu, tasks = (
        int(str(spec.get("ntasks_per_tres") or 0)),
        int(str(spec.get("num_tasks") or 0)),
    )
    if each_gpu and tasks % each_gpu and not (gpus or per_node or per_socket or per_task):
        return "Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu."
    if spec.get("ntasks_per_tres") and not (
        gpus or per_node or per_socket or per_task or spec.get("num_tasks") or spec.get("min_nodes")
    ):
        return (
            "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU "
            "specification or a node/ntask specification"
        )
    return ""


def gpus_of(text: object) -> int:
    """How many GPUs the first word about GPUs asks for; 1 where it gives no number."""
    for word in str(text or "").split(","):
        parts = word.removeprefix("gres:").split(":")
        if parts[0] == "gpu":
            return int(parts[-1]) if len(parts) > 1 and parts[-1].isdecimal() else 1
    return 0
