"""BBSched's genetic search for the Pareto front of a window that has too many subsets to look at
all.

Place: scheduling, pure; numbers and a seeded source of chance. After Fan, Lan and others (HPDC
2019): a chromosome is a subset of the window. Each generation takes pairs at random, crosses each
at one point, flips bits of the children with a small probability, and forgets children that do not
fit. Who survives: Set 1, the Pareto front of parents and children, thinned at random if it is too
large; then Set 2, the others, youngest first.

What is ours: subsets that use the same count as one (understudy.controller.scheduling.textbook
.subsets), and a bit flips with a probability of 5 %. With 0.05 %, as the preset `paper` has
it, the population soon has one gene at each place. Who falls out of Set 1 is the oldest of Set 2.

A population of twenty is too small for vectors: a call of NumPy takes as long as three children do
here. So children are Python ints, a subset's use is one int, too, and all that can be drawn without
knowing the population is drawn for many generations at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from understudy.controller.scheduling.chance import biased_words, words
from understudy.controller.scheduling.textbook.subsets import Solution, is_better, undominated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from understudy.controller.scheduling.chance import Chance
    from understudy.controller.scheduling.textbook.subsets import Window


_PART: Final = 10  # bits of a subset that are added up at once
_AT_ONCE: Final = 50  # generations for which is drawn at once


class Search(NamedTuple):
    """How long and how widely it looks. `mutation`: chances of 65,536 that a bit flips."""

    population: int = 20
    generations: int = 500
    mutation: int = 3277


_Pair: TypeAlias = "tuple[int, int, int, int, int]"
"""Of two children: the parents, as parts of 2^32 of all there are; which bits may change places;
which flip, of the one and of the other.
"""


class _Population(NamedTuple):
    """`front`: Set 1, most of the first objective first; `others`: Set 2, the oldest first; both by
    what is used. `chosen`: by which subset.
    """

    front: list[int]
    others: list[int]
    chosen: dict[int, int]


def search(window: Window, chance: Chance, how: Search) -> list[Solution]:
    """The best that was found of the Pareto front, most of the first objective first."""
    every = window.front(how.population) if 1 << len(window) <= how.population else None
    if every is not None:
        return every  # all subsets are a population, to which generations add nothing
    sums = _Sums(window)
    population = _drawn(sums, chance, how.population)
    for pairs in _generations(len(window), chance, how):
        parents = list(population.chosen.values())
        fresh = _children(pairs, parents, sums, population.chosen)
        if fresh:
            population = _survivors(population, fresh, sums, chance, how.population)
    window.evaluations += how.population * (1 + how.generations)
    return [Solution(sums.unpacked(used), population.chosen[used]) for used in population.front]


class _Sums:
    """What subsets use, as one int: all resources, each with a bit above it that says whether it is
    enough, and the first objective on top, so that ints are in the order of vectors.
    """

    def __init__(self, window: Window) -> None:
        # room for the sum of all candidates, who fit one by one
        more = len(window).bit_length()
        shifts, width = [0] * len(window.free), 0
        self.free = self.guards = 0
        for k in reversed(range(len(shifts))):
            shifts[k] = width
            width += window.free[k].bit_length() + more + 1
            self.guards += 1 << width - 1
            self.free += window.free[k] << shifts[k]
        self.free += self.guards
        self.places = [
            (shifts[k], (1 << window.free[k].bit_length()) - 1) for k in window.objectives
        ]
        self.counted = sum(most << shift for shift, most in self.places)
        self.tables: list[list[int]] = []  # the sums of all subsets of ten candidates each
        for first in range(0, len(window), _PART):
            sums = [0]
            for need in window.needs[first : first + _PART]:
                packed = sum(a << s for a, s in zip(need, shifts, strict=True))
                sums += [each + packed for each in sums]
            self.tables.append(sums)

    def of(self, mask: int) -> int:
        """All that a subset uses, packed."""
        total = 0
        for table in self.tables:
            total += table[mask & (1 << _PART) - 1]
            mask >>= _PART
        return total

    def fits(self, total: int) -> bool:
        """Whether so much is free."""
        return (self.free - total) & self.guards == self.guards

    def unpacked(self, total: int) -> tuple[int, ...]:
        """The objectives."""
        return tuple([total >> shift & most for shift, most in self.places])

    def undominated(self, totals: list[int]) -> list[int]:
        """Of different ones in descending order, of which nothing but objectives is left."""
        if len(self.places) != 2:
            vectors = {self.unpacked(total): total for total in totals}
            return [vectors[each] for each in undominated(list(vectors))]
        below, most, kept = (1 << self.places[0][0]) - 1, -1, []
        for total in totals:
            if total & below > most:
                most = total & below
                kept.append(total)
        return kept


def _drawn(sums: _Sums, chance: Chance, size: int) -> _Population:
    """The first population: random subsets, from which jobs are taken until they fit."""
    length = sum(len(table).bit_length() - 1 for table in sums.tables)
    chosen: dict[int, int] = {}
    for _ in range(size):
        mask = chance.getrandbits(length)
        while not sums.fits(total := sums.of(mask)):
            mask &= ~_random_bit(mask, chance)
        used = total & sums.counted
        if used not in chosen or is_better(mask, chosen[used]):
            chosen[used] = mask
    front = sums.undominated(sorted(chosen, reverse=True))
    return _Population(front, [used for used in chosen if used not in front], chosen)


def _generations(length: int, chance: Chance, how: Search) -> Iterator[list[_Pair]]:
    """As many pairs of children as half the population, a generation after the other."""
    each = how.population // 2
    for first in range(0, how.generations, _AT_ONCE):
        count = min(_AT_ONCE, how.generations - first) * each
        cuts = [(2 << (word * (length - 1) >> 32)) - 1 for word in words(chance, count)]
        pairs = list(
            zip(
                words(chance, count),
                words(chance, count),
                cuts,
                biased_words(chance, count, length, how.mutation),
                biased_words(chance, count, length, how.mutation),
                strict=True,
            )
        )
        for place in range(0, count, each):
            yield pairs[place : place + each]


def _children(
    pairs: Sequence[_Pair], parents: Sequence[int], sums: _Sums, chosen: dict[int, int]
) -> list[int]:
    """Two of each pair, added to `chosen` if they fit. Those that use what nobody has used."""
    count, fresh = len(parents), []
    free, guards, counted, all_of = sums.free, sums.guards, sums.counted, sums.of
    low, high = (*sums.tables, [0])[:2]
    is_short = len(sums.tables) <= 2
    part = (1 << _PART) - 1
    for mother, father, cut, flips, other_flips in pairs:
        one = mother * count >> 32
        first = parents[one]
        second = parents[one - 1 - (father * (count - 1) >> 32)]  # any other, or itself if alone
        swapped = (first ^ second) & cut
        for mask in (first ^ swapped ^ flips, second ^ swapped ^ other_flips):
            total = low[mask & part] + high[mask >> _PART] if is_short else all_of(mask)
            if (free - total) & guards != guards:
                continue
            used = total & counted
            if used not in chosen:
                chosen[used] = mask
                fresh.append(used)
            elif mask != chosen[used] and is_better(mask, chosen[used]):
                chosen[used] = mask
    return fresh


def _survivors(
    before: _Population, fresh: list[int], sums: _Sums, chance: Chance, most: int
) -> _Population:
    """Set 1, then of Set 2 the youngest."""
    front = sums.undominated(sorted(before.front + fresh, reverse=True))
    while len(front) > most:
        del front[int(chance.random() * len(front))]
    kept, room = set(front), most - len(front)
    others = [used for used in fresh if used not in kept]
    if len(others) < room:
        fallen = [used for used in before.front if used not in kept]
        others = fallen + before.others + others
    others = others[len(others) - min(room, len(others)) :]
    chosen = before.chosen
    return _Population(front, others, {used: chosen[used] for used in front + others})


def _random_bit(mask: int, chance: Chance) -> int:
    """One of its bits."""
    for _ in range(int(chance.random() * mask.bit_count())):
        mask &= mask - 1
    return mask & -mask
