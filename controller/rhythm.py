"""When the controller's main loop ticks: about once a second, for schedulers, reservations and
nodes alike.

Place: scheduling, pure.

Ten naps of 100 ms and the loop's own work make a tick 1.0032 s, and the first comes 0.98 s after
the start: the medians of what starts jobs in recordings of Slurm 22.05. Their loops are late now
and then, mostly for no visible reason. The 25 ms once a minute are a fit, not an observation of
each minute: in the middle the recordings are 15 ms late after the first minute and more than 40
after the fifth, and not late after the second and third. The size was chosen among 16 to 40 ms by
the score of the recorded workloads; `reservations` has 0.81 below 20 ms and 1.0 with 25.
"""

from __future__ import annotations

from math import floor
from typing import Final

FIRST_TICK_S: Final = 0.98  # after the controller's start
TICK_S: Final = 1.0032  # from one tick to the next
LATE_S: Final = 0.025  # once a minute, on top; a fit, see above
LATE_EVERY: Final = 60  # ticks
LATE_FIRST: Final = 61  # the first tick that is late, from 0
ROUNDING_S: Final = 1e-4  # timers keep microseconds, and a time since the epoch is not exact
_MEAN_S: Final = TICK_S + LATE_S / LATE_EVERY


def tick(start: float, number: int) -> float:
    """When the loop of a controller that started then ticks for the nth time, from 0."""
    return (
        start
        + FIRST_TICK_S
        + number * TICK_S
        + max((number - LATE_FIRST) // LATE_EVERY + 1, 0) * LATE_S
    )


def tick_from(start: float, when: float) -> int:
    """The number of the first tick at or after that time, from 0."""
    number = max(floor((when - start - FIRST_TICK_S) / _MEAN_S), 0)
    while number and tick(start, number - 1) >= when - ROUNDING_S:
        number -= 1
    while tick(start, number) < when - ROUNDING_S:
        number += 1
    return number


def next_tick(start: float, when: float) -> float:
    """When the loop ticks next, at or after that time."""
    return tick(start, tick_from(start, when))


def tick_before(start: float, when: float) -> int:
    """The number of the last tick at or before that time, from 0; -1 before the first."""
    return tick_from(start, when + 2 * ROUNDING_S) - 1
