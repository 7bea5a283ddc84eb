"""What is counted of the schedulers' cycles, for sdiag.

Place: scheduling, pure: a policy counts its cycles and how deep they went; who runs it adds how
long they took.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Cycles:
    """Of one scheduler, since the statistics were last reset. `started` counts on."""

    count: int = 0
    depth: int = 0  # jobs in all cycles
    last_depth: int = 0
    last_queue: int = 0
    queue: int = 0  # of all cycles
    started: int = 0
    started_before: int = 0  # at the last reset
    when: int = 0  # of the last cycle
    last_us: int = 0
    longest_us: int = 0
    us: int = 0

    def ran(self, queue: int, started: int, now: float) -> None:
        """A cycle looked at so many jobs and started some of them."""
        self.count += 1
        self.depth += queue
        self.queue += queue
        self.last_depth = self.last_queue = queue
        self.started += started
        self.when = int(now)

    def took(self, microseconds: int) -> None:
        """How long the last cycle took."""
        self.last_us = microseconds
        self.us += microseconds
        self.longest_us = max(self.longest_us, microseconds)

    def reset(self) -> None:
        """Count from nought; the last cycle stays the last."""
        self.count = self.depth = self.queue = self.us = self.longest_us = 0
        self.started_before = self.started
