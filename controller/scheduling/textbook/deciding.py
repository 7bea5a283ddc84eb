"""BBSched's decision, and those of the methods with which it is compared: which jobs of a window
start.

Place: scheduling, pure. After Fan, Lan and others (HPDC 2019). All is worked out in whole numbers:
the order in which floating-point sums are taken decides nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.scheduling.textbook.subsets import Solution, Window

_CODE_GAIN: Final = Fraction(13, 10)
_CODE_LOSS: Final = Fraction(1, 10)


class Fullness(NamedTuple):
    """Of each objective, the first of which is processors: what there is in all, and what is in use
    before the choice.
    """

    capacity: tuple[int, ...]
    in_use: tuple[int, ...]


def by_tradeoff(front: Sequence[Solution], full: Fullness, factor: Fraction) -> Solution:
    """The paper's rule: from the solution with most processors on, another replaces it if what it
    gains in the other resources is more than `factor` times what it loses in processors, as parts
    of their capacities; of several the one that gains most, of these the one that loses least.
    """
    first = max(front, key=lambda each: each.used)
    common = lcm(*(max(each, 1) for each in full.capacity))
    parts = [common // max(each, 1) for each in full.capacity]

    def gain(each: Solution) -> int:
        pairs = zip(parts[1:], each.used[1:], first.used[1:], strict=True)
        return sum(part * (a - b) for part, a, b in pairs)

    def loss(each: Solution) -> int:
        return parts[0] * (first.used[0] - each.used[0])

    better = [each for each in front if gain(each) > factor * loss(each) and gain(each) > 0]
    return max(better, key=lambda each: (gain(each), -loss(each)), default=first)


def by_published_code(front: Sequence[Solution], full: Fullness) -> Solution:
    """The rule of the published code: another solution replaces the one with most processors if the
    others' use in all is more than 30 % higher, relative to what it would be, and that of
    processors is less than a tenth of the machine lower. Of several the one with the highest use.
    """
    first = max(front, key=lambda each: each.used)

    def others(each: Solution) -> Fraction:
        triples = zip(each.used[1:], full.in_use[1:], full.capacity[1:], strict=True)
        return sum((Fraction(a + b, max(c, 1)) for a, b, c in triples), Fraction(0))

    def loss(each: Solution) -> Fraction:
        return Fraction(first.used[0] - each.used[0], max(full.capacity[0], 1))

    better = [
        each
        for each in front
        if others(each) > _CODE_GAIN * others(first) and loss(each) < _CODE_LOSS
    ]
    return max(better, key=lambda each: (others(each), -loss(each)), default=first)


def weights_in_units(weights: Sequence[Fraction], capacity: Sequence[int]) -> list[int]:
    """What one unit of each objective counts, so that a weighted sum of parts of the capacities
    becomes one of whole numbers.
    """
    per_unit = [Fraction(weight) / max(c, 1) for weight, c in zip(weights, capacity, strict=True)]
    common = lcm(*(each.denominator for each in per_unit))
    return [int(each * common) for each in per_unit]


def weights_of_one(place: int, capacity: Sequence[int]) -> list[int]:
    """Weights with which all that counts is one objective, and the others where that is equal."""
    found = weights_in_units([Fraction(1)] * len(capacity), capacity)
    most = sum(each * c for each, c in zip(found, capacity, strict=True))
    found[place] = most + 1
    return found


def packed_like_bins(window: Window, capacity: Sequence[int]) -> int:
    """Bin packing as in Tetris (Grandl and others, 2014): again and again the fitting job whose
    needs are most like what is free: the largest sum of need times free, both as parts of the
    capacities; of several the earliest. The subset.
    """
    scale = lcm(*(max(each, 1) ** 2 for each in capacity))
    parts = [scale // max(each, 1) ** 2 for each in capacity]
    free, chosen = list(window.free), 0
    while True:
        fitting = [
            i
            for i, need in enumerate(window.needs)
            if not chosen >> i & 1 and all(a <= b for a, b in zip(need, free, strict=True))
        ]
        if not fitting:
            return chosen
        window.evaluations += len(fitting)
        likeness = [sum(map(_product, parts, window.needs[i], free)) for i in fitting]
        best = fitting[likeness.index(max(likeness))]
        chosen |= 1 << best
        free = [b - a for a, b in zip(window.needs[best], free, strict=True)]


def _product(part: int, need: int, free: int) -> int:
    return part * need * free
