"""Scaled time: a straight line through (real instant, cluster's time), replaced when the rate
changes. Without I/O.

The real axis is the host's monotonic clock in seconds; the cluster's time is in microseconds since
its epoch.
"""

from __future__ import annotations


class Rates:
    """What time it is at a rate that may change."""

    def __init__(self, rate: float, real_s: float) -> None:
        self.wanted = rate  # when it is not paused
        self.segment: tuple[float, float, float] = (0.0, real_s, rate)

    def at(self, real_s: float) -> float:
        """The cluster's time (us) at a real instant."""
        base_us, base_s, rate = self.segment
        return base_us + (real_s - base_s) * rate * 1e6

    def set(self, rate: float, real_s: float) -> None:
        """Go on at another rate from now on; time never jumps."""
        self.segment = (self.at(real_s), real_s, rate)

    def stop(self, at_us: float, real_s: float) -> None:
        """Stand still at `at_us`."""
        self.segment = (at_us, real_s, 0.0)
