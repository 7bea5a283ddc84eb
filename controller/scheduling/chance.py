"""Random numbers for policies that search: from a seed, and from nothing else.

Place: scheduling. The one place where the pure rooms know chance, so that it is pure again: the
same seed gives the same numbers on every machine, and each policy has numbers of its own.
"""

from __future__ import annotations

from random import Random
from typing import Final, TypeAlias

import numpy as np

Chance: TypeAlias = Random
_PRECISION: Final = 16  # bits of a probability


def seeded(seed: int) -> Chance:
    """A source of random numbers."""
    return Random(seed)  # noqa: S311 - nothing is to be secret


def words(source: Chance, count: int) -> list[int]:
    """So many numbers of 32 bits."""
    drawn = source.getrandbits(32 * count).to_bytes(4 * count, "little")
    listed: list[int] = np.frombuffer(drawn, "<u4").tolist()
    return listed


def biased_words(source: Chance, count: int, length: int, chances: int) -> list[int]:
    """So many numbers of `length` bits, at most 64, each of which is 1 with that many of 65,536
    chances.

    Each digit of the probability, from the last on, takes one random word: or-ing it in halves the
    distance to 1, and-ing it the one to 0.
    """
    room = 32 if length <= 32 else 64
    found = 0
    for digit in range(_PRECISION):
        word = source.getrandbits(room * count)
        found = found | word if chances >> digit & 1 else found & word
    drawn = np.frombuffer(found.to_bytes(room // 8 * count, "little"), f"<u{room // 8}")
    listed: list[int] = (drawn >> (room - length)).tolist()
    return listed
