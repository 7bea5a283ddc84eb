"""sattach: read along with a running step, and write to it. Follows sattach(1) of 22.05."""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os

from understudy.commands.shared.client import RefusedError, pack
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionTable, last_values
from understudy.commands.srun.io import OneTask, Sink, StepIO
from understudy.commands.srun.send_down import send_down
from understudy.model.times import leading_number
from understudy.protocol.task_frames import ALL, EXITED, MESSAGE, STDERR, STDOUT

OPTIONS = OptionTable(
    [
        Option("debugger-test", "", NONE, ""),
        Option("error-filter", "", REQUIRED, "TASK: only its standard error"),
        Option("help", "h", NONE, "print this text"),
        Option("input-filter", "", REQUIRED, "TASK: the only one that reads"),
        Option("label", "l", NONE, "put the task's number before each line"),
        Option("layout", "", NONE, "say which task is where, and end"),
        Option("output-filter", "", REQUIRED, "TASK: only its standard output"),
        Option("pty", "", NONE, ""),
        Option("quiet", "Q", NONE, "print errors only"),
        Option("usage", "u", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
_STEPS = {"batch": 0xFFFFFFFB, "extern": 0xFFFFFFFC}  # that nobody attaches to
USAGE = "Usage: sattach [options] <jobid.stepid>"


def sattach(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    given, operands = OPTIONS.parse(arguments, permute=False)
    options = last_values(given)
    if context.tells(OPTIONS, options, USAGE):
        return 0
    for option, value in given:
        if option.dest.endswith("_filter") and not (value or "").isdecimal():
            context.error(f'Invalid numeric value "{value or ""}" for {option.long}.')
            return 1
    if "pty" in options and any(name.endswith("_filter") for name in options):
        context.error("don't specify both --pty and I/O filtering")
        return 1
    if len(operands) != 1:
        context.error("too many parameters")
        context.print(USAGE)
        return 1
    job, dot, step = operands[0].partition(".")
    if dot and not (job[:1].isdigit() and (step[:1].isdigit() or step in {"batch", "extern"})):
        context.fatal(f"Bad step specified: {job}")
        return 1
    if not dot:
        context.error("Failed to parse stepid from command line options")
        context.print(USAGE)
        return 1
    try:
        number = _STEPS.get(step) or leading_number(step)
        created = context.client.call("GetStep", leading_number(job), number)
    except RefusedError as error:
        context.error(f"Could not get job step info: {error.text}")
        return 1
    if "layout" in options:
        _print_layout(created, context)
        return 0
    return _attach(created, options, context)


def _print_layout(created: "list[object]", context: Context) -> None:
    from understudy.model.hostlist import expand

    nodes, tasks = str(created[3]), created[4]
    assert isinstance(tasks, list)
    context.print("Job step layout:")
    context.print(f"\t{sum(map(len, tasks))} tasks, {len(tasks)} nodes ({nodes})\n")
    for at, (node, numbers) in enumerate(zip(expand(nodes), tasks, strict=True)):
        context.print(
            f"\tNode {at} ({node}), {len(numbers)} task(s): " + " ".join(map(str, numbers)) + " "
        )
    context.print("")


def _attach(created: "list[object]", options: "dict[str, str | None]", context: Context) -> int:
    job_id, restart, step_id, _nodes, tasks, _cpus, credential, daemons, width, *_ = created
    assert isinstance(tasks, list)
    assert isinstance(daemons, list)
    assert isinstance(width, int)
    io = StepIO("127.0.0.1", os.urandom(32), len(daemons))
    label = len(str(max(sum(map(len, tasks)) - 1, 0))) if "label" in options else 0
    for kind, name, descriptor in ((STDOUT, "output_filter", 1), (STDERR, "error_filter", 2)):
        chosen = options.get(name)
        io.sinks[kind] = (
            OneTask(descriptor, label, int(chosen))
            if chosen and chosen.isdigit()
            else Sink(descriptor, label)
        )
    highest = 0

    def take(kind: int, _task: int, body: bytes) -> None:
        nonlocal highest
        if kind == MESSAGE:
            Sink(2, 0).write(body)
        elif kind == EXITED:
            code = os.waitstatus_to_exitcode(int(body.partition(b" ")[0]))
            highest = max(highest, 128 - code if code < 0 else code)

    io.on_frame = take
    _signal.signal(_signal.SIGTTIN, _signal.SIG_IGN)
    message = pack(
        "AttachTasks", credential, job_id, restart, step_id, f"tcp:127.0.0.1:{io.port}", io.key
    )
    bad = send_down(context.client, message, daemons, width)
    if bad:
        for text in bad:
            context.error(f"Attach to {text}")
        return 1
    chosen = options.get("input_filter")
    io.feed(0, int(chosen) if chosen and chosen.isdigit() else ALL)
    while not io.is_over:
        io.turn(None)
    return highest


def main() -> int:
    """Run as a program; does not return."""
    return run("sattach", sattach)


if __name__ == "__main__":
    main()
