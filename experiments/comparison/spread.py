"""How values spread, and what a spread carries.

Place: between the figures of cells and what a page says of them. Pure: chance is a seeded
`random.Random` of its own, so that the same values give the same interval.

Two policies are compared within pairs: cells with the same workload, seed and part. What is looked
at are the logarithms of the ratios, since a half is as far from 1 as a double.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANCE: Final = 0.05  # of an interval to miss, however many are looked at together
RESAMPLES: Final = 2_000
_BOOTSTRAP_SEED: Final = 1
_MOST_FLIPPED: Final = 16  # pairs whose 2^n signs are all tried


@dataclass(frozen=True, slots=True)
class Five:
    """Smallest, quartiles, largest, and the mean."""

    least: float
    first: float
    median: float
    third: float
    most: float
    mean: float


@dataclass(frozen=True, slots=True)
class Paired:
    """Ratios of pairs: their geometric mean with its interval (None for one pair alone), how many
    are below 1, and how likely such a mean is if neither policy were better.
    """

    pairs: int
    mean: float
    interval: tuple[float, float] | None
    below: int
    chance: float


def ratio(value: float) -> str:
    """As pages have it."""
    return f"{value:.3f}" if value < 100 else f"{value:,.0f}"


def five(values: Sequence[float]) -> Five:
    """Of at least one value; quartiles between values are interpolated."""
    least, first, median, third, most = (
        float(each) for each in np.quantile(np.asarray(values), (0, 0.25, 0.5, 0.75, 1))
    )
    return Five(least, first, median, third, most, statistics.fmean(values))


def paired(ratios: Sequence[float], together: int = 1) -> Paired:
    """Of at least one ratio, all positive. The interval is Student's on the logarithms, as wide as
    it must be for all of so many `together` to miss with a chance of 5 % (Bonferroni).
    """
    logs = [math.log(ratio) for ratio in ratios]
    mean, count = statistics.fmean(logs), len(logs)
    interval = None
    if count > 1:
        half = student(count - 1, CHANCE / together) * statistics.stdev(logs) / math.sqrt(count)
        interval = math.exp(mean - half), math.exp(mean + half)
    below = sum(ratio < 1 for ratio in ratios)
    return Paired(count, math.exp(mean), interval, below, sign_flips(logs))


def student(freedom: int, chance: float) -> float:
    """The t that Student's distribution exceeds on either side with that chance in all (Abramowitz
    and Stegun 26.7.3 and 26.7.4), by bisection of the angle whose tangent is t / sqrt(freedom).
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(freedom, angle) < 1 - chance else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _within(freedom: int, angle: float) -> float:
    """How likely it is to be within t of 0."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine**2 * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def sign_flips(differences: Sequence[float]) -> float:
    """The share of all ways to flip the differences' signs in which their sum is at least as far
    from 0 as it is (a permutation test of pairs, two-sided). Of more than 16 pairs a seeded sample.
    """
    count = len(differences)
    values = np.asarray(differences)
    if count <= _MOST_FLIPPED:
        flips = np.arange(2**count)[:, None] >> np.arange(count) & 1
    else:
        chance = random.Random(_BOOTSTRAP_SEED)  # noqa: S311 -- no secret
        drawn = [chance.getrandbits(count) for _ in range(2**_MOST_FLIPPED)]
        flips = np.array([[bits >> place & 1 for place in range(count)] for bits in drawn])
    sums = np.abs((1 - 2 * flips) @ values)
    # a sum of the same values in another order may be a rounding less
    return float((sums >= abs(values.sum()) - 1e-9 * np.abs(values).sum()).mean())


def bootstrap_median(values: Sequence[float], together: int = 1) -> tuple[float, float] | None:
    """An interval of the median, `together` as in `paired`; None for fewer than five values, whose
    resamples are too much alike to say anything.
    """
    if len(values) < 5:
        return None
    chance = random.Random(_BOOTSTRAP_SEED)  # noqa: S311 -- no secret
    medians = sorted(
        statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    edge = int(RESAMPLES * CHANCE / together / 2)
    return medians[edge], medians[-edge - 1]
