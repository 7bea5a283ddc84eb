"""Node sets: functions over Python ints used as bitmaps, bit i standing for the node with index i,
and their forms as numpy vectors.

Place: the vocabulary; used by the controller's tables, selectors and schedulers. Where numpy may
not be imported (commands), use understudy.model.bits, which holds the functions that need none;
they are given here, too.

    up = nodeset.mask(16384)              all nodes
    chosen = nodeset.lowest(up, 12)       the first twelve
    for start, length in nodeset.runs(chosen): ...
    free_cpus[nodeset.to_flags(chosen, len(free_cpus))]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.model.bits import (
    are_among,
    first,
    from_positions,
    from_runs,
    highest,
    last,
    lowest,
    mask,
    position,
    rank,
    runs,
    span,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = [
    "are_among",
    "first",
    "from_array",
    "from_flags",
    "from_positions",
    "from_runs",
    "highest",
    "indices",
    "iterate",
    "last",
    "lowest",
    "mask",
    "position",
    "positions_array",
    "positions_of_few",
    "rank",
    "runs",
    "select",
    "span",
    "to_flags",
    "without",
]

# For so few bits a loop in Python is quicker than the fixed cost of the numpy calls (measured: 4 us
# against 5 us at 16,384 bits).
_FEW = 8


def to_flags(bits: int, size: int) -> NDArray[np.bool_]:
    """A vector of `size` booleans, entry i saying whether bit i is set. Bits at or above `size` are
    left out.
    """
    length = (size + 7) >> 3
    if bits >> (length << 3):
        bits &= (1 << size) - 1
    octets = np.frombuffer(bits.to_bytes(length, "little"), dtype=np.uint8)
    return np.unpackbits(octets, count=size, bitorder="little").view(np.bool_)


def from_flags(flags: NDArray[np.bool_]) -> int:
    """The bitmap with bit i set where entry i is true."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def positions_array(bits: int) -> NDArray[np.intp]:
    """The positions of the bits in ascending order, as an index vector."""
    length = (bits.bit_length() + 7) >> 3
    octets = np.frombuffer(bits.to_bytes(length, "little"), dtype=np.uint8)
    return np.unpackbits(octets, bitorder="little").nonzero()[0]


def positions_of_few(bits: int) -> NDArray[np.intp]:
    """As `positions_array`, for bits that are few for their width: several times as fast."""
    length = (bits.bit_length() + 63) >> 6
    words = np.frombuffer(bits.to_bytes(length << 3, "little"), dtype="<u8")
    at = words.nonzero()[0]
    found = np.unpackbits(words[at].view(np.uint8), bitorder="little").nonzero()[0]
    positions: NDArray[np.intp] = (at[found >> 6] << 6) + (found & 63)
    return positions


def from_array(positions: NDArray[np.integer]) -> int:
    """The bitmap with a bit at each position of the index vector."""
    if not len(positions):
        return 0
    flags = np.zeros(int(positions.max()) + 1, dtype=np.bool_)
    flags[positions] = True
    return from_flags(flags)


def indices(bits: int) -> list[int]:
    """The positions of the bits in ascending order."""
    if bits.bit_count() > _FEW:
        listed: list[int] = positions_array(bits).tolist()
        return listed
    listed = []
    at = 0
    while bits:
        skip = (bits & -bits).bit_length()
        bits >>= skip
        at += skip
        listed.append(at - 1)
    return listed


def iterate(bits: int) -> Iterator[int]:
    """The positions of the bits in ascending order, one at a time."""
    return iter(indices(bits))


def select(bits: int, flags: NDArray[np.bool_]) -> int:
    """The bits of `bits` whose entry in `flags` is true."""
    return bits & from_flags(flags)
