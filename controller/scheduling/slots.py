"""The backfill scheduler's plan: slots of time, each with the nodes not yet promised to a pending job.

Place: scheduling, pure. The first slot begins at now, the last ends with the window, both rounded down to the resolution. Promises, too, begin and
end on rounded times; they are of whole nodes.
"""

from __future__ import annotations

from bisect import bisect_right


class Slots:
    """Consecutive slots [begins[i], begins[i + 1]); the last ends at `end`."""

    def __init__(self, now: int, window_s: int, resolution_s: int, nodes: int) -> None:
        self.resolution_s = resolution_s
        self.end = self.rounded(now + window_s)
        self.begins = [self.rounded(now)]
        self.free = [nodes]

    def __len__(self) -> int:
        return len(self.begins)

    def rounded(self, when: int) -> int:
        """Down to the resolution."""
        return when - when % self.resolution_s

    def usable(self, start: int, end: int, nodes: int) -> tuple[int, int | None]:
        """Those of the nodes that are promised to nobody from start to end, and the end of the first slot behind which more of them are free."""
        begins, free = self.begins, self.free
        later: int | None = None
        if start >= self.end:
            return nodes, None
        i = max(bisect_right(begins, start) - 1, 0)
        last = len(begins) - 1
        common = nodes
        while True:
            common &= free[i]
            if later is None and i < last and free[i + 1] & ~free[i] & nodes:
                later = begins[i + 1]
            i += 1
            if i > last or begins[i] >= end:
                return common, later

    def conflicts(self, start: int, end: int, nodes: int) -> bool:
        """Whether some of the nodes are promised in a slot that touches the rounded span."""
        start, end = self._span(start, end)
        return start < self.end and self.usable(max(start, self.begins[0]), end, nodes)[0] != nodes

    def promise(self, start: int, end: int, nodes: int) -> None:
        """Take the nodes out of the slots of the rounded span."""
        start, end = self._span(start, end)
        first = self._cut(start)
        behind = self._cut(end) if end < self.end else len(self.begins)
        for i in range(first, behind):
            self.free[i] &= ~nodes

    def _span(self, start: int, end: int) -> tuple[int, int]:
        start = self.rounded(start)
        return start, max(self.rounded(end), start + self.resolution_s)

    def _cut(self, when: int) -> int:
        """Let a slot begin at that time; its number."""
        if when <= self.begins[0]:
            return 0
        if when >= self.end:
            return len(self.begins)
        i = bisect_right(self.begins, when) - 1
        if self.begins[i] == when:
            return i
        self.begins.insert(i + 1, when)
        self.free.insert(i + 1, self.free[i])
        return i + 1
