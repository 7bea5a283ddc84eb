"""`understudy load`: its command line. What it does is in tool/load, which is imported when it
runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from understudy.tool.load.plan import Plan
    from understudy.tool.load.samples import Sampler
    from understudy.tool.load.target import Target

FAILED, BAD_USAGE = 1, 2
# The options, a type each.
_Plan = Annotated[Path | None, typer.Argument(help="A file that describes the load; or --kind.")]
_Kind = Annotated[
    str,
    typer.Option(
        help="submissions, bursts, arrays, queries, mixed-day, mass-completion, launches, "
        "signals, flapping, reconfigure or admin."
    ),
]
_Rate = Annotated[float | None, typer.Option(min=0.001, help="Requests a second; with --kind.")]
_Duration = Annotated[float | None, typer.Option(min=1, help="Seconds.")]
_Connections = Annotated[
    int | None,
    typer.Option(min=1, help="Connections, or commands at a time, of all processes."),
]
_Processes = Annotated[int | None, typer.Option(min=1, help="Processes that send.")]
_Seed = Annotated[int | None, typer.Option(min=0, help="Of chance.")]
_Nodes = Annotated[int | None, typer.Option(min=1, help="Nodes of a cluster that is started.")]
_Time = Annotated[
    str | None,
    typer.Option(metavar="real|virtual|scaled:N", help="Time in a cluster that is started."),
]
_Accounting = Annotated[
    bool, typer.Option("--accounting", help="A cluster that is started keeps accounting.")
]
_Executor = Annotated[
    str | None, typer.Option(help="Jobs in a cluster that is started: emulated or real.")
]
_Cluster = Annotated[Path | None, typer.Option(help="The run directory of a cluster that runs.")]
_Running = Annotated[
    bool,
    typer.Option("--running", help="The cluster that SLURM_CONF names, or the last started."),
]
_Driver = Annotated[
    str,
    typer.Option(
        help="understudy: the commands' messages over connections that stay open; commands: "
        "a process for each command; slurm: the same with real Slurm's, at its cluster."
    ),
]
_Conf = Annotated[
    Path | None, typer.Option(help="With --driver slurm: SLURM_CONF; else the environment's.")
]
_Path = Annotated[str, typer.Option("--bin", help="With --driver slurm: where its commands are.")]
_Tcp = Annotated[
    bool,
    typer.Option("--tcp", help="Connect over TCP: by a handshake, each message sealed."),
]
_Leave = Annotated[
    bool, typer.Option("--leave", help="Do not cancel what has not ended in the end.")
]
_Out = Annotated[Path | None, typer.Option(help="The folder for load.json and load.html.")]
_Beside = Annotated[
    Path | None,
    typer.Option(help="The folder of another load, whose figures the page shows beside."),
]
_AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
]


def load(
    plan: _Plan = None,
    kind: _Kind = "",
    rate: _Rate = None,
    duration: _Duration = None,
    connections: _Connections = None,
    processes: _Processes = None,
    seed: _Seed = None,
    nodes: _Nodes = None,
    time: _Time = None,
    accounting: _Accounting = False,
    executor: _Executor = None,
    cluster: _Cluster = None,
    running: _Running = False,
    driver: _Driver = "understudy",
    conf: _Conf = None,
    path: _Path = "/usr/bin:/usr/local/bin:/opt/slurm/bin",
    tcp: _Tcp = False,
    leave: _Leave = False,
    out: _Out = None,
    beside: _Beside = None,
    as_json: _AsJson = False,
) -> None:
    """Send requests by a schedule to a cluster that runs, or to one that is started for it, and
    tell how long answers took.

    Exit codes: 0 all jobs that were acknowledged are there, and there was no unexpected error; 1
    the load could not be sent; 2 the command line or the file is wrong; 3 jobs are lost; 4 there
    were errors; 130, 143 interrupted, and all was well until then.
    """
    _require_histograms()
    import json
    from contextlib import nullcontext

    from understudy.commands.shared.client import RefusedError
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.cluster.run_dir import LaunchError
    from understudy.tool.load.plan import PlanError
    from understudy.tool.load.run import LoadError
    from understudy.tool.load.target import TargetError

    heed_termination()
    try:
        started = {"nodes": nodes, "time": time, "accounting": accounting or None}
        there = None
        if running or cluster is not None or driver == "slurm":
            _refuse(started | {"executor": executor})
            there = _running(driver, cluster, conf, path)
        senders = {"connections": connections, "processes": processes}
        given = {**started, **senders, "duration": duration, "seed": seed}
        chosen = _plan(plan, kind, rate, there, given)
        other = json.loads((beside / "load.json").read_text()) if beside is not None else None
        opened = nullcontext(there) if there else _starting(chosen, driver, executor or "emulated")
    except (PlanError, OSError, ValueError) as error:
        _fail(str(error), BAD_USAGE)
    except (TargetError, RefusedError) as error:
        _fail(str(error), FAILED)
    try:
        with opened as target:
            result = _send(chosen, target, tcp=tcp, leave=leave, quiet=as_json)
    except (LoadError, LaunchError, ConfigError, TargetError, RefusedError, OSError) as error:
        _fail(str(error), FAILED)
    except KeyboardInterrupt as error:
        _fail("interrupted before there was a result", 128 + (error.args[0] if error.args else 2))
    _write(result, other, out, as_json=as_json)
    raise typer.Exit(result["exit_code"])


def _require_histograms() -> None:
    from importlib.util import find_spec

    if find_spec("hdrh") is None:
        _fail(
            "it needs hdrhistogram, which is not installed: pip install 'understudy[load]'", FAILED
        )


def _fail(text: str, code: int) -> None:
    typer.echo(f"understudy load: error: {text}", err=True)
    raise typer.Exit(code)


def _refuse(of_started: Mapping[str, object]) -> None:
    """Options that say what a cluster is like that is started, where one is there."""
    from understudy.tool.load.plan import PlanError

    for name, value in of_started.items():
        if value is not None:
            raise PlanError(f"--{name}: the cluster is there already, and is as it is")


def _check_driver(driver: str) -> None:
    from understudy.tool.load.plan import PlanError
    from understudy.tool.load.target import DRIVERS

    if driver not in DRIVERS:
        raise PlanError(f"--driver {driver}: one of {', '.join(DRIVERS)}")


def _running(driver: str, run_dir: Path | None, conf: Path | None, path: str) -> Target:
    """The cluster that is there."""
    from understudy.tool.load.target import SLURM, running_cluster, slurm_cluster

    _check_driver(driver)
    return slurm_cluster(conf, path) if driver == SLURM else running_cluster(driver, run_dir)


def _plan(
    path: Path | None,
    kind: str,
    rate: float | None,
    there: Target | None,
    given: Mapping[str, Any],
) -> Plan:
    from dataclasses import replace

    from understudy.tool.load.kinds import plan_of
    from understudy.tool.load.plan import PlanError, read_plan

    said = {name: value for name, value in given.items() if value is not None}
    if (path is None) == (not kind):
        raise PlanError("either a file or --kind says what to send")
    if path is not None:
        if rate is not None:
            raise PlanError(f"--rate goes with --kind; {path} has rates of its own")
        plan = read_plan(path)
    else:
        sizes: dict[str, Any] = {name: said[name] for name in ("duration", "nodes") if name in said}
        if there is not None:
            sizes |= {"nodes": len(there.nodes), "cpus": there.cpus}
        plan = plan_of(kind, rate=rate, **sizes)
    plan = replace(plan, **said)
    if plan.connections < plan.processes:
        raise PlanError(f"--connections {plan.connections}: fewer than processes")
    if plan.time not in ("real", "virtual") and not plan.time.startswith("scaled:"):
        raise PlanError(f"--time {plan.time}: expected real, virtual or scaled:N")
    return plan


def _starting(
    plan: Plan, driver: str, executor: str
) -> AbstractContextManager[Target] | AbstractContextManager[None]:
    """The cluster that is started; None for one in virtual time, which lasts as long as the
    load.
    """
    from contextlib import nullcontext

    from understudy.tool.load.plan import PlanError
    from understudy.tool.load.target import UNDERSTUDY, started_cluster

    _check_driver(driver)
    if executor not in ("emulated", "real"):
        raise PlanError(f"--executor {executor}: emulated or real")
    if plan.time != "virtual":
        return started_cluster(driver, plan, executor)
    from understudy.tool.load.virtual import check_virtual

    if driver != UNDERSTUDY or executor != "emulated":
        raise PlanError(
            "--time virtual: a cluster of emulated jobs is started for it, and asked by "
            "--driver understudy"
        )
    check_virtual(plan)
    return nullcontext(None)


def _send(
    plan: Plan, target: Target | None, *, tcp: bool, leave: bool, quiet: bool
) -> dict[str, Any]:
    import os
    import sys
    import tempfile
    from shutil import get_terminal_size

    from understudy.tool.load.live import Live
    from understudy.tool.load.run import Course, run

    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    live = Live(lambda text: typer.echo(text, nl=False), get_terminal_size if is_terminal else None)

    def progress(course: Course, sampler: Sampler) -> None:
        if not quiet:
            live.show(course, sampler)

    if target is None:
        from understudy.tool.load.virtual import run_virtual

        return run_virtual(plan, leave=leave, progress=progress)
    with tempfile.TemporaryDirectory(prefix="understudy-load-out-") as folder:
        return run(plan, target, Path(folder), tcp=tcp, leave=leave, progress=progress)


def _write(
    result: dict[str, Any], beside: dict[str, Any] | None, out: Path | None, *, as_json: bool
) -> None:
    import json

    from understudy.tool.load.report import page, table

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "load.json").write_text(json.dumps(result, indent=1) + "\n")
        (out / "load.html").write_text(page(result, beside))
    if as_json:
        typer.echo(json.dumps(result, indent=1))
        return
    typer.echo("\n" + table(result))
    if out is not None:
        typer.echo(f"{out / 'load.html'} and {out / 'load.json'} tell more")
