"""What `understudy compare` does of runs: reads them, shows tables in the terminal, writes files.

Place: beside compare.py, which has the command line; the comparison itself is in
understudy.experiments.outcomes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import typer

from understudy.tool.understudy.cluster import fail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table as RichTable

    from understudy.experiments.outcomes.compare import Comparison
    from understudy.experiments.outcomes.tables import Table

_SHOWN: Final = 8  # groups of a kind
_WIDTH: Final = 200  # ours: of what goes into a pipe or a file, so that nothing is cut
BAD_USAGE: Final = 2


def compare_runs(
    runs: Sequence[Path],
    *,
    out: Path | None,
    as_json: bool,
    seed: int,
    first: int | None,
    apart: int,
) -> None:
    """Do it, or say in one line why not."""
    from understudy.experiments.outcomes import write
    from understudy.experiments.outcomes.compare import FIRST_SHOWN, MOST_RUNS, compare
    from understudy.experiments.run_tables import RunError
    from understudy.experiments.stories import StoriesError

    if not 2 <= len(runs) <= MOST_RUNS:
        typer.echo(
            f"understudy compare: error: expected 2 to {MOST_RUNS} runs, not {len(runs)}; "
            "comparisons of policies end with .toml",
            err=True,
        )
        raise typer.Exit(BAD_USAGE)
    try:
        comparison = compare(
            runs,
            seed=seed,
            first_shown=FIRST_SHOWN if first is None else first,
            apart_s=apart,
        )
        page = None if out is None else write.write_comparison(out, comparison)
    except (RunError, StoriesError) as error:
        fail("compare", str(error))
    except OSError as error:
        fail("compare", f"{error.filename or ''}: {error.strerror or error}")
    if as_json:
        sys.stdout.write(write.as_json(comparison))
        return
    _show(comparison)
    if page is not None:
        typer.echo(f"page {page}")


def console() -> Console:
    """The terminal, or what takes its place."""
    from rich.console import Console

    is_shown = sys.stdout.isatty()
    return Console(width=None if is_shown else _WIDTH, highlight=False, markup=False)


def _show(comparison: Comparison) -> None:
    from understudy.experiments.outcomes import tables

    terminal = console()
    first = comparison.runs[0].letter
    for line in tables.runs(comparison):
        terminal.print(line, soft_wrap=True)
    if comparison.matched_by == "place":
        terminal.print("Jobs are matched by their places: no id is in all runs")
    terminal.print(_rich(tables.figures(comparison)))
    for against in comparison.against:
        terminal.print(f"{against.letter} against {first}", style="bold")
        for line in tables.sentences(against, first):
            terminal.print(f"  {line}", soft_wrap=True)
        for table in tables.by_way(against, first, _SHOWN):
            terminal.print(_rich(table))
        if against.first_differences:
            terminal.print("The first jobs that start at another time", style="bold")
        for found in against.first_differences:
            terminal.print(tables.difference_title(found))
            for where, told in tables.first_difference(found, (first, against.letter)):
                terminal.print(f"  {where}")
                for line in told:
                    terminal.print(f"    {line}", soft_wrap=True)


def _rich(table: Table) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    more = f"and {table.more:,} more" if table.more > 0 else None
    made = RichTable(
        title=Text(table.title), caption=more, box=SIMPLE_HEAD, title_justify="left", expand=False
    )
    for place, name in enumerate(table.head):
        made.add_column(Text(name), justify="right" if place else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*map(Text, row))
    return made
