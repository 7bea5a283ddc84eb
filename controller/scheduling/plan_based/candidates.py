"""The orders with which a search begins: by submission, and sorted in eight ways.

Place: scheduling, pure. Follows Kopanski and Rzadca (Euro-Par 2021), with one resource beside
processors (burst buffer); of several the one of which a job wants the largest part counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Size(NamedTuple):
    """What orders look at of a job. `beside`: what it needs of the resource beside processors.
    `rank`: jobs of a lower one come first in every order.
    """

    processors: int
    beside: float
    length_s: int
    rank: int = 0


def candidates(sizes: Sequence[Size]) -> list[list[int]]:
    """The nine orders of the jobs, which come in the queue's order; equal ones stay in it."""

    def ordered(key: Callable[[Size], float]) -> list[int]:
        return sorted(range(len(sizes)), key=lambda i: (sizes[i].rank, key(sizes[i])))

    def each(size: Size) -> float:  # beside each processor
        return size.beside / size.processors

    return [
        ordered(lambda _: 0),
        ordered(lambda size: -size.processors),
        ordered(lambda size: -each(size)),
        ordered(lambda size: -each(size) / size.processors),
        ordered(lambda size: each(size) / size.processors),
        ordered(lambda size: size.processors),
        ordered(each),
        ordered(lambda size: size.length_s),
        ordered(lambda size: -size.length_s),
    ]


def may_change_places(sizes: Sequence[Size], order: Sequence[int], i: int, k: int) -> bool:
    """Whether the jobs at these places of an order are of one rank."""
    return sizes[order[i]].rank == sizes[order[k]].rank
