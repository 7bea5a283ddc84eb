"""`understudy report`: the report of a run once more, or of two runs beside each other.

Place: a sub-command of `understudy`; the pages are made in understudy.experiments.report.
"""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003  typer reads the annotations when it runs
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="A replay's folder, or another with its jobs.csv.")],
    other: Annotated[
        Path | None, typer.Argument(help="A second one, shown beside the first on the same axes.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file; else report.html in the folder, of two beside.html in the first."
        ),
    ] = None,
) -> None:
    """Make the page of a run, or of two, to explore in a browser."""
    from dataclasses import replace

    from understudy.experiments.report import report as page
    from understudy.experiments.run_folder import read_run_folder

    try:
        told, beside = (None if each is None else read_run_folder(each) for each in (run, other))
        assert told is not None
        if beside is not None and beside.title == told.title:
            told, beside = (
                replace(each, title=str(path)) for each, path in ((told, run), (beside, other))
            )
        path = out or run / ("report.html" if other is None else "beside.html")
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(page(told, beside), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        what = error.filename or run
        typer.echo(f"understudy report: error: {what}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
    except ValueError as error:
        typer.echo(f"understudy report: error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(str(path))
