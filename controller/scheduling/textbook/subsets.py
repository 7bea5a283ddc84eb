"""Which of a few jobs to start together: all subsets that fit, the Pareto front of what they use,
and the one of which a weighted sum is largest.

Place: scheduling, pure. Knows numbers: a `Window` is candidates, each with what it needs of every
resource, and what is free; a subset is a bit mask, bit i the candidate i. What is used counts as
objectives, more is better: all resources, or some.

Of subsets that use the same the one with the fewest jobs, then with the earliest, stands for all.
"""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MANY = 64  # vectors from which on a matrix is quicker than a loop
_FEW = 4096  # subsets; of fewer several candidates are added at a time
_PART = 3
_MANY_TIMES = 4  # as often an amount is used, in the mean, until all but the best are left out
_FIRST = 63  # the bit of the first candidate, where the earliest is to be the largest


class Solution(NamedTuple):
    """What a subset uses of each objective, and the subset."""

    used: tuple[int, ...]
    chosen: int


class Subsets(NamedTuple):
    """Subsets, an element of each vector for each."""

    used: list[NDArray[np.int64]]  # of each resource
    counts: NDArray[np.int64]  # candidates
    earliest: NDArray[np.uint64]  # which: bit 63 the first candidate, bit 62 the next

    @classmethod
    def of_none(cls, kinds: int) -> Subsets:
        """The empty subset."""
        nothing = np.zeros(1, dtype=np.int64)
        return cls([nothing] * kinds, nothing, nothing.astype(np.uint64))

    def __len__(self) -> int:
        return len(self.counts)

    def at(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Subsets:
        """Those alone."""
        used = [vector[places] for vector in self.used]
        return Subsets(used, self.counts[places], self.earliest[places])

    def with_each(self, needs: Sequence[Sequence[int]], free: Sequence[int], first: int) -> Subsets:
        """These with every subset of a few candidates more, the first of which has that number, as
        far as they fit.
        """
        none = ((0,) * len(free), 0, 0)
        choices = [none]
        for i, need in enumerate(needs, first):
            choices += [
                (tuple(map(add, used, need)), count + 1, bits | 1 << _FIRST - i)
                for used, count, bits in choices
            ]
        amounts, counts, bits = zip(*choices, strict=True)
        every = Subsets(
            [
                np.add.outer(more, vector).ravel()
                for vector, more in zip(self.used, zip(*amounts, strict=True), strict=True)
            ],
            np.add.outer(counts, self.counts).ravel(),
            np.bitwise_or.outer(np.array(bits, dtype=np.uint64), self.earliest).ravel(),
        )
        fits = np.ones(len(every), dtype=np.bool_)
        for vector, amount in zip(every.used, free, strict=True):
            fits &= vector <= amount
        return every.at(fits)

    def amounts(self, free: Sequence[int]) -> int:
        """How many use something different, each at most what is free. (Where the products of what
        is free are beyond 64 bits, two that are different may, with a chance of next to nothing,
        count as one.)
        """
        numbers = np.zeros(len(self), dtype=np.uint64)
        for vector, amount in zip(self.used, free, strict=True):
            numbers = numbers * np.uint64(amount + 1) + vector.astype(np.uint64)
        numbers.sort()
        return 1 + int(np.count_nonzero(numbers[1:] != numbers[:-1]))

    def best(self, keys: Sequence[NDArray[np.int64]]) -> Subsets:
        """Those that stand for all with the same keys, in the order of these."""
        order = np.lexsort((~self.earliest, self.counts, *reversed(keys)))
        return self.at(order[_is_first(keys, order)])

    def mask(self, place: int) -> int:
        """One of them as a bit mask, bit i the candidate i."""
        return int(f"{self.earliest[place]:064b}"[::-1], 2)


def _is_first(keys: Sequence[NDArray[np.int64]], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where in this order other keys begin than those before."""
    found = np.zeros(len(order), dtype=np.bool_)
    found[:1] = True
    for key in keys:
        ordered = key[order]
        found[1:] |= ordered[1:] != ordered[:-1]
    return found


class Window:
    """Candidates that each fit alone, in the base order. `needs[i][k]` is what candidate i needs of
    resource k, `free[k]` what there is; `objectives` are the places of those that are to be used
    as far as possible, ascending.
    """

    def __init__(
        self, needs: Sequence[Sequence[int]], free: Sequence[int], objectives: Sequence[int]
    ) -> None:
        self.needs, self.free, self.objectives = needs, free, objectives
        self.evaluations = 0

    def __len__(self) -> int:
        return len(self.needs)

    def used(self, mask: int) -> tuple[int, ...]:
        """What a subset uses of each objective."""
        chosen = [need for i, need in enumerate(self.needs) if mask >> i & 1]
        return tuple([sum(need[k] for need in chosen) for k in self.objectives])

    def front(self, most: int) -> list[Solution] | None:
        """The Pareto front, exactly; None if more subsets fit than that. Most of the first
        objective comes first.
        """
        found = self.subsets(most)
        if found is None:
            return None
        best = found.best([-found.used[k] for k in self.objectives])
        vectors = list(zip(*(best.used[k].tolist() for k in self.objectives), strict=True))
        places = {used: place for place, used in enumerate(vectors)}
        return [Solution(used, best.mask(places[used])) for used in undominated(vectors)]

    def subsets(self, most: int) -> Subsets | None:
        """All that fit. None if they use more different amounts than that.

        A few candidates after the other: what does not fit is not looked at again, nor, once there
        are many, what uses the same as another.
        """
        found = Subsets.of_none(len(self.free))
        behind = 0
        while behind < len(self.needs):
            first, behind = behind, behind + (_PART if len(found) < _FEW else 1)
            found = found.with_each(self.needs[first:behind], self.free, first)
            self.evaluations += len(found)
            if len(found) > most:
                if found.amounts(self.free) > most:
                    return None
                if len(found) > _MANY_TIMES * most:
                    found = found.best(found.used)
        return found

    def heaviest(self, weights: Sequence[int]) -> Solution:
        """The subset with the largest weighted sum of what it uses of the objectives; of several
        the one with the earliest jobs. Depth first, with each candidate before without it, and
        no further where all that is left could not do better.
        """
        count = len(self.needs)
        by_resource = dict(zip(self.objectives, weights, strict=True))
        ranks = [by_resource.get(k, 0) for k in range(len(self.free))]
        behind = [[0] * len(self.free) for _ in range(count + 1)]
        for i in range(count - 1, -1, -1):
            behind[i] = [a + b for a, b in zip(behind[i + 1], self.needs[i], strict=True)]
        best_score, best = -1, 0

        def visit(i: int, left: Sequence[int], score: int, mask: int) -> None:
            nonlocal best_score, best
            self.evaluations += 1
            if i == count:
                if score > best_score:
                    best_score, best = score, mask
                return
            room = sum(
                rank * min(a, b) for rank, a, b in zip(ranks, left, behind[i], strict=True) if rank
            )
            if score + room <= best_score:
                return
            need = self.needs[i]
            rest = [a - b for a, b in zip(left, need, strict=True)]
            if min(rest) >= 0:
                gained = sum(rank * b for rank, b in zip(ranks, need, strict=True))
                visit(i + 1, rest, score + gained, mask | 1 << i)
            visit(i + 1, left, score, mask)

        visit(0, list(self.free), 0, 0)
        return Solution(self.used(best), best)


def is_better(mask: int, other: int) -> bool:
    """Whether of two subsets that use the same the first stands for both."""
    fewer = mask.bit_count() - other.bit_count()
    differ = mask ^ other
    return fewer < 0 or (fewer == 0 and bool(mask & differ & -differ))


def undominated(vectors: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Of different vectors in descending order, none of which can be dominated by one behind it."""
    kept: list[tuple[int, ...]] = []
    if len(vectors[0]) == 2:
        most = -1
        for vector in vectors:
            if vector[1] > most:
                most = vector[1]
                kept.append(vector)
        return kept
    if len(vectors) > _MANY:
        return _undominated_of_many(vectors)
    for vector in vectors:
        if all(any(a > b for a, b in zip(vector, other, strict=True)) for other in kept):
            kept.append(vector)
    return kept


def _undominated_of_many(vectors: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    matrix = np.array(vectors, dtype=np.int64)
    kept: list[tuple[int, ...]] = []
    places = np.arange(len(vectors))
    while len(places):
        first = matrix[places[0]]
        kept.append(vectors[places[0]])
        places = places[(matrix[places] > first).any(axis=1)]
    return kept
