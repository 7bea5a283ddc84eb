"""The page of a sweep: what was asked, pictures, a table; one file that needs nothing else.

Place: between outcomes and a sweep's folder. Pure.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from understudy.experiments.sweep.pictures import asked, picture, short
from understudy.experiments.sweep.rows import MEASURED
from understudy.model.nouns import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.sweep.file import Sweep
    from understudy.experiments.sweep.rows import Outcome

FIGURES: Final = (
    *("jobs", "ran", "mean_wait", "wait_p95", "mean_bounded_slowdown", "utilization"),
    *("makespan", "cpu_hours", "speedup"),
)
_MOST_ROWS: Final = 500  # of the page's table; the files have all
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1b1d21, #e9eaec); background: light-dark(#f6f6f7, #15171a); }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
section, .table { background: light-dark(#ffffff, #1d2024); border-radius: 8px; padding: 1rem;
  margin: 1rem 0; overflow-x: auto; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid light-dark(#e3e4e6, #30343a); }
th { position: sticky; top: 0; background: inherit; } td.text, th.text { text-align: left; }
.failed { color: light-dark(#b3261e, #ff8f87); } .soft { color: light-dark(#5b616b, #a2a8b1); }
"""


def page(sweep: Sweep, found: Sequence[Outcome], total: int, command: str) -> str:
    """An HTML file. `total`: of the cells that there should be."""
    failed = [each for each in found if each.row.error]
    done = [each for each in found if not each.row.error]
    said = f"{len(found):,} of {many(total, 'cell')}"
    if failed:
        said += f", {len(failed):,} of them without figures"
    out = [
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(sweep.title)}</title><style>{_STYLE}</style></head><body>"
            f"<h1>{escape(sweep.title)}</h1>"
        ),
        f"<p>{escape(sweep.asks)}</p>" if sweep.asks else "",
        f'<p class="soft">{said}. <code>{escape(command)}</code></p>',
    ]
    out += [
        f"<section><h2>{escape(_title(each))}</h2>{drawn}</section>"
        for each in asked(sweep, done)
        if (drawn := picture(each, done))
    ]
    out.append(f"<h2>Cells</h2>{_alike(sweep, done)}{_table(sweep, found)}")
    out += [f"<p>{escape(note)}</p>" for note in sweep.notes]
    return "".join(out) + "</body></html>\n"


def _title(each: object) -> str:
    kind, x, y = (str(getattr(each, name)) for name in ("kind", "x", "y"))
    figure, by = (str(getattr(each, name)) for name in ("figure", "by"))
    if kind == "heat":
        return f"{figure} by {x} and {y}"
    if kind == "pareto":
        return f"{y} over {x}: on the dashed line are cells that no other beats in both"
    return f"{figure} over {x}" + (f", by {by}" if by else "") + ", with intervals of 95 %"


def _table(sweep: Sweep, found: Sequence[Outcome]) -> str:
    names = [name for name in sweep.figures or FIGURES if _has(found, name)]
    head = "".join(f'<th class="text">{escape(name)}</th>' for name in ("cell", *_chosen(sweep)))
    head += "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for each in found[:_MOST_ROWS]:
        cells = [each.number, *map(each.value, _chosen(sweep))]
        line = "".join(f'<td class="text">{escape(str(value))}</td>' for value in cells)
        if each.row.error:
            line += (
                f'<td class="text failed" colspan="{max(len(names), 1)}">'
                f"{escape(each.row.error)}</td>"
            )
        else:
            line += "".join(f"<td>{short(each.value(name))}</td>" for name in names)
        rows.append(f"<tr>{line}</tr>")
    left = len(found) - _MOST_ROWS
    more = f"<p>{left:,} more are in sweep.csv and sweep.parquet.</p>" if left > 0 else ""
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{more}"
    )


def _chosen(sweep: Sweep) -> tuple[str, ...]:
    """What tells cells apart."""
    return (*sweep.axes, "seed", *["execution"] * (sweep.executions > 1))


def _alike(sweep: Sweep, done: Sequence[Outcome]) -> str:
    """Whether all executions of a cell have the same schedule."""
    if sweep.executions == 1:
        return ""
    schedules: dict[str, set[str]] = {}
    for each in done:
        schedules.setdefault(repr((each.values, each.seed)), set()).add(each.row.schedule_sha256)
    differ = sum(len(found) > 1 for found in schedules.values())
    if differ:
        return f'<p class="failed">{differ} of {len(schedules)} have executions that differ.</p>'
    return "<p>All executions of a cell have the same schedule.</p>"


def _has(found: Sequence[Outcome], name: str) -> bool:
    return name in MEASURED or any(each.value(name) is not None for each in found)
