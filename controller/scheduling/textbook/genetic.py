"""BBSched's genetic search for the Pareto front of a window that has too many subsets to look at
all.

Place: scheduling, pure; numbers and a seeded source of chance. After Fan, Lan and others (HPDC
2019): a chromosome is a subset of the window. Each generation takes pairs at random, crosses each
at one point, flips bits of the children with a small probability, and forgets children that do not
fit. Who survives: Set 1, the Pareto front of parents and children, thinned at random if it is too
large; then Set 2, the others, youngest first.

What is ours: subsets that use the same count as one (understudy.controller.scheduling.textbook
.subsets), and a bit flips with a probability of 5 %. With 0.05 %, as the preset `paper` has
it, the population soon has one gene at each place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from understudy.controller.scheduling.chance import biased_bits
from understudy.controller.scheduling.textbook.subsets import (
    Solution,
    front_of,
    is_better,
    undominated,
)

if TYPE_CHECKING:
    from understudy.controller.scheduling.chance import Chance
    from understudy.controller.scheduling.textbook.subsets import Window


_PART: Final = 10  # bits of a subset that are added up at once
_PART_MASK: Final = (1 << _PART) - 1


Population: TypeAlias = "dict[tuple[int, ...], int]"
"""What is used, and by which subset; the oldest first."""


class Search(NamedTuple):
    """How long and how widely it looks. `mutation`: chances of 65,536 that a bit flips."""

    population: int = 20
    generations: int = 500
    mutation: int = 3277


def search(window: Window, chance: Chance, how: Search) -> list[Solution]:
    """The best that was found of the Pareto front, most of the first objective first."""
    known = _Known(window)
    population: Population = {}
    for _ in range(how.population):
        mask = chance.getrandbits(len(window))
        while (used := known[mask]) is None:
            mask &= ~_random_bit(mask, chance)
        _add(population, used, mask)
    for _ in range(how.generations):
        parents = list(population.values())
        is_new = False
        for mask in _children(parents, len(window), chance, how):
            used = known[mask]
            if used is not None:
                is_new |= _add(population, used, mask)
        if is_new:
            population = _survivors(population, chance, how.population)
    window.evaluations += how.population * (1 + how.generations)
    return front_of([Solution(used, mask) for used, mask in population.items()])


class _Known(dict[int, "tuple[int, ...] | None"]):
    """What each subset uses, None if it does not fit; worked out when it is first asked for."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window = window
        self.tables: list[list[int]] = []  # the sums of all subsets of ten candidates each
        for first in range(0, len(window), _PART):
            sums = [0]
            for need in window.packed[first : first + _PART]:
                sums += [each + need for each in sums]
            self.tables.append(sums)

    def __missing__(self, mask: int) -> tuple[int, ...] | None:
        total, rest = 0, mask
        for sums in self.tables:
            total += sums[rest & _PART_MASK]
            rest >>= _PART
        window = self.window
        found = self[mask] = window.used(total) if window.fits(total) else None
        return found


def _add(population: Population, used: tuple[int, ...], mask: int) -> bool:
    """Whether nobody has used that much so far."""
    other = population.get(used)
    if other is None:
        population[used] = mask
        return True
    if mask != other and is_better(mask, other):
        population[used] = mask
    return False


def _children(parents: list[int], length: int, chance: Chance, how: Search) -> list[int]:
    """Two of each of half as many pairs as there may be parents."""
    count, draw = len(parents), chance.random
    pairs = how.population // 2
    flips = biased_bits(chance, 2 * pairs * length, how.mutation)
    every = (1 << length) - 1
    found = []
    for _ in range(pairs):
        one = int(draw() * count)
        mother = parents[one]
        father = parents[one - 1 - int(draw() * (count - 1))]  # any other, or itself if alone
        swapped = (mother ^ father) & (2 << int(draw() * (length - 1))) - 1
        found.append(mother ^ swapped ^ flips & every)
        flips >>= length
        found.append(father ^ swapped ^ flips & every)
        flips >>= length
    return found


def _survivors(population: Population, chance: Chance, most: int) -> Population:
    """Set 1, then of Set 2 the youngest."""
    if len(population) <= most:
        return population
    front = undominated(sorted(population, reverse=True))
    while len(front) > most:
        del front[int(chance.random() * len(front))]
    kept = set(front)
    for used in reversed(population):
        if len(kept) == most:
            break
        kept.add(used)
    return {used: mask for used, mask in population.items() if used in kept}


def _random_bit(mask: int, chance: Chance) -> int:
    """One of its bits."""
    for _ in range(int(chance.random() * mask.bit_count())):
        mask &= mask - 1
    return mask & -mask
