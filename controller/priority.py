"""priority/basic: first come, first served by falling numbers.

Place: the controller's core, no I/O. Each job gets one less than the one before it, less its nice value, and keeps it. 0 means held.
"""

from __future__ import annotations

from typing import Final

FIRST: Final = 4294901760  # what Slurm 22.05 gives to the first job


class BasicPriority:
    """Hands out priorities."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = FIRST + 1

    def assign(self, nice: int) -> int:
        """The priority of a job that becomes ready for the queue now: never 0, which would mean held."""
        self.last -= 1
        return min(max(self.last - nice, 1), 0xFFFFFFFE)
