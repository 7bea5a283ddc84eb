"""Pictures of a sweep, each an SVG that stands alone: a heat map of two axes, lines with intervals
over all else, two figures of all cells with those that none beats.

Place: between outcomes and the page; below are the drawing of reports and its styles. Pure.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.drawing import (
    LEFT,
    RIGHT,
    WIDTH,
    Axis,
    Plot,
    class_axis,
    linear_axis,
    round_step,
)
from understudy.experiments.standing_alone import framed, standing_alone
from understudy.experiments.sweep.file import Picture
from understudy.experiments.sweep.statistics import Mean, front, grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.sweep.file import Sweep
    from understudy.experiments.sweep.rows import Outcome

_HEIGHT: Final = 340
_ROW: Final = 44  # of a heat map
_TOP: Final = 40
_SERIES: Final = 6  # colours; further lines have the first ones again
_LOW, _MIDDLE, _HIGH = (253, 240, 200), (231, 122, 76), (96, 21, 81)  # light to dark
_MOST_LABELS: Final = 12


def asked(sweep: Sweep, found: Sequence[Outcome]) -> list[Picture]:
    """The pictures of a sweep: its own, or those that its axes suggest."""
    if sweep.pictures:
        return list(sweep.pictures)
    axes = [axis for axis in sweep.axes if len({str(each.values[axis]) for each in found}) > 1]
    numbers = [axis for axis in axes if all(_is_number(each.values[axis]) for each in found)]
    suggested = []
    if len(axes) >= 2:
        suggested.append(Picture("heat", axes[0], axes[1]))
    if axes:
        x = numbers[0] if numbers else axes[0]
        by = next((axis for axis in axes if axis != x), "")
        suggested.append(Picture("lines", x, by=by))
        suggested.append(
            Picture("pareto", "mean_wait", "utilization", by=axes[0], more=("utilization",))
        )
    return suggested


def picture(asked_: Picture, found: Sequence[Outcome]) -> str:
    """One of them; "" where there is nothing to draw."""
    if asked_.kind == "heat":
        return _heat(asked_, found)
    return _lines(asked_, found) if asked_.kind == "lines" else _pareto(asked_, found)


def short(value: float | None) -> str:
    """A figure in a few characters: `0.52`, `3.1`, `1,204`, `2.5M`."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 10_000_000:
        return f"{value / 1e6:,.3g}M"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _heat(asked_: Picture, found: Sequence[Outcome]) -> str:
    means = grouped(found, (asked_.x, asked_.y), asked_.figure)
    if not means:
        return ""
    columns, rows = (_ordered(each[place] for each in means) for place in (0, 1))
    low, high = min(each.mean for each in means.values()), max(each.mean for each in means.values())
    left = min(LEFT + 8 * max(len(str(row)) for row in rows), WIDTH // 3)
    width = (WIDTH - left - RIGHT) / len(columns)
    out = [
        (
            f'<text class="name" x="4" y="14">{escape(asked_.figure)}: {short(low)} light, '
            f"{short(high)} dark; mean of all cells of a place</text>"
        )
    ]
    for line, row in enumerate(rows):
        y = _TOP + line * _ROW
        out.append(
            f'<text x="{left - 8}" y="{y + _ROW / 2 + 4:.0f}" text-anchor="end">'
            f"{escape(str(row))}</text>"
        )
        for place, column in enumerate(columns):
            if (mean := means.get((column, row))) is None:
                continue
            share = (mean.mean - low) / (high - low) if high > low else 0.0
            x = left + place * width
            note = f"{asked_.x} {column}, {asked_.y} {row}: {mean.mean:,.6g} ({mean.cells} cells)"
            out.append(
                f'<g><title>{escape(note)}</title><rect x="{x:.1f}" y="{y}" '
                f'width="{width - 2:.1f}" height="{_ROW - 2}" fill="{_colour(share)}"/>'
                f'<text class="{"light" if share > 0.45 else "dark"}" x="{x + width / 2:.1f}" '
                f'y="{y + _ROW / 2 + 4:.0f}" text-anchor="middle">{short(mean.mean)}</text></g>'
            )
    out.append(f'<text class="name" x="4" y="{_TOP - 8}">{escape(asked_.y)}</text>')
    floor = _TOP + _ROW * len(rows)
    step = -(-len(columns) // _MOST_LABELS)
    out += [
        (
            f'<text x="{left + (place + 0.5) * width:.1f}" y="{floor + 18}" '
            f'text-anchor="middle">{escape(str(column))}</text>'
        )
        for place, column in enumerate(columns)
        if place % step == 0
    ]
    middle = (left + WIDTH - RIGHT) / 2
    out.append(
        f'<text class="name" x="{middle}" y="{floor + 38}" text-anchor="middle">'
        f"{escape(asked_.x)}</text>"
    )
    return framed(floor + 50, "".join(out), escape(f"{asked_.figure} by {asked_.x}, {asked_.y}"))


def _lines(asked_: Picture, found: Sequence[Outcome]) -> str:
    axes = (asked_.x, asked_.by) if asked_.by else (asked_.x,)
    means = grouped(found, axes, asked_.figure)
    if not means:
        return ""
    xs = _ordered(each[0] for each in means)
    series = _ordered(each[1] for each in means) if asked_.by else [""]
    high = max(each.mean + each.half for each in means.values())
    low = min(0.0, *(each.mean - each.half for each in means.values()))
    x_axis = _x_axis(xs, asked_.x)
    step = round_step((high - low) / 5) if high > low else 1.0
    y_axis = linear_axis(high, asked_.figure, smallest=step * math.floor(low / step))
    plot = Plot(x_axis, y_axis, _HEIGHT, asked_.figure)
    for number, name in enumerate(series):
        css = f"s{number % _SERIES + 1}"
        points = []
        for place, x in enumerate(xs):
            mean = means.get((x, name) if asked_.by else (x,))
            if mean is not None:
                at = plot.at_x(float(x) if _is_number(xs[0]) else place)
                points.append((at, mean))
                plot.marks.append(_dot(plot, at, mean, css, f"{name} {asked_.x} {x}"))
        path = "L".join(f"{at:.1f},{plot.at_y(mean.mean):.1f}" for at, mean in points)
        plot.marks.append(f'<path class="series {css}" d="M{path}"/>')
        if asked_.by:
            plot.marks.append(_key(number, css, str(name)))
    return standing_alone([plot])


def _dot(plot: Plot, at: float, mean: Mean, css: str, note: str) -> str:
    y = plot.at_y(mean.mean)
    bar = ""
    if mean.half:
        low, high = plot.at_y(mean.mean - mean.half), plot.at_y(mean.mean + mean.half)
        bar = (
            f'<path class="interval {css}" d="M{at:.1f},{low:.1f}V{high:.1f}M{at - 4:.1f},{low:.1f}'
            f'h8M{at - 4:.1f},{high:.1f}h8"/>'
        )
    said = f"{note}: {mean.mean:,.6g} ± {mean.half:,.3g} ({mean.cells} cells)"
    return (
        f"<g><title>{escape(said)}</title>{bar}"
        f'<circle class="dot {css}" cx="{at:.1f}" cy="{y:.1f}" r="3.5"/></g>'
    )


def _pareto(asked_: Picture, found: Sequence[Outcome]) -> str:
    known = [
        each
        for each in found
        if _is_number(each.value(asked_.x)) and _is_number(each.value(asked_.y))
    ]
    if not known:
        return ""
    points = [(float(each.value(asked_.x)), float(each.value(asked_.y))) for each in known]
    best = front(points, more_x=asked_.x in asked_.more, more_y=asked_.y in asked_.more)
    x_axis, y_axis = (
        _spanning([point[place] for point in points], title)
        for place, title in ((0, asked_.x), (1, asked_.y))
    )
    plot = Plot(x_axis, y_axis, _HEIGHT, f"{asked_.y} over {asked_.x}")
    series = _ordered(each.value(asked_.by) for each in known) if asked_.by else []
    steps = "L".join(
        f"{plot.at_x(points[place][0]):.1f},{plot.at_y(points[place][1]):.1f}" for place in best
    )
    plot.marks.append(f'<path class="front" d="M{steps}"/>')
    for place, (each, (x, y)) in enumerate(zip(known, points, strict=True)):
        number = series.index(each.value(asked_.by)) if asked_.by else 0
        is_best = " best" if place in best else ""
        said = " ".join(f"{axis}={value}" for axis, value in each.values.items())
        note = f"{said} seed={each.seed}: {asked_.x} {x:,.6g}, {asked_.y} {y:,.6g}"
        plot.marks.append(
            f'<circle class="dot s{number % _SERIES + 1}{is_best}" cx="{plot.at_x(x):.1f}" '
            f'cy="{plot.at_y(y):.1f}" r="{5 if is_best else 4}">'
            f"<title>{escape(note)}</title></circle>"
        )
    for number, name in enumerate(series):
        plot.marks.append(_key(number, f"s{number % _SERIES + 1}", str(name)))
    return standing_alone([plot])


def _key(number: int, css: str, name: str) -> str:
    """A line of the legend, in the upper right."""
    y = 22 + 18 * number
    return (
        f'<rect class="key {css}" x="{WIDTH - RIGHT - 14}" y="{y - 9}" width="10" height="10"/>'
        f'<text x="{WIDTH - RIGHT - 20}" y="{y}" text-anchor="end">{escape(name)}</text>'
    )


def _x_axis(xs: Sequence[Any], title: str) -> Axis:
    """Of the values themselves: by their size where they are numbers, logarithmic where they span
    more than thirty times.
    """
    if not _is_number(xs[0]):
        return class_axis([str(x) for x in xs], title)
    low, high = float(min(xs)), float(max(xs))
    step = -(-len(xs) // _MOST_LABELS)
    ticks = [(float(x), f"{x:,.10g}") for x in xs[::step]]
    if low > 0 and high > 30 * low:
        span = math.log(high / low)
        return Axis(lambda value: 0.04 + 0.92 * math.log(value / low) / span, ticks, title)
    wide = high - low or 1.0
    return Axis(lambda value: 0.04 + 0.92 * (value - low) / wide, ticks, title)


def _spanning(values: Sequence[float], title: str) -> Axis:
    """From the least to the most, with some room."""
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    axis = linear_axis(high + room, title, smallest=low - room)
    return Axis(axis.place, [(at, short(float(f"{at:.3g}"))) for at, _ in axis.ticks], title)


def _ordered(values: Any) -> list[Any]:
    """Each once: numbers by size, all else as they come."""
    found = list(dict.fromkeys(values))
    return sorted(found) if all(map(_is_number, found)) else found


def _colour(share: float) -> str:
    low, high, part = (_LOW, _MIDDLE, share * 2) if share < 0.5 else (_MIDDLE, _HIGH, share * 2 - 1)
    mixed = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return f"rgb({','.join(map(str, mixed))})"
