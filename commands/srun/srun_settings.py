"""What the command line and the environment say of a step, and of srun itself.

Place: under srun. It asks nobody.
"""

import os
import time

from understudy.commands.shared.context import Context
from understudy.commands.srun.own_options import check_own, het_groups
from understudy.commands.srun.srun_options import HANDED_ON, OPTIONS, OWN
from understudy.commands.submission.allocation import immediate_s
from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.numbers import number
from understudy.commands.submission.option_table import KEPT
from understudy.commands.submission.options import apply
from understudy.commands.submission.shape import (
    heed_hint,
    loudness,
    lower_nodes,
    say_ignored,
    without_contrary,
)
from understudy.commands.submission.whole import wrong_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from understudy.commands.shared.options import Option

_VERBOSITY = frozenset(("quiet", "q", "verbose", "v"))
_BINDINGS = frozenset(
    (
        *(
            "none",
            "no",
            "rank",
            "map_cpu",
            "mask_cpu",
            "rank_ldom",
            "map_ldom",
            "mask_ldom",
            "threads",
            "cores",
            "sockets",
            "ldoms",
            "boards",
        ),
        *("thread", "core", "socket", "ldom", "board", "one_thread", "autobind", "help"),
    )
)
_NODE_COUNTS = frozenset(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"))  # of the whole job
# what is no option of the job here, and has the values that sbatch knows
_AS_SBATCH = frozenset(("open_mode",))


class StepError(Exception):
    """There will be no step; what to say has been said."""


class Settings:
    """What the command line and the environment say of the step and of srun itself."""

    @property
    def work_dir(self) -> str:
        """Where the tasks begin."""
        return self.job.spec.get("work_dir") or os.getcwd()

    @property
    def gpu_bind(self) -> str:
        """How tasks are bound to GPUs: as --gpu-bind says, else --gpus-per-task."""
        wanted = self.job.extra.get("tres_bind", "").removeprefix("gpu:")
        each = str(self.job.spec.get("tres_per_task") or "").rpartition(":")[2]
        if per_gpu := self.job.spec.get("ntasks_per_tres"):
            return wanted or f"single:{per_gpu}"
        return wanted or (f"per_task:{each if each.isdecimal() else 1}" if each else "")

    def __init__(
        self,
        arguments: list[str],
        context: Context,
        environ: "Mapping[str, str] | None" = None,
        before: "Settings | None" = None,
        *,
        is_new: bool = False,
    ) -> None:
        """`before`: the part before this one, if it is one of several. `is_new`: it has not been
        looked at before, so that what is passed over is said, and `settle` is to come.
        """
        given, self.command = OPTIONS.parse(arguments, permute=False)
        self.arguments = arguments
        environ = dict(context.environ if environ is None else environ)
        inside = "SLURM_JOB_ID" in environ or any(option.dest == "jobid" for option, _ in given)
        if inside:
            environ.pop("SLURM_JOB_NAME", None)  # the job's, not the step's
        self.job = Job(time.time())
        self.own: dict[str, str] = {}
        self.programs: str | None = None  # what the file of --multi-prog says
        self.on_line = {option.dest for option, _ in given}
        # as sbatch hands it on
        if environ.get("SLURM_DISTRIBUTION") == "plane" and "SLURM_DIST_PLANESIZE" in environ:
            environ["SLURM_DISTRIBUTION"] += f"={environ['SLURM_DIST_PLANESIZE']}"
        taken_over = [] if before is None else before.handed_on
        self.handed_on: list[tuple[Option, str | None]] = [
            *taken_over,
            *((option, value) for option, value in given if option.dest in HANDED_ON | KEPT),
        ]
        environment = without_contrary(OPTIONS.from_environment(environ), given)
        self.given = [*environment, *taken_over, *given]
        self.groups: list[int] | None = None  # the components that it is for
        for option, value in given:
            if option.dest == "het_group":
                self.groups = het_groups(value or "")
        for option, value in self.given:
            warning = look(self.job, option, value)
            if is_new:
                _say(warning, self.job, context)
            if option.dest in OWN:
                self.own[option.dest] = value or ""
            if option.dest == "exclusive" and not inside:
                apply(self.job, option, value)
        own = self.own
        self.quiet = "quiet" in own
        self.verbose = loudness([*taken_over, *given], environ, "SLURM_DEBUG")
        self.immediate = immediate_s(own["immediate"]) if "immediate" in own else 0
        self.wait_s = number("wait", own["wait"], 0) if own.get("wait") else None
        bad_exit = own.get("kill_on_bad_exit")
        self.kill_on_bad_exit = None if bad_exit is None else bad_exit != "0"
        self.job_id = number("jobid", own["jobid"]) if "jobid" in own else 0
        self.relative = number("relative", own["relative"] or "0", 0) if "relative" in own else None
        self.cpu_bind = "!" if own.get("cpu_bind") == "" else cpu_bind(own.get("cpu_bind", ""))
        if self.command and self.command[0].startswith("."):
            self.command[0] = f"{os.getcwd()}/{self.command[0]}"
        self._is_inside, self._environ = inside, environ
        if not is_new:
            self.settle()

    def settle(self) -> None:
        """What follows for the job when all options are known: of --hint, of SLURM_HOSTFILE, and of
        an arbitrary distribution.
        """
        heed_hint(self.job)
        if self._environ.get("SLURM_HOSTFILE"):
            from understudy.commands.submission.host_file import use_host_file

            use_host_file(self.job, self._environ, self._tasks_asked(inside=self._is_inside))
        if self.job.spec.get("distribution") == "arbitrary":
            self._name_nodes(inside=self._is_inside)

    @property
    def asked_gres(self) -> dict[str, str]:
        """What is asked for of generic resources, as records of steps name it."""
        spec, extra, binding = self.job.spec, self.job.extra, self.gpu_bind
        found = {
            "cpus_per_tres": spec.get("cpus_per_tres"),
            "memory_per_tres": spec.get("mem_per_tres"),
            "tres_freq": extra.get("tres_freq"),
        }
        found |= {
            "tres_bind": binding and f"gpu:{binding}",
            "tres_per_node": spec.get("gres"),
            "tres_per_step": spec.get("tres_per_job"),
        }
        found |= {name: spec.get(name) for name in ("tres_per_socket", "tres_per_task")}
        return {
            name: value
            for name, value in found.items()
            if value or (name == "tres_per_node" and value is not None)
        }

    @property
    def implied_binding(self) -> str:
        """What other options make of tasks and CPUs where --cpu-bind says nothing."""
        spec, hint = self.job.spec, self.job.spec.get("hint", "")
        if spec.get("threads_per_core") or hint in {"multithread", "nomultithread"}:
            return "threads"
        return (
            "cores"
            if spec.get("ntasks_per_core") or hint in {"compute_bound", "memory_bound"}
            else ""
        )

    def _tasks_asked(self, *, inside: bool) -> int | None:
        """The number of tasks, else of nodes, that was asked for; of the job's own numbers nobody
        asks.
        """
        spec = self.job.spec
        for field, option in (("num_tasks", "ntasks"), ("min_nodes", "nodes")):
            if spec.get(field) is not None and (option in self.on_line or not inside):
                return int(spec[field])
        return None

    def _name_nodes(self, *, inside: bool) -> None:
        """An arbitrary distribution: a node for each task."""
        spec, tasks = self.job.spec, self._tasks_asked(inside=inside)
        if not spec.get("required_nodes"):
            if not (inside or tasks):
                raise BadOptionError("invalid number of tasks (-n 0)", 1)
            text = (
                "With Arbitrary distribution you need to specify a nodelist or hostfile "
                "with the -w option"
            )
            raise BadOptionError(
                f"You asked for {tasks or spec.get('num_tasks', 1)} tasks but hostlist "
                "specified 0 nodes"
                if inside
                else text,
                1,
            )
        from understudy.model.hostlist import expand

        try:
            names = expand(spec["required_nodes"])
        except ValueError:
            return  # the controller refuses it
        spec["num_tasks"] = tasks or len(names)
        spec["min_nodes"] = spec["max_nodes"] = len(set(names))
        spec["required_nodes"] = ",".join(names[: spec["num_tasks"]])


def check_groups(given: "Sequence[tuple[Option, str | None]]") -> None:
    """Look at the last --het-group, which comes before all others and whatever is wrong with them.

    Raises:
        BadOptionError: it names none.
    """
    if groups := [value or "" for option, value in given if option.dest == "het_group"]:
        het_groups(groups[-1])


def look_and_say(context: Context) -> "Callable[[Option, str | None], None]":
    """Looks at one option of a line after the other, and says what is passed over."""
    job = Job(time.time())
    return lambda option, value: _say(look(job, option, value), job, context)


def _say(warning: str, job: Job, context: Context) -> None:
    if warning:
        context.complain(f"srun: {warning}")
    say_ignored(job, context)
    job.ignored.clear()


def look(job: Job, option: "Option", value: str | None) -> str:
    """See what one option asks for. Returns a warning; "" for none.

    Raises:
        BadOptionError: it is wrong.
    """
    if option.dest in _AS_SBATCH:
        apply(Job(0), option, value)
    if option.dest in OWN:
        return check_own(option.dest, value or "")
    apply(job, option, value)
    return ""


def of_parts(environ: "Mapping[str, str]") -> "Mapping[str, str]":
    """The environment for one of several parts: in a job without components each has the nodes that
    it asks for itself.
    """
    if "SLURM_HET_SIZE" in environ:
        return environ
    return {name: value for name, value in environ.items() if name not in _NODE_COUNTS}


def fit_nodes(
    settings: Settings, context: Context, *, inside: bool = False, quiet: bool = False
) -> bool:
    """No node may be without a task, and no more nodes are named than there may be. `inside`: a
    job that is there. Returns whether the numbers of tasks and CPUs are some; says so if not.
    """
    named = _named_nodes(settings, context, quiet=quiet)
    spec = settings.job.spec
    wrong = wrong_counts(settings.job)
    for each in wrong:
        context.error(each)
    tasks, nodes = spec.get("num_tasks"), spec.get("min_nodes")
    if tasks is not None and not inside:
        nodes = max(nodes or 1, named)
    if tasks is not None and nodes is not None and nodes > tasks >= 0:
        lower_nodes(settings.job, nodes, context, quiet=quiet)
    return not wrong


def drop_contrary_tasks(settings: Settings, context: Context) -> None:
    """Pass over --ntasks-per-node where tasks and nodes are as many as it does not make."""
    spec = settings.job.spec
    tasks, nodes, per_node = map(spec.get, ("num_tasks", "min_nodes", "ntasks_per_node"))
    if (
        tasks is not None
        and nodes is not None
        and per_node
        and tasks > per_node
        and tasks != nodes * per_node
    ):
        context.complain(
            f"srun: Warning: can't honor --ntasks-per-node set to {per_node} which doesn't "
            f"match the requested tasks {tasks} with the number of"
            f" requested nodes {nodes}. Ignoring --ntasks-per-node."
        )
        del spec["ntasks_per_node"]


def _named_nodes(settings: Settings, context: Context, *, quiet: bool) -> int:
    """How many nodes the step is to have by name, no more than it may have."""
    spec = settings.job.spec
    text, most = spec.get("required_nodes"), spec.get("max_nodes")
    if not text or spec.get("distribution") == "arbitrary":
        return 0
    from understudy.model.hostlist import expand

    try:
        names = expand(text)
    except ValueError:
        return 0  # the controller refuses it
    if most and 0 < most < len(names):
        if not quiet:
            context.error(
                "Required nodelist includes more nodes than permitted by max-node count "
                f"({len(names)} > {most}). Eliminating nodes from the nodelist."
            )
        names = names[:most]
        spec["required_nodes"] = ",".join(names)
    return len(names)


def cpu_bind(text: str) -> str:
    """--cpu-bind: the binding, without how much is to be said of it; for one that there is not, `!`
    and the word.
    """
    if not text:
        return ""
    from understudy.commands.srun.bindings import words_of

    found = ""
    for word in words_of(text):
        kind = word.partition(":")[0].lower()
        if kind in _VERBOSITY or not word:
            continue
        if kind not in _BINDINGS:
            return f"!{word}"
        found = word
    return found


def ranks(text: str) -> "list[int] | None":
    numbers: list[int] = []
    for word in text.split(","):
        first, dash, last = word.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return None
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers
