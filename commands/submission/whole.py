"""What is read and checked once all options of a submission are known: files that they name, and
what does not go together.

Place: under sbatch, salloc and srun. Follows the real commands, where sbatch(1) is silent.
"""

from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.options import check_limits
from understudy.model.noted import NO_NODES, noted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_X11_NODES = {"", "all", "batch", "first", "last"}


def check_whole(job: Job, *, bb: str = "--burst-buffer") -> None:
    """Read a file of nodes and that of a burst buffer. Refuse a buffer from two places (`bb`: as
    the command names the other one), planes that are too few for the
    nodes, and an arbitrary distribution over nodes that nobody named.

    Raises:
        BadOptionError: they are, or a file cannot be read.
    """
    read_node_file(job)
    _settle_no_nodes(job)
    if wrong := wrong_counts(job):
        raise BadOptionError(wrong[-1], 1, *(f"{{program}}: error: {line}" for line in wrong[:-1]))
    refuse_two_buffers(job, bb)
    if (file := job.extra.pop("bbf", None)) is not None:
        job.extra["bb"] = _burst_buffer_of(file)
    if "propagate" in job.extra:
        check_limits(job.extra["propagate"])
    distribution = job.spec.get("distribution", "")
    if distribution.startswith("arbitrary") and not job.spec.get("required_nodes"):
        raise BadOptionError(
            "With Arbitrary distribution you need to specify a nodelist or hostfile with "
            "the -w option",
            1,
        )
    if distribution.startswith("plane="):
        size = int(distribution[6:])
        nodes = job.spec.get("min_nodes", 1)
        tasks = job.spec.get("num_tasks", nodes)
        if -(-tasks // size) < nodes:
            raise BadOptionError("Too few processes for the requested {plane,node} distribution", 1)


def wrong_counts(job: Job) -> list[str]:
    """What is to be said of numbers that 32 bits with a sign make negative."""
    wrong = []
    if (tasks := job.spec.get("num_tasks", 1)) < 0:
        wrong.append(f"invalid number of tasks (-n {tasks})")
    if (cpus := job.spec.get("cpus_per_task", 1)) <= 0:
        wrong.append(f"invalid number of cpus per task (-c {cpus})")
    return wrong


def _settle_no_nodes(job: Job) -> None:
    """Let what asks for no node or task be nothing beside another option that says how many there
    are. No tasks, given as such, stay none.
    """
    if NO_NODES not in job.extra:
        return
    has_nodes = bool(job.spec.get("min_nodes") or job.spec.get("required_nodes"))
    has_tasks = "num_tasks" in job.spec or "ntasks_per_node" in job.spec
    for name in ("nodes", "nodelist"):
        if has_nodes:
            job.note(NO_NODES, name, is_so=False)
    if has_nodes or has_tasks:
        job.note(NO_NODES, "extra_node_info", is_so=False)


def refuse_two_buffers(job: Job, bb: str) -> None:
    """See to it that a burst buffer comes from one place. `bb`: as the command names the first.

    Raises:
        BadOptionError: it comes from two.
    """
    if {"bb", "bbf"} <= job.extra.keys():
        raise BadOptionError(f"Cannot specify both {bb} and --bbf", 1)


def refuse_no_tasks(job: Job) -> None:
    """Of salloc and srun; sbatch leaves it to the controller.

    Raises:
        BadOptionError: --ntasks is none.
    """
    if "ntasks" in noted(job.extra, NO_NODES):
        raise BadOptionError("invalid number of tasks (-n 0)", 1)


def check_arbitrary(job: Job) -> None:
    """Let tasks of an arbitrary distribution be as many as the nodes that are named, each of which
    is named once.

    Raises:
        BadOptionError: they are more.
    """
    if job.spec.get("distribution") != "arbitrary":
        return
    from understudy.model.hostlist import expand

    try:
        names = list(dict.fromkeys(expand(job.spec["required_nodes"])))
    except ValueError:
        return  # the controller refuses it
    tasks = job.spec.setdefault("num_tasks", len(names))
    if tasks > len(names):
        raise BadOptionError(
            f"Asked for {tasks} tasks have {len(names)} in the nodelist.  Check your "
            f"nodelist, or set the -n option to be {len(names)}",
            1,
        )
    job.spec["required_nodes"] = ",".join(names)


def check_x11(own: "Mapping[str, str | None]", environ: "Mapping[str, str]") -> None:
    """--x11: there must be a display to forward to.

    Raises:
        BadOptionError: there is none.
    """
    if "x11" in own and (own["x11"] or "") in _X11_NODES and not environ.get("DISPLAY"):
        raise BadOptionError("No DISPLAY variable set, cannot setup x11 forwarding.", 255)


def read_node_file(job: Job) -> None:
    """Take the nodes that --nodefile names, when all options are known to be good.

    Raises:
        BadOptionError: the file cannot be read.
    """
    path, job.node_file = job.node_file, None
    if path is None:
        return
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            words = file.read().replace(",", " ").split()
    except OSError as error:
        said = f"slurm_allocate_resources error opening file {path}, {error.strerror}"
        lines = [f"{{program}}: error: {said}"] if path else []
        raise BadOptionError("Invalid --nodefile node file", 255, *lines) from None
    job.spec["required_nodes"] = ",".join(words)


def _burst_buffer_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        raise BadOptionError("Invalid --bbf specification", 1) from None
