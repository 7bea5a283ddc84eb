"""Which of a few jobs to start together: all subsets that fit, the Pareto front of what they use,
and the one of which a weighted sum is largest.

Place: scheduling, pure. Knows numbers: a `Window` is candidates, each with what it needs of every
resource, and what is free; a subset is a bit mask, bit i the candidate i. What is used counts as
objectives, more is better: all resources, or some.

Of subsets that use the same the one with the fewest jobs, then with the earliest, stands for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_MANY = 64  # vectors from which on a matrix is quicker than a loop


class Solution(NamedTuple):
    """What a subset uses of each objective, and the subset."""

    used: tuple[int, ...]
    chosen: int


class Window:
    """Candidates that each fit alone, in the base order. `needs[i][k]` is what candidate i needs of
    resource k, `free[k]` what there is; `objectives` are the places of those that are to be used
    as far as possible.
    """

    def __init__(
        self, needs: Sequence[Sequence[int]], free: Sequence[int], objectives: Sequence[int]
    ) -> None:
        self.needs, self.free, self.objectives = needs, free, objectives
        # All resources in one int, as in Resources: a guard above each, and below it room for the
        # sum of all candidates.
        self.width = max(free, default=0).bit_length() + len(needs).bit_length()
        self.guards = sum(1 << k * (self.width + 1) + self.width for k in range(len(free)))
        self.packed_free = self.guards | self._pack(free)
        self.packed = [self._pack(need) for need in needs]
        self.evaluations = 0

    def __len__(self) -> int:
        return len(self.needs)

    def _pack(self, amounts: Sequence[int]) -> int:
        return sum(amount << k * (self.width + 1) for k, amount in enumerate(amounts))

    def used(self, packed: int) -> tuple[int, ...]:
        """The objectives out of a sum of packed needs."""
        most, step = (1 << self.width) - 1, self.width + 1
        return tuple([packed >> k * step & most for k in self.objectives])

    def fits(self, packed: int) -> bool:
        """Whether the sum of some candidates' needs is free."""
        return (self.packed_free - packed) & self.guards == self.guards

    def subsets(self, most: int) -> dict[int, int] | None:
        """All that fit: what is left free, packed, and the subset. None if they are more than
        that.

        Candidate by candidate, each subset with and without it: what does not fit is not looked at
        again, nor what leaves the same as another.
        """
        guards = self.guards
        found = {self.packed_free: 0}
        for i, need in enumerate(self.packed):
            with_it = {
                rest: mask | 1 << i
                for left, mask in found.items()
                if (rest := left - need) & guards == guards
            }
            self.evaluations += len(found)
            for rest, mask in with_it.items():
                other = found.get(rest)
                if other is None or is_better(mask, other):
                    found[rest] = mask
            if len(found) > most:
                return None
        return found

    def front(self, most: int) -> list[Solution] | None:
        """The Pareto front, exactly; None if more subsets fit than that. Most of the first
        objective comes first.
        """
        found = self.subsets(most)
        if found is None:
            return None
        return front_of(
            [Solution(self.used(self.packed_free - left), mask) for left, mask in found.items()]
        )

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
        return Solution(self.used(self.sum_of(best)), best)

    def sum_of(self, mask: int) -> int:
        """What the candidates of a subset need together, packed; they must fit."""
        total = 0
        while mask:
            total += self.packed[(mask & -mask).bit_length() - 1]
            mask &= mask - 1
        return total


def is_better(mask: int, other: int) -> bool:
    """Whether of two subsets that use the same the first stands for both."""
    fewer = mask.bit_count() - other.bit_count()
    differ = mask ^ other
    return fewer < 0 or (fewer == 0 and bool(mask & differ & -differ))


def front_of(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that no other dominates, each vector once; most of the first objective first."""
    by_vector: dict[tuple[int, ...], int] = {}
    for used, mask in solutions:
        other = by_vector.get(used)
        if other is None or is_better(mask, other):
            by_vector[used] = mask
    return [
        Solution(used, by_vector[used]) for used in undominated(sorted(by_vector, reverse=True))
    ]


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
