"""When the schedulers run, phase for phase as Slurm's threads would, but as timers for the next
second at which there is something to do.

Place: scheduling, pure.

The controller's loop ticks about once a second (`rhythm.py`). When `sched_interval` has passed
since it last did so, counted from that first tick, it runs the main scheduler over the full queue;
at other ticks, if something asked for it and `batch_sched_delay` has passed since the loop last ran
it, over the first `default_queue_depth` jobs. The loop compares whole seconds. Nearly all that
happens only asks, and dependencies that are met and begin times that come do not even do that:
recordings of Slurm 22.05 start jobs at the loop's ticks, also those that wait for resources that
have just come back. But where a job was ended from outside (cancelled, timed out, preempted, its
node failed), the node's own word that it is clean runs the main scheduler at once, unless `defer`
is set, and leaves the loop as it was. The backfill scheduler sleeps `bf_interval` after each pass,
and then checks every second whether something has changed. To promise idle nodes, or nodes more
than once, is a change, too: the next pass follows at the interval.

A pass over an unchanged cluster decides what the last one decided, so such passes are left out, and
so are those with nothing pending; the counters go on as if they had taken place.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Final

from understudy.controller.rhythm import ROUNDING_S
from understudy.controller.scheduling.api import Note
from understudy.model.scheduler_parameters import backfill_interval_s, number

if TYPE_CHECKING:
    from understudy.controller.rhythm import Rhythm
    from understudy.controller.scheduling.api import PolicyParameters

FULL: Final = sys.maxsize  # queue depth
_FAR_S: Final = 86_400.0  # ours: what lies further ahead is not worked out tick by tick

# what is no reason for a tick to run
_UNASKED: Final = (Note.PRIORITY, Note.MET, Note.POWERED, Note.PARTLY_FREE, Note.TURN)


class MainTrigger:
    """When the main scheduler runs, and how deep."""

    def __init__(self, parameters: PolicyParameters, rhythm: Rhythm) -> None:
        self.read(parameters)
        self.rhythm = rhythm
        self._is_up = False  # somebody has told of the start
        self._at_once: float | None = None  # when nodes said that they are clean
        self._asked: float | None = None  # since when the loop is asked to schedule
        self._last_limited = -inf  # when the loop last asked for a limited run
        self._last_full = -inf
        self._last_run = -inf
        self._clock = -inf
        self._is_fresh = True  # something happened since the last run
        self._is_fresh_beyond = True  # ... since the last run over the full queue

    def read(self, parameters: PolicyParameters) -> None:
        """Take over the parameters. What has been asked for stays so."""
        self.delay_s = number(parameters, "batch_sched_delay", 3)
        self.interval_s = number(parameters, "sched_interval", 60, least=-1)
        self.depth = number(parameters, "default_queue_depth", 100, least=1)
        # between two runs that nodes ask for by being clean
        self.least_s = number(parameters, "sched_min_interval", 2) / 1e6
        self._defers = "defer" in parameters
        # numbers of the ticks that run over the full queue, as far as anybody has asked
        self._full_ticks: list[int] = []

    def note(self, what: Note, now: float) -> None:
        """As `SchedulingPolicy.note`."""
        self._is_up = True
        self._clock = max(self._clock, now)
        self._is_fresh = self._is_fresh_beyond = True
        if what is Note.CLEANED and not self._defers:
            self._at_once = (
                max(now, self._last_run + self.least_s) if self.least_s > ROUNDING_S else now
            )
        elif self._asked is None and what not in _UNASKED:
            self._asked = now

    def next_run(self, next_eligible: float | None) -> float:
        """When to run next; `next_eligible`: when a job's begin time comes. Infinite if never."""
        if not self._is_up or self.interval_s <= 0:
            return inf
        at = inf if self._at_once is None else self._at_once
        if self._asked is not None:
            at = min(at, self._limited_due())
        if self._is_fresh_beyond:
            at = min(at, self._full_from(self._clock))
        if next_eligible is not None:
            at = min(at, self._full_from(max(next_eligible, self._clock)))
        return at

    def take(self, now: float, next_eligible: float | None) -> int:
        """How deep the main scheduler is to look now, 0 for not at all."""
        depth = 0
        if self.interval_s <= 0:
            return depth
        now += ROUNDING_S
        if self._at_once is not None and self._at_once <= now:
            self._at_once = None
            depth = self.depth if self._is_fresh else depth
        is_eligible = next_eligible is not None and next_eligible <= now
        if self._asked is not None and self._limited_due() <= now:
            self._asked = None
            self._last_limited = now
            depth = self.depth if self._is_fresh else depth
        self._clock = max(self._clock, now)
        if self._full_from(now - self.rhythm.tick_s / 2) <= now and (
            self._is_fresh_beyond or is_eligible
        ):
            self._last_full = now
            self._asked = None
            depth = FULL
        if depth:
            self._is_fresh = False
            self._last_run = now - ROUNDING_S
        if depth == FULL:
            self._is_fresh_beyond = False
        return depth

    def put_off(self) -> None:
        """The run did not take place: what happened before it is still news to the next."""
        self._is_fresh = self._is_fresh_beyond = True

    def saw_all(self) -> None:
        """The run came to the end of the queue."""
        self._is_fresh_beyond = False

    def _full_from(self, when: float) -> float:
        """The first full run at or after that time that has not taken place; for a time that is far
        away a time at which to ask again.
        """
        number = self.rhythm.number_from(when)
        if when > self._clock + _FAR_S:
            return self.rhythm.tick(number)
        place = self._place_of_full(number)
        at = self.rhythm.tick(self._full_ticks[place])
        if at > self._last_full + ROUNDING_S:
            return at
        self._place_of_full(self._full_ticks[place] + 1)
        return self.rhythm.tick(self._full_ticks[place + 1])

    def _place_of_full(self, number: int) -> int:
        """Where in the list of full ticks the first is that is not before that tick. Whole seconds
        count, from the loop's beginning.
        """
        ticks = self._full_ticks
        while not ticks or ticks[-1] < number:
            last = ticks[-1] if ticks else 0
            second = floor(self.rhythm.tick(last) + ROUNDING_S)
            following = last + max(1, floor(self.interval_s / self.rhythm.tick_s) - 1)
            while floor(self.rhythm.tick(following) + ROUNDING_S) - second < self.interval_s:
                following += 1
            ticks.append(following)
        return bisect_left(ticks, number)

    def _limited_due(self) -> float:
        assert self._asked is not None
        number = self.rhythm.number_from(self._asked)
        place = self._place_of_full(number)
        last_full = self.rhythm.tick(self._full_ticks[place - 1] if place else 0)
        last = floor(max(self._last_limited, last_full) + ROUNDING_S)
        full = self._full_ticks[place]
        while number < full and floor(self.rhythm.tick(number) + ROUNDING_S) - last < self.delay_s:
            number += 1
        return self.rhythm.tick(number)

    def catch_up(self, now: float) -> None:
        """Nothing was pending, so nobody ran it: do to the counters what the runs until now would
        have done.
        """
        if self._at_once is not None and self._at_once < now:
            self._at_once = None
        if self._asked is not None and self.interval_s > 0:
            due = self._limited_due()
            if due < now:
                self._last_limited = due
                self._asked = None


class BackfillTrigger:
    """When the backfill scheduler runs."""

    def __init__(self, parameters: PolicyParameters, rhythm: Rhythm) -> None:
        self.read(parameters)
        self.rhythm = rhythm
        self._due: float | None = None
        self._changed: float | None = None
        self._noted = -inf  # when something changed last
        self._marked = False  # the last pass marked idle nodes as promised
        self._more = 0.0  # passes that follow it at the interval though nothing changes

    def read(self, parameters: PolicyParameters) -> None:
        """Take over the parameters; a pass for which the thread already sleeps comes when it would
        have come.
        """
        self.interval_s = backfill_interval_s(parameters)

    def note(self, now: float) -> None:
        """Something changed."""
        self._noted = now
        if self._due is None:
            self._due = self.rhythm.backfill_begins + self.interval_s
        if self._changed is None:
            self._changed = now

    def next_run(self) -> float:
        """When to run next; infinite if never."""
        if self._due is None or self._changed is None or self.interval_s <= 0:
            return inf
        late = self._changed - self._due
        if late <= 0:
            return self._due
        in_pace = min(ceil(late / self.interval_s), self._more) * self.interval_s
        return self._due + in_pace + ceil(max(late - in_pace, 0))

    def catch_up(self, now: float) -> None:
        """Nothing was pending, so nobody ran it: count as if the pass had taken place."""
        while (due := self.next_run()) < now:
            self.ran(due, changed=False, promised=False)

    def put_off(self, now: float) -> None:
        """The pass could not take place: a nap of a second, then another try."""
        self._due = now + 1

    def ran(self, now: float, *, changed: bool, promised: bool, marked: bool = False) -> None:
        """A pass is over; `changed`: it started jobs; `promised`: nodes were promised more than
        once, or idle ones (`marked`), and will be again.

        A pass that would decide the same is left out; but the next one then keeps to the interval.
        To take the marks away is a change as well.
        """
        self._more = inf if promised else float(self._marked)
        self._marked = marked
        self._due = now + self.interval_s
        self._changed = now if changed or int(max(self._noted, 0)) == int(now) else None
