"""Random numbers for policies that search: from a seed, and from nothing else.

Place: scheduling. The one place where the pure rooms know chance, so that it is pure again: the
same seed gives the same numbers on every machine, and each policy has numbers of its own.
"""

from __future__ import annotations

from random import Random
from typing import Final, TypeAlias

Chance: TypeAlias = Random
_PRECISION: Final = 16  # bits of a probability


def seeded(seed: int) -> Chance:
    """A source of random numbers."""
    return Random(seed)  # noqa: S311 - nothing is to be secret


def biased_bits(source: Chance, count: int, chances: int) -> int:
    """So many bits, each of which is 1 with that many of 65,536 chances.

    Each digit of the probability, from the last on, takes one random word: or-ing it in halves the
    distance to 1, and-ing it the one to 0.
    """
    found = 0
    for digit in range(_PRECISION):
        word = source.getrandbits(count)
        found = found | word if chances >> digit & 1 else found & word
    return found
