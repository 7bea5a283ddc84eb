"""Timers in a defined order: by time, then by creation. asyncio's own heap leaves the order of
equal times to chance.

Place: used by the virtual and the scaled loop. Knows no sockets.
"""

from __future__ import annotations

from bisect import insort
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER = 1 << 62  # microseconds


class Timer:
    """A timer of a `TimerHeap`, as `asyncio.TimerHandle`. Cancelling takes effect until the moment
    it is called.

    It runs in no context of its own, and keeps nothing of where it was set: a run sets several for
    each job.
    """

    __slots__ = ("_when_us", "args", "callback", "is_cancelled")
    _source_traceback: Final = None  # asyncio's call_later asks for it

    def __init__(
        self, when_us: int, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        self._when_us = when_us
        self.callback = callback
        self.args = args
        self.is_cancelled = False

    def when(self) -> float:
        return self._when_us / 1e6

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def fire(self) -> None:
        """Run the callback unless the timer was cancelled."""
        if not self.is_cancelled:
            self.callback(*self.args)


class TimerHeap:
    """Timers by (time in microseconds, order of creation). Cancelled ones are dropped when they
    come to the top, or when they are the most.

    Periodic ones, of which there are few, are kept apart: `next_us` is about the others.
    """

    __slots__ = ("_count", "heap", "periodic")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Timer]] = []  # for others to look at
        # sorted; with who says whether time must go on until then
        self.periodic: list[tuple[int, int, Timer, Callable[[], bool]]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, when_us: int, timer: Timer) -> None:
        """Keep the timer until its time."""
        self._count = count = self._count + 1
        heap = self.heap
        heappush(heap, (when_us, count, timer))
        if count & 0x3FF == 0 and len(heap) > 256:  # now and then: are most of them cancelled?
            alive = [entry for entry in heap if not entry[2].is_cancelled]
            if len(alive) * 2 < len(heap):
                heapify(alive)
                heap[:] = alive

    def add_periodic(self, when_us: int, timer: Timer, matters: Callable[[], bool]) -> None:
        """Keep the timer until its time, which need not come unless it `matters`."""
        self._count += 1
        insort(self.periodic, (when_us, self._count, timer, matters))

    def next_periodic_us(self) -> int:
        """The time of the earliest periodic timer that is not cancelled, or NEVER."""
        periodic = self.periodic
        while periodic and periodic[0][2].is_cancelled:
            del periodic[0]
        return periodic[0][0] if periodic else NEVER

    def mattering_us(self) -> int:
        """The time of the earliest periodic timer that matters now, -1 if none does."""
        return next(
            (
                when_us
                for when_us, _, timer, matters in self.periodic
                if not timer.is_cancelled and matters()
            ),
            -1,
        )

    def next_us(self) -> int:
        """The time of the earliest timer that is neither cancelled nor periodic, or NEVER."""
        heap = self.heap
        while heap:
            first = heap[0]
            if not first[2].is_cancelled:
                return first[0]
            heappop(heap)
        return NEVER

    def pop_due(self, now_us: int) -> list[Timer]:
        """The timers of `now_us` and before, in order."""
        due = []
        heap, periodic = self.heap, self.periodic
        while heap and heap[0][0] <= now_us:
            when_us, number, timer = heappop(heap)
            while periodic and periodic[0][:2] < (when_us, number):
                due.append(periodic.pop(0)[2])
            if not timer.is_cancelled:
                due.append(timer)
        while periodic and periodic[0][0] <= now_us:
            due.append(periodic.pop(0)[2])
        return due
