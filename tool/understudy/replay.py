"""`understudy replay`: its command line. What it does is in tool/replay/traces.py and scenarios.py,
which is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.tool.replay.request import ReplayRequest

_Trace = Annotated[
    Path,
    typer.Argument(
        help="A trace in the Standard Workload Format (gzip too), or a scenario's folder."
    ),
]
_Out = Annotated[
    Path,
    typer.Option(help="The folder for jobs.csv, jobs.parquet, summary.json and report.html."),
]
_Nodes = Annotated[
    int | None,
    typer.Option(min=1, help="Nodes of the machine; else what the trace's header says."),
]
_Cpus = Annotated[
    int | None,
    typer.Option(min=1, help="CPUs of each node; else what the trace's header says."),
]
_Scheduler = Annotated[
    str,
    typer.Option(
        help="SchedulerType: easy, fcfs, backfill (where neither this nor --conf is "
        "given), builtin, or a plug-in's name."
    ),
]
_Parameters = Annotated[str, typer.Option(help="SchedulerParameters.")]
_Conf = Annotated[
    Path | None,
    typer.Option(
        help="A site's slurm.conf, with its companions beside it, instead of --nodes and --cpus."
    ),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change the configuration for this run: KEY=VALUE, KEY+=WORD, KEY-=WORD, or "
        "'PartitionName=batch MaxTime=2-0'. May be repeated.",
    ),
]
_Partition = Annotated[
    str, typer.Option(help="The partition to which a trace's jobs go; else the default one.")
]
_Accounting = Annotated[
    Path | None,
    typer.Option(
        help="A file with arguments of sacctmgr, one command a line, done first. The "
        "trace's user 7, group 7 and queue 7 are then user u7, "
        "account a7 and QOS q7."
    ),
]
_Answers = Annotated[
    Path | None,
    typer.Option(
        help="Start times (id,submit,start,...; csv, gzip too) with which the schedule is compared."
    ),
]
_Noded = Annotated[int, typer.Option(min=1, help="Node daemons that share the nodes.")]
_Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many jobs.")]
_BreakAt = Annotated[
    str,
    typer.Option(
        "--break",
        help="Stop the clock there (30d, or an instant); `understudy clock resume` goes on.",
    ),
]
_PlansAt = Annotated[
    str,
    typer.Option(
        "--plan-at",
        help="Record what runs and what is planned there (30d, or an instant; several, at "
        "commas), for `understudy gantt`.",
    ),
]
_Latency = Annotated[float, typer.Option(min=1e-6, help="Seconds that each message takes.")]
_Patience = Annotated[
    float,
    typer.Option(
        min=0.1,
        help="Seconds of real time after which a daemon that does not react is named, and "
        "the run ends.",
    ),
]
_Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Only look: the machine, the offered load, which jobs would be refused or "
        "never start, and why.",
    ),
]
_Failures = Annotated[
    str,
    typer.Option(
        metavar="MODEL",
        help="Nodes fail and are repaired: exponential:mtbf=30d,repair=4h, "
        "weibull:mtbf=30d,shape=0.7,repair=4h, or trace:file=FILE; docs/faults.md has the rest.",
    ),
]
_Faults = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="FAULT",
        help="Something goes wrong: 'crash of=n[1-4] at=60 for=600'; docs/faults.md has the "
        "others. May be repeated.",
    ),
]
_Seed = Annotated[int, typer.Option(help="From which failures, and what links do, are drawn.")]
_OneProcess = Annotated[
    bool,
    typer.Option("--one-process", help="All daemons in this process; the same schedule, faster."),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Refuse a trace with bad lines.")]
_KeepState = Annotated[
    bool,
    typer.Option("--state-on-disk", help="Have the controller save its state as a real one does."),
]


def replay(
    trace: _Trace,
    out: _Out = Path("runs/replay"),
    nodes: _Nodes = None,
    cpus: _Cpus = None,
    scheduler: _Scheduler = "",
    parameters: _Parameters = "",
    conf: _Conf = None,
    settings: _Settings = None,
    partition: _Partition = "",
    accounting: _Accounting = None,
    answers: _Answers = None,
    noded: _Noded = 1,
    limit: _Limit = None,
    break_at: _BreakAt = "",
    plans_at: _PlansAt = "",
    latency: _Latency = 0.001,
    patience: _Patience = 60.0,
    check: _Check = False,
    one_process: _OneProcess = False,
    strict: _Strict = False,
    keep_state: _KeepState = False,
    failures: _Failures = "",
    fault: _Faults = None,
    seed: _Seed = 1,
) -> None:
    """Replay a trace through a cluster of real daemons under virtual time, and write a folder with
    what came of it.

    Exit codes: 0 all jobs ran (or were cancelled before they started); 1 the run failed, or differs
    from --answers; 2 the command line is wrong; 3 jobs were refused; 4 jobs never started or had
    not ended; 130, 143 interrupted. What is known by then is in the folder. With --check: 3 jobs
    would be refused, 4 jobs can never start.
    """
    from understudy.model.vectors import import_numpy

    import_numpy()
    from understudy.tool.replay.request import ReplayRequest

    request = ReplayRequest(
        trace=trace,
        out=out,
        nodes=nodes,
        cpus=cpus,
        scheduler=scheduler.removeprefix("sched/"),
        conf=conf,
        answers=answers,
        noded=noded,
        one_process=one_process,
        strict=strict,
        limit=limit,
        pause_at=break_at,
        plans_at=plans_at,
        parameters=parameters,
        state="disk" if keep_state else "memory",
        latency_s=latency,
        limit_s=patience,
        accounting=accounting,
        settings=tuple(settings or ()),
        partition=partition,
        check=check,
        failures=failures,
        faults=tuple(fault or ()),
        seed=seed,
    )
    raise typer.Exit(_code_of(request))


def _code_of(request: ReplayRequest) -> int:
    """Run it: the exit code, with what failed said."""
    from understudy.experiments.node_failures import FailuresError
    from understudy.experiments.scenario import ScenarioError
    from understudy.model.conf_edit import EditError
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster.launch import LaunchError
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.replay.check import PreviewError
    from understudy.tool.replay.results import (
        BAD_USAGE,
        FAILED,
        InterruptedRunError,
        ReplayError,
        UsageError,
    )
    from understudy.tool.replay.traces import replay as replay_trace

    heed_termination()
    try:
        if request.trace.is_dir():
            from understudy.tool.replay.scenarios import replay_scenario

            return replay_scenario(request)
        return replay_trace(request)
    except InterruptedRunError as error:
        typer.echo(f"understudy replay: {error}", err=True)
        return 128 + error.number
    except (
        ReplayError,
        PreviewError,
        ScenarioError,
        FailuresError,
        LaunchError,
        ConfigError,
        EditError,
        OSError,
    ) as error:
        typer.echo(f"understudy replay: error: {error}", err=True)
        return BAD_USAGE if isinstance(error, UsageError | EditError) else FAILED
    except KeyboardInterrupt as error:
        typer.echo("understudy replay: interrupted; what had been started has been ended", err=True)
        return 128 + (error.args[0] if error.args else 2)
