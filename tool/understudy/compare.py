"""`understudy compare`: policies side by side on the same workloads, and beside published numbers.

Place: a sub-command of `understudy`; what it does is in understudy.tool.comparison.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.tool.understudy.cluster import fail

if TYPE_CHECKING:
    from understudy.experiments.comparison.cells import Row
    from understudy.experiments.comparison.comparison import Comparison, Form
    from understudy.tool.comparison.replays import Replays

_Files = Annotated[
    list[Path], typer.Argument(help="Comparisons, as those of examples/experiments.")
]
_Full = Annotated[bool, typer.Option("--full", help="The full form, not the short one.")]
_Workers = Annotated[
    int | None, typer.Option(min=1, help="Replays at a time; else one for each CPU.")
]
_Traces = Annotated[Path, typer.Option(help="The folder in which the traces are.")]
_Kept = Annotated[
    Path, typer.Option(help="Where results are kept, so that none is run a second time.")
]
_Pages = Annotated[Path, typer.Option(help="Where the pages and their pictures are written.")]
_Seeds = Annotated[str, typer.Option(metavar="N,...", help="Other seeds than the form's.")]
_Parts = Annotated[str, typer.Option(metavar="N,...", help="Other parts; 0 is the whole trace.")]
_Jobs = Annotated[
    int | None, typer.Option(min=0, help="At most so many jobs of each part; 0: all.")
]
_Policies = Annotated[str, typer.Option(metavar="NAME,...", help="Only these policies.")]
_Workloads = Annotated[str, typer.Option(metavar="NAME,...", help="Only these workloads.")]
_For = Annotated[
    float | None,
    typer.Option("--for", metavar="SECONDS", min=0, help="Begin no replay after so long."),
]
_AnyCode = Annotated[
    bool,
    typer.Option("--any-code", help="Use what is kept also if scheduling code has changed since."),
]


def compare(
    files: _Files,
    full: _Full = False,
    workers: _Workers = None,
    traces: _Traces = Path("../shared/traces"),
    kept: _Kept = Path("runs/experiments"),
    pages: _Pages = Path("runs/experiments/pages"),
    seeds: _Seeds = "",
    parts: _Parts = "",
    jobs: _Jobs = None,
    policies: _Policies = "",
    workloads: _Workloads = "",
    seconds: _For = None,
    any_code: _AnyCode = False,
) -> None:
    """Run the cells of comparisons, as many at a time as there are CPUs, and write a page of each.

    Exit codes: 0 all cells were run; 1 some failed, or a comparison or trace cannot be read; 2 the
    command line is wrong; 130, 143 interrupted. Cells that were run are kept.
    """
    from understudy.experiments.comparison.cells import chosen
    from understudy.experiments.comparison.comparison import ComparisonError, read_comparison
    from understudy.experiments.comparison.figures import FIGURES
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.comparison.replays import Replays

    heed_termination()
    choice = {
        "seeds": _numbers(seeds, "--seeds"),
        "parts": _numbers(parts, "--parts"),
        "jobs": jobs,
        "policies": _names(policies),
        "workloads": _names(workloads),
    }
    options = zip(choice, (seeds, parts, jobs, policies, workloads), strict=True)
    changed = "".join(f" --{name} {value}" for name, value in options if value not in ("", None))
    failed = False
    try:
        for path in files:
            try:
                comparison = read_comparison(path, FIGURES)
                form = chosen(comparison.full if full else comparison.short, **choice)
                replays = Replays(traces, kept, any_code=any_code)
                command = f"understudy compare {path.name}{' --full' if full else ''}{changed}"
                rows = _run(path, comparison, form, replays, command, pages, workers, seconds)
            except ComparisonError as error:
                typer.echo(f"understudy compare: error: {error}", err=True)
                failed = True
            else:
                failed |= any(row.failed for row in rows)
    except KeyboardInterrupt as error:
        typer.echo("understudy compare: interrupted; what was complete is kept", err=True)
        raise typer.Exit(128 + (error.args[0] if error.args else 2)) from None
    except OSError as error:
        fail("compare", str(error))
    raise typer.Exit(1 if failed else 0)


def _run(
    path: Path,
    comparison: Comparison,
    form: Form,
    replays: Replays,
    command: str,
    pages: Path,
    workers: int | None,
    seconds: float | None,
) -> list[Row]:
    from understudy.experiments.comparison.cells import cells
    from understudy.experiments.comparison.comparison import ComparisonError
    from understudy.experiments.comparison.page import Run
    from understudy.tool.comparison.write import published_of, write_page

    published = published_of(comparison, path.parent)  # before hours of replays
    wanted = cells(comparison, form)
    for what, asked, there in (
        ("policy", form.policies, comparison.policies),
        ("workload", form.workloads, comparison.workloads),
    ):
        known = [each.name for each in there]
        if unknown := [name for name in asked if name not in known]:
            raise ComparisonError(f"{path}: no {what} {unknown[0]!r}; there are {', '.join(known)}")
    replays.prepare(wanted)
    typer.echo(f"{comparison.title}: {len(wanted)} cells")
    done = 0

    def told(row: Row) -> None:
        nonlocal done
        done += 1
        said = row.failed or f"mean wait {row.figures['mean_wait']:,.0f} s"
        typer.echo(
            f"{done} of {len(wanted)}: {row.policy} on {row.pair}: {said}, {row.seconds:.0f} s"
        )

    found = replays.run(
        wanted, workers or os.cpu_count() or 1, math.inf if seconds is None else seconds, told
    )
    place = {(cell.policy.name, cell.drawn.pair): number for number, cell in enumerate(wanted)}
    rows = sorted(found, key=lambda row: place[row.policy, row.pair])
    name = "full" if " --full" in command else "short"
    whole = cells(comparison, comparison.full if name == "full" else comparison.short)
    run = Run(wanted, rows, replays.made, command, name, len(whole))
    typer.echo(f"page {write_page(path.stem, comparison, run, published, pages)}")
    return rows


def _names(text: str) -> tuple[str, ...] | None:
    """`one,two`; None for nothing."""
    return tuple(filter(None, text.split(","))) or None


def _numbers(text: str, option: str) -> tuple[int, ...] | None:
    """`1,2,5`; None for nothing."""
    if not text:
        return None
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise typer.BadParameter(f"{option} {text}: expected numbers at commas")
    return tuple(map(int, words))
