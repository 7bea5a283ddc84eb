"""A comparison as one HTML file that needs nothing else, by day and by night, on a phone too.

Place: the last step of a comparison. Pure: a comparison in, text out.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.experiments.drawing import Plot, legend, linear_axis, wait_axis
from understudy.experiments.outcomes import tables
from understudy.experiments.report import STYLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from understudy.experiments.outcomes.compare import Against, Comparison
    from understudy.experiments.outcomes.tables import Table

_COLOURS: Final = ("blue", "orange", "teal", "violet")  # of the first runs; others are not drawn
_HEIGHT: Final = 260
_POINTS: Final = 300
_SHOWN: Final = 50  # groups of a kind
_MORE_STYLE: Final = "".join(
    f".line-{name} {{ fill: none; stroke: var(--{name}); stroke-width: 1.6; }}\n"
    f".key.{name} {{ background: var(--{name}); }}\n"
    for name in _COLOURS
) + (
    "pre.story { white-space: pre-wrap; overflow-wrap: anywhere; }\n"
    ".beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24em), "
    "1fr)); gap: 12px; }\nli { color: var(--soft); max-width: 78ch; overflow-wrap: anywhere; }\n"
    "h3 { font-size: 15px; margin: 14px 0 2px; }\n"
    ".scroll td:first-child { white-space: normal; }\n"
)


def page(comparison: Comparison) -> str:
    """The page."""
    letters = [run.letter for run in comparison.runs]
    title = f"{len(letters)} runs compared"
    parts = [
        f"<h1>{title}</h1>",
        (
            f"<section><h2>Runs</h2>{_list(tables.runs(comparison))}"
            f"<p>Jobs are matched by their {comparison.matched_by}.</p></section>"
        ),
        *(_against(each, letters[0]) for each in comparison.against),
        _section(tables.figures(comparison)),
        _waits(comparison),
    ]
    for each in comparison.against:
        parts += [_section(table) for table in tables.by_way(each, letters[0], _SHOWN)]
        parts.append(_first_differences(each, letters[0]))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}{_MORE_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(filter(None, parts))
        + "\n</main></body></html>\n"
    )


def _list(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def _against(against: Against, first: str) -> str:
    return (
        f"<section><h2>{against.letter} against {first}</h2>"
        f"{_list(tables.sentences(against, first))}</section>"
    )


def _section(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    more = f"<p>and {table.more:,} more, in compare.json</p>" if table.more > 0 else ""
    return (
        f'<section><h2>{escape(table.title)}</h2><div class="scroll"><table><thead><tr>{head}'
        f"</tr></thead><tbody>{body}</tbody></table></div>{more}</section>"
    )


def _waits(comparison: Comparison) -> str:
    """How many of the jobs of each run waited at most how long."""
    drawn = list(zip(comparison.runs, _COLOURS, strict=False))
    waits = [
        np.sort(
            np.array(
                [
                    jobs[place].wait  # type: ignore[union-attr]
                    for jobs in comparison.jobs
                    if jobs[place] is not None and jobs[place].start is not None  # type: ignore[union-attr]
                ],
                np.float64,
            )
        )
        for place in range(len(drawn))
    ]
    largest = max((float(found[-1]) for found in waits if len(found)), default=0.0)
    if not largest:
        return ""
    plot = Plot(
        wait_axis(largest, "waited at most"),
        linear_axis(100, "jobs, %"),
        _HEIGHT,
        "how many jobs waited at most how long",
    )
    edges = np.concatenate(([0.0], np.geomspace(1.0, max(largest, 2.0), _POINTS)))
    for found, (_, colour) in zip(waits, drawn, strict=True):
        if len(found):
            shares = 100 * np.searchsorted(found, edges[:-1], "right") / len(found)
            plot.steps(edges.tolist(), shares.tolist(), f"line-{colour}")
    keys = [(colour, f"{run.letter} {run.path}") for run, colour in drawn]
    return f"<section><h2>Waits</h2>{legend(keys)}{plot.svg()}</section>"


def _first_differences(against: Against, first: str) -> str:
    if not against.first_differences:
        return ""
    parts = []
    for found in against.first_differences:
        stories: Sequence[str] = [
            f'<pre class="story"><b>{escape(where)}</b>\n{escape(chr(10).join(told))}</pre>'
            for where, told in tables.first_difference(found, (first, against.letter))
        ]
        parts.append(
            f"<h3>{escape(tables.difference_title(found))}</h3>"
            f'<div class="beside">{"".join(stories)}</div>'
        )
    return (
        f"<section><h2>The first jobs that start at another time in {against.letter}</h2>"
        "<p>Later differences mostly follow from the first.</p>" + "".join(parts) + "</section>"
    )
