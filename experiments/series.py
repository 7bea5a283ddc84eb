"""A run seen by job size, small enough to be drawn however many jobs it has.

Place: between records and the report. Pure. What is seen over time is worked out in the browser
(`explorer/series.js`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.experiments.metrics import Columns

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure is distributed: the values at QUANTILES, and the mean."""

    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float
    largest: float
    mean: float


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs of `smallest` to `largest` CPUs."""

    smallest: int
    largest: int
    jobs: int
    cpu_seconds: int
    wait: Spread
    slowdown: Spread

    @property
    def label(self) -> str:
        return (
            str(self.smallest)
            if self.smallest == self.largest
            else f"{self.smallest}-{self.largest}"
        )


def size_classes(ran: Columns) -> list[SizeClass]:
    """Jobs by CPUs: 1, 2, 3-4, 5-8, ... Only classes that have jobs."""
    if not len(ran.submit):
        return []
    wait, slowdown, work = ran.wait, ran.bounded_slowdown, ran.cpus * (ran.end - ran.start)
    classes = []
    exponent = np.ceil(np.log2(np.maximum(ran.cpus, 1))).astype(np.int64)
    for power in range(int(exponent.max()) + 1):
        of_class = exponent == power
        jobs = int(of_class.sum())
        if jobs:
            smallest = 2 ** (power - 1) + 1 if power else 1
            classes.append(
                SizeClass(
                    smallest,
                    2**power,
                    jobs,
                    int(work[of_class].sum()),
                    _spread(wait[of_class]),
                    _spread(slowdown[of_class]),
                )
            )
    return classes


def _spread(values: NDArray[np.int64] | NDArray[np.float64]) -> Spread:
    low, first, median, third, high, largest = (
        float(value) for value in np.quantile(values, QUANTILES)
    )
    return Spread(low, first, median, third, high, largest, float(values.mean()))
