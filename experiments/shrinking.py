"""Less of what fails, by leaving out one thing after the other.

Place: pure; used for campaigns of faults and for fuzzed schedules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Item = TypeVar("_Item")


def without_needless(
    items: tuple[_Item, ...], still_fails: Callable[[tuple[_Item, ...]], bool]
) -> tuple[_Item, ...]:
    """The items without those that may be left out: first halves of them, then ever smaller parts,
    at last one by one.
    """
    part = max(len(items) // 2, 1)
    while part:
        place = 0
        while place < len(items):
            fewer = items[:place] + items[place + part :]
            if still_fails(fewer):
                items = fewer
            else:
                place += part
        part //= 2
    return items
