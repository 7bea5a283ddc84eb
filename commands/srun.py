"""srun: run tasks, in resources that are there or that it gets for them. Follows srun(1) of 22.05.

The controller gives the step and signs its credential; from there on srun talks to the node daemons (see
`../docs/adr/0011-the-streams-of-steps.md`).
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os
import time

from understudy.commands.allocation import Allocation, AllocationError, allocate, complete, immediate_s, of_answer, release
from understudy.commands.client import Client, Context, RefusedError, pack, pack_named, run
from understudy.commands.export import exported, limits
from understudy.commands.gres_options import INVALID, complaint
from understudy.commands.job_shape import ignore_specialised
from understudy.commands.sbatch_options import BadOptionError, Job, number
from understudy.commands.srun_options import OPTIONS, OWN, USAGE_LINE
from understudy.commands.step_io import ABORT, ALL, EXITED, MESSAGE, PMI, STARTED, STDERR, STDOUT, WINDOW, Part, Sink, StepIO, frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

USAGE_EXIT = 255
_BUSY = 2016
_RETRY_S = (0.05, 1.0)
_SIGNAL_TEXTS = {
    1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap", 6: "Aborted", 7: "Bus error",
    8: "Floating point exception", 9: "Killed", 10: "User defined signal 1", 11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe",
    14: "Alarm clock", 15: "Terminated", 16: "Stack fault", 24: "CPU time limit exceeded", 25: "File size limit exceeded", 31: "Bad system call",
}  # fmt: skip
_PER_TASK = ("%t", "%n", "%N")  # patterns that make a file for each task or node, which the nodes open
_STATUS_S = 1.0


_VERBOSITY = frozenset(("quiet", "q", "verbose", "v"))
_BINDINGS = frozenset(
    (
        *("none", "no", "rank", "map_cpu", "mask_cpu", "rank_ldom", "map_ldom", "mask_ldom", "threads", "cores", "sockets", "ldoms", "boards"),
        *("thread", "core", "socket", "ldom", "board", "one_thread", "autobind", "help"),
    )
)


class StepError(Exception):
    """There will be no step; what to say has been said."""


def srun(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        return _srun(arguments, context)
    except BadOptionError as error:
        for line in error.lines:
            context.complain(line)
        context.error(error.text)
        return error.exit_code


class Settings:
    """What the command line and the environment say of the step and of srun itself."""

    def __init__(self, arguments: list[str], context: Context, environ: "Mapping[str, str] | None" = None) -> None:
        given, self.command = OPTIONS.parse(arguments, permute=False)
        self.arguments = arguments
        environ = dict(context.environ if environ is None else environ)
        inside = bool(environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID")) or any(option.dest == "jobid" for option, _ in given)
        if inside:
            environ.pop("SLURM_JOB_NAME", None)  # the job's, not the step's
        self.job = Job(time.time())
        self.own: dict[str, str] = {}
        self.on_line = {option.dest for option, _ in given}
        if environ.get("SLURM_DISTRIBUTION") == "plane" and "SLURM_DIST_PLANESIZE" in environ:  # as sbatch hands it on
            environ["SLURM_DISTRIBUTION"] += f"={environ['SLURM_DIST_PLANESIZE']}"
        for option, value in [*OPTIONS.from_environment(environ), *given]:
            if option.dest in OWN:
                self.own[option.dest] = "" if value is None else value
                if option.dest == "exclusive" and not inside:
                    self.job.apply(option, value)
            else:
                self.job.apply(option, value)
        own = self.own
        self.quiet = "quiet" in own
        self.verbose = sum(option.dest == "verbose" for option, _ in given)
        self.immediate = immediate_s(own["immediate"]) if "immediate" in own else 0
        self.wait_s = number("wait", own["wait"], 0) if "wait" in own else None
        bad_exit = own.get("kill_on_bad_exit")
        self.kill_on_bad_exit = None if bad_exit is None else bad_exit != "0"
        self.job_id = number("jobid", own["jobid"].partition(".")[0]) if own.get("jobid") else 0
        self.relative = number("relative", own["relative"], 0) if "relative" in own else None
        self.cpu_bind = _cpu_bind(own.get("cpu_bind", ""))
        if self.command and self.command[0].startswith("."):
            self.command[0] = f"{os.getcwd()}/{self.command[0]}"
        spec = self.job.spec
        if spec.get("distribution", "").startswith("arbitrary") and environ.get("SLURM_HOSTFILE"):
            spec["required_nodes"] = _hosts(environ["SLURM_HOSTFILE"], spec.get("num_tasks"))


def _srun(whole: list[str], context: Context) -> int:
    arguments, *others = segments(whole)
    settings = Settings(arguments, context)
    own = settings.own
    if context.tells(OPTIONS, own, USAGE_LINE, f"Usage: {USAGE_LINE}"):
        return 0
    if own.get("mpi") == "list":
        for line in ("MPI plugin types are...", "\tnone", "\tpmi2"):
            context.print(line)
        return 0
    if own.get("mpi", "none") not in {"none", "pmi2", "openmpi", ""}:
        context.error(f"Couldn't find the specified plugin name for mpi/{own['mpi']} looking at all files")
        context.error(f"cannot find mpi plugin for mpi/{own['mpi']}")
        context.error(f"MPI: Cannot create context for mpi/{own['mpi']}")
        context.error("MPI: Unable to load any plugin")
        context.error(f"Invalid MPI type '{own['mpi']}', --mpi=list for acceptable types")
        return 1
    if settings.cpu_bind.startswith("!"):
        context.error(f'unrecognized --cpu-bind argument "{settings.cpu_bind[1:]}"')
        context.fatal("Failed to parse --cpu-bind= values.")
        return 1
    if not settings.command:
        context.fatal("No command given to execute.")
        return 1
    if "no_allocate" in own:
        context.error("must specify a node list with -Z, --no-allocate.")
        return 1
    job = settings.job
    if job.asks_for_gres and (said := complaint(job.spec, job.extra)):
        context.error(said)
        context.error(INVALID)
        return 1
    if not ignore_specialised(job, context):
        return 1
    name = os.path.basename(settings.command[0])
    if "test_only" in own:
        return _test(settings, name, context)
    try:
        programs = _read_programs(settings, context) if "multi_prog" in own else []
        if settings.job_id:
            return _inside(settings, others, name, programs, context)
        return _outside(settings, [Settings(each, context) for each in others], name, programs, context)
    except StepError:
        return 1


def _test(settings: Settings, name: str, context: Context) -> int:
    job = settings.job
    complete(job, settings.command[0], settings.arguments, context, name)
    try:
        _, note, *_ = context.client.call("SubmitJob", pack_named("JobSpec", job.spec), "", None, job.user_id, job.group_id, True)
    except RefusedError as error:
        context.complain(f"allocation failure: {error.text}")
        return 1
    context.complain(f"srun: {note}")
    return 0


def segments(arguments: list[str]) -> list[list[str]]:
    """The parts of the command line between `:`, one or more for each component of a heterogeneous job."""
    found: list[list[str]] = [[]]
    for word in arguments:
        if word == ":" and found[-1]:
            found.append([])
        else:
            found[-1].append(word)
    return found


def _outside(settings: Settings, others: list[Settings], name: str, programs: "list[Any]", context: Context) -> int:
    """Get resources, run the step, give them back."""
    if settings.relative is not None:
        context.fatal("--relative option invalid for job allocation request")
        return 1
    job = settings.job
    for each in (settings, *others):
        if not each.command:
            context.fatal("No command given to execute.")
            return 1
        _fit_nodes(each, context)
        complete(each.job, each.command[0], each.arguments, context, os.path.basename(each.command[0]))

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for each in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(each, interrupt)
    try:
        allocation = allocate(job, settings.immediate, context, [each.job for each in others], quiet=settings.quiet)
    except AllocationError as error:
        *notes, last = error.text.split("\n")
        for note in notes:
            context.error(note)
        context.error(f"Unable to allocate resources: {last}")
        return 1
    except KeyboardInterrupt:
        return 1
    code, signal = 1, 0
    try:
        parts = list(zip([settings, *others], allocation.components or [allocation], strict=True))
        code, signal = Step(parts, allocation, programs, context, owns_job=True).run(name)
    except StepError:
        pass
    finally:
        release(context.client, allocation.job_id, 0 if signal else code, signal)
    return code


def _inside(settings: Settings, others: list[list[str]], name: str, programs: "list[Any]", context: Context) -> int:
    """Run the step in a job that is there."""
    try:
        allocation = of_answer(context.client.call("GetAllocation", settings.job_id))
    except RefusedError as error:
        context.error(f"Unable to confirm allocation for job {settings.job_id}: {error.text}")
        if error.code in {2017, 2021}:
            context.complain(f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {settings.job_id}")
        return 1
    parts = _by_group(settings, others, allocation, context) if allocation.components else [(settings, allocation)]
    for each, _ in parts:
        if not each.command:
            context.fatal("No command given to execute.")
            return 1
        _fit_nodes(each, context)
    code, _ = Step(parts, allocation, programs, context, owns_job=False).run(name)
    return code


def _by_group(settings: Settings, others: list[list[str]], whole: Allocation, context: Context) -> "list[tuple[Settings, Allocation]]":
    """The parts of a step in a heterogeneous job: the components that --het-group names, by default the first."""
    parts = []
    for arguments in (settings.arguments, *others):
        wanted = Settings(arguments, context).own.get("het_group", "0")
        numbers = _ranks(wanted)
        if numbers is None:
            context.fatal(f"Invalid --het-group value: {wanted}")
            raise StepError
        for group in numbers:
            if group >= len(whole.components):
                context.error(f"Requested het-group offset exceeds highest hetjob index ({group} > {len(whole.components) - 1})")
                raise StepError
            parts.append((Settings(arguments, context, _as_group(context.environ, group)), whole.components[group]))
    return sorted(parts, key=lambda part: part[1].job_id)


def _as_group(environ: "Mapping[str, str]", group: int) -> dict[str, str]:
    """The environment as if the component were the job: what it says of the group in place of what it says of the whole."""
    end = f"_HET_GROUP_{group}"
    found = {name: value for name, value in environ.items() if name not in {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES"}}
    return found | {name.removesuffix(end): value for name, value in environ.items() if name.endswith(end)}


def _cpu_bind(text: str) -> str:
    """--cpu-bind: the binding, without how much is to be said of it; for one that there is not, `!` and the word."""
    found = ""
    for word in _bindings(text):
        kind = word.partition(":")[0].lower()
        if kind in _VERBOSITY or not word:
            continue
        if kind not in _BINDINGS:
            return f"!{word}"
        found = word.lower()
    return found


def _bindings(text: str) -> list[str]:
    """The words between commas; a list of numbers belongs to the word before it."""
    found: list[str] = []
    for word in text.split(",") if text else []:
        if found and ":" in found[-1] and (word[:1].isdigit()):
            found[-1] += f",{word}"
        else:
            found.append(word)
    return found


def _hosts(path: str, most: int | None) -> str:
    """The entries of a host file: one for each task, in order."""
    try:
        with open(path, encoding="utf-8") as file:
            names = [name for line in file for name in line.partition("#")[0].replace(",", " ").split()]
    except OSError:
        return ""
    return ",".join(names[:most])


def _fit_nodes(settings: Settings, context: Context) -> None:
    """No node may be without a task."""
    spec = settings.job.spec
    tasks, nodes, per_node = spec.get("num_tasks"), spec.get("min_nodes"), spec.get("ntasks_per_node")
    if tasks is not None and nodes is not None and per_node and tasks > per_node and tasks != nodes * per_node:
        context.complain(
            f"srun: Warning: can't honor --ntasks-per-node set to {per_node} which doesn't match the requested tasks {tasks} with the number of"
            f" requested nodes {nodes}. Ignoring --ntasks-per-node."
        )
        del spec["ntasks_per_node"]
    if tasks is not None and nodes is not None and nodes > tasks:
        if not settings.quiet:
            context.complain(f"srun: Warning: can't run {tasks} processes on {nodes} nodes, setting nnodes to {tasks}")
        spec["min_nodes"] = tasks
        if (spec.get("max_nodes") or 0) > tasks:
            spec["max_nodes"] = tasks


def _read_programs(settings: Settings, context: Context) -> "list[Any]":
    """--multi-prog: [(task ranges or None for the rest, command)] of the file, checked."""
    path = settings.command[0]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().replace("\\\n", "").split("\n")
    except OSError:
        context.error(f"Could not open multi_prog config file {path}")
        raise StepError from None
    import shlex

    tasks = settings.job.spec.get("num_tasks") or settings.job.spec.get("min_nodes") or 1
    found: list[Any] = []
    taken: set[int] = set()
    for at, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        ranks, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        try:
            words = shlex.split(rest)
        except ValueError:
            words = []
        numbers = [each for each in range(tasks) if each not in taken] if ranks == "*" else _ranks(ranks)
        first = 0 if ranks == "*" else None
        bad = ""
        if numbers is None:
            bad = f"Invalid task range specification ({ranks})"
        elif twice := [each for each in numbers if each in taken]:
            bad = f"Duplicate record for task {twice[0]}"
        if bad or not words:
            context.error(bad or f"No program name given in line {at}")
            context.error(f"Line {at} of configuration file {path} invalid")
            raise StepError
        assert numbers is not None
        taken.update(numbers)
        for position, each in enumerate(numbers):
            offset = position if first is None else each
            if each < tasks:
                found.append(([each], [word.replace("%t", str(each)).replace("%o", str(offset)) for word in words]))
    for each in range(tasks):
        if each not in taken:
            context.error(f"Configuration file {path} invalid, no record for task id {each}")
            raise StepError
    return found


def _ranks(text: str) -> "list[int] | None":
    numbers: list[int] = []
    for word in text.split(","):
        first, dash, last = word.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return None
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers


class Share:
    """What a step has of one component of a job, which for most jobs is all of it. `first_node`, `first_task`: how many come before its own."""

    def __init__(self, created: "list[Any]", settings: Settings, first_node: int, first_task: int) -> None:
        self.job_id, self.restart, self.step_id, self.nodes, tasks, self.cpus, self.credential, self.daemons, self.width = created[:9]
        self.environment, self.end_time, self.kill_wait_s, self.user = created[9:13]
        self.tasks: list[list[int]] = [[number + first_task for number in numbers] for numbers in tasks]
        self.size = sum(map(len, tasks))
        self.first_node, self.first_task, self.command = first_node, first_task, settings.command


class Step:
    """A step from its creation to its last task's end."""

    def __init__(
        self, parts: "list[tuple[Settings, Allocation]]", whole: Allocation, programs: "list[Any]", context: Context, *, owns_job: bool
    ) -> None:
        self.parts, self.whole, self.programs, self.context, self.owns_job = parts, whole, programs, context, owns_job
        self.settings, self.allocation = parts[0]
        self.job_id = whole.job_id
        self.exits: dict[int, int] = {}
        self.node_of: dict[int, str] = {}
        self.size = 0
        self.highest = 0
        self.ended_by = 0
        self.is_aborted = self.is_forced = self.is_terminated = self.is_silent = False
        self.first_exit_at = self.interrupted_at = 0.0
        self.interrupts = 0
        self.gathered: list[bytes] = []
        self.terminal: Any = None

    def say(self, text: str) -> None:
        self.context.stderr.write(f"srun: {text}\n")
        self.context.stderr.flush()

    def error(self, text: str) -> None:
        self.say(f"error: {text}")

    # --- beginning -----------------------------------------------------------------------------------------------------------

    def run(self, name: str) -> tuple[int, int]:
        """(exit code, signal that ended the task with the highest)."""
        from understudy.model.hostlist import compress, expand

        shares: list[Share] = []
        for settings, allocation in self.parts:
            first = shares[0] if shares else None
            created = self.create(settings, allocation, name, None if first is None else first.step_id)
            shares.append(Share(created, settings, sum(len(share.tasks) for share in shares), sum(share.size for share in shares)))
        self.shares = shares
        self.step_id, self.end_time, self.kill_wait_s = shares[0].step_id, shares[0].end_time, shares[0].kill_wait_s
        self.tasks = [tasks for share in shares for tasks in share.tasks]
        names = [name for share in shares for name in expand(share.nodes)]
        self.nodes = shares[0].nodes if len(shares) == 1 else compress(names, sort=False)
        daemons = [daemon for share in shares for daemon in share.daemons]
        for node, numbers in zip(names, self.tasks, strict=True):
            for each in numbers:
                self.node_of[each] = node
        self.size = len(self.node_of)
        host = "127.0.0.1" if all(address.startswith("unix:") or ":127." in address for _, address, _ in daemons) else os.uname().nodename
        self.io = StepIO(host, os.urandom(32), len(daemons))
        self.io.on_frame = self.take
        self.catch_signals()
        prolog = self.settings.own.get("prolog", "none")
        task_environment = self.environment(shares[0].environment, names, host)
        if prolog.lower() != "none" and (status := self.run_here(prolog, task_environment)):
            self.error(f"srun prolog failed rc = {status}. Aborting step.")
        self.open_streams(task_environment)
        if "bcast" in self.settings.own:
            self.copy_program(names)
        self.launch(task_environment, host)
        self.follow()
        self.restore_terminal()
        epilog = self.settings.own.get("epilog", "none")
        if epilog.lower() != "none" and (status := self.run_here(epilog, task_environment)):
            self.error(f"srun epilog failed status={status}")
        return self.highest, self.ended_by

    def run_here(self, program: str, environment: dict[str, str]) -> int:
        """A prolog or epilog of srun's own; its exit code."""
        if not os.access(program, os.X_OK):
            self.say(f"Access denied for {program}: {os.strerror(13 if os.path.exists(program) else 2)}")
            return 0
        wake = _signal.set_wakeup_fd(-1)
        pid = os.fork()
        if pid == 0:
            try:
                os.execve(program, [program], environment)  # noqa: S606
            finally:
                os._exit(127)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _signal.set_wakeup_fd(wake)
        return status

    def copy_program(self, names: list[str]) -> None:
        """--bcast: the program goes to the nodes first, and is run from there."""
        from understudy.commands.sbcast import broadcast

        command = self.settings.command
        folders = self.context.environ.get("PATH", "").split(":")
        paths = [command[0]] if "/" in command[0] else [f"{folder or '.'}/{command[0]}" for folder in folders]
        source = next((path for path in paths if os.access(path, os.X_OK)), command[0])
        target = self.settings.own["bcast"] or f"{self.work_dir}/slurm_bcast_{self.job_id}.{self.step_id}_{names[0]}"
        if target.endswith("/"):
            target += os.path.basename(source)
        if broadcast(source, target, self.job_id, self.context, force=True, preserve=True):
            raise StepError
        command[0] = target

    def create(self, settings: Settings, allocation: Allocation, name: str, step_id: int | None) -> "list[Any]":
        """The step, or its part in a component, from the controller; waits while others use its CPUs."""
        spec = settings.job.spec
        own = settings.own
        wanted: dict[str, Any] = {
            "name": spec.get("name") if "job_name" in settings.on_line or self.owns_job else name,
            "submit_line": " ".join(["srun", *settings.arguments]),
            "host": os.uname().nodename.partition(".")[0],
            "pid": os.getpid(),
            "overlap": "overlap" in own,
            "exact": "exact" in own or ("exclusive" in own and not self.owns_job),
        }
        for ours, theirs in (("required_nodes", "nodes"), ("excluded_nodes", "excluded_nodes"), ("distribution", "distribution")):
            if spec.get(ours):
                wanted[theirs] = spec[ours]
        for field in ("min_nodes", "max_nodes", "num_tasks", "cpus_per_task", "ntasks_per_node", "overcommit", "mem_per_node_mb", "mem_per_cpu_mb"):
            if spec.get(field) is not None and not (self.owns_job and field.startswith(("mem", "min", "max"))):
                wanted[field] = spec[field]
        if not self.owns_job and "num_tasks" in wanted and "min_nodes" in wanted:
            wanted.pop("ntasks_per_node", None)  # Slurm lays tasks out by the job's CPUs then
        if self.owns_job:
            wanted["min_nodes"] = wanted["max_nodes"] = allocation.node_count
        if self.owns_job and "num_tasks" not in wanted:
            wanted["num_tasks"] = allocation.node_count * int(spec.get("ntasks_per_node") or 1)
            if spec.get("ntasks_per_tres"):
                wanted["num_tasks"] = sum(_counts(allocation.environment.get("SLURM_TASKS_PER_NODE", "1")))
        if spec.get("time_limit_s") and not self.owns_job:
            wanted["time_limit_s"] = spec["time_limit_s"]
        if settings.relative is not None:
            wanted["relative"] = settings.relative
        if os.path.exists(wanted.get("nodes", "")) and "/" in wanted["nodes"]:
            wanted.pop("nodes")
        if step_id is not None:
            wanted["step_id"] = step_id
        self.check_counts(wanted, settings, allocation)
        pause, longest = _RETRY_S
        until = time.monotonic() + settings.immediate if settings.immediate else None
        has_waited = False
        client = self.context.client
        while True:
            try:
                created = client.call("CreateStep", allocation.job_id, pack_named("StepSpec", wanted))
            except RefusedError as error:
                left = None if until is None else until - time.monotonic()
                if error.code != _BUSY or (left is not None and left <= 0):
                    self.error(f"Unable to create step for job {allocation.job_id}: {error.text}")
                    raise StepError from None
                if left is not None and settings.immediate == 1:
                    time.sleep(left)
                    continue
                if not has_waited and not settings.quiet:
                    self.say(f"Job {allocation.job_id} step creation temporarily disabled, retrying (Requested nodes are busy)")
                has_waited = True
                time.sleep(pause)
                pause = min(pause * 2, longest)
                continue
            if has_waited and not settings.quiet:
                self.say(f"Step created for job {allocation.job_id}")
            return created

    def check_counts(self, wanted: "dict[str, Any]", settings: Settings, allocation: Allocation) -> None:
        held = allocation.node_count
        least = wanted.get("min_nodes")
        if least is None or self.owns_job:
            return
        is_asked = "nodes" in settings.on_line
        if settings.relative is not None and settings.relative + least > held:
            what = "--nodes" if is_asked else "SLURM_JOB_NUM_NODES"
            self.error(f"--relative and {what} option incompatible with count of allocated nodes ({settings.relative}+{least}>{held})")
            raise StepError
        if least > held and is_asked:
            self.error(f"Only allocated {held} nodes asked for {least}")
            raise StepError

    def environment(self, told: list[str], names: list[str], host: str) -> dict[str, str]:
        """The tasks' environment, but for what belongs to a node or a task."""
        settings, spec = self.settings, self.settings.job.spec
        environ = self.context.environ
        wanted = settings.own.get("export")
        chosen = exported(environ, wanted)
        for name in ("SLURM_EXPORT_ENV", "SLURM_CPUS_PER_TASK", "SLURM_TASK_PID"):
            chosen.pop(name, None)
        chosen |= dict(entry.partition("=")[::2] for entry in told)
        if self.whole.components:
            chosen |= self.of_the_whole(names)
        per_node = _compressed([len(tasks) for tasks in self.tasks])
        umask = os.umask(0)
        os.umask(umask)
        port = str(self.io.port)
        chosen |= {
            "SLURM_JOB_NAME": chosen.get("SLURM_JOB_NAME") or spec.get("name", ""),
            "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1" if host.startswith("127.") else host,
            "SLURM_NNODES": str(len(names)),
            "SLURM_NPROCS": str(self.size),
            "SLURM_NTASKS": str(self.size),
            "SLURM_PRIO_PROCESS": "0",
            "SLURM_SRUN_COMM_HOST": "127.0.0.1" if host.startswith("127.") else host,
            "SLURM_SRUN_COMM_PORT": port,
            "SLURM_STEPID": str(self.step_id),
            "SLURM_STEP_ID": str(self.step_id),
            "SLURM_STEP_LAUNCHER_PORT": port,
            "SLURM_STEP_NODELIST": self.nodes,
            "SLURM_STEP_NUM_NODES": str(len(names)),
            "SLURM_STEP_NUM_TASKS": str(self.size),
            "SLURM_STEP_TASKS_PER_NODE": per_node,
            "SLURM_TASKS_PER_NODE": per_node,
            "SLURM_UMASK": f"{umask:04o}",
            **limits(settings.own.get("propagate")),
            "SRUN_DEBUG": "3",
        }
        chosen.setdefault("SLURM_SUBMIT_DIR", os.getcwd())
        chosen.setdefault("SLURM_SUBMIT_HOST", os.uname().nodename.partition(".")[0])
        chosen.setdefault("TMPDIR", "/tmp")  # noqa: S108  what Slurm gives
        controller = next((each for each in self.context.client.location.controller_addresses if each.startswith("tcp:")), "")
        if controller:
            cluster = chosen.get("SLURM_CLUSTER_NAME", "")
            chosen["SLURM_WORKING_CLUSTER"] = f"{cluster}:{controller.removeprefix('tcp:')}:9728:109"
        if spec.get("cpus_per_task"):
            chosen["SLURM_CPUS_PER_TASK"] = str(spec["cpus_per_task"])
        if "label" in settings.own:
            chosen["SLURM_LABELIO"] = "1"
        if not self.owns_job:
            if cpus := chosen.get("SLURM_JOB_CPUS_PER_NODE"):
                chosen.setdefault("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", cpus)
            chosen["SLURM_DISTRIBUTION"] = spec.get("distribution") or ("cyclic" if self.size <= len(names) else "block")
        elif spec.get("distribution"):
            chosen["SLURM_DISTRIBUTION"] = spec["distribution"]
        kind, _, plane = chosen.get("SLURM_DISTRIBUTION", "").partition("=")
        if plane:
            chosen["SLURM_DISTRIBUTION"], chosen["SLURM_DIST_PLANESIZE"] = kind, plane
        return chosen

    def of_the_whole(self, names: list[str]) -> dict[str, str]:
        """What a step in a heterogeneous job is told in place of what a component would be."""
        cpus = [each for _, allocation in self.parts for each in _counts(allocation.environment.get("SLURM_JOB_CPUS_PER_NODE", "1"))]
        nodes = {"SLURM_JOB_NODELIST": self.nodes, "SLURM_NODELIST": self.nodes, "SLURM_JOB_NUM_NODES": str(len(names))}
        if len(self.parts) == 1:
            own = self.allocation.environment
            nodes = {"SLURM_JOB_NODELIST": own["SLURM_JOB_NODELIST"], "SLURM_NODELIST": own["SLURM_JOB_NODELIST"]}
        whole = str(self.whole.job_id)
        return nodes | {"SLURM_JOB_ID": whole, "SLURM_JOBID": whole, "SLURM_JOB_CPUS_PER_NODE": _compressed(cpus)}

    def open_streams(self, environment: dict[str, str]) -> None:
        """Decide for each stream whether it comes here, to a file that we write, or to files that the nodes write."""
        own = self.settings.own
        width = len(str(max(self.size - 1, 0))) if "label" in own else 0
        append = own.get("open_mode", "").startswith("a")
        self.remote: dict[str, str] = {"std_in": "", "std_out": "", "std_err": ""}
        names = {
            "A": environment.get("SLURM_ARRAY_JOB_ID", str(self.job_id)), "a": environment.get("SLURM_ARRAY_TASK_ID", "4294967294"),
            "J": f"{self.job_id}.{self.step_id}", "j": str(self.job_id), "s": str(self.step_id),
            "u": environment.get("SLURM_JOB_USER", ""), "x": environment.get("SLURM_JOB_NAME", ""),
        }  # fmt: skip
        out = Sink(1, width)
        self.only_task: dict[int, int] = {}
        for kind, option, field in ((STDOUT, "output", "std_out"), (STDERR, "error", "std_err")):
            pattern = own.get(option, "")
            if not pattern or pattern.lower() == "all":
                if kind == STDERR and not pattern and own.get("output", "").lower() not in {"", "all"}:
                    self.io.sinks[kind] = self.io.sinks[STDOUT]
                    self.remote[field] = self.remote["std_out"] if self.remote["std_out"] == "none" else ""
                    if self.remote["std_out"]:
                        self.remote[field] = self.remote["std_out"]
                else:
                    self.io.sinks[kind] = out if kind == STDOUT else Sink(2, width)
            elif pattern.lower() == "none":
                self.remote[field] = "none"
            elif pattern.isdigit() and int(pattern) < self.size:
                self.only_task[kind] = int(pattern)
                self.io.sinks[kind] = OneTask(1 if kind == STDOUT else 2, width, int(pattern))
            elif any(each in pattern.translate(_NO_DIGITS) for each in _PER_TASK):
                self.remote[field] = pattern if pattern.startswith("/") else f"{self.work_dir}/{pattern}"
            else:
                path = _expanded(pattern, names)
                flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
                if kind == STDERR and pattern == own.get("output"):
                    self.io.sinks[kind] = self.io.sinks[STDOUT]
                    continue
                try:
                    self.io.sinks[kind] = Sink(os.open(path, flags, 0o666), width)
                except OSError as error:
                    self.error(f"Could not open {'stdout' if kind == STDOUT else 'stderr'} file: {error.strerror}")
                    raise StepError from None
        self.open_input(names)

    @property
    def work_dir(self) -> str:
        found: str = self.settings.job.spec.get("work_dir") or os.getcwd()
        return found

    def open_input(self, names: dict[str, str]) -> None:
        pattern = self.settings.own.get("input", "")
        self.stdin_task = -1
        self.stdin = 0
        if not pattern or pattern.lower() == "all":
            return
        if pattern.lower() == "none":
            self.stdin_task, self.stdin = -2, -1
        elif pattern.isdigit() and int(pattern) < self.size:
            self.stdin_task = int(pattern)
        elif any(each in pattern.translate(_NO_DIGITS) for each in _PER_TASK):
            self.remote["std_in"] = pattern if pattern.startswith("/") else f"{self.work_dir}/{pattern}"
            self.stdin = -1
        else:
            try:
                self.stdin = os.open(_expanded(pattern, names), os.O_RDONLY)
            except OSError as error:
                self.error(f"Could not open stdin file: {error.strerror}")
                raise StepError from None

    def pty_size(self) -> "tuple[int, int] | None":
        if "pty" not in self.settings.own:
            return None
        if not os.isatty(0):
            self.error("ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
            self.error("Not using a pseudo-terminal, disregarding --pty option")
            return None
        size = os.get_terminal_size(0)
        import termios

        self.terminal = termios.tcgetattr(0)
        raw = termios.tcgetattr(0)
        raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
        raw[1] &= ~termios.OPOST
        raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        termios.tcsetattr(0, termios.TCSAFLUSH, raw)
        _signal.signal(_signal.SIGWINCH, lambda _number, _frame: None)
        return size.lines, size.columns

    def restore_terminal(self) -> None:
        if self.terminal is not None:
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self.terminal)
            self.terminal = None

    def launch(self, environment: dict[str, str], host: str) -> None:
        """Tell the node daemons: some of them, who tell the others."""
        own = self.settings.own
        umask = os.umask(0)
        os.umask(umask)
        pty = self.pty_size()
        layout = self.tasks if len(self.shares) > 1 else []
        for share in self.shares:
            message = pack(
                "LaunchTasks", share.credential, share.job_id, share.restart, self.step_id, share.nodes, share.tasks, share.cpus, share.user,
                share.command, [f"{name}={value}" for name, value in environment.items()], self.work_dir, umask,
                f"tcp:{host}:{self.io.port}", self.io.key, self.remote["std_in"], self.remote["std_out"], self.remote["std_err"],
                own.get("open_mode", "").startswith("a"), self.end_time, own.get("task_prolog", ""), own.get("task_epilog", ""), self.programs, pty,
                "pmi2" if own.get("mpi") == "pmi2" else "", environment.get("SLURM_JOB_NAME", ""), "unbuffered" in own or pty is not None,
                self.stdin_task, share.first_node, layout, self.settings.cpu_bind,
            )  # fmt: skip
            for text in send_down(self.context.client, message, share.daemons, share.width):
                self.error(f"Task launch for StepId={self.job_id}.{self.step_id} failed on node {text}")
                self.highest = self.highest or 1
        if self.stdin_task != -2:
            self.io.feed(self.stdin, ALL if self.stdin_task < 0 else self.stdin_task)

    # --- while it runs ---------------------------------------------------------------------------------------------------------

    def catch_signals(self) -> None:
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        os.set_blocking(writes, False)
        _signal.set_wakeup_fd(writes)
        for each in (
            _signal.SIGINT,
            _signal.SIGTERM,
            _signal.SIGHUP,
            _signal.SIGQUIT,
            _signal.SIGUSR1,
            _signal.SIGUSR2,
            _signal.SIGCONT,
            _signal.SIGALRM,
        ):
            _signal.signal(each, lambda _number, _frame: None)
        for each in (_signal.SIGTTIN, _signal.SIGTTOU):
            _signal.signal(each, _signal.SIG_IGN)
        self.wake = reads
        self.io.watch(reads, self.signalled)

    def signalled(self) -> None:
        try:
            numbers = os.read(self.wake, 256)
        except BlockingIOError:
            return
        for each in numbers:
            if each == _signal.SIGINT:
                self.interrupted()
            elif each in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
                self.say("forcing job termination")
                self.abort()
                self.terminate(_signal.SIGKILL)
            elif each in (_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGALRM):
                self.send_signal(each)
            elif each == _signal.SIGCONT:
                self.say("got SIGCONT")
            elif each == _signal.SIGWINCH:
                size = os.get_terminal_size(0)
                self.io.send_all(frame(WINDOW, 0, f"{size.lines} {size.columns}".encode()))

    def interrupted(self) -> None:
        now = time.monotonic()
        own = self.settings.own
        if "quit_on_interrupt" not in own and (not self.interrupted_at or now - self.interrupted_at > _STATUS_S):
            self.interrupted_at = now
            if "disable_status" not in own:
                self.say("interrupt (one more within 1 sec to abort)")
                self.status()
                return
        self.interrupts += 1
        if self.interrupts == 1:
            self.say(f"sending Ctrl-C to StepId={self.job_id}.{self.step_id}")
            self.is_silent = True
            self.end_rest(_signal.SIGINT)
        self.say("forcing job termination")
        self.abort()
        self.terminate(_signal.SIGKILL)

    def status(self) -> None:
        running = [each for each in range(self.size) if each not in self.exits]
        groups = [("running", running)]
        groups.append(("exited", [each for each, status in self.exits.items() if not status]))
        groups.append(("exited abnormally", [each for each, status in self.exits.items() if status]))
        for text, numbers in groups:
            if numbers:
                self.say(f"StepId={self.job_id}.{self.step_id} {_tasks_text(sorted(numbers))}: {text}")

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            for _ in self.shares:
                self.say(f"Job step aborted: Waiting up to {self.kill_wait_s + 2} seconds for job step to finish.")
            self.give_up_at = time.monotonic() + self.kill_wait_s + 2 + 10

    give_up_at = 0.0

    def terminate(self, signal: int) -> None:
        """Have the controller end the step."""
        try:
            self.context.client.another().call(
                "CancelJobs", [f"{self.job_id}.{self.step_id}"], None if signal == _signal.SIGKILL else int(signal), {}
            )
        except RefusedError:
            self.send_signal(signal)

    def send_signal(self, signal: int) -> None:
        try:
            self.context.client.another().call("CancelJobs", [f"{self.job_id}.{self.step_id}"], int(signal), {})
        except RefusedError as error:
            self.error(f"Unable to signal the step: {error.text}")

    def take(self, kind: int, _task: int, body: bytes, part: Part) -> None:
        """A frame that is no output."""
        if kind == MESSAGE:
            Sink(2, 0).write(body)
        elif kind == EXITED:
            status, _, numbers = body.partition(b" ")
            self.ended(int(status), [int(each) for each in numbers.split(b",")])
        elif kind == ABORT:
            if not self.is_terminated:
                self.abort()
        elif kind == PMI:
            self.gathered.append(body)
            if len(self.gathered) == self.io.expected:
                merged = b"\n".join(each for each in self.gathered if each)
                self.gathered = []
                self.io.send_all(frame(PMI, 0, merged))
        elif kind == STARTED and self.settings.verbose:
            del part

    def ended(self, status: int, numbers: list[int]) -> None:
        for each in numbers:
            self.exits[each] = status
        self.first_exit_at = self.first_exit_at or time.monotonic()
        code = os.waitstatus_to_exitcode(status)
        value = 128 - code if code < 0 else code
        if value > self.highest:
            self.highest, self.ended_by = value, max(-code, 0)
        if status and not self.is_silent:
            first = max((share.first_task for share in self.shares if share.first_task <= numbers[0]), default=0)
            by_node: dict[str, list[int]] = {}
            for each in numbers:
                by_node.setdefault(self.node_of.get(each, "?"), []).append(each - first)
            what = f"Exited with exit code {code}" if code > 0 else _signal_text(-code, core=bool(status & 0x80))
            for node, its in by_node.items():
                self.error(f"{node}: {_tasks_text(its)}: {what}")
            if code in (-_signal.SIGKILL, -_signal.SIGTERM) and not self.is_aborted and not self.is_forced:
                self.is_forced = True
                self.say(f"Force Terminated StepId={self.job_id}.{self.step_id}")
            if self.kills_on_bad_exit() and len(self.exits) < self.size and not self.is_terminated:
                self.is_terminated = True
                self.say(f"launch/slurm: _step_signal: Terminating StepId={self.job_id}.{self.step_id}")
                self.end_rest(_signal.SIGTERM)

    def kills_on_bad_exit(self) -> bool:
        return bool(self.settings.kill_on_bad_exit)

    def end_rest(self, signal: int) -> None:
        """End the tasks that are left, by a word to the node daemons that also tells those who read."""
        for share in self.shares:
            message = pack("SignalTasks", share.job_id, share.restart, self.step_id, int(signal), True, share.credential)
            send_down(self.context.client, message, share.daemons, 32)

    def follow(self) -> None:
        """Until all parts are done."""
        io = self.io
        is_told = False
        while not io.is_over and not (self.give_up_at and time.monotonic() > self.give_up_at):
            if self.highest and not io.known and not io.parts and len(self.exits) == 0 and self.launch_failed():
                return
            pause = None
            wait_s = self.settings.wait_s
            if wait_s and self.first_exit_at and not is_told and len(self.exits) < self.size:
                left = self.first_exit_at + wait_s - time.monotonic()
                if left <= 0:
                    is_told = True
                    self.say(f"First task exited {wait_s}s ago")
                    self.status()
                    self.say(f"launch/slurm: _step_signal: Terminating StepId={self.job_id}.{self.step_id}")
                    self.end_rest(_signal.SIGKILL)
                else:
                    pause = int(left * 1000) + 1
            if self.give_up_at:
                pause = min(pause or 1000, 1000)
            io.turn(pause)
        missing = self.size - len(self.exits)
        if missing and not self.is_aborted:
            self.error(f"{missing} tasks of StepId={self.job_id}.{self.step_id} were lost")
            self.highest = self.highest or 1

    def launch_failed(self) -> bool:
        self.io.turn(1000)
        return not self.io.parts and not self.io.known


class OneTask(Sink):
    """The output of one task; what others write is dropped."""

    def __init__(self, descriptor: int, label_width: int, task: int) -> None:
        super().__init__(descriptor, label_width)
        self.task = task

    def put(self, task: int, data: bytes) -> None:
        if task == self.task:
            super().put(task, data)


def send_down(client: Client, message: "list[Any]", daemons: "list[list[str]]", width: int, *, codes: bool = False) -> list[str]:
    """Send a message to node daemons: at most `width` get it from us and hand it on. What went wrong, a text a node, with `codes` a number first."""
    parts = _split(daemons, width)
    asked: list[tuple[Client, list[list[str]]]] = []
    bad: list[str] = []

    def note(code: int, nodes: str, text: str) -> None:
        bad.append(f"{code} {nodes}: {text}" if codes else f"{nodes}: {text}")

    for whole in parts:
        part = whole
        while part:
            daemon = client.another(part[0][1])
            try:
                if len(part) == 1:
                    daemon.send(message)
                else:
                    import msgpack

                    nodes = ",".join(each[2] for each in part)
                    daemon.begin("Forward", msgpack.packb(message), nodes, width, 10.0, False)
                asked.append((daemon, part))
                break
            except RefusedError as error:
                note(error.code, part[0][2], error.text)
                part = part[1:]
    for daemon, part in asked:
        try:
            name, answer = daemon.finish()
        except RefusedError as error:
            note(error.code, part[0][2], error.text)
            continue
        finally:
            daemon.close()
        if name == "Failure":
            note(answer[0], part[0][2], answer[1])
        elif name == "NodeReplies":
            for _tag, nodes, code, text in answer[0]:
                if code:
                    note(code, nodes, text)
    return bad


def _split(daemons: "list[list[str]]", width: int) -> "list[list[list[str]]]":
    count = max(min(width, len(daemons)), 1)
    size, more = divmod(len(daemons), count)
    parts, at = [], 0
    for index in range(count):
        end = at + size + (index < more)
        parts.append(daemons[at:end])
        at = end
    return parts


_NO_DIGITS = {ord(digit): None for digit in "0123456789"}


def _expanded(pattern: str, names: dict[str, str]) -> str:
    if "\\" in pattern:
        return pattern.replace("\\", "")
    found, at = "", 0
    while at < len(pattern):
        if pattern[at] != "%":
            found += pattern[at]
            at += 1
            continue
        end = at + 1
        while end < len(pattern) and pattern[end].isdigit():
            end += 1
        width, key = pattern[at + 1 : end], pattern[end : end + 1]
        if key in names and key:
            found += names[key].rjust(min(int(width or 0), 10), "0") if key in "Aajs" else names[key]
        else:
            found += "%" if key == "%" and not width else "%" + width + key
        at = end + 1
    return found


def _counts(text: str) -> list[int]:
    """`2(x3),1` as numbers."""
    found: list[int] = []
    for word in text.split(","):
        value, _, times = word.partition("(x")
        found += [int(value)] * int(times.rstrip(")") or 1)
    return found


def _compressed(values: list[int]) -> str:
    rows: list[list[int]] = []
    for value in values:
        if rows and rows[-1][0] == value:
            rows[-1][1] += 1
        else:
            rows.append([value, 1])
    return ",".join(f"{value}(x{count})" if count > 1 else str(value) for value, count in rows)


def _tasks_text(numbers: list[int]) -> str:
    """`task 3`, `tasks 0-3,7`."""
    ranges: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        ranges.append(str(numbers[at]) if end == at else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return f"task{'s' if len(numbers) > 1 else ''} {','.join(ranges)}"


def _signal_text(signal: int, *, core: bool) -> str:
    text = f"Real-time signal {signal - 34}" if 34 <= signal <= 64 else _SIGNAL_TEXTS.get(signal, f"Unknown signal {signal}")
    return text + (" (core dumped)" if core else "")


def main() -> int:
    """Run as a program; does not return."""
    return run("srun", srun, USAGE_EXIT)


if __name__ == "__main__":
    main()
