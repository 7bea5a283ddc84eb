"""Amounts of several resources as one int, for policies that plan with CPUs, memory, GRES,
licences, burst-buffer space at once.

Place: scheduling, pure. Knows names and numbers; what they stand for, and in which units, is the
policy's.

Each resource has a field of bits in an int, all of them equally wide, with one more bit above each,
its guard. What is free has the guards set, what is needed has not. One subtraction then takes all
resources at once: a field that is too small borrows from its guard, and from nobody else, so a look
at the guards tells whether there was enough of each. That is Lamport's "Multiple byte processing
with full-word instructions" (Communications of the ACM 18, 1975), with ints as long as they need to
be. A look at three resources so costs what three comparisons would that are written out one by one,
and a sixth of a loop over tuples.

    kinds = Resources({"cpus": 96, "bb": 480_000})
    job = kinds.need({"cpus": 8, "bb": 20_000})
    free = kinds.totals - job
    kinds.fits(free, job), kinds.amounts(free)      True, {"cpus": 88, "bb": 460_000}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Resources:
    """Which resources there are, and how much of each in all.

    `guards` are the bits above the fields; `totals` is the whole as something that is free.
    """

    def __init__(self, totals: Mapping[str, int]) -> None:
        # Room for more than there is, so that what needs more than that can be told, too.
        self._width = max(totals.values(), default=0).bit_length() + 1
        self._most = (1 << self._width) - 1
        self._shifts = {name: i * (self._width + 1) for i, name in enumerate(totals)}
        self.guards = sum(1 << (shift + self._width) for shift in self._shifts.values())
        self.totals = self.free(totals)

    def need(self, amounts: Mapping[str, int]) -> int:
        """What somebody needs; nothing of what is not named. More than there is in all is too much
        at any time, however much more.

        Raises:
            KeyError: a resource that is not among these.
        """
        packed = 0
        for name, amount in amounts.items():
            assert amount >= 0, (name, amount)
            packed |= min(amount, self._most) << self._shifts[name]
        return packed

    def packed(self, amounts: Iterable[int]) -> int:
        """What somebody needs of each, in the order of all."""
        found, most = 0, self._most
        for amount, shift in zip(amounts, self._shifts.values(), strict=True):
            found |= min(most, amount) << shift
        return found

    def free(self, amounts: Mapping[str, int]) -> int:
        """What is free; nothing of what is not named, or of what is less than nothing."""
        return self.guards | self.need({name: max(n, 0) for name, n in amounts.items()})

    def fits(self, free: int, need: int) -> bool:
        """Whether there is enough of each."""
        return (free - need) & self.guards == self.guards

    def short(self, free: int, need: int) -> list[str]:
        """The names of those of which there is not enough."""
        left = free - need
        return [
            name for name, shift in self._shifts.items() if not left >> (shift + self._width) & 1
        ]

    def least(self, free: int, other: int) -> int:
        """Of each resource the smaller of two amounts that are free."""
        guards = self.guards
        kept = (free - (other & ~guards)) & guards  # the guards of fields with at least as much
        lower = kept - (kept >> self._width)  # those fields
        return guards | (other & lower) | (free & ~lower)

    def amount(self, packed: int, name: str) -> int:
        """How much of one resource."""
        return packed >> self._shifts[name] & self._most

    def amounts(self, packed: int) -> dict[str, int]:
        """How much of each, by name."""
        return {name: packed >> shift & self._most for name, shift in self._shifts.items()}


NONE: Final = Resources({})
