"""`understudy up`, `down` and `status`: one cluster, from a slurm.conf to idle nodes and back.

Place: sub-commands of `understudy`; the words around understudy.tool.cluster.launch, which does the
work.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time as clock_time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from understudy.model.nouns import many
from understudy.tool.understudy import hop_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.shared.locate import Location
    from understudy.model.cluster import Cluster
    from understudy.tool.cluster.launch import Site
    from understudy.tool.cluster.processes import Process


class Executor(StrEnum):
    """What becomes of a job's script."""

    EMULATED = "emulated"
    REAL = "real"


_PATIENCE_S = 20.0  # ours: of `down`, until a supervisor has started what it is starting
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        help="The cluster's run directory; else SLURM_CONF's cluster, else the last one started.",
    ),
]


_Conf = Annotated[
    Path | None, typer.Option("--conf", help="The slurm.conf; else the run directory's own.")
]
_RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir", help="Logs, pids, state; else ~/.local/state/understudy/CLUSTERNAME."
    ),
]
_Time = Annotated[
    str,
    typer.Option(
        "--time", metavar="real|scaled:N|virtual", help="How time goes by in the cluster."
    ),
]
_Executor = Annotated[
    Executor,
    typer.Option("--executor", help="Whether jobs are emulated, or their scripts run."),
]
_Noded = Annotated[
    int, typer.Option("--noded", min=1, help="How many node daemons share the nodes.")
]
_Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        help="The controller's, in place of SlurmctldPort. 0: any that is free.",
    ),
]
_Clean = Annotated[
    bool,
    typer.Option("--clean", help="Forget the jobs of an earlier cluster in the run directory."),
]


_Metrics = Annotated[
    str,
    typer.Option(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Tell Prometheus figures at /metrics: the controller at this port, accounting, "
        "the node daemons, the agent and the clock at the next ones. 0: any that are free.",
    ),
]


_Zygote = Annotated[
    bool,
    typer.Option(
        "--zygote",
        help="Fork sbatch, squeue and others of this user from a process that has imported them, "
        "where SLURM_CONF names the cluster: they start several times as fast.",
    ),
]


_Supervise = Annotated[
    bool,
    typer.Option(
        "--supervise",
        help="Start daemons again that die, with a pause that grows to a minute "
        "(RUN_DIR/logs/supervisor.log).",
    ),
]


_OneProcess = Annotated[
    bool,
    typer.Option(
        "--one-process",
        help="Under virtual time: all daemons in one process, with state in memory. "
        "`understudy branch` copies such a cluster.",
    ),
]


def up(
    conf: _Conf = None,
    run_dir: _RunDir = None,
    time: _Time = "real",
    executor: _Executor = Executor.EMULATED,
    noded: _Noded = 1,
    port: _Port = None,
    clean: _Clean = False,
    metrics: _Metrics = "",
    zygote: _Zygote = False,
    supervise: _Supervise = False,
    one_process: _OneProcess = False,
    hops: hop_options.WayOption = hop_options.Way.MEMORY,
    hop_processes: hop_options.Processes = None,
    hop_width: hop_options.Width = None,
    hop_transport: hop_options.Through = None,
    link_latency_ms: hop_options.Latency = None,
    link_loss: hop_options.Loss = None,
    head_deaths: hop_options.Deaths = None,
    hop_seed: hop_options.Seed = None,
) -> None:
    """Start a cluster, or those of its daemons that have died; its nodes are idle when this
    returns.
    """
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster import launch
    from understudy.tool.cluster.metrics_ports import on_one_host
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.cluster.run_dir import LaunchError
    from understudy.tool.cluster.start import parse_time

    heed_termination()
    began = clock_time.monotonic()
    try:
        mode, rate = parse_time(time)
        _check_one_process(one_process, mode, hops)
        through = hop_options.read_hops(
            hops, hop_width, hop_transport, link_latency_ms, link_loss, head_deaths, hop_seed
        )
        conf = _choose_conf(conf, run_dir)
        site = launch.read_site(conf)
        run_dir = (run_dir or _default_run_dir(site.name)).resolve()
        if not clean and _come_back(run_dir, conf, supervise=supervise):
            return
        noded = hop_options.process_count(hops, noded, hop_processes, len(site.nodes))
        prepare = partial(
            launch.prepare,
            run_dir,
            conf,
            time=mode,
            rate=rate,
            executor=str(executor),
            noded=noded,
            port=port,
            site=site,
            hops=through,
            zygote=zygote,
            metrics=on_one_host(metrics, launch.figured(site, noded, one_process, mode)),
            one_process=one_process,
            state="memory" if one_process else "disk",
        )
        cluster = _start(run_dir, prepare, clean=clean)
        if supervise:
            _supervise(cluster, run_dir)
    except (LaunchError, ConfigError, OSError) as error:
        fail("up", str(error))
    except KeyboardInterrupt:
        fail("up", "interrupted; what had been started has been ended")
    announce(cluster, run_dir, clock_time.monotonic() - began)
    _tell_without_effect(site, conf)


def _tell_without_effect(site: Site, conf: Path) -> None:
    if site.without_effect:
        keys = ", ".join(site.without_effect)
        typer.echo(f"Keys of {conf} that have no effect here: {keys}", err=True)


def _check_one_process(one_process: bool, mode: str, hops: hop_options.Way) -> None:
    from understudy.tool.cluster.run_dir import LaunchError

    if not one_process:
        return
    if mode != "virtual":
        raise LaunchError("--one-process: needs --time virtual")
    if hops is hop_options.Way.SOCKETS:
        raise LaunchError("--one-process: daemons reach each other without --hops sockets")


def _come_back(run_dir: Path, conf: Path, *, supervise: bool) -> bool:
    """Where a part of the cluster runs, start the rest, and the supervisor if it is asked for and
    not there; whether there was anything to start.
    """
    if not (run_dir / "cluster.json").is_file():
        return False
    from understudy.model.cluster import Cluster
    from understudy.tool.cluster import come_back, launch
    from understudy.tool.cluster.run_dir import LaunchError, exclusive, running

    with exclusive(run_dir, _PATIENCE_S):
        alive = [process for process in running(run_dir) if process.name != launch.SUPERVISOR]
        if not alive:
            return False
        try:
            cluster = Cluster.load(run_dir)
        except (ValueError, TypeError) as error:
            raise LaunchError(f"a part of the cluster runs, but {error}") from None
        own = {Path(cluster.conf).resolve(), run_dir / "slurm.conf"}
        if conf.resolve() not in own:
            return False
        names = come_back.missing(cluster, run_dir)
        if names:
            started = come_back.start_missing(cluster, run_dir, names)
            launch.wait_registered(cluster, started)
            typer.echo(f"Started again: {', '.join(names)} ({run_dir})")
    return (supervise and _supervise(cluster, run_dir)) or bool(names)


def _supervise(cluster: Cluster, run_dir: Path) -> bool:
    """Start a supervisor; whether there was none."""
    from understudy.tool.cluster.come_back import start_supervisor
    from understudy.tool.cluster.run_dir import LaunchError

    if cluster.time == "virtual":
        raise LaunchError("--supervise: under virtual time no daemon comes back")
    is_new = start_supervisor(run_dir)
    if is_new:
        typer.echo(f"A supervisor starts daemons again that die: {run_dir}/logs/supervisor.log")
    return is_new


def _start(run_dir: Path, prepare: Callable[[], Cluster], *, clean: bool) -> Cluster:
    """Start the daemons in a run directory in which none run; they are ended if anything fails."""
    from understudy.tool.cluster.if_killed import ended_if_killed
    from understudy.tool.cluster.run_dir import clear_stale, exclusive
    from understudy.tool.cluster.start import start

    with exclusive(run_dir) as lock, ended_if_killed(run_dir, lock):
        if stale := clear_stale(run_dir):
            typer.echo(
                f"Removed the pid files of daemons that are no more: {', '.join(stale)}", err=True
            )
        if clean:
            _forget(run_dir)
        cluster, _ = start(run_dir, prepare)
    return cluster


def down(run_dir: RunDir = None) -> None:
    """End a cluster; its state stays, so that `up` on the same run directory goes on from it."""
    from understudy.tool.cluster import launch
    from understudy.tool.cluster.run_dir import LaunchError, clear_stale, exclusive, running
    from understudy.tool.replay.folder import is_replays

    try:
        chosen, run_dir = run_dir, choose_run_dir("down", run_dir)
        if chosen is None and is_replays(run_dir):
            fail(
                "down",
                f"the last cluster that was started is a replay's ({run_dir}), which ends "
                "by itself or by Ctrl-C; --run-dir names another",
            )
        if not run_dir.is_dir():
            fail("down", f"there is no run directory {run_dir}")
        with exclusive(run_dir, _PATIENCE_S):
            if not running(run_dir):
                stale = clear_stale(run_dir)
                left = (
                    f"; removed the pid files of {', '.join(stale)}, which had ended by themselves"
                    if stale
                    else ""
                )
                fail("down", f"no cluster runs in {run_dir}{left}")
            _keep_time(run_dir)
            stopped = launch.stop(run_dir)
    except (LaunchError, OSError) as error:
        fail("down", str(error))
    if stopped.killed:
        typer.echo(
            f"Killed, as they did not end by themselves: {', '.join(stopped.killed)}", err=True
        )
    typer.echo(f"Ended {len(stopped.ended)} daemons: {', '.join(stopped.ended)} ({run_dir})")


def status(run_dir: RunDir = None) -> None:
    """Show a cluster's daemons, its clock, its nodes and its jobs."""
    from understudy.model.cluster import Cluster
    from understudy.tool.cluster import launch
    from understudy.tool.cluster.processes import recorded

    run_dir = choose_run_dir("status", run_dir)
    try:
        cluster = Cluster.load(run_dir)
    except (OSError, ValueError, TypeError) as error:
        fail("status", f"{run_dir} is not a cluster's run directory: {error}")
    found = {process.name: process for process in recorded(run_dir)}
    names = launch.daemon_names(cluster)
    if launch.SUPERVISOR in found:
        names.append(launch.SUPERVISOR)
    typer.echo(f"Cluster {cluster.name} in {run_dir}: {_kind(cluster)}")
    typer.echo(
        _table(
            [
                ("DAEMON", "PID", "STATE", "ADDRESS"),
                *(_daemon_row(cluster, name, found.get(name)) for name in names),
            ]
        )
    )
    alive = [name for name in names if name in found and found[name].is_running]
    if "controller" in alive:
        typer.echo(_contents(launch.location_of(cluster, run_dir), "clock" in alive))
    if absent := [name for name in names if name not in alive]:
        typer.echo(
            f"Missing: {', '.join(absent)}. `understudy up --run-dir {run_dir}` starts what is "
            f"missing, `understudy daemon {absent[0]} --run-dir {run_dir}` one by hand"
            if alive and cluster.time != "virtual"
            else f"Missing: {', '.join(absent)}"
        )
        raise typer.Exit(1)


# --- what was asked for ---------------------------------------------------------------------------


def _choose_conf(conf: Path | None, run_dir: Path | None) -> Path:
    from understudy.tool.cluster.run_dir import LaunchError

    if conf is not None:
        return conf
    if run_dir is not None and (run_dir / "slurm.conf").is_file():
        return run_dir / "slurm.conf"
    raise LaunchError(
        "which cluster? Name a slurm.conf: --conf FILE (this project's examples/ has some)"
    )


def _default_run_dir(cluster: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "understudy" / cluster


def choose_run_dir(command: str, run_dir: Path | None) -> Path:
    """The run directory that is meant; the command ends where none is."""
    from understudy.commands.shared import locate

    if run_dir is not None:
        return run_dir.resolve()
    try:
        found = locate.find().run_dir
    except (locate.NoClusterError, locate.BadConfigurationError) as error:
        fail(command, str(error))
    if not found:
        fail(
            command,
            f"SLURM_CONF is {os.environ.get('SLURM_CONF')}, and no running cluster of "
            "this user goes by it",
        )
    return Path(found)


def fail(command: str, text: str) -> NoReturn:
    """Say so and end."""
    typer.echo(f"understudy {command}: error: {text}", err=True)
    sys.exit(1)


# --- a cluster over several lives -----------------------------------------------------------------


def _forget(run_dir: Path) -> None:
    import shutil

    for folder in ("state", "spool"):
        shutil.rmtree(run_dir / folder, ignore_errors=True)
    (run_dir / "cluster.json").unlink(missing_ok=True)


def _keep_time(run_dir: Path) -> None:
    """Write the cluster's time into cluster.json, where it may be ahead of the world's, so that the
    next life begins after this one.
    """
    from understudy.model.cluster import Cluster
    from understudy.tool.cluster.clock_client import ClockError, ask
    from understudy.tool.cluster.launch import location_of

    with contextlib.suppress(OSError, ValueError, TypeError, ClockError):
        cluster = Cluster.load(run_dir)
        if cluster.clock:
            cluster.epoch = float(int(ask(location_of(cluster, run_dir), "status").now) + 1)
            cluster.save(run_dir)


# --- what the user reads --------------------------------------------------------------------------


def _kind(cluster: Cluster) -> str:
    time = (
        f"{cluster.rate:g} times real time" if cluster.time == "scaled" else f"{cluster.time} time"
    )
    hops = "" if cluster.hops is None else ", hops through sockets"
    return f"{time}, {cluster.executor} jobs{hops}"


def announce(cluster: Cluster, run_dir: Path, seconds: float) -> None:
    from understudy.model.hostlist import count
    from understudy.tool.cluster.surroundings import elsewhere

    nodes = sum(count(noded.nodes) for noded in cluster.nodeds)
    daemons = many(len(cluster.nodeds), "node daemon")
    typer.echo(
        f"Cluster {cluster.name} is up after {seconds:.1f} s: {nodes} nodes on {daemons}, "
        f"{_kind(cluster)}"
    )
    typer.echo(f"  controller     {cluster.controller or cluster.controller_unix}")
    typer.echo(f"  run directory  {run_dir}")
    for name, address in cluster.metrics.items():
        typer.echo(f"  metrics        http://{address}/metrics  ({name})")
    if why := elsewhere(run_dir, cluster, os.environ):
        typer.echo(f"As {why}, commands do not find it yet: `understudy shell` has them do so, or")
    else:
        typer.echo(
            "sbatch, squeue, sinfo and the others find it as the last cluster that you "
            "started; from elsewhere, or beside other clusters:"
        )
    quoted = shlex.quote(str(run_dir))
    typer.echo(f"  export SLURM_CONF={quoted}/slurm.conf")
    typer.echo(f"To end it: understudy down --run-dir {quoted}")


def _daemon_row(cluster: Cluster, name: str, process: Process | None) -> tuple[str, str, str, str]:
    address = "-" if name == "supervisor" else cluster.address_of(name)
    if process is None:
        return name, "-", "not running", address
    return name, str(process.pid), "running" if process.is_running else "died", address


def _contents(location: Location, has_clock: bool) -> str:
    """The cluster's time, its nodes and jobs by state."""
    from collections import Counter

    from understudy.commands.shared.client import Client, RefusedError
    from understudy.documents.states import job_state, node_state
    from understudy.tool.cluster.clock_client import ClockError, ask

    client = Client(lambda: location, waits=False)
    try:
        nodes = client.query("nodes", ["state", "flags"])
        jobs = client.query("jobs", ["state", "flags"])
    except RefusedError as error:
        return f"The controller does not answer: {error.text}"
    lines = [
        f"Time   {clock_time.strftime('%Y-%m-%dT%H:%M:%S', clock_time.localtime(nodes.now))}",
        f"Nodes  {_counts(Counter(node_state(*row) for row in nodes.rows))}",
        f"Jobs   {_counts(Counter(job_state(*row).lower() for row in jobs.rows))}",
    ]
    if has_clock:
        try:
            clock = ask(location, "status")
            lines[0] += f", clock {clock.state}" + (f" ({clock.reason})" if clock.reason else "")
        except ClockError as error:
            lines[0] += f", {error}"
    return "\n".join(lines)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in sorted(counts)) or "none"


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
