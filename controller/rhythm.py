"""When the controller's main loop looks: about once a second, for schedulers, reservations and
nodes alike.

Place: scheduling, pure.

Ten naps of 100 ms and the loop's own work make a look 1.0032 s, and the first comes 0.98 s after
the start: the medians of what starts jobs in recordings of Slurm 22.05. Their loops are late now
and then, mostly for no visible reason. The 25 ms once a minute are a fit, not an observation of
each minute: in the middle the recordings are 15 ms late after the first minute and more than 40
after the fifth, and not late after the second and third. The size was chosen among 16 to 40 ms by
the score of the recorded workloads; `reservations` has 0.81 below 20 ms and 1.0 with 25.
"""

from __future__ import annotations

from math import floor
from typing import Final

FIRST_LOOK_S: Final = 0.98  # after the controller's start
LOOK_S: Final = 1.0032  # from one look to the next
LATE_S: Final = 0.025  # once a minute, on top; a fit, see above
LATE_EVERY: Final = 60  # looks
LATE_FIRST: Final = 61  # the first look that is late, from 0
ROUNDING_S: Final = 1e-4  # timers keep microseconds, and a time since the epoch is not exact
_MEAN_S: Final = LOOK_S + LATE_S / LATE_EVERY


def look(start: float, number: int) -> float:
    """When the loop of a controller that started then looks for the nth time, from 0."""
    return (
        start
        + FIRST_LOOK_S
        + number * LOOK_S
        + max((number - LATE_FIRST) // LATE_EVERY + 1, 0) * LATE_S
    )


def look_from(start: float, when: float) -> int:
    """The number of the first look at or after that time, from 0."""
    number = max(floor((when - start - FIRST_LOOK_S) / _MEAN_S), 0)
    while number and look(start, number - 1) >= when - ROUNDING_S:
        number -= 1
    while look(start, number) < when - ROUNDING_S:
        number += 1
    return number


def next_look(start: float, when: float) -> float:
    """When the loop looks next, at or after that time."""
    return look(start, look_from(start, when))


def look_before(start: float, when: float) -> int:
    """The number of the last look at or before that time, from 0; -1 before the first."""
    return look_from(start, when + 2 * ROUNDING_S) - 1
