"""salloc: get resources, run a command with them, give them back. Follows salloc(1) of 22.05."""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os
import time

from understudy.commands.shared.client import Client, RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import NONE, OPTIONAL, REQUIRED, Option
from understudy.commands.submission.allocation import (
    Allocation,
    AllocationError,
    NotReadyError,
    allocate,
    await_ready,
    blames_immediate,
    complete,
    exit_code,
    immediate_s,
    release,
    table,
)
from understudy.commands.submission.export import submitter
from understudy.commands.submission.gres import GRES_ERRORS, gres_help, refuses_gres
from understudy.commands.submission.in_order import goes_on, read_part
from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.option_table import KEPT
from understudy.commands.submission.options import apply
from understudy.commands.submission.shape import (
    fit_nodes,
    heed_hint,
    ignore_specialised,
    loudness,
    options_agree,
    say_ignored,
    variables_agree,
    without_contrary,
)
from understudy.commands.submission.whole import (
    check_arbitrary,
    check_whole,
    check_x11,
    refuse_no_tasks,
    refuse_two_buffers,
)
from understudy.model.environment import (
    COMMAND,
    COMPONENT,
    WHOLE,
    distribution,
    handed_on,
    of_components,
    told,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.submission.in_order import Line

OPTIONS = table(
    "SALLOC_",
    [
        Option("begin", "b", REQUIRED, "TIME: not before then"),
        Option(
            "bell",
            "",
            NONE,
            "ring the terminal's bell when the resources are there",
            env="SALLOC_BELL",
        ),
        Option("help", "h", NONE, "print this text"),
        Option(
            "immediate",
            "I",
            OPTIONAL,
            "SECONDS: give up when there are no resources by then",
            env="SALLOC_IMMEDIATE",
        ),
        Option(
            "kill-command",
            "K",
            OPTIONAL,
            "SIGNAL: send it to the command when the resources are lost",
            env="SALLOC_KILL_CMD",
        ),
        Option("no-bell", "", NONE, "never ring it", env="SALLOC_NO_BELL"),
        Option("no-shell", "", NONE, "run nothing and leave the resources allocated"),
        Option("quiet", "Q", NONE, "print errors only"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("x11", "", OPTIONAL, ""),
    ],
    {"distribution": ""},
    ("kill-on-invalid-dep",),
)
USAGE = """\
Usage: salloc [-N numnodes|[min nodes]-[max nodes]] [-n num-processors]
              [-c cpus-per-node] [-r n] [-p partition] [--hold] [-t minutes]
              [--immediate[=secs]] [--no-kill] [--overcommit] [-D path]
              [--oversubscribe] [-J jobname]
              [--verbose] [--gid=group] [--uid=user] [--licenses=names]
              [--clusters=cluster_names]
              [--contiguous] [--mincpus=n] [--mem=MB] [--tmp=MB] [-C list]
              [--account=name] [--dependency=type:jobid[+time]] [--comment=name]
              [--mail-type=type] [--mail-user=user] [--nice[=value]]
              [--bell] [--no-bell] [--kill-command[=signal]] [--spread-job]
              [--nodefile=file] [--nodelist=hosts] [--exclude=hosts]
              [--network=type] [--mem-per-cpu=MB] [--qos=qos]
              [--mem-bind=...] [--reservation=name] [--mcs-label=mcs]
              [--time-min=minutes] [--gres=list] [--gres-flags=opts]
              [--cpu-freq=min[-max[:gov]]] [--power=flags] [--profile=...]
              [--switches=max-switches[@max-time-to-wait]]
              [--core-spec=cores] [--thread-spec=threads] [--reboot]
              [--bb=burst_buffer_spec] [--bbf=burst_buffer_file]
              [--delay-boot=mins] [--use-min-nodes]
              [--cpus-per-gpu=n] [--gpus=n] [--gpu-bind=...] [--gpu-freq=...]
              [--gpus-per-node=n] [--gpus-per-socket=n] [--gpus-per-task=n]
              [--mem-per-gpu=MB]
              [command [args...]]"""
USAGE_EXIT = 255
_OWN = frozenset(
    (
        "bell",
        "help",
        "immediate",
        "kill_command",
        "no_bell",
        "no_shell",
        "quiet",
        "usage",
        "verbose",
        "version",
        "x11",
    )
)
# a command that one of them ends went well
_USERS_SIGNALS = frozenset((_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGKILL))


def salloc(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        return _salloc(arguments, context)
    except BadOptionError as error:
        return error.say(context)


def _salloc(arguments: list[str], context: Context) -> int:
    given: list[tuple[Option, str | None]] = []
    jobs: list[Job] = []
    operands = [":", *arguments]
    while operands[:1] == [":"]:
        line = read_part(OPTIONS, operands[1:], len(jobs))
        operands = line[1]
        code = _read_component(line, given, jobs, context)
        if code is not None:
            return code
    job, *others = jobs
    own = {option.dest: value for option, value in given if option.dest in _OWN}
    immediate = immediate_s(own["immediate"]) if "immediate" in own else 0
    kill_signal = _kill_signal(own, has_command=bool(operands))
    quiet = "quiet" in own
    if context.refuses_clusters(
        next((value for option, value in reversed(given) if option.dest == "clusters"), None)
    ):
        return 1
    if any(refuses_gres(each, context) for each in jobs):
        return 1
    folder = job.spec.pop("work_dir", os.getcwd())  # the command's; the job's is where we are
    for each in jobs:
        each.spec.pop("work_dir", None)
        complete(each, "", arguments, context, "no-shell" if "no_shell" in own else "interactive")
    granted = _allocate(job, others, immediate, context, quiet=quiet)
    if isinstance(granted, int):
        return granted
    if not quiet:
        context.complain(f"salloc: Granted job allocation {granted.job_id}")
    if "bell" in own and "no_bell" not in own and context.stdout.isatty():
        context.stdout.write("\a")
    context.stdout.flush()
    context.stderr.flush()
    if not granted.is_ready and not _is_ready(granted, context, quiet=quiet):
        return 1
    if "no_shell" in own:
        return 0
    command = operands or [context.environ.get("SHELL", "/bin/sh")]
    return _run(command, granted, context, job, folder, kill_signal=kill_signal, quiet=quiet)


def _read_component(
    line: "Line", given: "list[tuple[Option, str | None]]", jobs: list[Job], context: Context
) -> int | None:
    """Look at one component's part of the line, and put what it asks for with the others'. `given`
    gets the options, of the environment, too. Returns the exit code where that ends the command.
    """
    trial = Job(time.time())
    if not goes_on(
        OPTIONS, line, USAGE, lambda option, value: _look(trial, option, value, context), context
    ):
        return 0
    own, *_ = line
    if not variables_agree(context.environ, "SALLOC_", context):
        return 1
    environment = without_contrary(OPTIONS.from_environment(context.environ), own)
    kept = [each for each in given if each[0].dest in KEPT]
    settings = [*environment, *kept, *own]
    given += [*environment, *own] if not jobs else own
    job = _component(settings, context)
    if "gres_help" in job.flags:
        context.print(gres_help(context))
        return 0
    if not options_agree({option.dest for option, _ in own}, context):
        return 1
    if not (ignore_specialised(job, context) and _is_sound(job, context)):
        return 1
    if times := loudness(given, context.environ, "SALLOC_DEBUG"):
        from understudy.commands.submission.verbose import say_options

        say_options(settings, job, times, context)
    fit_nodes(job, context)
    refuse_no_tasks(job)
    check_x11({option.dest: value or "" for option, value in settings}, context.environ)
    jobs.append(job)
    return None


def _component(given: list[tuple[Option, str | None]], context: Context) -> Job:
    """What the options ask for that are not salloc's own."""
    job = Job(time.time())
    for option, value in given:
        _look(job, option, value, context)
    return job


def _look(job: Job, option: Option, value: str | None, context: Context) -> None:
    """See what one option asks for, and say if it is passed over.

    Raises:
        BadOptionError: it is wrong.
    """
    if option.dest not in _OWN:
        apply(job, option, value)
        say_ignored(job, context)
        job.ignored.clear()
    elif option.dest == "immediate":
        immediate_s(value)
    elif option.dest == "kill_command":
        _signal_of(value)


def _is_sound(job: Job, context: Context) -> bool:
    """Whether what was asked for can be meant; else that is said.

    Raises:
        BadOptionError: an option is wrong.
    """
    refuse_two_buffers(job, "--bb")
    heed_hint(job)
    if "SLURM_HOSTFILE" in context.environ:
        from understudy.commands.submission.host_file import use_host_file

        use_host_file(job, context.environ, job.spec.get("num_tasks"))
    check_whole(job, bb="--bb")
    check_arbitrary(job)
    if job.spec.get("kill_signal_batch"):
        raise BadOptionError("Invalid --signal specification")
    if "container" in job.extra:
        context.error("--container requires LaunchParameters=use_interactive_step")
        return False
    if "work_dir" in job.spec and not os.path.isdir(job.spec["work_dir"]):
        context.error(f"chdir({job.spec['work_dir']}): No such file or directory")
        return False
    return True


def _allocate(
    job: Job, others: list[Job], immediate: int, context: Context, *, quiet: bool
) -> Allocation | int:
    """The allocation; or the exit code where there is none, and that is said."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
        _signal.signal(number, interrupt)
    try:
        return allocate(job, immediate, context, others, quiet=quiet)
    except AllocationError as error:
        *notes, last = error.text.split("\n")
        for note in notes:
            context.error(note)
        if error.code in GRES_ERRORS:
            context.error(last)
        elif blames_immediate(error, immediate):
            context.error(f"Unable to allocate resources: {last}")
        else:
            context.error(f"Job submit/allocate failed: {last}")
        return exit_code(error, immediate, context.environ)
    except KeyboardInterrupt:
        context.complain("salloc: Job aborted due to signal")
        return 1
    finally:
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def _is_ready(allocation: Allocation, context: Context, *, quiet: bool) -> bool:
    """Wait for the job's nodes. False: it has ended before they were ready."""
    job_id = allocation.job_id
    if not quiet:
        context.complain("salloc: Waiting for resource configuration")
        context.stderr.flush()
    try:
        await_ready(context.client, job_id)
    except NotReadyError as error:
        context.complain(f"salloc: Job allocation {job_id} has been revoked.")
        if error.notice:
            context.complain(f"salloc: {error.notice}")
        context.error(f"Job allocation {job_id} has been revoked")
        return False
    except KeyboardInterrupt:
        context.complain("salloc: Job allocation aborted due to signal")
        release(context.client, job_id, 1)
        return False
    if not quiet:
        context.complain(f"salloc: Nodes {allocation.nodes} are ready for job")
        context.stderr.flush()
    return True


def _kill_signal(own: dict[str, str | None], *, has_command: bool) -> int:
    """What the command is sent when its resources are lost (--kill-command); 0: nothing."""
    if "kill_command" not in own:
        return 0 if has_command else int(_signal.SIGHUP)
    return _signal_of(own["kill_command"])


def _signal_of(text: str | None) -> int:
    """The number of a signal; without a word SIGTERM's.

    Raises:
        BadOptionError: it is none.
    """
    if not text:
        return int(_signal.SIGTERM)
    from understudy.model.times import parse_signal

    number = text.removeprefix("-")
    try:
        return int(text) if number.isdigit() and int(number) else parse_signal(text)
    except ValueError:
        raise BadOptionError("Invalid --kill-command specification") from None


def command_environment(allocation: Allocation, job: Job, context: Context) -> dict[str, str]:
    """The command's environment: ours, and what tells srun and the command of the allocation."""
    facts = {
        **submitter(),
        **distribution(job.spec.get("distribution", "")),
        "conf": context.environ.get("SLURM_CONF"),
        "node_aliases": None if allocation.components else "(null)",
    }
    whole = allocation.components
    of_job = _of_components(allocation) if whole else handed_on(COMMAND, allocation.environment)
    return {**context.environ, **of_job, **told(COMMAND, facts)}


def _of_components(whole: Allocation) -> dict[str, str]:
    """What a command is told of a heterogeneous job: of the whole its number and tasks, the rest
    for each component.
    """
    found = handed_on(WHOLE, whole.environment)
    tasks = [each.environment.get("SLURM_NTASKS", "") for each in whole.components]
    if all(tasks):
        found |= told(COMMAND, {"num_tasks": sum(map(int, tasks))})
    aliases = told(COMPONENT, {"node_aliases": "(null)"})
    return found | of_components(
        handed_on(COMPONENT, each.environment) | aliases for each in whole.components
    )


def _run(
    command: list[str],
    allocation: Allocation,
    context: Context,
    job: Job,
    folder: str,
    *,
    kill_signal: int,
    quiet: bool,
) -> int:
    """Run the command there and give the resources back; the exit code is the command's."""
    job_id = allocation.job_id
    program = _find(command[0], context.environ.get("PATH", ""))
    if not program:
        context.error(f'_fork_command: Unable to find command "{command[0]}"')
        return _give_back(job_id, 1, context, quiet=quiet)
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    _signal.set_wakeup_fd(writes)
    _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
    terminal = _terminal()
    pid = os.fork()
    if pid == 0:
        _become(
            program,
            command,
            command_environment(allocation, job, context),
            folder,
            terminal,
        )
    quietly(os.setpgid, pid, pid)

    def forward(number: int, _frame: object) -> None:
        quietly(os.killpg, pid, number)

    for number in (
        _signal.SIGTERM,
        _signal.SIGHUP,
        _signal.SIGUSR1,
        _signal.SIGUSR2,
        _signal.SIGQUIT,
        _signal.SIGINT,
    ):
        _signal.signal(number, forward)
    status, is_revoked = _wait(pid, reads, job_id, context, kill_signal=kill_signal, quiet=quiet)
    if terminal >= 0:
        _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
        quietly(os.tcsetpgrp, terminal, os.getpgrp())
    code = os.waitstatus_to_exitcode(status)
    if is_revoked:
        return own_code(code)
    return _give_back(job_id, code, context, quiet=quiet)


def own_code(code: int) -> int:
    """What salloc ends with after a command that ended with the code, or (below 0) by a signal."""
    return code if code >= 0 else int(-code not in _USERS_SIGNALS)


def _give_back(job_id: int, code: int, context: Context, *, quiet: bool) -> int:
    if not quiet:
        context.complain(f"salloc: Relinquishing job allocation {job_id}")
    release(context.client, job_id, max(code, 0), max(-code, 0))
    return own_code(code)


def _wait(
    pid: int, wake: int, job_id: int, context: Context, *, kill_signal: int, quiet: bool
) -> tuple[int, bool]:
    """The command's wait status, and whether the resources were lost before it ended."""
    import select

    poll = select.poll()
    poll.register(wake, select.POLLIN)
    watch: Client | None = None
    is_revoked = False
    retry_at = 0.0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done and not os.WIFSTOPPED(status):
            return status, is_revoked
        if watch is None and not is_revoked and time.monotonic() >= retry_at:
            watch = context.client.another(waits=False)
            try:
                watch.begin("AwaitJob", job_id, True)
                poll.register(watch.fileno(), select.POLLIN)
            except RefusedError:
                watch, retry_at = None, time.monotonic() + 5
        for number, _ in poll.poll(5000 if watch is None and not is_revoked else None):
            if number == wake:
                quietly(os.read, wake, 4096)
            elif watch is not None:
                poll.unregister(number)
                try:
                    answer = watch.finish_here()
                    if answer is None:
                        poll.register(watch.fileno(), select.POLLIN)
                        continue
                    fields = answer[1]
                    notice, is_revoked = fields[11], not fields[1]
                    if not is_revoked and not quiet:
                        context.complain(f"salloc: {notice}")
                        context.stderr.flush()
                except RefusedError:
                    retry_at = time.monotonic() + 1
                watch.close()
                watch = None
                if is_revoked:
                    if notice:
                        context.complain(f"salloc: {notice}")
                    context.complain(f"salloc: Job allocation {job_id} has been revoked.")
                    context.stderr.flush()
                    if kill_signal:
                        quietly(os.killpg, pid, kill_signal)
                        quietly(os.killpg, pid, _signal.SIGCONT)


def _terminal() -> int:
    """The terminal that the command is to have in its foreground; -1: none."""
    try:
        if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp():
            return 0
    except OSError:
        pass
    return -1


def _find(name: str, path: str) -> str:
    if "/" in name:
        return name if os.access(name, os.X_OK) else ""
    for folder in path.split(":"):
        full = f"{folder or '.'}/{name}"
        if os.access(full, os.X_OK) and not os.path.isdir(full):
            return full
    return ""


def _become(
    program: str, command: list[str], environment: dict[str, str], work_dir: str, terminal: int
) -> None:
    """Turn this process, a child, into the command. Does not return."""
    try:
        _signal.set_wakeup_fd(-1)
        quietly(os.setpgid, 0, 0)
        if terminal >= 0:
            _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
            quietly(os.tcsetpgrp, terminal, os.getpgrp())
        for number in (
            _signal.SIGINT,
            _signal.SIGTERM,
            _signal.SIGHUP,
            _signal.SIGTTOU,
            _signal.SIGPIPE,
            _signal.SIGCHLD,
        ):
            _signal.signal(number, _signal.SIG_DFL)
        quietly(os.chdir, work_dir)
        os.execve(program, command, environment)  # noqa: S606
    except OSError:
        pass
    os._exit(127)


def quietly(call: object, *arguments: object) -> None:
    try:  # noqa: SIM105  contextlib costs a command time
        call(*arguments)  # type: ignore[operator]
    except OSError:
        pass


def main() -> int:
    """Run as a program; does not return."""
    return run("salloc", salloc, USAGE_EXIT)


if __name__ == "__main__":
    main()
