"""When the schedulers run, phase for phase as Slurm's threads would, but as timers for the next second at which there is something to do.

Place: scheduling, pure.

The controller's loop looks about once a second: ten naps of 100 ms and its own work make a look 1.003 s, and the first comes 0.87 s after the
start. Every `sched_interval` it runs the main scheduler over the full queue; at other looks, if something asked for it and `batch_sched_delay` has
passed since the loop last asked, over the first `default_queue_depth` jobs. Whatever happens only asks: recordings of Slurm 22.05 start jobs at the
loop's looks alone, also those that wait for resources that have just come back. The loop compares whole seconds. The backfill scheduler sleeps
`bf_interval` after each pass, and then looks every second whether something has changed.

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
_ROUNDING_S: Final = 1e-4  # timers keep microseconds, and a time since the epoch is not exact


FIRST_LOOK_S: Final = 0.87  # of the loop, after the controller's start
LOOK_S: Final = 1.003  # from one look of the loop to the next
BACKFILL_PHASE_S: Final = 0.57  # when the backfill thread begins to sleep, after the controller's start


class MainTrigger:
    """When the main scheduler runs, and how deep."""

    def __init__(self, parameters: PolicyParameters) -> None:
        self.delay_s = number(parameters, "batch_sched_delay", 3)
        self.interval_s = number(parameters, "sched_interval", 60, least=-1)
        self.depth = number(parameters, "default_queue_depth", 100, least=1)
        self.start: float | None = None
        self._asked: float | None = None  # since when the loop is asked to schedule
        self._last_limited = -inf  # when the loop last asked for a limited run
        self._last_full = -inf
        self._clock = -inf
        self._is_fresh = True  # something happened since the last run
        self._is_fresh_beyond = True  # ... since the last run over the full queue
        self._looks_a_full_run = max(1, ceil(self.interval_s / LOOK_S))

    def note(self, what: str, now: float) -> None:
        """As `SchedulingPolicy.note`."""
        if self.start is None:
            self.start = now
        self._clock = max(self._clock, now)
        self._is_fresh = self._is_fresh_beyond = True
        if self._asked is None and what != "priority":  # new priorities wait for a run that somebody else asks for
            self._asked = now

    def next_run(self, next_eligible: float | None) -> float:
        """When to run next; `next_eligible`: when a job's begin time comes. Infinite if never."""
        if self.start is None or self.interval_s <= 0:
            return inf
        at = inf
        if self._asked is not None:
            at = self._limited_due()
        if self._is_fresh_beyond:
            at = min(at, self._full_from(self._clock))
        if next_eligible is not None:
            at = min(at, self._full_from(max(next_eligible, self._clock)))
        return at

    def take(self, now: float, next_eligible: float | None) -> int:
        """How deep the main scheduler is to look now, 0 for not at all."""
        assert self.start is not None
        depth = 0
        if self.interval_s <= 0:
            return depth
        now += _ROUNDING_S
        is_eligible = next_eligible is not None and next_eligible <= now
        if self._asked is not None and self._limited_due() <= now:
            self._asked = None
            self._last_limited = now
            depth = self.depth if self._is_fresh else depth
        self._clock = max(self._clock, now)
        if self._full_from(now - LOOK_S / 2) <= now and (self._is_fresh_beyond or is_eligible):
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

    def _look(self, number: int) -> float:
        """When the loop looks for the nth time, from 0."""
        assert self.start is not None
        return self.start + FIRST_LOOK_S + number * LOOK_S

    def _look_from(self, when: float) -> int:
        """The number of the loop's first look at or after that time."""
        assert self.start is not None
        return max(ceil((when - self.start - FIRST_LOOK_S) / LOOK_S - _ROUNDING_S), 0)

    def _full_from(self, when: float) -> float:
        """The first full run at or after that time that has not taken place."""
        every = self._looks_a_full_run
        number = self._look_from(when)
        number += -(number + 1) % every
        at = self._look(number)
        return at if at > self._last_full + _ROUNDING_S else self._look(number + every)

    def _limited_due(self) -> float:
        assert self.start is not None
        assert self._asked is not None
        number = self._look_from(self._asked)
        every = self._looks_a_full_run
        last_full = self._look((number + 1) // every * every - 1) if number + 1 >= every else self.start
        last = max(self._last_limited, last_full)
        while floor(self._look(number)) - floor(last) < self.delay_s and (number + 1) % every:
            number += 1
        return self._look(number)

    def catch_up(self, now: float) -> None:
        """Nothing was pending, so nobody ran it: do to the counters what the runs until now would have done."""
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
            self._due = now + BACKFILL_PHASE_S + self.interval_s
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
