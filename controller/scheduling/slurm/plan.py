"""The backfill scheduler's plan: an availability profile of the nodes not yet promised to a pending
job, as Slurm rounds it.

Place: scheduling, pure. The first slot begins at now, the last ends with the window, both rounded
down to the resolution. Promises, too, begin and end on rounded times; they are of whole nodes. A
job's time touches a slot that begins in the second in which the job ends: who would end just when a
promise begins must not start (recorded: ep-multifactor, ep-partition-tiers). Two promises, however,
may meet.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from understudy.controller.scheduling.profile import Profile

if TYPE_CHECKING:
    from understudy.controller.scheduling.profile import Window


class Slots:
    """The profile's steps are the slots; its end is that of the window."""

    def __init__(self, now: int, window_s: int, resolution_s: int, nodes: int) -> None:
        self.resolution_s = resolution_s
        self.profile = Profile(self.rounded(now), nodes=nodes, end=self.rounded(now + window_s))
        self._common: list[int] = []  # nodes that are free from the first slot to each one

    def __len__(self) -> int:
        return len(self.profile)

    def rounded(self, when: int) -> int:
        """Down to the resolution."""
        return when - when % self.resolution_s

    def free_until(self, end: int) -> int:
        """The nodes that are promised to nobody from the first slot to that time (included)."""
        behind = bisect_right(self.profile.times, end)
        common, nodes = self._common, self.profile.nodes
        while len(common) < behind:
            common.append(common[-1] & nodes[len(common)] if common else nodes[0])
        return common[max(behind - 1, 0)]

    def window(self, length: int, nodes: int) -> Window:
        """For looks at one start after the other, the second of the end included. Valid until the
        next promise.
        """
        return self.profile.window(length + 1, nodes)

    def conflicts(self, start: int, end: int, nodes: int) -> bool:
        """Whether some of the nodes are promised in a slot that touches the rounded span."""
        start, end = self._span(start, end)
        return start < self.profile.end and bool(nodes & ~self.profile.common(start, end))

    def promise(self, start: int, end: int, nodes: int) -> None:
        """Take the nodes out of the slots of the rounded span."""
        self._common.clear()
        self.profile.close(*self._span(start, end), nodes)

    def _span(self, start: int, end: int) -> tuple[int, int]:
        start = self.rounded(start)
        return start, max(self.rounded(end), start + self.resolution_s)
