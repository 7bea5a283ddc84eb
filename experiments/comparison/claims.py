"""Whether what was looked for is so, and whether the spread carries it.

Place: between the rows of cells and the page. Pure.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.experiments.comparison.cells import Pair, Row, by_policy
from understudy.experiments.comparison.figures import shown
from understudy.experiments.comparison.spread import CHANCE, bootstrap_median, paired, ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.comparison.comparison import Claim

HOLDS: Final = "holds"
FAILS: Final = "does not hold"
OPEN: Final = "not decided"  # the cells that were run do not carry it
NOT_RUN: Final = "not run"
_Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a claim on a workload."""

    claim: Claim
    workload: str
    word: str
    found: str  # the numbers


def judge(claim: Claim, rows: Sequence[Row], workload: str, rankings: int = 1) -> Verdict:
    """Look at the cells of the workload that were run. `rankings`: how many claims that rank are
    judged beside each other, this one among them.
    """
    policies = by_policy(rows, workload)
    mine = policies.get(claim.of, {})
    others = [policies.get(name, {}) for name in claim.others]
    pairs = sorted(pair for pair in mine if all(pair in other for other in others))
    if not pairs:
        return Verdict(claim, workload, NOT_RUN, "")
    if claim.same_schedule:
        same = [
            all(mine[pair].schedule_sha256 == other[pair].schedule_sha256 for other in others)
            for pair in pairs
        ]
        return Verdict(
            claim, workload, HOLDS if all(same) else FAILS, f"{sum(same)} of {_pairs(len(same))}"
        )
    values = [_value(claim, mine, others, pair) for pair in pairs]
    if claim.others and not all(0 < each < math.inf for each in values):
        return Verdict(claim, workload, OPEN, "a figure is 0")
    return Verdict(claim, workload, *_weighed(claim, values, rankings if claim.ranks else 1))


def _value(
    claim: Claim, mine: Mapping[Pair, Row], others: Sequence[Mapping[Pair, Row]], pair: Pair
) -> float:
    value = mine[pair].figures[claim.figure]
    if not others:
        return value
    beside = statistics.median(other[pair].figures[claim.figure] for other in others)
    return value / beside if beside else math.inf


def _weighed(claim: Claim, values: Sequence[float], together: int) -> tuple[str, str]:
    """The word, and the numbers that it rests on."""
    least = -math.inf if claim.least is None else claim.least
    most = math.inf if claim.most is None else claim.most

    def text(value: float) -> str:
        return ratio(value) if claim.others else shown(claim.figure, value)

    middle, interval = _middle(claim, values, together)
    said = f"{text(middle)} ({_pairs(len(values))}"
    if len(values) > 1:
        said += f", {text(min(values))} to {text(max(values))}"
    if interval is not None:
        said += (
            f"; {100 * (1 - CHANCE / together):.4g} % interval {' to '.join(map(text, interval))}"
        )
    said += ")"
    weighed = values if claim.over == "each" else [middle]
    is_met = all(least <= value <= most for value in weighed)
    if claim.ranks:
        if interval is None:
            return OPEN, said
        low, high = interval
        if (is_met and not least <= low <= high <= most) or (
            not is_met and low <= most and high >= least
        ):
            return OPEN, said
    return HOLDS if is_met else FAILS, said


def _middle(claim: Claim, values: Sequence[float], together: int) -> tuple[float, _Interval]:
    """The mean or median, and its interval where there is one."""
    if claim.over == "median":
        return statistics.median(values), bootstrap_median(values, together)
    if not claim.others:
        return statistics.fmean(values), None
    found = paired(values, together)
    return found.mean, found.interval


def _pairs(count: int) -> str:
    return f"{count} pair{'' if count == 1 else 's'}"
