"""srun: run tasks, in resources that are there or that it gets for them. Follows srun(1) of 22.05.

The controller gives the step and signs its credential; from there on srun talks to the node daemons
(see `../docs/adr/0011-the-streams-of-steps.md`).
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os

from understudy.commands.shared.client import Client, RefusedError, pack_named
from understudy.commands.shared.context import Context, run
from understudy.commands.srun.own_options import debug_notice
from understudy.commands.srun.srun_options import OPTIONS, USAGE
from understudy.commands.srun.srun_settings import (
    Settings,
    StepError,
    check_groups,
    drop_contrary_tasks,
    fit_nodes,
    look_and_say,
    of_parts,
)
from understudy.commands.submission.allocation import (
    Allocation,
    AllocationError,
    NotReadyError,
    allocate,
    await_ready,
    complete,
    exit_code,
    of_answer,
    release,
)
from understudy.commands.submission.gres import GRES_ERRORS, gres_help, refuses_gres
from understudy.commands.submission.in_order import goes_on, read_part
from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.options import check_limits
from understudy.commands.submission.shape import (
    ignore_specialised,
    options_agree,
    variables_agree,
)
from understudy.commands.submission.whole import (
    check_whole,
    check_x11,
    read_node_file,
    refuse_no_tasks,
)
from understudy.model.noted import NO_NODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


USAGE_EXIT = 255
ALREADY_DONE = 2021
_NO_BINDING = "srun: cluster configuration lacks support for cpu binding"


def srun(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        return _srun(arguments, context)
    except BadOptionError as error:
        return error.say(context)
    except StepError:
        return 1


def _srun(whole: list[str], context: Context) -> int:
    if not variables_agree(context.environ, "SLURM_", context):
        return 1
    parts: list[Settings] = []
    lines = segments(whole)
    for place, words in enumerate(lines):
        code = _read_part(words, len(lines) - place - 1, parts, context)
        if code is not None:
            return code
    settings = parts[0]
    own = settings.own
    for part in parts:
        if not part.command:  # it runs the last one's
            part.command = parts[-1].command
            part.arguments = [*part.arguments, *part.command]
        check_limits(part.own.get("propagate") or "")
    clusters = [value for option, value in settings.given if option.dest == "clusters"]
    if context.refuses_clusters(clusters[-1] if clusters else None):
        return 1
    name = os.path.basename(settings.command[0]) if settings.command else ""
    if _is_test(parts):
        return max(_test(part, name, context) for part in parts)
    programs: list[Any] = []
    if "multi_prog" in own:
        from understudy.commands.srun.multi_prog import read_programs

        programs = read_programs(settings, context)
    if "no_allocate" in own:
        from understudy.commands.srun.no_allocate import run_without_job

        return run_without_job(settings, name, programs, context)
    if settings.job_id:
        return _inside(parts, name, programs, context)
    return _outside(parts, name, programs, context)


def _read_part(
    words: list[str], behind: int, parts: list[Settings], context: Context
) -> int | None:
    """Read and look at the next part of the line, with so many behind it, as far as it can be known
    by itself, and put it with the others. Returns the exit code where that ends the command.
    """
    line = read_part(OPTIONS, words, len(parts))
    check_groups(line[0])
    if not goes_on(OPTIONS, line, USAGE, look_and_say(context), context):
        return 0
    environ = of_parts(context.environ) if parts or behind else context.environ
    settings = Settings(words, context, environ, parts[-1] if parts else None, is_new=True)
    own = settings.own
    if "mpi" in own and not parts:
        from understudy.commands.srun.mpi_types import says_list

        if says_list(own["mpi"], context):
            return 0
    elif "mpi" in settings.on_line:
        context.error("--mpi is only supported in the first heterogeneous component")
        return 1
    if "gres_help" in settings.job.flags:
        context.print(gres_help(context))
        return 0
    if not (settings.command or behind or _is_test([*parts, settings])):
        context.fatal("No command given to execute.")
        return 1
    if "multi_prog" in own:
        from understudy.commands.srun.multi_prog import read_file

        read_file(settings, context)
    if not _is_sound(settings, context, is_first=not parts, is_last=not behind):
        return 1
    parts.append(settings)
    return None


def _is_test(parts: list[Settings]) -> bool:
    return any("test_only" in part.own for part in parts)


def _say_options(settings: Settings, times: int, context: Context) -> None:
    if times:
        from understudy.commands.submission.verbose import say_options

        say_options(settings.given, settings.job, times, context)


def _binding_is_sound(settings: Settings, context: Context) -> bool:
    """Whether --cpu-bind is one, and not help where there is none; what is wrong is said."""
    named = settings.on_line | {option.dest for option, _ in settings.given} & {"threads_per_core"}
    if {"cpu_bind", "threads_per_core"} & named and not _binds(context):
        if "cpu_bind" in settings.on_line and settings.own["cpu_bind"] == "help":
            context.print("CPU bind options not supported with current configuration")
            return False
        context.complain(_NO_BINDING)
    if settings.cpu_bind.startswith("!"):
        context.error(f'unrecognized --cpu-bind argument "{settings.cpu_bind[1:]}"')
        context.fatal("Failed to parse --cpu-bind= values.")
        return False
    return True


def _is_sound(settings: Settings, context: Context, *, is_first: bool, is_last: bool) -> bool:
    """Whether what a part asks for can be meant; else that is said. Settles what follows of it."""
    own, job = settings.own, settings.job
    runs = bool(settings.command) or not is_last
    if runs and not ignore_specialised(job, context):
        return False
    if notice := debug_notice(own["slurmd_debug"]) if "slurmd_debug" in own else "":
        context.complain(f"srun: {notice}")
    given = set(settings.on_line)
    if "SLURM_NTASKS_PER_GPU" in context.environ:
        given.add("ntasks_per_gpu")
    if not options_agree(given, context):
        return False
    is_sound = True
    if "whole" in settings.on_line and own.keys() & {"exact", "exclusive"}:
        context.error("--exact and --whole are mutually exclusive.")
        is_sound = False
    is_sound = _nodes_agree(own, job, context) and is_sound
    if not _binding_is_sound(settings, context):
        return False
    settings.settle()
    if {"exclusive", "overlap"} <= own.keys():
        context.error("--exclusive and --overlap are mutually exclusive")
        is_sound = False
    read_node_file(job)
    inside = bool(settings.job_id) and is_first and is_last
    is_sound = fit_nodes(settings, context, inside=inside) and is_sound
    if "mpi" in own and is_first:
        from understudy.commands.srun.mpi_types import check

        check(own["mpi"], context)
    check_x11(own, context.environ)
    if not is_sound:
        return False
    job.note(NO_NODES, "extra_node_info", is_so=False)
    refuse_no_tasks(job)
    if runs:
        _say_options(settings, settings.verbose, context)
    return True


def _nodes_agree(own: "Mapping[str, str]", job: "Job", context: Context) -> bool:
    """Whether --no-allocate has a list of nodes, and none that are left out, and --relative has
    neither; what is wrong is said.
    """
    has_nodes, leaves_out = bool(job.spec.get("required_nodes")), "excluded_nodes" in job.spec
    is_free, is_relative = "no_allocate" in own, "relative" in own
    wrong = {
        "must specify a node list with -Z, --no-allocate.": is_free and not has_nodes,
        "can not specify --exclude list with -Z, --no-allocate.": is_free and leaves_out,
        "do not specify -r,--relative with -Z,--no-allocate.": is_free and is_relative,
        "-r,--relative not allowed with -w,--nodelist or -x,--exclude.": is_relative
        and (has_nodes or leaves_out),
    }
    for text in (text for text, is_so in wrong.items() if is_so):
        context.error(text)
    return not any(wrong.values())


def _binds(context: Context) -> bool:
    """Whether slurm.conf names a plugin that binds tasks to CPUs."""
    plugins = dict(
        context.client.query("config", ["name", "value"], {"name": ["TaskPlugin"]}).rows
    ).get("TaskPlugin", "")
    return any(word in plugins for word in ("affinity", "cgroup"))


def _test(settings: Settings, name: str, context: Context) -> int:
    job = settings.job
    if refuses_gres(job, context):
        context.complain("allocation failure: No error")
        return 1
    check_whole(job)
    command = settings.command[0] if settings.command else ""
    complete(job, command, settings.arguments, context, name)
    try:
        _, note, *_ = context.client.call(
            "SubmitJob", pack_named("JobSpec", job.spec), "", None, job.user_id, job.group_id, True
        )
    except RefusedError as error:
        *notes, last = error.text.split("\n")
        is_of_gres = error.code in GRES_ERRORS
        for each in [*notes, last] if is_of_gres else notes:
            context.error(each)
        context.complain(f"allocation failure: {'No error' if is_of_gres else last}")
        return 1
    context.complain(f"srun: {note}")
    return 0


def segments(arguments: list[str]) -> list[list[str]]:
    """The parts of the command line between `:`, one or more for each component of a heterogeneous
    job.
    """
    found: list[list[str]] = [[]]
    for word in arguments:
        if word == ":":
            found.append([])
        else:
            found[-1].append(word)
    return found


def _outside(components: list[Settings], name: str, programs: "list[Any]", context: Context) -> int:
    """Get resources, run the step, give them back."""
    settings, *others = components
    if settings.relative is not None:
        context.fatal("--relative option invalid for job allocation request")
        return 1
    job = settings.job
    if refuses_gres(job, context):
        return 1
    check_whole(job)
    for each in components:
        drop_contrary_tasks(each, context)
        complete(
            each.job, each.command[0], each.arguments, context, os.path.basename(each.command[0])
        )

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for each in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
        _signal.signal(each, interrupt)
    try:
        allocation = allocate(
            job, settings.immediate, context, [each.job for each in others], quiet=settings.quiet
        )
    except AllocationError as error:
        *notes, last = error.text.split("\n")
        for note in notes:
            context.error(note)
        context.error(
            last if error.code in GRES_ERRORS else f"Unable to allocate resources: {last}"
        )
        return exit_code(error, settings.immediate, context.environ)
    except KeyboardInterrupt:
        return 1
    code, signal = 1, 0
    watch = context.client.another(waits=False)
    try:
        if allocation.is_watched:
            _stay_known(watch, allocation.job_id)
        if not allocation.is_ready and not _is_ready(allocation, context):
            return 1
        from understudy.commands.srun.launch import run as run_step
        from understudy.commands.srun.step import Step

        parts = list(zip(components, allocation.components or [allocation], strict=True))
        code, signal = run_step(Step(parts, allocation, programs, context, owns_job=True), name)
    except StepError:
        pass
    finally:
        release(context.client, allocation.job_id, 0 if signal else code, signal)
    return code


def _stay_known(watch: Client, job_id: int) -> None:
    """Ask for the job's end. Nobody reads the answer: that it is asked for says that we are
    here.
    """
    try:  # noqa: SIM105  contextlib costs a command time
        watch.begin("AwaitJob", job_id, True)
    except RefusedError:
        pass


def _is_ready(allocation: Allocation, context: Context) -> bool:
    """Wait for the job's nodes. False: it has ended before they were ready."""
    try:
        await_ready(context.client, allocation.job_id)
    except NotReadyError as error:
        if error.notice:
            context.complain(f"srun: {error.notice}")
        context.error(f"Nodes {allocation.nodes} are still not ready")
        context.error("Something is wrong with the boot of the nodes.")
        return False
    except KeyboardInterrupt:
        return False
    return True


def _inside(wanted: list[Settings], name: str, programs: "list[Any]", context: Context) -> int:
    """Run the step in a job that is there."""
    settings = wanted[0]
    try:
        allocation = of_answer(context.client.call("GetAllocation", settings.job_id))
    except RefusedError as error:
        if error.code == ALREADY_DONE:
            context.error(f"Slurm job {settings.job_id} has expired")
        else:
            context.error(f"Unable to confirm allocation for job {settings.job_id}: {error.text}")
        if error.code in {2017, ALREADY_DONE}:
            context.complain(
                "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job "
                f"{settings.job_id}"
            )
        return 1
    if settings.groups is not None and not allocation.components:
        _refuse_groups(settings.groups, context)
    if allocation.components:
        parts = _by_group(wanted, allocation, context)
    else:
        parts = [(settings, allocation)]
        if len(wanted) > 1:
            from understudy.commands.srun.side_by_side import side_by_side

            programs = side_by_side(wanted, allocation, context)
        else:
            drop_contrary_tasks(settings, context)
    from understudy.commands.srun.launch import run as run_step
    from understudy.commands.srun.step import Step

    code, _ = run_step(Step(parts, allocation, programs, context, owns_job=False), name)
    return code


def _by_group(
    asked: list[Settings], whole: Allocation, context: Context
) -> "list[tuple[Settings, Allocation]]":
    """The parts of a step in a heterogeneous job: the components that --het-group names, by default
    the one at the part's own place.
    """
    parts: list[tuple[Settings, Allocation]] = []
    taken: set[int] = set()
    last = len(whole.components) - 1
    before: Settings | None = None
    for place, settings in enumerate(asked):
        wanted = settings.groups
        numbers = [place] if wanted is None else wanted
        for group in dict.fromkeys(numbers):
            if group > last:
                if wanted is None or len(numbers) > 1:
                    context.error(
                        f"Attempt to run a job step with het group value of {group}, but "
                        f"the job allocation has maximum value of {last}"
                    )
                else:
                    context.error(
                        "Requested het-group offset exceeds highest hetjob index "
                        f"({group} > {last})"
                    )
                raise StepError
            if group in taken:
                context.fatal("Duplicate het groups in single srun not supported")
                raise StepError
            taken.add(group)
            part = Settings(settings.arguments, context, _as_group(context.environ, group), before)
            # of nodes on the line it has been said of the part as a whole
            fit_nodes(part, context, inside=True, quiet="nodes" in part.on_line)
            drop_contrary_tasks(part, context)
            parts.append((part, whole.components[group]))
        before = settings
    return sorted(parts, key=lambda part: part[1].job_id)


def _refuse_groups(wanted: list[int], context: Context) -> None:
    """A job of one component has no groups.

    Raises:
        StepError: always.
    """
    if most := max(wanted):
        context.error(f"Requested het-group offset exceeds highest hetjob index ({most} > 0)")
    else:
        context.error("No directives to start application on any available hetjob components")
    raise StepError


def _as_group(environ: "Mapping[str, str]", group: int) -> dict[str, str]:
    """The environment as if the component were the job: what it says of the group in place of what
    it says of the whole.
    """
    end = f"_HET_GROUP_{group}"
    found = {
        name: value
        for name, value in environ.items()
        if name not in {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES"}
    }
    return found | {
        name.removesuffix(end): value for name, value in environ.items() if name.endswith(end)
    }


def main() -> int:
    """Run as a program; does not return."""
    return run("srun", srun, USAGE_EXIT)


if __name__ == "__main__":
    main()
