"""How sure a mean of differences between two runs is: a seeded bootstrap.

Place: pure, under `differences`. Jobs that are submitted one after the other wait for the same
things, so their differences are not independent: blocks of neighbours are drawn, not jobs, n^(1/3)
long as Hall, Horowitz and Jing found best for such means ("On blocking rules for the bootstrap with
dependent data", 1995). That is also what keeps 100,000 pairs quick. The interval is that between
the percentiles of the means drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 1000
_AT_A_TIME: Final = 1_000_000  # draws: 16 MB


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and between what it lies."""

    mean: float
    low: float
    high: float


def block_length(count: int) -> int:
    """How many neighbours are drawn together, of so many."""
    length = max(1, round(count ** (1 / 3)))
    return length if count >= length**2 else 1


def mean_interval(
    values: NDArray[np.float64] | NDArray[np.int64], seed: int = 0, resamples: int = RESAMPLES
) -> Interval | None:
    """Of the mean of values that are in the order of time; None of none. The same values and seed
    give the same interval, and values of the other sign the same one of the other sign.
    """
    count = len(values)
    if not count:
        return None
    mean = float(values.mean())
    length = block_length(count)
    begins = np.arange(0, count, length)
    sums = np.add.reduceat(values.astype(np.float64), begins)
    sizes = np.minimum(length, count - begins).astype(np.float64)
    drawn = _means(sums, sizes, np.random.default_rng(seed), resamples)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(mean, min(float(low), mean), max(float(high), mean))


def _means(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    random: np.random.Generator,
    resamples: int,
) -> NDArray[np.float64]:
    """Means of as many blocks as there are, drawn with replacement, so many times."""
    blocks = len(sums)
    found = np.empty(resamples)
    together = max(1, _AT_A_TIME // blocks)
    for begin in range(0, resamples, together):
        end = min(begin + together, resamples)
        drawn = random.integers(0, blocks, (end - begin, blocks), dtype=np.uint32)
        found[begin:end] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return found
