"""An event loop (uvloop) on which the cluster's time runs N times as fast as real time, at a rate
that may change while it runs.

Place: daemons of a cluster with `--time scaled:N`. The clock service tells the line (see rates.py);
timers are kept in the cluster's time and one real timer stands for the earliest, so a change of the
rate moves them all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import uvloop

from understudy.clock.rates import Rates
from understudy.clock.timers import NEVER, Timer, TimerHeap

if TYPE_CHECKING:
    import asyncio
    import contextvars
    from collections.abc import Callable

_LONGEST_S = 3600.0  # ours: of a wait in real time; then the rate is looked at again


class ScaledEventLoop(uvloop.Loop):
    """uvloop with another time. Before the service has told the rate, time stands still at 0."""

    def __init__(self) -> None:
        super().__init__()
        self._rates = Rates(0.0, time.monotonic())
        self._scaled_timers = TimerHeap()
        self._real_timer: asyncio.TimerHandle | None = None

    def set_segment(self, base_us: float, base_s: float, rate: float) -> None:
        """From the real instant `base_s` (monotonic) on, the cluster's time is base_us + elapsed *
        rate.
        """
        self._rates.segment = (base_us, base_s, rate)
        self._rearm()

    def time(self) -> float:
        return self._rates.at(time.monotonic()) / 1e6

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        del context
        when_us = round(when * 1e6)
        timer = Timer(when_us, callback, args)
        is_first = when_us < self._scaled_timers.next_us()
        self._scaled_timers.add(when_us, timer)
        if is_first:
            self._rearm()
        return timer  # type: ignore[return-value]

    def call_later_real(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call after real seconds."""
        return super().call_later(delay_s, callback, *args)

    def _rearm(self) -> None:
        if self._real_timer is not None:
            self._real_timer.cancel()
            self._real_timer = None
        next_us = self._scaled_timers.next_us()
        rate = self._rates.segment[2]
        if next_us == NEVER or rate <= 0:
            return
        delay_s = min(
            _LONGEST_S, max(0.0, (next_us - self._rates.at(time.monotonic())) / 1e6 / rate)
        )
        self._real_timer = super().call_later(delay_s, self._run_due)

    def _run_due(self) -> None:
        self._real_timer = None
        for timer in self._scaled_timers.pop_due(int(self._rates.at(time.monotonic())) + 500):
            self.call_soon(timer.fire)
        self._rearm()
