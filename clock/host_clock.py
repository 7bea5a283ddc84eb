"""Which monotonic clock this host has: each host's counts from its own start, so an instant of one
says nothing to another.
"""

from __future__ import annotations

import time
from pathlib import Path


def host_clock() -> str:
    """The same for all processes that share the clock: what random(4) says of the host's start."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def instant_here(monotonic_s: float, clock: str) -> float:
    """An instant of that clock by our own: that of another host has just come over the network, and
    is taken for now.
    """
    return monotonic_s if clock == host_clock() else time.monotonic()
