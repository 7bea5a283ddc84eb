"""`understudy report`: the report of a run once more, or of two runs beside each other.

Place: a sub-command of `understudy`; the pages are made in understudy.experiments.report.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.report import Told


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
    from understudy.experiments.report import report as page
    from understudy.experiments.whole_file import write_whole

    runs = [run] if other is None else [run, other]
    path = out or run / ("report.html" if other is None else "beside.html")
    told = _read(runs)
    try:
        text = page(*told)
    except ValueError as error:
        raise _failed(_bad_nodes(runs, told) or str(error)) from None
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise _failed(f"{path}: {error.strerror or error}") from None
    typer.echo(str(path))


def _read(runs: Sequence[Path]) -> list[Told]:
    """The runs, those of one name told apart by their paths."""
    from dataclasses import replace

    from understudy.experiments.run_folder import read_run_folder

    told = []
    for run in runs:
        try:
            told.append(read_run_folder(run))
        except OSError as error:
            raise _failed(f"{error.filename or run}: {error.strerror or error}") from None
        except ValueError as error:
            raise _failed(str(error)) from None
    if len({each.title for each in told}) < len(told):
        told = [replace(each, title=str(run)) for each, run in zip(told, runs, strict=True)]
    return told


def _bad_nodes(runs: Sequence[Path], told: Sequence[Told]) -> str:
    """The first node list that is none, with its file and line."""
    from understudy.model.hostlist import expand

    for run, each in zip(runs, told, strict=True):
        for name, records in (("jobs.csv", each.records), ("attempts.csv", each.attempts)):
            for line, record in enumerate(records, 2):
                try:
                    expand(record.nodes)
                except ValueError as error:
                    return f"{run / name} line {line}: nodes: {error}"
    return ""


def _failed(text: str) -> typer.Exit:
    typer.echo(f"understudy report: error: {text}", err=True)
    return typer.Exit(1)
