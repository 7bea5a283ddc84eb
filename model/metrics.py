"""Figures of a daemon as Prometheus takes them: families of samples.

Place: the vocabulary. Who has figures says them so; understudy.clock.metrics serves them.
Follows: Prometheus' text format; names are those of the usual exporters for Slurm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Samples: TypeAlias = dict[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Family:
    """One figure: a value for each tuple of label values; `()` where it has no labels."""

    name: str
    text: str  # what it is
    samples: Samples
    labels: tuple[str, ...] = ()
    counts: bool = False  # it only rises, until the daemon starts again or is told to count anew


# Gives families one after another; None: others may have the loop before it goes on.
Source: TypeAlias = Callable[[], Iterator[Family | None]]


def gauge(name: str, text: str, value: float) -> Family:
    """A figure that goes up and down."""
    return Family(name, text, {(): value})


def counter(name: str, text: str, value: float) -> Family:
    """A figure that rises; its name ends in `_total`."""
    return Family(name, text, {(): value}, counts=True)
