"""Timers in a defined order: by time, then by creation. asyncio's own heap leaves the order of equal times to chance.

Place: used by the virtual and the scaled loop. Knows no sockets.
"""

from __future__ import annotations

import asyncio
import heapq
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
    """Timers by (time in microseconds, order of creation). Cancelled ones are dropped when they come to the top, or when they are the most."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
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

    def next_us(self) -> int:
        """The time of the earliest timer that is not cancelled, or NEVER."""
        heap = self._heap
        while heap:
            if not heap[0][2].cancelled():
                return heap[0][0]
            heapq.heappop(heap)
        return NEVER

    def pop_due(self, now_us: int) -> list[Timer]:
        """The timers of `now_us` and before, in order."""
        due = []
        heap = self._heap
        while heap and heap[0][0] <= now_us:
            timer = heapq.heappop(heap)[2]
            if not timer.cancelled():
                due.append(timer)
        return due
