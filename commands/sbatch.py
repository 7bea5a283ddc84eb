"""sbatch: submit a batch script. Follows sbatch(1) of 22.05.

What the command line says wins over SBATCH_* variables, and these over `#SBATCH` lines.
"""

import os
import time

from understudy.commands.shared.client import RefusedError, pack_named
from understudy.commands.shared.context import Caller, Context, run
from understudy.commands.submission.batch_script import ScriptError, directives, read_script
from understudy.commands.submission.export import exported, limits, submitter
from understudy.commands.submission.gres import GRES_ERRORS, gres_help, refuses_gres
from understudy.commands.submission.in_order import answers
from understudy.commands.submission.job import CONTRARY_TIMES, BadOptionError, Job
from understudy.commands.submission.option_table import KEPT, OPTIONS, USAGE
from understudy.commands.submission.options import apply
from understudy.commands.submission.shape import (
    fit_nodes,
    heed_hint,
    ignore_specialised,
    loudness,
    options_agree,
    say_ignored,
    tasks_told,
    variables_agree,
    without_contrary,
)
from understudy.commands.submission.whole import check_whole
from understudy.model.environment import SBATCH, distribution, told, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from understudy.commands.shared.client import Client
    from understudy.commands.shared.options import Option, OptionError

    Given: TypeAlias = list[tuple[Option, str | None]]

USAGE_EXIT = 255
_PROFILES = ("Energy", "Lustre", "Network", "Task")
_POLL_S = (0.05, 2.0)  # ours: --wait: how often the job's state is asked for, at first and at last


def sbatch(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        return _submit(arguments, context)
    except BadOptionError as error:
        return error.say(context)
    except ScriptError as error:
        for line in error.lines:
            (context.fatal if error.is_fatal else context.error)(line)
        return error.exit_code
    except RefusedError as error:
        *notes, last = error.text.split("\n")
        for note in notes:
            context.error(note)
        context.error(last if error.code in GRES_ERRORS else f"Batch job submission failed: {last}")
        return 1


def _submit(arguments: list[str], context: Context) -> int:
    line, operands, refused = _read_line(arguments)
    if refused is not None:  # a wrong value before it comes first
        if _try(line, context):
            return 0
        raise refused
    given = [each for group in line for each in group]
    if (code := _answer(line, given, operands, context)) is not None:
        return code
    where, script = _script(given, operands, len(line), context)
    is_wrapped = any(option.dest == "wrap" for option, _ in given)
    in_script: list[Given] | None = [[]]
    if not is_wrapped:
        in_script = _in_script(script, operands[0] if operands else "", given, context)
    if in_script is None:
        return 0
    environment = without_contrary(OPTIONS.from_environment(context.environ), given)
    times = loudness(given, context.environ, "SBATCH_DEBUG", adds=False)
    if not variables_agree(context.environ, "SBATCH_", context):
        return 1
    named = _values([*(each for group in in_script for each in group), *environment, *given])
    if not all(options_agree({option.dest for option, _ in group}, context) for group in line):
        return 1
    sources = _sources(line, in_script, environment)
    jobs = _components(sources, context)
    if not jobs or context.refuses_clusters(named.get("clusters")):
        return 1
    # a script's own -v says nothing
    if times:
        from understudy.commands.submission.verbose import say_options

        for source, job in zip(sources, jobs, strict=True):
            say_options(source, job, times, context)
    if any("gres_help" in job.flags for job in jobs):
        context.print(gres_help(context))
        return 0
    client = context.client
    for job in jobs:
        fit_nodes(job, context, quiet="quiet" in job.flags)
        if refuses_gres(job, context):
            return 1
        _complete(job, where, operands[1:], is_wrapped, arguments, context)
        if not _set_times(job, client, context):
            return 1
    return _send(jobs, script, client, context)


def _values(given: "Given") -> "dict[str, str | None]":
    """Of each option the value that it was given last."""
    return {option.dest: value for option, value in given}


def _answer(
    line: "list[Given]", given: "Given", operands: list[str], context: Context
) -> int | None:
    """The exit code where the command line asks for help or cannot be meant; None: go on."""
    if _try(line, context):
        return 0
    values = _values(given)
    if "wrap" in values and operands:
        context.error("Script arguments not permitted with --wrap option")
        return 1
    return None


def _try(line: "list[Given]", context: Context) -> bool:
    """Complain of the first mistake on the line, which comes before those in the script. Returns
    whether the line asked for help, which it got.

    Raises:
        BadOptionError: of a value.
    """
    for group in line:
        trial = Job(time.time())
        for option, value in group:
            if answers(option, value, OPTIONS, USAGE, context):
                return True
            apply(trial, option, value)
            say_ignored(trial, context)
            trial.ignored.clear()
    return False


def _script(
    given: "Given", operands: list[str], components: int, context: Context
) -> tuple[str, str]:
    """Where the script is ("": nowhere), and its text."""
    values = _values(given)
    if "wrap" in values:
        # Slurm leaves it out where there are several components
        blank = "\n" if components == 1 else ""
        said = "# This script was created by sbatch --wrap."
        return "", f"#!/bin/sh\n{said}\n{blank}{values['wrap']}\n"
    return read_script(
        operands[0] if operands else None, context.stdin, context.environ.get("PATH")
    )


def _set_times(job: Job, client: "Client", context: Context) -> bool:
    """--begin and --deadline by the cluster's clock, which may be a virtual one. False: they do
    not go together, which is said.
    """
    if not (job.begin or job.deadline):
        return True
    from understudy.model.moments import parse_time

    now = client.query("ping", ["host"]).now
    if job.begin:
        job.spec["begin_time"] = float(parse_time(job.begin, now))
    if job.deadline:
        job.spec["deadline"] = float(parse_time(job.deadline, now))
    if job.begin and job.deadline and job.spec["begin_time"] > job.spec["deadline"]:
        context.error(CONTRARY_TIMES)
        return False
    return True


def _send(jobs: list[Job], script: str, client: "Client", context: Context) -> int:
    """Submit the job of these components and say what became of it. Returns the exit code."""
    flags = {flag for job in jobs for flag in job.flags}
    test_only = "test_only" in flags
    first, *others = [pack_named("JobSpec", job.spec) for job in jobs]
    users = (jobs[0].user_id, jobs[0].group_id)
    try:
        job_id, note, *_ = client.submit(
            "SubmitJob", first, script, None, *users, test_only, others
        )
    except RefusedError as error:
        if not test_only:
            raise
        *notes, last = error.text.split("\n")
        is_of_gres = error.code in GRES_ERRORS  # which Slurm's commands say without more
        for each in [*notes, last] if is_of_gres else notes:
            context.error(each)
        if not is_of_gres:
            context.complain(f"allocation failure: {last}")
        return 1
    for line in note.split("\n") if note else ():
        context.complain(f"{context.program}: {line}")
    if test_only:
        return 0
    cluster = context.named_cluster
    if "quiet" in flags:
        pass
    elif "parsable" in flags:
        context.print(f"{job_id};{cluster}" if cluster else str(job_id))
    else:
        context.print(
            f"Submitted batch job {job_id}" + (f" on cluster {cluster}" if cluster else "")
        )
    if "wait" in flags:
        context.stdout.flush()
        return _await_end(job_id, context)
    return 0


def _read_line(arguments: list[str]) -> "tuple[list[Given], list[str], OptionError | None]":
    """The options of each component (`:` parts those of a heterogeneous job), the script with its
    arguments, and how the line is refused.
    """
    groups: list[Given] = []
    operands, refused = [":", *arguments], None
    while operands[:1] == [":"]:
        given, operands, refused = OPTIONS.read(operands[1:], permute=False)
        groups.append(given)
    return groups, operands, refused


def _in_script(script: str, where: str, given: "Given", context: Context) -> "list[Given] | None":
    """The options that the script itself gives, of each component; None: it asked what `--gres`
    knows, which has been answered. An option and its value may stand in two lines.
    """
    ignores_pbs = "ignore_pbs" in _values(given) or "SBATCH_IGNORE_PBS" in context.environ
    parts: list[list[str]] = [[]]
    for words in directives(script, where):
        if words[:1] in (["hetjob"], ["packjob"]):
            if words[0] == "packjob":
                context.complain(
                    f'{context.program}: Warning: the "packjob" component separator is '
                    'being deprecated. Please, use "hetjob" instead.'
                )
            parts.append([])
        else:
            parts[-1] += words
    found: list[Given] = []
    for part in parts:
        given, operands, refused = OPTIONS.read(part)
        if any(option.dest == "gres" and value == "help" for option, value in given):
            _try([given], context)
            return None
        if refused is not None:
            raise refused
        if operands:
            _try([given], context)
            raise BadOptionError(f"Invalid directive found in batch script: {operands[0]}")
        # which a script cannot be
        found.append([each for each in given if each[0].dest != "quiet"])
    if not ignores_pbs and ("#PBS" in script or "#BSUB" in script):
        found[0] += _of_other_systems(script, where, context)
    return found


def _of_other_systems(script: str, where: str, context: Context) -> "Given":
    from understudy.commands.submission.other_script import OtherScriptError, other_options

    try:
        return [(OPTIONS.by_long[name], value) for name, value in other_options(script, where)]
    except OtherScriptError as error:
        raise BadOptionError(
            error.lines[-1], 1, *(f"{context.program}: {line}" for line in error.lines[:-1])
        ) from None


def _sources(line: "list[Given]", script: "list[Given]", environment: "Given") -> "list[Given]":
    """What each component is made of, the strongest last. The last component's options of the
    command line go for all further ones of the script.
    """
    return [
        [*(script[at] if at < len(script) else []), *environment, *line[min(at, len(line) - 1)]]
        for at in range(max(len(line), len(script)))
    ]


def _components(sources: "list[Given]", context: Context) -> list[Job]:
    """The job, or the components of a heterogeneous one; none where one contradicts itself, which
    is said.

    Some options (`KEPT`) hold for the components behind, too, until one says otherwise; and for
    those before the first that says something, what the last one says.
    """
    count = len(sources)
    kept: dict[str, tuple[Option, str | None]] = {}
    if count > 1:
        kept = {
            option.dest: (option, value)
            for source in sources
            for option, value in source
            if option.dest in KEPT
        }
    now = time.time()
    jobs = []
    for source in sources:
        job = Job(now)
        for option, value in [*kept.values(), *source]:
            apply(job, option, value)
        say_ignored(job, context)
        if not ignore_specialised(job, context):
            return []
        if "SLURM_HOSTFILE" in context.environ:
            from understudy.commands.submission.host_file import use_host_file

            use_host_file(job, context.environ, job.spec.get("num_tasks"))
        heed_hint(job)
        check_whole(job)
        kept |= {
            option.dest: (option, value)
            for option, value in source
            if count > 1 and option.dest in KEPT
        }
        jobs.append(job)
    return jobs


def _complete(
    job: Job,
    where: str,
    script_arguments: list[str],
    wrapped: bool,
    arguments: list[str],
    context: Context,
) -> None:
    """What follows from no option: names, folders, the environment."""
    spec = job.spec
    spec.setdefault("name", "wrap" if wrapped else os.path.basename(where) or "sbatch")
    spec.setdefault("work_dir", os.getcwd())
    spec["command"] = where
    spec["arguments"] = script_arguments
    job.extra["alloc_node"] = os.uname().nodename.partition(".")[0]
    job.extra["alloc_sid"] = str(os.getsid(Caller.pid))
    spec["submit_line"] = " ".join([context.program, *arguments])
    spec["environment"] = job_environment(context.environ, job)
    spec["extra"] = job.extra


def job_environment(environ: "Mapping[str, str]", job: Job) -> list[str]:
    """The job's environment, `NAME=value` each: what --export lets through, and what sbatch
    adds.
    """
    wanted = job.export
    chosen = (
        exported(environ, wanted)
        if job.export_file is None
        else _read_environment_file(job.export_file)
    )
    for name in ("SBATCH_EXPORT", "SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV"):
        chosen.pop(name, None)
    return written({**chosen, **_added(job)})


def _added(job: Job) -> dict[str, str]:
    """Variables that sbatch itself sets, for the script and for srun within it."""
    spec, extra = job.spec, job.extra
    export = None if job.export is None or job.export.upper() == "ALL" else job.export
    facts = {
        **extra,
        **spec,
        **submitter(),
        **distribution(spec.get("distribution", "")),
        "export": export,
        "wants_login": bool(
            export is not None or job.export_file is not None or "get_user_env" in job.flags
        ),
        "mem_per_node_mb": spec.get("mem_per_node_mb") or None,  # 0: all of it
        "num_tasks": spec["num_tasks"] if "num_tasks" in spec else tasks_told(job) or None,
        "open_mode_letter": spec.get("open_mode", "")[:1],
    }
    if "profile" in extra:
        asked = {word.strip().capitalize() for word in extra["profile"].split(",")}
        named = [word for word in _PROFILES if word in asked or "All" in asked]
        facts["profiled"] = ",".join(named) or "None"
    if "cpu_freq" in extra:
        facts["frequencies"] = "-".join(
            [
                ":".join([part.capitalize() for part in word.split(":")])
                for word in extra["cpu_freq"].split("-")
            ]
        )
    return told(SBATCH, facts) | limits(extra.get("propagate"))


def _read_environment_file(path: str) -> dict[str, str]:
    """--export-file: `NAME=value` each, ended by null bytes (as `env -0` writes), from a file or a
    file descriptor.
    """
    try:
        with open(
            int(path) if path.isdigit() else path, encoding="utf-8", errors="surrogateescape"
        ) as file:
            text = file.read()
    except OSError:
        raise BadOptionError(f"Could not open user environment file {path}", 1) from None
    pairs = (entry.partition("=") for entry in text.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


def _await_end(job_id: int, context: Context) -> int:
    """--wait: the job's exit code, when it has one."""
    from understudy.documents.states import COMPLETED, COMPLETING

    pause, longest = _POLL_S
    columns = ["state", "flags", "exit_code", "exit_signal"]
    seen: list[list[int]] = []
    while True:
        try:
            rows: list[list[int]] = context.client.query("jobs", columns, {"job_id": [job_id]}).rows
            rows = rows + context.client.query("jobs", columns, {"array_job_id": [job_id]}).rows
        except RefusedError:
            time.sleep(longest)
            continue
        # no rows: it ended so long ago that it is forgotten
        if not rows or all(row[0] >= COMPLETED and not row[1] & COMPLETING for row in rows):
            return max((1 if signal else code for _, _, code, signal in rows or seen), default=0)
        seen = rows
        time.sleep(pause)
        pause = min(pause * 1.2, longest)


def main() -> int:
    """Run as a program; does not return."""
    return run("sbatch", sbatch, USAGE_EXIT)


if __name__ == "__main__":
    main()
