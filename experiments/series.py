"""A run seen over time and by job size, small enough to be drawn however many jobs it has.

Place: between records and the report. Pure. Sums over time are exact: each is the integral of a
step function between the edges of equal buckets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.experiments.metrics import Columns

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

BUCKETS: Final = 400  # two pixels each: more would be a blur
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class TimeSeries:
    """What was in use and what was waiting, bucket by bucket. `edges` has one more entry than the
    others.
    """

    edges: Floats  # seconds from the trace's zero
    cpus_in_use: Floats  # mean
    waiting_jobs: Floats  # mean
    waiting_jobs_max: Ints


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


def time_series(ran: Columns, buckets: int = BUCKETS) -> TimeSeries:
    """From the first submission to the last end."""
    if not len(ran.submit):
        return TimeSeries(
            np.array([0.0, 1.0]), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64)
        )
    first, last = int(ran.submit.min()), int(ran.end.max())
    last = max(last, first + 1)
    edges = np.linspace(first, last, min(buckets, last - first) + 1)
    one = np.ones(len(ran.submit), dtype=np.int64)
    use_times, use = _steps(ran.start, ran.end, ran.cpus)
    wait_times, waiting = _steps(ran.submit, ran.start, one)
    return TimeSeries(
        edges=edges,
        cpus_in_use=_means(use_times, use, edges),
        waiting_jobs=_means(wait_times, waiting, edges),
        waiting_jobs_max=_maxima(wait_times, waiting, edges),
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


def _steps(begin: Ints, end: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """The step function that is the sum of weights of [begin, end): distinct instants, and the
    value from each on.
    """
    times, place = np.unique(np.concatenate((begin, end)), return_inverse=True)
    changes = np.zeros(len(times), dtype=np.int64)
    np.add.at(changes, place, np.concatenate((weight, -weight)))
    return times, np.cumsum(changes)


def _means(times: Ints, values: Ints, edges: Floats) -> Floats:
    integral = np.concatenate(([0], np.cumsum(values[:-1] * np.diff(times))))
    means: Floats = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
    return means


def _maxima(times: Ints, values: Ints, edges: Floats) -> Ints:
    at_edge = np.searchsorted(times, edges[:-1], side="right") - 1
    maxima: Ints = np.where(at_edge >= 0, values[np.maximum(at_edge, 0)], 0)
    bucket = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(edges) - 2)
    np.maximum.at(maxima, bucket, values)
    return maxima
