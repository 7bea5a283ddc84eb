"""Cells of a sweep put together: means over seeds with their intervals, and the cells that none
beats.

Place: between outcomes and pictures. Pure.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.experiments.comparison.spread import student

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from understudy.experiments.sweep.rows import Outcome

CHANCE: Final = 0.05  # of an interval to miss


class Mean(NamedTuple):
    """Of so many cells; `half` is that of the interval around it, 0 for one."""

    mean: float
    half: float
    cells: int


def mean(values: Sequence[float]) -> Mean:
    """Of at least one value, with Student's interval of 95 %."""
    middle = statistics.fmean(values)
    if len(values) < 2:
        return Mean(middle, 0.0, len(values))
    deviation = statistics.stdev(values) / math.sqrt(len(values))
    return Mean(middle, student(len(values) - 1, CHANCE) * deviation, len(values))


def grouped(
    found: Iterable[Outcome], axes: Sequence[str], figure: str
) -> dict[tuple[Any, ...], Mean]:
    """The mean of a figure over all cells that have the same values of these axes, in the order in
    which they come.
    """
    values: dict[tuple[Any, ...], list[float]] = {}
    for each in found:
        value = each.value(figure)
        if isinstance(value, int | float):
            values.setdefault(tuple(map(each.value, axes)), []).append(float(value))
    return {key: mean(some) for key, some in values.items()}


def front(points: Sequence[tuple[float, float]], *, more_x: bool, more_y: bool) -> list[int]:
    """The places of the points that no other one beats in both, by x. `more_`: more is better, else
    less.
    """
    signed = [(-x if more_x else x, -y if more_y else y) for x, y in points]
    found, best = [], math.inf
    for place in sorted(range(len(points)), key=signed.__getitem__):
        if signed[place][1] < best:
            best = signed[place][1]
            found.append(place)
    return sorted(found, key=lambda place: points[place])
