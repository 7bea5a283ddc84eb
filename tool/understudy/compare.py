"""`understudy compare`: runs side by side; of .toml files, policies side by side on the same
workloads, and beside published numbers.

Place: a sub-command of `understudy`; what it does of runs is in compare_runs.py and
understudy.experiments.outcomes, of files of policies in understudy.tool.comparison.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.tool.understudy.cluster import fail
from understudy.tool.understudy.compare_runs import compare_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.experiments.comparison.cells import Cell, Row
    from understudy.experiments.comparison.comparison import Comparison, Form, PublishedTable
    from understudy.tool.comparison.replays import Replays

_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN RUN... | FILE.toml...",
        help="Runs: folders of `understudy replay --out` or of `understudy import`, jobs.csv, "
        "jobs.parquet, files of answers. Or comparisons of policies, as those of "
        "examples/experiments, which end with .toml.",
    ),
]
_Out = Annotated[
    Path | None,
    typer.Option(help="Of runs: the folder for compare.html, compare.csv and compare.json."),
]
_Json = Annotated[bool, typer.Option("--json", help="Of runs: print what compare.json has.")]
_Seed = Annotated[int | None, typer.Option(min=0, help="Of runs: the seed of the intervals.")]
_First = Annotated[
    int | None,
    typer.Option(min=0, help="Of runs: tell of so many jobs that start at another time; else 5."),
]
_Apart = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="Of runs: tell of jobs that start so far apart; else of any difference.",
    ),
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
    out: _Out = None,
    json: _Json = False,
    seed: _Seed = None,
    first: _First = None,
    apart: _Apart = None,
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
    """Compare runs, job by job: the first with each other one.

    Of files that end with .toml: run the cells of comparisons of policies, as many at a time as
    there are CPUs, and write a page of each. Options that do not say "Of runs" are theirs.

    Exit codes: 0 it is done; 1 a run, comparison or trace cannot be read, or some cells failed; 2
    the command line is wrong; 130, 143 interrupted. Cells that were run are kept.
    """
    of_policies = {
        "--full": full,
        "--workers": workers is not None,
        "--seeds": seeds,
        "--parts": parts,
        "--jobs": jobs is not None,
        "--policies": policies,
        "--workloads": workloads,
        "--for": seconds is not None,
        "--any-code": any_code,
    }
    of_runs = {
        "--out": out is not None,
        "--json": json,
        "--seed": seed is not None,
        "--first": first is not None,
        "--apart": apart is not None,
    }
    are_files = [path.suffix == ".toml" for path in files]
    if not any(are_files):
        _refuse(of_policies, "is for comparisons of policies, which are .toml files")
        compare_runs(files, out=out, as_json=json, seed=seed or 0, first=first, apart=apart or 1)
        return
    if not all(are_files):
        raise typer.BadParameter("runs cannot be compared with .toml files of policies")
    _refuse(of_runs, "is for runs, not for comparisons of policies")
    _compare_policies(
        files,
        {
            "seeds": seeds,
            "parts": parts,
            "jobs": jobs,
            "policies": policies,
            "workloads": workloads,
        },
        (traces, kept, pages),
        full=full,
        workers=workers,
        seconds=seconds,
        any_code=any_code,
    )


def _refuse(given: Mapping[str, object], why: str) -> None:
    for option, value in given.items():
        if value:
            raise typer.BadParameter(f"{option} {why}")


def _compare_policies(
    files: list[Path],
    chosen_options: dict[str, Any],
    folders: tuple[Path, Path, Path],
    *,
    full: bool,
    workers: int | None,
    seconds: float | None,
    any_code: bool,
) -> None:
    from understudy.experiments.comparison.cells import chosen
    from understudy.experiments.comparison.comparison import ComparisonError, read_comparison
    from understudy.experiments.comparison.figures import FIGURES
    from understudy.tool.cluster.processes import heed_termination
    from understudy.tool.comparison.replays import Replays

    heed_termination()
    traces, kept, pages = folders
    choice = {
        "seeds": _numbers(chosen_options["seeds"], "--seeds"),
        "parts": _numbers(chosen_options["parts"], "--parts"),
        "jobs": chosen_options["jobs"],
        "policies": _names(chosen_options["policies"]),
        "workloads": _names(chosen_options["workloads"]),
    }
    changed = "".join(
        f" --{name} {value}" for name, value in chosen_options.items() if value not in ("", None)
    )
    failed, asked = False, []
    try:
        for path in files:
            try:
                comparison = read_comparison(path, FIGURES)
                form = chosen(comparison.full if full else comparison.short, **choice)
                replays = Replays(traces, kept, any_code=any_code)
                command = f"understudy compare {path.name}{' --full' if full else ''}{changed}"
                asked.append(_asked(path, comparison, form, replays, command))
            except ComparisonError as error:
                typer.echo(f"understudy compare: error: {error}", err=True)
                failed = True
        failed |= _run(asked, pages, workers, seconds, full=full)
    except KeyboardInterrupt as error:
        typer.echo("understudy compare: interrupted; what was complete is kept", err=True)
        raise typer.Exit(128 + (error.args[0] if error.args else 2)) from None
    except OSError as error:
        fail("compare", str(error))
    raise typer.Exit(1 if failed else 0)


@dataclass
class _Asked:
    """A comparison whose cells are to be run."""

    path: Path
    comparison: Comparison
    replays: Replays
    command: str
    cells: list[Cell]
    published: dict[str, list[tuple[str, PublishedTable]]]  # by workload
    rows: dict[int, Row] = field(default_factory=dict)  # by place among its cells


def _asked(
    path: Path, comparison: Comparison, form: Form, replays: Replays, command: str
) -> _Asked:
    from understudy.experiments.comparison.cells import cells
    from understudy.experiments.comparison.comparison import ComparisonError
    from understudy.tool.comparison.write import published_of

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
    return _Asked(path, comparison, replays, command, wanted, published)


def _run(
    asked: list[_Asked], pages: Path, workers: int | None, seconds: float | None, *, full: bool
) -> bool:
    """Run the cells of all, and write the page of each once its rows are there; whether any failed.
    Small comparisons come first: the many cells of a large one keep all workers busy to the end.
    """
    from understudy.experiments.comparison.cells import cells
    from understudy.experiments.comparison.page import Run
    from understudy.tool.comparison.replays import run
    from understudy.tool.comparison.write import write_page

    asked = sorted(asked, key=lambda each: len(each.cells))
    places = [(each, place) for each in asked for place in range(len(each.cells))]
    done = 0

    def told(number: int, row: Row) -> None:
        nonlocal done
        done += 1
        said = row.failed or f"mean wait {row.figures['mean_wait']:,.0f} s"
        typer.echo(
            f"{done} of {len(places)}: {row.policy} on {row.pair}: {said}, {row.seconds:.0f} s"
        )
        mine, place = places[number]
        mine.rows[place] = row
        if len(mine.rows) == len(mine.cells):
            write(mine)

    def write(each: _Asked) -> None:
        comparison = each.comparison
        whole = cells(comparison, comparison.full if full else comparison.short)
        rows = [row for _, row in sorted(each.rows.items())]
        form = "full" if full else "short"
        made = Run(each.cells, rows, each.replays.made, each.command, form, len(whole))
        page = write_page(each.path.stem, comparison, made, each.published, pages)
        typer.echo(f"page {page}")

    run(
        [(each.replays, each.cells[place]) for each, place in places],
        workers or os.cpu_count() or 1,
        math.inf if seconds is None else seconds,
        told,
    )
    for each in asked:
        if len(each.rows) < len(each.cells):  # the time was over
            write(each)
    return any(row.failed for each in asked for row in each.rows.values())


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
