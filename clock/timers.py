"""Timers in a defined order: by time, then by creation. asyncio's own heap leaves the order of equal times to chance.

Place: used by the virtual and the scaled loop. Knows no sockets.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import insort
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable

NEVER = 1 << 62  # microseconds


class Timer(asyncio.TimerHandle):
    """A timer of a `TimerHeap`. Cancelling takes effect until the moment it is called."""

    __slots__ = ("call", "call_args", "call_context")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.call, self.call_args, self.call_context = callback, args, context

    def fire(self) -> None:
        """Run the callback unless the timer was cancelled."""
        if not self.cancelled():
            self.call(*self.call_args)


class TimerHeap:
    """Timers by (time in microseconds, order of creation). Cancelled ones are dropped when they come to the top, or when they are the most.

    Periodic ones, of which there are few, are kept apart: `next_us` is about the others.
    """

    __slots__ = ("_count", "_heap", "_periodic")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._periodic: list[tuple[int, int, Timer, Callable[[], bool]]] = []  # sorted; with who says whether time must go on until then
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, when_us: int, timer: Timer) -> None:
        """Keep the timer until its time."""
        self._count += 1
        heap = self._heap
        heapq.heappush(heap, (when_us, self._count, timer))
        if self._count & 0x3FF == 0 and len(heap) > 256:  # now and then: are most of them cancelled?
            alive = [entry for entry in heap if not entry[2].cancelled()]
            if len(alive) * 2 < len(heap):
                heapq.heapify(alive)
                self._heap = alive

    def add_periodic(self, when_us: int, timer: Timer, matters: Callable[[], bool]) -> None:
        """Keep the timer until its time, which need not come unless it `matters`."""
        self._count += 1
        insort(self._periodic, (when_us, self._count, timer, matters))

    def next_periodic_us(self) -> int:
        """The time of the earliest periodic timer that is not cancelled, or NEVER."""
        periodic = self._periodic
        while periodic and periodic[0][2].cancelled():
            del periodic[0]
        return periodic[0][0] if periodic else NEVER

    def mattering_us(self) -> int:
        """The time of the earliest periodic timer that matters now, -1 if none does."""
        return next((when_us for when_us, _, timer, matters in self._periodic if not timer.cancelled() and matters()), -1)

    def next_us(self) -> int:
        """The time of the earliest timer that is neither cancelled nor periodic, or NEVER."""
        heap = self._heap
        while heap:
            if not heap[0][2].cancelled():
                return heap[0][0]
            heapq.heappop(heap)
        return NEVER

    def pop_due(self, now_us: int) -> list[Timer]:
        """The timers of `now_us` and before, in order."""
        due = []
        heap, periodic = self._heap, self._periodic
        while heap and heap[0][0] <= now_us:
            when_us, number, timer = heapq.heappop(heap)
            while periodic and periodic[0][:2] < (when_us, number):
                due.append(periodic.pop(0)[2])
            due.append(timer)
        while periodic and periodic[0][0] <= now_us:
            due.append(periodic.pop(0)[2])
        return [timer for timer in due if not timer.cancelled()]
