"""Which CPU a virtual cluster gets (see docs/adr/0007): the one that was idlest just now."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_SAMPLE_S: Final = 0.05  # ours: long enough for five ticks of the kernel


def idlest_cpu() -> int:
    """The number of one of the CPUs that we may use; -1 where the host does not say."""
    allowed = os.sched_getaffinity(0)
    try:
        before = _idle_ticks()
        time.sleep(_SAMPLE_S)
        after = _idle_ticks()
    except (OSError, ValueError):
        return -1
    idle = {cpu: after[cpu] - before[cpu] for cpu in after if cpu in allowed and cpu in before}
    most = max(idle.values(), default=0)
    candidates = sorted(cpu for cpu, ticks in idle.items() if ticks == most)
    return candidates[os.getpid() % len(candidates)] if candidates else -1


def _idle_ticks() -> dict[int, int]:
    ticks = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks[int(name[3:])] = int(fields[3]) + int(fields[4])
    return ticks
