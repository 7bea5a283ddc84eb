"""The cluster's time as daemons see it: the same interface in real, scaled and virtual time."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from understudy.clock.virtual_loop import VirtualEventLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Timekeeper:
    """Tells the cluster's time (seconds since the epoch) and calls at it.

    `epoch` is the cluster's time at the loop's time 0; None for real time, where the host's own clock is asked.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: float | None) -> None:
        self.loop = loop
        self.epoch = epoch
        self._virtual = loop if isinstance(loop, VirtualEventLoop) else None

    @property
    def is_virtual(self) -> bool:
        return self._virtual is not None

    def now(self) -> float:
        """The cluster's time, seconds since the epoch."""
        return time.time() if self.epoch is None else self.epoch + self.loop.time()

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call at `when` of the cluster's time; at once if that is past."""
        if self.epoch is None:
            return self.loop.call_later(max(0.0, when - time.time()), callback, *args)
        after_us = round((when - self.epoch) * 1e6)
        if (
            self.epoch + after_us / 1e6 < when
        ):  # never early by a rounding: who then finds that it is not yet time would wait for the same instant again
            after_us += 1
        return self.loop.call_at(after_us / 1e6, callback, *args)

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Virtual time stands still meanwhile; nothing in real and scaled time."""
        return self._virtual.hold() if self._virtual is not None else contextlib.nullcontext()

    def say_when_only_background(self, is_so: Callable[[], bool]) -> None:
        """From now on `is_so` says whether all that this daemon waits for is no reason for virtual time to go on by itself."""
        if self._virtual is not None and self._virtual.authority is not None:
            self._virtual.authority.background = is_so

    def end_window(self) -> None:
        """Report what there is left to do before virtual time goes on: it may be that it need not."""
        if self._virtual is not None and self._virtual.authority is not None:
            self._virtual.window_end_us = min(self._virtual.window_end_us, self._virtual.now_us)

    def pause(self, reason: str) -> None:
        """Stop virtual time after this window: a breakpoint that a daemon has reached."""
        if self._virtual is not None and self._virtual.authority is not None:
            self._virtual.authority.pause(reason)
