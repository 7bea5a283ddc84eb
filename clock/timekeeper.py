"""The cluster's time as daemons see it: the same interface in real, scaled and virtual time."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from understudy.clock.scaled_loop import ScaledEventLoop
from understudy.clock.virtual_loop import VirtualEventLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Timekeeper:
    """Tells the cluster's time (seconds since the epoch) and calls at it.

    `epoch` is the cluster's time at the loop's time 0; None for real time, where the host's own
    clock is asked.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: float | None) -> None:
        self.loop = loop
        self.epoch = epoch
        self._virtual = loop if isinstance(loop, VirtualEventLoop) else None
        self._scaled = loop if isinstance(loop, ScaledEventLoop) else None
        self.is_virtual = self._virtual is not None

    def now(self) -> float:
        """The cluster's time, seconds since the epoch."""
        epoch, virtual = self.epoch, self._virtual
        if epoch is None:
            return time.time()
        if virtual is not None:
            return epoch + virtual.now_us / 1e6
        return epoch + self.loop.time()

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call at `when` of the cluster's time; at once if that is past."""
        if self.epoch is None:
            return self.loop.call_later(max(0.0, when - time.time()), callback, *args)
        after_us = _loop_time_us(self.epoch, when)
        if self._virtual is not None:
            return self._virtual.call_at_us(after_us, callback, args)
        return self.loop.call_at(after_us / 1e6, callback, *args)

    def call_periodically(
        self, when: float, matters: Callable[[], bool], callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """As `call_at`, for what comes again and again: virtual time does not go on for its sake,
        unless `matters` says that it must.
        """
        if self._virtual is None or self.epoch is None:
            return self.call_at(when, callback, *args)
        return self._virtual.call_periodically(
            _loop_time_us(self.epoch, when) / 1e6, matters, callback, *args
        )

    def call_after_wait(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call after having waited so long for somebody else. Whether a daemon is silent is a
        matter of real time, also where the cluster's is scaled: at a hundred times real time ten
        seconds of the cluster's would be too few for a busy host.
        """
        if self._scaled is not None:
            return self._scaled.call_later_real(delay_s, callback, *args)
        return self.call_at(self.now() + delay_s, callback, *args)

    def wait_clock(self) -> float:
        """Seconds that go by as those of `call_after_wait`."""
        return self.now() if self._scaled is None else time.monotonic()

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Virtual time stands still meanwhile; nothing in real and scaled time."""
        return self._virtual.hold() if self._virtual is not None else contextlib.nullcontext()

    def pause(self, reason: str) -> None:
        """Stop virtual time after this window: a breakpoint that a daemon has reached."""
        if self._virtual is not None and self._virtual.authority is not None:
            self._virtual.authority.pause(reason)


def _loop_time_us(epoch: float, when: float) -> int:
    after_us = round((when - epoch) * 1e6)
    # never early by a rounding: who then finds that it is not yet time would wait for the same
    # instant again
    return after_us if epoch + after_us / 1e6 >= when else after_us + 1
