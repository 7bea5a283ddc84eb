"""`understudy sweep`: the same jobs, or others, under many configurations at once.

Place: a sub-command of `understudy`; what it does is in understudy.tool.sweep.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_File = Annotated[
    Path, typer.Argument(metavar="SWEEP.toml", help="What is varied; docs/sweeps.md.")
]
_Out = Annotated[
    Path,
    typer.Option(
        help="The folder for sweep.parquet, sweep.csv and sweep.html. What is there is not run "
        "a second time."
    ),
]
_Workers = Annotated[
    int | None, typer.Option(min=1, help="Cells at a time; else one for each CPU.")
]
_Dask = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Run on the Dask cluster whose scheduler is there, as tcp://HOST:8786.",
    ),
]
_Short = Annotated[bool, typer.Option("--short", help="The form of the file's table \\[short].")]
_Traces = Annotated[
    Path | None, typer.Option(help="The folder of traces that are not beside the file.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="List the cells, and run none.")]
_Again = Annotated[bool, typer.Option("--again", help="Run cells that failed once more.")]


def sweep(
    file: _File,
    out: _Out = Path("runs/sweep"),
    workers: _Workers = None,
    dask: _Dask = "",
    short: _Short = False,
    traces: _Traces = None,
    dry_run: _DryRun = False,
    again: _Again = False,
) -> None:
    """Run a replay for each choice of values of all axes, many at a time, and write one table and
    one page of all. Interrupted, the same command goes on where it stopped.

    Exit codes: 0 all cells have figures; 1 some have none, or the file or the cluster cannot be
    used; 2 the command line is wrong; 130, 143 interrupted. Cells that were run are kept.
    """
    from understudy.experiments.sweep.file import SweepError, read_sweep
    from understudy.model.nouns import many
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.sweep.orders import plan
    from understudy.tool.sweep.run import sweep as run

    if dask and workers is not None:
        raise typer.BadParameter(
            "--workers is for a cluster of our own; one that is there has some"
        )
    heed_termination()
    try:
        if dry_run:
            made = plan(read_sweep(file, short=short), traces)
            for cell, order in zip(made.cells, made.orders, strict=True):
                typer.echo(f"{cell.number} {order.key} {cell.name}")
            typer.echo(many(len(made.cells), "cell"))
            return
        found = run(file, out, workers=workers, dask=dask, short=short, traces=traces, again=again)
    except SweepError as error:
        kept = len(list((out / "cells").glob("*.json"))) if dask else 0
        more = f"; {many(kept, 'cell')} kept, and the same command goes on" if kept else ""
        typer.echo(f"understudy sweep: error: {error}{more}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt as error:
        typer.echo("understudy sweep: interrupted; the same command goes on from here", err=True)
        raise typer.Exit(128 + (error.args[0] if error.args else 2)) from None
    typer.echo(f"table {found.table}\npage {found.page}")
    for each in found.failed[:5]:
        typer.echo(f"cell {each.number} has no figures: {each.row.error}", err=True)
    raise typer.Exit(1 if found.failed else 0)
