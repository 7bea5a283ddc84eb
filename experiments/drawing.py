"""Axes, lines and boxes as SVG text: what pages show that is not explored.

Place: below the report. Pure: numbers in, text out. Colours are CSS classes, so that the page
decides them for light and dark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from understudy.experiments.series import Spread

WIDTH: Final = 960
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 46
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_WAIT_TICKS: Final = (
    0,
    60,
    600,
    _HOUR,
    6 * _HOUR,
    _DAY,
    4 * _DAY,
    14 * _DAY,
    60 * _DAY,
    365 * _DAY,
)
_WAIT_BEND_S: Final = 20.0  # ours: the axis of waits is nearly linear below, logarithmic above


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to positions between 0 and 1, and the values that are named."""

    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]
    title: str


@dataclass(slots=True)
class Plot:
    """One drawing with a frame of axes, to which marks are added."""

    x: Axis
    y: Axis
    height: int
    name: str  # what it shows, for those who cannot see it
    marks: list[str] = field(default_factory=list)

    @property
    def inner_width(self) -> int:
        return WIDTH - LEFT - RIGHT

    @property
    def inner_height(self) -> int:
        return self.height - TOP - BOTTOM

    def at_x(self, value: float) -> float:
        return LEFT + self.inner_width * self.x.place(value)

    def at_y(self, value: float) -> float:
        return TOP + self.inner_height * (1 - min(max(self.y.place(value), 0.0), 1.0))

    def steps(self, edges: Sequence[float], values: Sequence[float], css: str) -> None:
        """A line that is level within each bucket."""
        points = self._step_points(edges, values)
        self.marks.append(f'<path class="{css}" d="M{points}"/>')

    def area(self, edges: Sequence[float], values: Sequence[float], css: str) -> None:
        floor = self.at_y(0)
        points = self._step_points(edges, values)
        self.marks.append(
            f'<path class="{css}" d="M{self.at_x(edges[0]):.1f},'
            f'{floor:.1f}L{points}V{floor:.1f}Z"/>'
        )

    def box(self, x: float, width: float, spread: Spread, css: str, note: str) -> None:
        """Whiskers at 5 and 95 %, box from quartile to quartile, the median as a bar, the mean as a
        dot, the largest as a ring. `x` is in pixels.
        """
        low, first, median, third, high = (
            self.at_y(value)
            for value in (
                spread.low,
                spread.first_quartile,
                spread.median,
                spread.third_quartile,
                spread.high,
            )
        )
        half = width / 2
        self.marks.append(
            f'<g class="box {css}"><title>{escape(note)}</title>'
            f'<rect class="target" x="{x - half - 4:.1f}" y="{TOP}" width="{width + 8:.1f}" '
            f'height="{self.inner_height}"/>'
            f'<path class="whisker" d="M{x:.1f},{low:.1f}V{first:.1f}M{x:.1f},'
            f"{third:.1f}V{high:.1f}"
            f'M{x - half / 2:.1f},{low:.1f}h{half:.1f}M{x - half / 2:.1f},{high:.1f}h{half:.1f}"/>'
            f'<rect class="body" x="{x - half:.1f}" y="{third:.1f}" width="{width:.1f}" '
            f'height="{max(first - third, 1):.1f}" rx="2"/>'
            f'<path class="median" d="M{x - half:.1f},{median:.1f}h{width:.1f}"/>'
            f'<circle class="mean" cx="{x:.1f}" cy="{self.at_y(spread.mean):.1f}" r="3.5"/>'
            f'<circle class="largest" cx="{x:.1f}" cy="{self.at_y(spread.largest):.1f}" r="3"/></g>'
        )

    def svg(self) -> str:
        right, floor = WIDTH - RIGHT, TOP + self.inner_height
        out = [
            (
                f'<svg class="plot" viewBox="0 0 {WIDTH} {self.height}" role="img" '
                f'aria-label="{escape(self.name)}">'
            )
        ]
        for value, label in self.y.ticks:
            y = self.at_y(value)
            out.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(
                f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" '
                f'text-anchor="end">{escape(label)}</text>'
            )
        for value, label in self.x.ticks:
            out.append(
                f'<text class="tick" x="{self.at_x(value):.1f}" y="{floor + 18}" '
                f'text-anchor="middle">{escape(label)}</text>'
            )
        out += self.marks
        out.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{floor}" y2="{floor}"/>')
        out.append(
            f'<text class="title" x="{(LEFT + right) / 2}" y="{self.height - 6}" '
            f'text-anchor="middle">{escape(self.x.title)}</text>'
        )
        middle = TOP + self.inner_height / 2
        out.append(
            f'<text class="title" transform="translate(14 {middle}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.y.title)}</text>'
        )
        return "".join(out) + "</svg>"

    def _step_points(self, edges: Sequence[float], values: Sequence[float]) -> str:
        parts = [f"{self.at_x(edges[0]):.1f},{self.at_y(values[0]):.1f}"]
        for right, value, following in zip(
            edges[1:], values, [*values[1:], values[-1]], strict=True
        ):
            before, after = f"{self.at_y(value):.1f}", f"{self.at_y(following):.1f}"
            parts.append(
                f"H{self.at_x(right):.1f}"
                if before == after
                else f"H{self.at_x(right):.1f}V{after}"
            )
        return "".join(parts)


def linear_axis(largest: float, title: str, *, smallest: float = 0.0, unit: str = "") -> Axis:
    """From `smallest` to a round number that is not less than `largest`."""
    step = round_step((largest - smallest) / 5) if largest > smallest else 1.0
    top = smallest + step * max(1, math.ceil((largest - smallest) / step - 1e-9))
    span = top - smallest
    count = round(span / step)
    ticks = [(smallest + i * step, f"{smallest + i * step:,.10g}{unit}") for i in range(count + 1)]
    return Axis(lambda value: (value - smallest) / span, ticks, title)


def time_axis(first: float, last: float) -> Axis:
    """Time since the trace's zero, in the unit that suits the span."""
    span = max(last - first, 1.0)
    unit, name = next(
        (
            (s, n)
            for s, n in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes"))
            if span >= 4 * s
        ),
        (1, "seconds"),
    )
    step = round_step(span / unit / 9)
    begin = math.ceil(first / unit / step - 1e-9)
    ticks = [
        (i * step * unit, f"{i * step:,.10g}")
        for i in range(begin, begin + 100)
        if i * step * unit <= last
    ]
    return Axis(
        lambda value: (value - first) / span, ticks, f"time since the first submission, {name}"
    )


def wait_axis(largest: float, title: str) -> Axis:
    top = math.log1p(max(largest, _MINUTE) * 1.1 / _WAIT_BEND_S)
    ticks = [(float(s), duration(s)) for s in _WAIT_TICKS if s <= max(largest, _MINUTE) * 1.1]
    return Axis(lambda value: math.log1p(max(value, 0.0) / _WAIT_BEND_S) / top, ticks, title)


def log_axis(largest: float, title: str) -> Axis:
    """From 1, by powers of ten."""
    top = math.log10(max(largest, 5.0) * 1.2)
    ticks = [(10.0**power, f"{10**power:,}") for power in range(math.floor(top) + 1)]
    return Axis(lambda value: math.log10(max(value, 1.0)) / top, ticks, title)


def class_axis(labels: Sequence[str], title: str) -> Axis:
    """Equal places for names; a class's value is its number."""
    count = max(len(labels), 1)
    return Axis(
        lambda value: (value + 0.5) / count,
        [(float(i), label) for i, label in enumerate(labels)],
        title,
    )


def round_step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not less."""
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough - 1e-12)


def duration(seconds: float) -> str:
    """A duration as people say it: `0`, `45 s`, `12 min`, `3.5 h`, `2.3 d`."""
    for unit, name, until in (
        (1, "s", _MINUTE),
        (_MINUTE, "min", _HOUR),
        (_HOUR, "h", _DAY),
        (_DAY, "d", math.inf),
    ):
        if seconds < until:
            number = seconds / unit
            digits = 0 if number == round(number) or number >= 100 else 1
            return f"{number:,.{digits}f} {name}" if seconds else "0"
    raise AssertionError(seconds)


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """(CSS class of the key, text) for each series."""
    return (
        '<ul class="legend">'
        + "".join(
            f'<li><span class="key {css}"></span>{escape(text)}</li>' for css, text in entries
        )
        + "</ul>"
    )
