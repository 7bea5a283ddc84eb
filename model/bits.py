"""Bitmaps held in one Python int: the lowest k bits, runs of consecutive bits, positions.

Place: the vocabulary, pure Python, so that commands which must start fast can import it;
understudy.model.nodeset adds what needs numpy. It does not know what a bit stands for.

Every operation on an int of n bits costs n/64 machine words, so nothing here peels off one bit at a
time from a wide int: searches halve the width at each step, and scans go through the binary digits
as text, which C code searches.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Up to this width, or for so few runs, arithmetic beats the scan of the digits (measured).
_NARROW = 512
_FEW_RUNS = 3


def mask(count: int) -> int:
    """The bits 0 .. count-1."""
    return (1 << count) - 1


def span(start: int, length: int) -> int:
    """The bits start .. start+length-1."""
    return ((1 << length) - 1) << start


def first(bits: int) -> int:
    """The position of the lowest bit, -1 if there is none."""
    return (bits ^ (bits - 1)).bit_length() - 1 if bits else -1


def last(bits: int) -> int:
    """The position of the highest bit, -1 if there is none."""
    return bits.bit_length() - 1


def position(bits: int, rank: int) -> int:
    """The position of the bit with `rank` set bits below it, -1 if there are not that many."""
    if rank < 0 or bits.bit_count() <= rank:
        return -1
    width, shift, need = bits.bit_length(), 0, rank + 1
    while width > 1:
        half = width >> 1
        lower = bits & ((1 << half) - 1)
        found = lower.bit_count()
        if found >= need:
            bits, width = lower, half
        else:
            bits >>= half
            need -= found
            shift += half
            width -= half
    return shift


def are_among(bits: int, others: int) -> bool:
    """Whether each of the bits is one of the others, too: `not bits & ~others`, without the
    negative number, which takes several times as long where it is wide.
    """
    return bits & others == bits


def without(bits: int, others: int) -> int:
    """The bits that are none of the others: `bits & ~others`, without the negative number."""
    return bits ^ (bits & others)


def lowest(bits: int, count: int) -> int:
    """The `count` lowest bits of `bits`; all of them if there are fewer."""
    if count <= 0:
        return 0
    cut = position(bits, count)
    return bits if cut < 0 else bits & ((1 << cut) - 1)


def highest(bits: int, count: int) -> int:
    """The `count` highest bits of `bits`; all of them if there are fewer."""
    if count <= 0:
        return 0
    surplus = bits.bit_count() - count
    return bits if surplus <= 0 else without(bits, lowest(bits, surplus))


def rank(bits: int, at: int) -> int:
    """How many bits are set below the position `at`."""
    return (bits & ((1 << at) - 1)).bit_count()


def runs(bits: int) -> list[tuple[int, int]]:
    """Runs of consecutive bits as (start, length), lowest first."""
    found: list[tuple[int, int]] = []
    at = 0
    while bits and (len(found) < _FEW_RUNS or bits.bit_length() <= _NARROW):
        skip = first(bits)
        bits >>= skip
        length = (bits ^ (bits + 1)).bit_length() - 1
        bits >>= length
        found.append((at + skip, length))
        at += skip + length
    if not bits:
        return found
    digits = bin(bits)[:1:-1]
    start = digits.find("1")
    while start >= 0:
        end = digits.find("0", start)
        if end < 0:
            found.append((at + start, len(digits) - start))
            break
        found.append((at + start, end - start))
        start = digits.find("1", end)
    return found


def from_runs(pieces: Iterable[tuple[int, int]]) -> int:
    """The bitmap with the runs (start, length); the reverse of `runs`."""
    bits = 0
    for start, length in pieces:
        bits |= ((1 << length) - 1) << start
    return bits


def from_positions(positions: Iterable[int]) -> int:
    """The bitmap with a bit at each position."""
    listed = list(positions)
    if len(listed) <= 4:
        bits = 0
        for at in listed:
            bits |= 1 << at
        return bits
    buffer = bytearray((max(listed) >> 3) + 1)
    for at in listed:
        buffer[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(buffer, "little")
