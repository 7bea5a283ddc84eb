"""`understudy branch`: its command line. What it does is in understudy.tool.replay.branch."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from understudy.tool.understudy.replay import (  # noqa: TC001  typer reads them
    _Accounting,
    _Conf,
    _Cpus,
    _Failures,
    _Faults,
    _KeepState,
    _Latency,
    _Limit,
    _Noded,
    _Nodes,
    _Parameters,
    _Partition,
    _PlansAt,
    _Scheduler,
    _Seed,
    _Settings,
    _Strict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.experiments.futures import Future
    from understudy.tool.replay.branch import BranchOutcome
    from understudy.tool.replay.request import ReplayRequest

_TraceOrCommand = Annotated[
    str,
    typer.Argument(
        metavar="[TRACE]",
        help="A trace or a scenario, as replay takes it; without one it is a running cluster.",
    ),
]
_RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        help="Of the running cluster; else SLURM_CONF's cluster, else the last one started.",
    ),
]
_Until = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Of a running cluster: when the futures end, if they are not over before.",
    ),
]
_Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND ...]",
        help="What is done differently: a command line of scontrol, sacctmgr, scancel or sbatch.",
    ),
]
_At = Annotated[
    list[str],
    typer.Option(
        "--at",
        metavar="TIME",
        help="The instant: 30d, 12h, 1d6h after the start, or 2000-01-31T12:00:00; of a running "
        "cluster now, if left out. May be repeated.",
    ),
]
_File = Annotated[
    Path | None,
    typer.Option("--file", help="Several alternatives, in a file as docs/futures.md has it."),
]
_Out = Annotated[
    Path,
    typer.Option(help="The folder in which each future has one, and `original` the unchanged run."),
]
_Most = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="How many futures go on at once; else one for each CPU."),
]


_OF_BOTH = frozenset({"trace", "command", "at", "file", "out", "jobs", "run_dir", "until"})


def branch(
    context: typer.Context,
    trace: _TraceOrCommand = "",
    command: _Command = None,
    at: _At = [],  # noqa: B006  typer copies it
    file: _File = None,
    out: _Out = Path("runs/branch"),
    jobs: _Most = None,
    run_dir: _RunDir = None,
    until: _Until = "",
    nodes: _Nodes = None,
    cpus: _Cpus = None,
    scheduler: _Scheduler = "",
    parameters: _Parameters = "",
    conf: _Conf = None,
    settings: _Settings = None,
    partition: _Partition = "",
    accounting: _Accounting = None,
    noded: _Noded = 1,
    limit: _Limit = None,
    plans_at: _PlansAt = "",
    latency: _Latency = 0.001,
    strict: _Strict = False,
    keep_state: _KeepState = False,
    failures: _Failures = "",
    fault: _Faults = None,
    seed: _Seed = 1,
) -> None:
    """Replay a trace or a scenario to an instant, and have the cluster go on from there in several
    futures: unchanged, and with each of the changes. All else is as in `understudy replay`. Without
    a trace it is a running cluster that goes on so (`understudy up --time virtual --one-process`),
    from now on; the cluster itself does not notice.

    Exit codes: 0 all is well in all futures; 1 one could not begin or failed, or the run did; 2 the
    command line is wrong, or the run was over before the instant; 3 jobs were refused in one; 4
    jobs never started or had not ended; 130, 143 interrupted.
    """
    from understudy.experiments.futures import COMMANDS
    from understudy.tool.replay.request import ReplayRequest

    is_live = run_dir is not None or trace in ("", *COMMANDS)
    if is_live and trace:
        trace, command = "", [trace, *(command or [])]
    futures = _futures(command, file)
    _refuse_options_of_others(context, is_live=is_live)
    if is_live:
        _live(run_dir, futures, out, tuple(at), until, jobs)
    run = ReplayRequest(
        trace=Path(trace),
        out=out,
        nodes=nodes,
        cpus=cpus,
        scheduler=scheduler.removeprefix("sched/"),
        conf=conf,
        noded=noded,
        strict=strict,
        limit=limit,
        plans_at=plans_at,
        parameters=parameters,
        latency_s=latency,
        accounting=accounting,
        settings=tuple(settings or ()),
        partition=partition,
        state="disk" if keep_state else "memory",
        failures=failures,
        faults=tuple(fault or ()),
        seed=seed,
    )
    _replayed(run, tuple(at), futures, out, jobs)


def _replayed(
    run: ReplayRequest,
    at: tuple[str, ...],
    futures: tuple[Future, ...],
    out: Path,
    jobs: int | None,
) -> NoReturn:
    """Of a replay."""
    from understudy.tool.replay.branch import BranchRequest
    from understudy.tool.replay.branch import branch as replayed

    _end(_outcome(partial(replayed, BranchRequest(run, at, futures, out, jobs), typer.echo)))


def _refuse_options_of_others(context: typer.Context, *, is_live: bool) -> None:
    """What a running cluster has already, or a replay has not, is not passed over."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if is_live and name not in _OF_BOTH:
            _fail(f"{parameter.opts[0]}: of a replay; a running cluster is as it is", 2)
        if not is_live and name == "until":
            _fail("--until: of a running cluster; a replay's futures end with their jobs", 2)


def _futures(command: list[str] | None, file: Path | None) -> tuple[Future, ...]:
    """What is to be done differently."""
    from understudy.experiments.futures import Future, FuturesError, read_deed, read_futures

    if bool(command) == bool(file):
        _fail("a command behind --, or --file: one of the two", 2)
    try:
        return read_futures(file) if file else (Future("1", (read_deed(command or []),)),)
    except FuturesError as error:
        _fail(str(error), 2)


def _live(
    run_dir: Path | None,
    futures: tuple[Future, ...],
    out: Path,
    at: tuple[str, ...],
    until: str,
    jobs: int | None,
) -> NoReturn:
    """Of a running cluster."""
    from understudy.tool.replay.branch_live import branch_live
    from understudy.tool.understudy.cluster import choose_run_dir

    chosen = choose_run_dir("branch", run_dir)
    _end(
        _outcome(
            lambda: branch_live(chosen, futures, out, at=at, until=until, most=jobs, say=typer.echo)
        )
    )


def _end(outcome: BranchOutcome) -> NoReturn:
    if outcome.began_s is not None:
        typer.echo(f"all {len(outcome.futures)} futures had begun within {outcome.began_s:.2f} s")
    raise typer.Exit(outcome.code)


def _outcome(run: Callable[[], BranchOutcome]) -> BranchOutcome:
    """Run it; what failed is said, and ends the command."""
    from understudy.experiments.scenario import ScenarioError
    from understudy.model.conf_edit import EditError
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster.launch import LaunchError
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.replay.results import InterruptedRunError, ReplayError, UsageError

    heed_termination()
    try:
        return run()
    except InterruptedRunError as error:
        _fail(str(error), 128 + error.number)
    except (ReplayError, ScenarioError, LaunchError, ConfigError, EditError, OSError) as error:
        _fail(str(error), 2 if isinstance(error, UsageError | EditError) else 1)
    except KeyboardInterrupt as error:
        _fail("interrupted", 128 + (error.args[0] if error.args else 2))


def _fail(text: str, code: int) -> NoReturn:
    sys.stdout.flush()
    typer.echo(f"understudy branch: error: {text}", err=True)
    raise typer.Exit(code)
