"""How the controller's threads keep time: when they begin, and how long a tick takes.

Place: the vocabulary; a part of `cluster.json`. The defaults are what a controller does on a host
that has time; who replays what was recorded elsewhere names what that host took
(`experiments/recorded_machine.toml`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cadence:
    """Seconds. `begin_s`: from the controller's start to its loop's first tick; `tick_s`: from one
    tick to the next; `late_s`: once a minute, on top; `backfill_begin_s`: from the start until the
    backfill thread begins to sleep.
    """

    begin_s: float = 0.98
    tick_s: float = 1.0032
    late_s: float = 0.0
    backfill_begin_s: float = 0.57
