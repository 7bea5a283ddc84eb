"""`understudy clock`: the simulation monitor. Stops a cluster's time at an instant, after which
every ordinary command works on the cluster as it is then.

Place: a sub-command of `understudy`; speaks to the clock service (understudy.clock.service) in
frames of its own kind, authenticated as any command.
"""

from __future__ import annotations

import time as real_time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.model.durations import duration_s
from understudy.tool.cluster.clock_client import ClockError, ask, instant

if TYPE_CHECKING:
    from understudy.commands.shared.locate import Location
    from understudy.model.cluster import Cluster

app = typer.Typer(
    no_args_is_help=True,
    help="Look at the clock of a running cluster, stop it, go on.",
    pretty_exceptions_enable=False,
)
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        help="The cluster's run directory; else SLURM_CONF's cluster, else the last one started.",
    ),
]


def find(run_dir: Path | None) -> tuple[Location, Cluster | None]:
    from understudy.commands.shared import locate
    from understudy.model.cluster import Cluster
    from understudy.tool.cluster import launch

    if run_dir is not None:
        cluster = Cluster.load(run_dir)
        return launch.location_of(cluster, run_dir), cluster
    location = locate.find()
    try:
        return location, Cluster.load(Path(location.run_dir)) if location.run_dir else None
    except (OSError, ValueError, TypeError):
        return location, None


def _do(run_dir: Path | None, action: str, value: float | str = 0.0) -> None:
    from understudy.commands.shared.locate import BadConfigurationError, NoClusterError

    try:
        location, cluster = find(run_dir)
        zero = (cluster.zero or cluster.epoch) if cluster is not None else 0.0
        status = ask(location, action, instant(value, zero) if isinstance(value, str) else value)
    except (
        ClockError,
        NoClusterError,
        BadConfigurationError,
        OSError,
        ValueError,
        TypeError,
    ) as error:
        typer.echo(f"understudy clock: error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(render(status, zero))


def _break_at_start(run_dir: Path | None, job_id: str) -> None:
    from understudy.commands.shared.client import Client, RefusedError

    try:
        location, _ = find(run_dir)
        Client(lambda: location).call("BreakAtStart", job_id)
    except RefusedError as error:
        typer.echo(f"understudy clock: error: {error.text}", err=True)
        raise typer.Exit(1) from None
    _do(run_dir, "status")


def render(status: Any, zero: float) -> str:
    """One paragraph on the state of the clock."""
    since = max(0.0, status.now - zero)
    days, rest = divmod(since, 86400)
    when = real_time.strftime("%Y-%m-%dT%H:%M:%S", real_time.localtime(status.now))
    of_day = real_time.strftime("%H:%M:%S", real_time.gmtime(rest))
    speed = (
        "as fast as possible"
        if status.mode == "virtual" and not status.rate
        else f"{status.rate:g} times real time"
    )
    lines = [
        f"{status.mode} time, {status.state}" + (f" ({status.reason})" if status.reason else ""),
        f"  now          {when}, {int(days)} d {of_day} after the start",
        f"  speed        {speed}",
        f"  participants {', '.join(status.participants) or 'none'}",
    ]
    if status.mode == "virtual":
        lines.append(f"  windows      {status.windows:,}")
    return "\n".join(lines)


@app.command("status")
def status(run_dir: RunDir = None) -> None:
    """Show what time it is in the cluster, and whether time runs."""
    _do(run_dir, "status")


@app.command("pause")
def pause(run_dir: RunDir = None) -> None:
    """Stop time; commands go on working on the cluster as it is."""
    _do(run_dir, "pause")


@app.command("resume")
def resume(run_dir: RunDir = None) -> None:
    """Go on."""
    _do(run_dir, "resume")


@app.command("step")
def step(
    amount: Annotated[
        str, typer.Argument(help="Windows (1, 10) or a duration with its unit (30s, 2h, 1d).")
    ] = "1",
    run_dir: RunDir = None,
) -> None:
    """Let a few windows of virtual time pass, or a duration, then stop."""
    if amount.isdigit():
        _do(run_dir, "step", float(amount))
    else:
        seconds = duration_s(amount)
        if seconds is None:
            typer.echo(
                f"understudy clock: error: {amount!r} is neither a number of windows nor "
                "a duration",
                err=True,
            )
            raise typer.Exit(1)
        _do(run_dir, "step-for", seconds)


@app.command("run-until")
def run_until(
    when: Annotated[
        str, typer.Argument(help="30d, 12h, 1d6h after the start, or 2030-01-20T12:00:00.")
    ],
    run_dir: RunDir = None,
) -> None:
    """Go on, and stop at an instant."""
    _do(run_dir, "run-until", when)


@app.command("rate")
def rate(
    factor: Annotated[
        float, typer.Argument(help="Times real time; 0 under virtual time: as fast as possible.")
    ],
    run_dir: RunDir = None,
) -> None:
    """Let time run N times as fast as real time."""
    _do(run_dir, "rate", factor)


@app.command("break")
def break_at(
    when: Annotated[
        list[str],
        typer.Argument(help="30d (after the start), an instant, `every 1d`, `job ID`, or `off`."),
    ],
    run_dir: RunDir = None,
) -> None:
    """Stop at an instant, at each multiple of a period (before anything happens then), or when a
    job starts. Time goes on meanwhile.
    """
    match when:
        case ["off"]:
            _do(run_dir, "break-every", 0.0)
        case ["job", job_id]:
            _break_at_start(run_dir, job_id)
        case ["every", period] if seconds := duration_s(period):
            _do(run_dir, "break-every", seconds)
        case [single]:
            _do(run_dir, "break", single)
        case _:
            typer.echo(
                "understudy clock: error: break TIME, break every PERIOD, break job ID, "
                "or break off",
                err=True,
            )
            raise typer.Exit(1)
