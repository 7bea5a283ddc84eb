"""What sbatch and salloc make of numbers that do not go together, and what each command says of
cores that jobs may not ask for.

Place: commands. Follows the real commands, where sbatch(1) is silent.
"""

from understudy.commands.submission.job import BadOptionError
from understudy.model.noted import NO_NODES, noted

TYPE_CHECKING = False
# An option, and the one whose variable it makes void.
_CONTRARIES = (("core_spec", "thread_spec"), ("thread_spec", "core_spec"))
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.commands.shared.context import Context
    from understudy.commands.shared.options import Option
    from understudy.commands.submission.job import Job


def loudness(
    given: "Sequence[tuple[Option, str | None]]",
    environ: "Mapping[str, str]",
    variable: str,
    *,
    adds: bool = True,
) -> int:
    """How often --verbose counts: as often as it was given, and as the variable says; `adds`: both
    together, else the larger one.

    Raises:
        BadOptionError: the variable is negative, or --quiet was given, too.
    """
    times = sum(option.dest == "verbose" for option, _ in given)
    text = environ.get(variable, "").strip()
    level = int(text) if text.removeprefix("-").removeprefix("+").isdecimal() else 0
    if level < 0:
        raise BadOptionError(f'Invalid numeric value "{text}" for --verbose.', 1)
    times = times + level if adds else max(times, level)
    if times and any(option.dest == "quiet" for option, _ in given):
        raise BadOptionError("don't specify both --verbose (-v) and --quiet (-Q)", 1)
    return times


def variables_agree(environ: "Mapping[str, str]", prefix: str, context: "Context") -> bool:
    """Whether no more than one of the variables on memory, and of those on cores that are left to
    the system, is set; else that is said.
    """
    if f"{prefix}CORE_SPEC" in environ and f"{prefix}THREAD_SPEC" in environ:
        context.fatal(
            "Both --core-spec and --thread-spec set using environment variables. "
            "Those options are mutually exclusive."
        )
        return False
    if sum(f"{prefix}MEM_PER_{what}" in environ for what in ("CPU", "GPU", "NODE")) > 1:
        context.fatal(
            "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive."
        )
        return False
    return True


def without_contrary(
    environment: "Sequence[tuple[Option, str | None]]", given: "Sequence[tuple[Option, str | None]]"
) -> "list[tuple[Option, str | None]]":
    """What variables say, without what the command line says otherwise by another option."""
    names = {option.dest for option, _ in given}
    dropped = {other for one, other in _CONTRARIES if one in names}
    return [each for each in environment if each[0].dest not in dropped]


def options_agree(names: "set[str]", context: "Context") -> bool:
    """Whether none of the options contradict each other, which is said then."""
    if len({"mem", "mem_per_cpu", "mem_per_gpu"} & names) > 1:
        context.fatal("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
        return False
    for name in ("gpus_per_task", "gpus_per_socket", "ntasks_per_node"):
        if {name, "ntasks_per_gpu"} <= names:
            context.fatal(
                f"--{name.replace('_', '-')} is mutually exclusive with --ntasks-per-gpu "
                "and SLURM_NTASKS_PER_GPU"
            )
            return False
    return True


_HINTS = frozenset(("compute_bound", "memory_bound", "multithread", "nomultithread"))


def heed_hint(job: "Job") -> None:
    """What --hint says of a node's parts, in place of what others say of sockets and cores. It is
    nothing where threads of a core, or tasks of one, are told.

    Raises:
        BadOptionError: it is no hint.
    """
    spec, told = job.spec, ("threads_per_core", "ntasks_per_core", "extra_node_info")
    if "hint" not in spec:
        return
    words = str(spec["hint"]).lower().split(",")
    for given, word in zip(str(spec["hint"]).split(","), words, strict=True):
        if word == "help":
            from understudy.commands.shared.option_help import HINTS

            raise BadOptionError("", 1, help=HINTS)
        if word not in _HINTS:
            raise BadOptionError(f'unrecognized --hint argument "{given}", see --hint=help', 1)
    if any(spec.get(name) for name in told):
        del spec["hint"]
        return
    for name in ("sockets_per_node", "cores_per_socket"):
        spec.pop(name, None)
    if "memory_bound" in words:
        spec["cores_per_socket"] = 1
    if words != ["multithread"]:
        spec["threads_per_core"] = 1


def fit_nodes(job: "Job", context: "Context", *, quiet: bool = False) -> None:
    """At least the nodes that are named, and no more nodes than tasks, where the number of tasks
    was given.

    Raises:
        BadOptionError: more nodes are named than the job may have.
    """
    spec = job.spec
    tasks, nodes, most = spec.get("num_tasks"), spec.get("min_nodes"), spec.get("max_nodes")
    count = 0
    if named := spec.get("required_nodes"):
        count = _count(named)
        if most and count > most:
            raise BadOptionError(f"invalid number of nodes (-N {count}-{most})", 1)
        if count > 1 and tasks:
            nodes = max(nodes or 1, count)
    if "ntasks" in noted(job.extra, NO_NODES):
        if nodes := nodes or count:
            _say_fewer(0, nodes, context, quiet=quiet)
    elif tasks and nodes and nodes > tasks:
        lower_nodes(job, nodes, context, quiet=quiet)


def lower_nodes(job: "Job", nodes: int, context: "Context", *, quiet: bool = False) -> None:
    """As many as there are tasks, in place of so many."""
    tasks = job.spec["num_tasks"]
    _say_fewer(tasks, nodes, context, quiet=quiet)
    job.spec["min_nodes"] = job.spec["max_nodes"] = tasks


def _say_fewer(tasks: int, nodes: int, context: "Context", *, quiet: bool) -> None:
    if not quiet:
        context.complain(
            f"{context.program}: Warning: can't run {tasks} processes on {nodes} nodes, setting "
            f"nnodes to {tasks}"
        )


def tasks_told(job: "Job") -> int:
    """Of how many tasks a job knows that does not say itself how many; 0: of none."""
    from understudy.model.shape import described_threads, uncounted_tasks

    spec, threads = job.spec, None
    named = _count(spec["required_nodes"]) if spec.get("required_nodes") else 0
    if named or "min_nodes" in spec or "extra_node_info" in spec:
        counts = map(spec.get, ("sockets_per_node", "cores_per_socket", "threads_per_core"))
        threads = described_threads(*counts)
    nodes = max(spec.get("min_nodes", 1), named)
    tasks, is_told = uncounted_tasks(
        nodes, spec.get("max_nodes"), spec.get("ntasks_per_node"), threads
    )
    return tasks if is_told else 0


def _count(names: str) -> int:
    """How many nodes are named; 0 where the controller will not understand it either."""
    if "," not in names and "[" not in names:
        return 1
    from understudy.model.hostlist import expand

    try:
        return len(set(expand(names)))
    except ValueError:
        return 0


def say_ignored(job: "Job", context: "Context") -> None:
    """Say what was asked for and is nothing."""
    for what in job.ignored:
        context.error(f"Ignoring {what}")


_OF_THREADS = 0x8000  # of the 16 bits that are kept of --core-spec and --thread-spec


def ignore_specialised(job: "Job", context: "Context") -> bool:
    """Drop --core-spec or --thread-spec where AllowSpecResourcesUsage does not let jobs ask for it.
    False: both were given, which is said.
    """
    extra = job.extra
    given = [name for name in ("core_spec", "thread_spec") if name in extra]
    if len(given) > 1:
        context.fatal("-S/--core-spec and --thred-spec options are mutually exclusive")
        return False
    if given:
        rows = context.client.query(
            "config", ["name", "value"], {"name": ["AllowSpecResourcesUsage"]}
        ).rows
        if [value for _, value in rows] == ["No"]:
            is_of_cores = given == ["core_spec"] and not int(extra["core_spec"]) & _OF_THREADS
            option = "-S" if is_of_cores else "--thread-spec"
            context.error(
                f"Ignoring {option} since it's not allowed by configuration "
                "(AllowSpecResourcesUsage = No)"
            )
            del extra[given[0]]
    return True
