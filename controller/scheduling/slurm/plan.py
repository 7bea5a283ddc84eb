"""The backfill scheduler's plan: slots of time, each with the nodes not yet promised to a pending
job.

Place: scheduling, pure. The first slot begins at now, the last ends with the window, both rounded
down to the resolution. Promises, too, begin and end on rounded times; they are of whole nodes. A
job's time touches a slot that begins in the second in which the job ends: who would end just when a
promise begins must not start, as recordings show. Two promises, however, may meet.
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
        self.promises = 0  # that have been made
        self._common: list[int] = []  # nodes that are free from the first slot to each one
        # nodes that are free in the next slot but not in this one; None: not known
        self._grows: list[int | None] = [None]

    def __len__(self) -> int:
        return len(self.begins)

    def rounded(self, when: int) -> int:
        """Down to the resolution."""
        return when - when % self.resolution_s

    def usable(self, start: int, end: int, nodes: int) -> tuple[int, int | None]:
        """Those of the nodes promised to nobody from start to end (included), and the end of the
        first slot behind which more of them are free.

        That slot may lie behind the end.
        """
        begins, free = self.begins, self.free
        later: int | None = None
        if start >= self.end:
            return nodes, None
        i = max(bisect_right(begins, start) - 1, 0)
        last = len(begins) - 1
        common = nodes & free[i]
        while i < last:
            if later is None and free[i + 1] & ~free[i] & nodes:
                later = begins[i + 1]
            i += 1
            if begins[i] <= end:
                common &= free[i]
            elif later is not None:
                break
        return common, later

    def free_until(self, end: int) -> int:
        """The nodes that are promised to nobody from the first slot to that time (included)."""
        behind = bisect_right(self.begins, end)
        common, free = self._common, self.free
        while len(common) < behind:
            common.append(common[-1] & free[len(common)] if common else free[0])
        return common[max(behind - 1, 0)]

    def conflicts(self, start: int, end: int, nodes: int) -> bool:
        """Whether some of the nodes are promised in a slot that touches the rounded span."""
        start, end = self._span(start, end)
        return (
            start < self.end and self.usable(max(start, self.begins[0]), end - 1, nodes)[0] != nodes
        )

    def promise(self, start: int, end: int, nodes: int) -> None:
        """Take the nodes out of the slots of the rounded span."""
        self.promises += 1
        self._common.clear()
        start, end = self._span(start, end)
        first = self._cut(start)
        behind = self._cut(end) if end < self.end else len(self.begins)
        others = ~nodes
        for i in range(first, behind):
            self.free[i] &= others
        self._grows[max(first - 1, 0) : behind] = [None] * (behind - max(first - 1, 0))
        self._merge(max(first - 1, 0), behind)

    def _merge(self, first: int, behind: int) -> None:
        """Make one of neighbours with the same nodes: two promises that meet on the same nodes are
        one stretch, behind which more nodes are free.
        """
        for i in range(min(behind, len(self.begins) - 1) - 1, first - 1, -1):
            if self.free[i] == self.free[i + 1]:
                del self.begins[i + 1], self.free[i + 1], self._grows[i]

    def grows(self, i: int) -> int:
        """The nodes that are free in slot i + 1 but not in slot i."""
        found = self._grows[i]
        if found is None:
            found = self._grows[i] = self.free[i + 1] & ~self.free[i]
        return found

    def window(self, length: int, nodes: int) -> Window:
        """For a look at one start after the other. Valid until the next promise."""
        return Window(self, length, nodes)

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
        self._grows[i] = 0
        self._grows.insert(i + 1, None)
        return i + 1


class Window:
    """A stretch of time of fixed length that moves on over the slots: answers as `Slots.usable`,
    each slot looked at about twice in all.

    The slots from `_front` to `_middle` are there as what is common to each of them and all behind
    it, so that dropping one in front costs nothing; those from there to `_behind` as what is common
    to all.
    """

    def __init__(self, slots: Slots, length: int, nodes: int) -> None:
        self.slots, self.length, self.nodes = slots, length, nodes
        self._front = self._middle = self._behind = self._growth = 0
        self._suffixes: list[int] = []
        self._rest = nodes

    def at(self, start: int) -> tuple[int, int | None]:
        """The nodes that are promised to nobody, and the end of the first slot behind which more
        are free. Starts must not go back.
        """
        slots, nodes = self.slots, self.nodes
        if start >= slots.end:
            return nodes, None
        free = slots.free
        i = max(bisect_right(slots.begins, start) - 1, 0)
        behind = max(bisect_right(slots.begins, start + self.length), i + 1)
        if i >= self._middle:
            common, suffixes = nodes, []
            for k in range(behind - 1, i - 1, -1):
                common &= free[k]
                suffixes.append(common)
            self._front, self._middle, self._suffixes, self._rest = i, behind, suffixes, nodes
        else:
            rest = self._rest
            for k in range(self._behind, behind):
                rest &= free[k]
            self._rest = rest
        self._behind = behind
        # The suffixes are there from the last slot to the first.
        return self._suffixes[self._middle - 1 - i] & self._rest, self._later(i)

    def _later(self, i: int) -> int | None:
        slots, nodes = self.slots, self.nodes
        growth = max(self._growth, i)
        last = len(slots.begins) - 1
        while growth < last:
            if slots.grows(growth) & nodes:
                self._growth = growth
                return slots.begins[growth + 1]
            growth += 1
        self._growth = growth
        return None
