"""A comparison's pictures, each an SVG file that can stand in a page of Markdown.

Place: beside the page; below it is the drawing of reports. Pure.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

from understudy.experiments.comparison.cells import by_policy, ratios, values
from understudy.experiments.comparison.figures import shown, words
from understudy.experiments.comparison.spread import five
from understudy.experiments.drawing import Axis, Plot, class_axis, linear_axis
from understudy.experiments.series import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.comparison.cells import Row
    from understudy.experiments.comparison.comparison import (
        Comparison,
        Picture,
        PublishedTable,
    )

_HEIGHT: Final = 320
_BOX: Final = 34.0
_ASIDE: Final = 22.0  # how far ours and what was published stand from the middle
_STYLE: Final = """
svg { --card: #ffffff; --ink: #1b1d21; --soft: #5b616b; --line: #e3e4e6; --axis: #9aa0a8;
  --blue: #2a6fc9; --blue-wash: #2a6fc933; --orange: #c9621b; --orange-wash: #c9621b38; }
@media (prefers-color-scheme: dark) { svg { --card: #1d2024; --ink: #e9eaec; --soft: #a2a8b1;
  --line: #30343a; --axis: #6d747e; --blue: #6ba6f0; --blue-wash: #6ba6f033;
  --orange: #ec9553; --orange-wash: #ec955338; } }
text { font: 13px system-ui, sans-serif; fill: var(--soft); } text.name { fill: var(--ink); }
.ground { fill: var(--card); } .grid { stroke: var(--line); } .axis { stroke: var(--axis); }
.one { stroke: var(--ink); stroke-dasharray: 4 4; fill: none; }
.box path { fill: none; stroke-width: 1.5; } .box .median { stroke-width: 2.5; }
.box .largest, .box .target { fill: none; stroke: none; } .box rect.body { stroke-width: 1.5; }
.ours path, .ours rect.body { stroke: var(--blue); } .ours rect.body { fill: var(--blue-wash); }
.ours circle.mean, circle.ours { fill: var(--blue); }
.theirs path, .theirs rect.body { stroke: var(--orange); }
.theirs rect.body { fill: var(--orange-wash); } .theirs circle.mean { fill: none; }
path.theirs { fill: var(--orange); stroke: none; }
"""


def picture(
    comparison: Comparison,
    asked: Picture,
    workload: str,
    rows: Sequence[Row],
    published: Sequence[PublishedTable],
) -> str:
    """One workload's picture; "" if no cell of it has been run."""
    found = by_policy(rows, workload)
    names = [each.name for each in comparison.policies if each.name in found]
    base = found.get(comparison.base, {})
    theirs: dict[str, list[float]] = {}
    if asked.kind == "levels":
        ours = {name: values(found[name], asked.figure) for name in names}
        for row in [row for table in published for row in table.rows]:
            if asked.figure in row.figures:
                theirs.setdefault(row.policy, []).append(row.figures[asked.figure][0])
        title = words(asked.figure)
    else:
        ours = {
            name: ratios(found[name], base, asked.figure)
            for name in names
            if name != comparison.base
        }
        for table in published:
            if table.base == comparison.base:
                for row in table.rows:
                    if asked.figure in row.boxes:  # of several tables the first
                        theirs.setdefault(row.policy, list(row.boxes[asked.figure][0]))
        title = f"{words(asked.figure).partition(',')[0]}, ratio to {comparison.base}"
    ours = {name: some for name, some in ours.items() if some}
    theirs = {name: theirs[name] for name in ours if name in theirs}
    if not ours:
        return ""
    return _drawn(list(ours), ours, theirs, title, asked)


def _drawn(
    names: Sequence[str],
    ours: dict[str, list[float]],
    theirs: dict[str, list[float]],
    title: str,
    asked: Picture,
) -> str:
    everything = [each for some in (*ours.values(), *theirs.values()) for each in some]
    is_level = asked.kind == "levels"
    y = _axis(everything, title, asked.figure) if is_level else _ratio_axis(everything, title)
    plot = Plot(class_axis(names, "policy"), y, _HEIGHT, title)
    if not is_level:
        plot.marks.append(
            f'<path class="one" d="M{plot.at_x(-0.5):.1f},{plot.at_y(1):.1f}h{plot.inner_width}"/>'
        )
    for place, name in enumerate(names):
        at = plot.at_x(place)
        for kind, some, aside in (
            ("ours", ours[name], -_ASIDE if name in theirs else 0.0),
            ("theirs", theirs.get(name, []), _ASIDE),
        ):
            if not some:
                continue
            if is_level or len(some) < 5:
                _dots(plot, at + aside, some, kind, f"{name}: {title}")
            else:
                plot.box(at + aside, _BOX, _spread(some), kind, f"{name}: {title}")
    return _standing_alone(plot, has_theirs=bool(theirs))


def _dots(plot: Plot, x: float, some: Sequence[float], kind: str, note: str) -> None:
    for each in some:
        y = plot.at_y(each)
        what = (
            f'<circle class="ours" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            if kind == "ours"
            else f'<path class="theirs" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z">'
        )
        end = "circle" if kind == "ours" else "path"
        plot.marks.append(f"{what}<title>{escape(note)}: {each:,.6g}</title></{end}>")


def _spread(some: Sequence[float]) -> Spread:
    """Whiskers to the smallest and the largest."""
    of = five(some)
    return Spread(of.least, of.first, of.median, of.third, of.most, of.most, of.mean)


def _axis(some: Sequence[float], title: str, figure: str) -> Axis:
    """Logarithmic where the values span more than ten times."""
    low, high = min(some), max(some)
    if low <= 0 or high < 10 * low:
        axis = linear_axis(high, title)
        texts = [shown(figure, each).replace(".00 %", " %") for each, _ in axis.ticks]
        return Axis(axis.place, list(zip((at for at, _ in axis.ticks), texts, strict=True)), title)
    return _logarithmic(low, high, title, (1,))


def _ratio_axis(some: Sequence[float], title: str) -> Axis:
    """Logarithmic: a half is as far from 1 as a double."""
    return _logarithmic(min(*some, 0.9), max(*some, 1.1), title, (1, 2, 5))


def _logarithmic(low: float, high: float, title: str, steps: tuple[int, ...]) -> Axis:
    edge = 1.08 if len(steps) > 1 else 1.5
    first, last = math.log10(low / edge), math.log10(high * edge)
    ticks = [
        step * 10.0**power
        for power in range(math.floor(first), math.ceil(last) + 1)
        for step in steps
    ]
    if len(steps) > 1 and last - first < 0.7:  # too few of these: tenths instead
        ticks = [each / 10 for each in range(1, 60)]
    return Axis(
        lambda value: (math.log10(value) - first) / (last - first),
        [(each, _short(each)) for each in ticks if first <= math.log10(each) <= last],
        title,
    )


def _short(value: float) -> str:
    """`0.5`, `100`, `10k`, `2M`."""
    for unit, letter in ((10**6, "M"), (10**3, "k")):
        if value >= unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}"


def _standing_alone(plot: Plot, *, has_theirs: bool) -> str:
    legend = '<text class="name" x="64" y="10">ours: blue, published: orange</text>'
    svg = plot.svg()
    head, _, body = svg.partition(">")
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    ground = '<rect class="ground" width="100%" height="100%"/>'
    return f"{head}><style>{_STYLE}</style>{ground}{legend if has_theirs else ''}{body}\n"
