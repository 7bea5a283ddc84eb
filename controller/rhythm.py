"""The background loop of Slurm's controller: when it ticks.

Place: below all else of the controller, pure. The tables have the one `Rhythm` of a controller, on
which everything rides that Slurm does now and then.

Ten naps of 100 ms and the loop's own work make a tick 1.0032 s, and the first comes 0.98 s after
the start: the medians of what starts jobs in recordings of Slurm 22.05. Each nap begins when the
last one is over, so what naps are late adds up, and now and then one is late by tens of ms on a
host that has other work. Here that comes at once, every 60 ticks: the recordings lose as much in
the long run, but at no such times (docs/adr/0022). A host with time of its own loses nothing.
"""

from __future__ import annotations

from math import floor
from typing import Final

from understudy.model.cadence import Cadence

LATE_EVERY: Final = 60  # ticks
LATE_FIRST: Final = 61  # the first tick that is late, from 0
# ours: timers keep microseconds, and a time since the epoch is not exact
ROUNDING_S: Final = 1e-4


class Rhythm:
    """The ticks of a controller that started then. They are numbered from 0."""

    def __init__(self, start: float, cadence: Cadence | None = None) -> None:
        self.start, self.cadence = start, cadence or Cadence()
        self.tick_s = self.cadence.tick_s
        self._first = start + self.cadence.begin_s
        self._mean_s = self.tick_s + self.cadence.late_s / LATE_EVERY

    def tick(self, number: int) -> float:
        """When the loop ticks for the nth time."""
        return (
            self._first
            + number * self.tick_s
            + max((number - LATE_FIRST) // LATE_EVERY + 1, 0) * self.cadence.late_s
        )

    def number_from(self, when: float) -> int:
        """The number of the first tick at or after that time."""
        number = max(floor((when - self._first) / self._mean_s), 0)
        while number and self.tick(number - 1) >= when - ROUNDING_S:
            number -= 1
        while self.tick(number) < when - ROUNDING_S:
            number += 1
        return number

    def number_before(self, when: float) -> int:
        """The number of the last tick at or before that time; -1 before the first."""
        return self.number_from(when + 2 * ROUNDING_S) - 1

    def next_tick(self, when: float) -> float:
        """When the loop ticks next, at or after that time."""
        return self.tick(self.number_from(when))

    @property
    def backfill_begins(self) -> float:
        """When the backfill thread begins to sleep."""
        return self.start + self.cadence.backfill_begin_s
