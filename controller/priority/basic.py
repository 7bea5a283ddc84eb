"""priority/basic: first come, first served by falling numbers.

Place: priority, no I/O. Each job gets one less than the one before it, less its nice
value, and keeps it. 0 means held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from understudy.controller.priority.api import Factors, Standing
    from understudy.controller.priority.options import PriorityOptions
    from understudy.controller.tables.job import Job

FIRST: Final = 4294901759  # what Slurm 22.05 gives to the first job
MOST: Final = 0xFFFFFFFE


class BasicPriority:
    """Hands out priorities."""

    __slots__ = ("last",)

    name = "basic"

    def __init__(self, *_surroundings: Any) -> None:
        self.last = FIRST + 1

    def assign(self, job: Job, now: float) -> int:
        """The priority of a job that becomes ready for the queue now: never 0, which would mean
        held.
        """
        del now
        self.last -= 1
        wanted = self.last - job.nice
        return max(wanted if wanted <= MOST else wanted & 0xFFFFFFFF, 1)  # as 22.05.8 does

    def changed(self, job: Job, now: float, *, is_moved: bool = False) -> None:
        """A job keeps the number that it was given."""

    def started(self, job: Job, now: float) -> None:
        """Use of the cluster does not count."""

    def ended(self, job: Job, now: float) -> None:
        """Use of the cluster does not count."""

    def next_calculation(self, now: float) -> float | None:
        """Never."""
        del now
        return None

    @property
    def longest_age_s(self) -> int:
        """Age does not count."""
        return 0

    def calculate(self, now: float) -> bool:
        """There is nothing to calculate."""
        del now
        return False

    @property
    def usage_time(self) -> int:
        """None is counted."""
        return 0

    def usage(self) -> dict[int, float]:
        """None is counted."""
        return {}

    def forget(self, association_ids: list[int]) -> None:
        """None is counted."""

    def restore(self, time: int, use: dict[int, float]) -> None:
        """None is counted."""

    def factors(self, job: Job, partition: str = "") -> Factors | None:
        """There are none."""
        del job, partition
        return None

    def reconfigure(self, options: PriorityOptions, now: float) -> None:
        """Nothing here depends on the configuration."""

    def standings(self, now: float, *, asks: bool = True) -> list[Standing]:
        """There is no fair share."""
        del now, asks
        return []

    @property
    def includes_running(self) -> bool:
        """Nothing is calculated."""
        return False

    @property
    def includes_ineligible(self) -> bool:
        """Nothing is calculated."""
        return False

    def weights(self) -> dict[str, float]:
        """There are none."""
        return {}
