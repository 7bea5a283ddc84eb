"""When the schedulers run, phase for phase as Slurm's threads would, but as timers for the next second at which there is something to do.

Place: scheduling, pure.

The controller's loop looks once a second, at start + 1, + 2, ... Every `sched_interval` it runs the main scheduler over the full queue; in other
seconds, if something asked for it and `batch_sched_delay` has passed since the loop last asked, over the first `default_queue_depth` jobs. Resources
that come back run it at once. The backfill scheduler sleeps `bf_interval` after each pass, and then looks every second whether something
has changed.

A pass over an unchanged cluster decides what the last one decided, so such passes are left out, and so are those with nothing pending; the
counters go on as if they had taken place.
"""

from __future__ import annotations

import sys
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Final

from understudy.controller.scheduling.parameters import number

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import PolicyParameters

FULL: Final = sys.maxsize  # queue depth


class MainTrigger:
    """When the main scheduler runs, and how deep."""

    def __init__(self, parameters: PolicyParameters) -> None:
        self.delay_s = number(parameters, "batch_sched_delay", 3)
        self.interval_s = number(parameters, "sched_interval", 60, least=-1)
        self.depth = number(parameters, "default_queue_depth", 100, least=1)
        self.defers = "defer" in parameters
        self.start: float | None = None
        self._asked: float | None = None  # since when the loop is asked to schedule
        self._at_once: float | None = None
        self._last_limited = -inf  # when the loop last asked for a limited run
        self._last_full = -inf
        self._clock = -inf
        self._is_fresh = True  # something happened since the last run
        self._is_fresh_beyond = True  # ... since the last run over the full queue

    def note(self, what: str, now: float) -> None:
        """As `SchedulingPolicy.note`."""
        if self.start is None:
            self.start = now
        self._clock = max(self._clock, now)
        self._is_fresh = self._is_fresh_beyond = True
        if what == "free" and not self.defers:
            if self._at_once is None:
                self._at_once = now
        elif self._asked is None:
            self._asked = now

    def next_run(self, next_eligible: float | None) -> float:
        """When to run next; `next_eligible`: when a job's begin time comes. Infinite if never."""
        if self.start is None:
            return inf
        at = inf if self._at_once is None else self._at_once
        if self.interval_s > 0:
            if self._asked is not None:
                at = min(at, self._limited_due())
            if self._is_fresh_beyond:
                at = min(at, self._full_from(self._clock))
            if next_eligible is not None:
                at = min(at, self._full_from(max(next_eligible, self._clock)))
        return at

    def take(self, now: float, next_eligible: float | None) -> int:
        """How deep the main scheduler is to look now, 0 for not at all."""
        assert self.start is not None
        depth = 0
        if self._at_once is not None and self._at_once <= now:
            self._at_once = None
            depth = self.depth
        is_eligible = next_eligible is not None and next_eligible <= now
        if self._asked is not None and self.interval_s > 0 and self._limited_due() <= now:
            self._asked = None
            self._last_limited = now
            depth = self.depth if self._is_fresh else depth
        self._clock = max(self._clock, now)
        if self.interval_s > 0 and self._full_from(now) <= now and (self._is_fresh_beyond or is_eligible):
            self._last_full = now
            self._asked = None
            depth = FULL
        if depth:
            self._is_fresh = False
        if depth == FULL:
            self._is_fresh_beyond = False
        return depth

    def saw_all(self) -> None:
        """The run came to the end of the queue."""
        self._is_fresh_beyond = False

    def _tick_from(self, when: float) -> float:
        """The loop's first look at or after that time."""
        assert self.start is not None
        return self.start + max(ceil(when - self.start), 1)

    def _full_from(self, when: float) -> float:
        """The first full run at or after that time that has not taken place."""
        assert self.start is not None
        at = self.start + self.interval_s * max(ceil((when - self.start) / self.interval_s), 1)
        return at if at > self._last_full else at + self.interval_s

    def _limited_due(self) -> float:
        assert self.start is not None
        assert self._asked is not None
        asked = self._tick_from(self._asked)
        grid = self.start + self.interval_s * floor((asked - self.start) / self.interval_s)
        last = max(self._last_limited, self.start, grid)
        due = max(asked, self._tick_from(last + self.delay_s))
        # A full run in the meantime serves as well.
        return min(due, max(self._full_from(asked), asked))

    def catch_up(self, now: float) -> None:
        """Nothing was pending, so nobody ran it: do to the counters what the runs until now would have done."""
        if self._at_once is not None and self._at_once < now:
            self._at_once = None
        if self._asked is not None and self.interval_s > 0:
            due = self._limited_due()
            if due < now:
                self._last_limited = due
                self._asked = None


class BackfillTrigger:
    """When the backfill scheduler runs."""

    def __init__(self, parameters: PolicyParameters) -> None:
        self.interval_s = number(parameters, "bf_interval", 30, least=-1, most=10_800)
        self._due: float | None = None
        self._changed: float | None = None

    def note(self, now: float) -> None:
        """Something changed."""
        if self._due is None:
            self._due = now + self.interval_s
        if self._changed is None:
            self._changed = now

    def next_run(self) -> float:
        """When to run next; infinite if never."""
        if self._due is None or self._changed is None or self.interval_s <= 0:
            return inf
        return self._due + max(ceil(self._changed - self._due), 0)

    def catch_up(self, now: float) -> None:
        """Nothing was pending, so nobody ran it: count as if the pass had taken place."""
        due = self.next_run()
        if due < now:
            self.ran(due, changed=False)

    def ran(self, now: float, *, changed: bool) -> None:
        """A pass is over; `changed`: it started jobs."""
        self._due = now + self.interval_s
        self._changed = now if changed else None
