"""How long a daemon's event loop keeps others waiting, and how much of it is garbage collection:
for sdiag and Prometheus.

Place: beside daemon.py, which starts it. In virtual time nobody waits, and the loop is not looked
at. Garbage collections are those of the process.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.model.metrics import Family

_LOOK_S: Final = 0.1  # ours: what stops the loop for longer is noticed


@dataclass(slots=True)
class Delays:
    """Of one kind, since the statistics were last reset, in microseconds."""

    count: int = 0
    last_us: int = 0
    longest_us: int = 0
    us: int = 0

    def took(self, microseconds: int) -> None:
        """One more."""
        self.count += 1
        self.last_us = microseconds
        self.us += microseconds
        self.longest_us = max(self.longest_us, microseconds)

    def reset(self) -> None:
        """Count from nought; the last stays the last."""
        self.count = self.longest_us = self.us = 0


@dataclass(slots=True)
class Pauses:
    """Of one daemon. `clock` is in seconds."""

    clock: Callable[[], float] = time.perf_counter
    loop: Delays = field(default_factory=Delays)  # how late a timer of the loop is
    collections: Delays = field(default_factory=Delays)
    _collecting_since: float = 0.0
    _due: float = 0.0

    def watch_collector(self) -> None:
        """Count garbage collections from now on."""
        gc.callbacks.append(self._collected)

    def watch_loop(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        """Look at the loop from now on: `later` calls after so many seconds of real time."""
        self._due = self.clock() + _LOOK_S

        def look() -> None:
            self.loop.took(max(0, round((self.clock() - self._due) * 1e6)))
            self._due = self.clock() + _LOOK_S
            later(_LOOK_S, look)

        later(_LOOK_S, look)

    def close(self) -> None:
        """Look no more at the collector."""
        gc.callbacks.remove(self._collected)

    def reset(self) -> None:
        """Count from nought."""
        self.loop.reset()
        self.collections.reset()

    def numbers(self) -> dict[str, int]:
        """For `GetStatistics`; empty where the loop is not looked at."""
        if not self._due:
            return {}
        return {
            "loop_delays": self.loop.count,
            "loop_last_us": self.loop.last_us,
            "loop_longest_us": self.loop.longest_us,
            "loop_us": self.loop.us,
            "collections": self.collections.count,
            "collections_longest_us": self.collections.longest_us,
            "collections_us": self.collections.us,
        }

    def figures(self) -> Iterator[Family]:
        """For Prometheus."""
        from understudy.model.metrics import counter, gauge  # noqa: PLC0415  few ask for it

        for name, what, each in (
            ("understudy_loop_delay", "How late timers of the event loop were", self.loop),
            ("understudy_gc_pause", "How long garbage collections took", self.collections),
        ):
            text = f"{what}: "
            yield counter(f"{name}s_total", f"{text}how many.", each.count)
            yield counter(f"{name}_seconds_total", f"{text}in all.", each.us / 1e6)
            yield gauge(f"{name}_longest_seconds", f"{text}the longest.", each.longest_us / 1e6)

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = self.clock()
        else:
            self.collections.took(round((self.clock() - self._collecting_since) * 1e6))
