"""`understudy gantt`: what runs in a cluster and what is planned, as a picture.

Place: a sub-command of `understudy`; what is drawn is in understudy.experiments.gantt. It asks a
cluster that is up (also one whose clock stands still), or reads what `understudy replay --plan-at`
has left in a run's folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.experiments.gantt import Plan


def gantt(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="A replay's folder with plan-SECONDS.json, or a cluster's run directory; "
            "else SLURM_CONF's cluster, or the last one started."
        ),
    ] = None,
    at: Annotated[
        str, typer.Option(help="Of a folder: the last plan until then (30d, 12h), else the last.")
    ] = "",
    ahead: Annotated[
        str, typer.Option(help="How much of the future (12h, 2d); else all that is planned.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="The file: .html or .svg; else plan-SECONDS.html.")
    ] = None,
) -> None:
    """Draw what runs and what is planned, node by node over time."""
    from understudy.commands.shared.client import RefusedError
    from understudy.commands.shared.locate import BadConfigurationError, NoClusterError
    from understudy.experiments.gantt import drawing, page
    from understudy.model.durations import duration_s

    try:
        ahead_s = _seconds("--ahead", ahead, duration_s(ahead)) if ahead else None
        until = _seconds("--at", at, duration_s(at)) if at else None
        if run is not None and not (run / "cluster.json").exists():
            plan, title = _read(run, until), f"Plan of {run.resolve().name}"
            folder = run
        elif until is not None:
            raise ValueError("--at is for a replay's folder; a cluster has its plan of now")
        else:
            plan, title = _ask(run)
            folder = Path()
        path = folder / f"plan-{plan['at']}.html" if out is None else out
        is_svg = path.suffix.lower() == ".svg"
        path.write_text(drawing(plan, ahead_s) if is_svg else page(plan, title, ahead_s))
    except (NoClusterError, BadConfigurationError, OSError, ValueError, KeyError) as error:
        typer.echo(f"understudy gantt: error: {error}", err=True)
        raise typer.Exit(1) from None
    except RefusedError as error:
        typer.echo(f"understudy gantt: error: {error.text}", err=True)
        raise typer.Exit(1) from None
    typer.echo(str(path))


def _seconds(option: str, text: str, found: float | None) -> int:
    if found is None or found < 0:
        raise ValueError(f"{option} {text!r} is no length of time (30d, 12h, 1d6h30m)")
    return int(found)


def _read(folder: Path, until: int | None) -> Plan:
    """The last plan of a replay's folder, not behind that second."""
    import json

    found = {
        int(number): path
        for path in folder.glob("plan-*.json")
        if (number := path.stem.removeprefix("plan-")).isdecimal()
    }
    ahead = [second for second in found if until is None or second <= until]
    if not ahead:
        when = "" if until is None or not found else f" until {until} s"
        raise ValueError(f"{folder}: no plan{when} there; understudy replay --plan-at records them")
    plan: Plan = json.loads(found[max(ahead)].read_text())
    return plan


def _ask(run_dir: Path | None) -> tuple[Plan, str]:
    """The plan that a cluster has now, from its time zero on, and a title."""
    from understudy.commands.shared.client import Client
    from understudy.experiments.gantt import COLUMNS, STATES, plan_of
    from understudy.model.hostlist import compress
    from understudy.tool.understudy.clock import find

    location, cluster = find(run_dir)
    client = Client(lambda: location)
    jobs = client.query("jobs", COLUMNS, {"state": list(STATES)})
    nodes = compress([row[0] for row in client.query("nodes", ["name"]).rows])
    zero = 0.0 if cluster is None else cluster.zero or cluster.epoch
    name = "the cluster" if cluster is None else cluster.name
    return plan_of(jobs.rows, int(jobs.now - zero), zero, nodes), f"Plan of {name}"
