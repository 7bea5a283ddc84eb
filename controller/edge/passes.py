"""When the scheduling policy runs: one timer at the time that it names, and its pass in slices.

Place: between the controller's core and its edge. Under virtual time, where computing takes no
time, a pass runs whole. Else it holds the locks for a slice of some milliseconds and then lets
waiting requests in, as Slurm's backfill yields its locks. The longer those take, the longer the
next slice may be: in a storm of requests jobs start, too.

A pass that raises, in a policy or in what it calls, is over like any other. What failed is told to
the core, which knows whether this ends the run.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from understudy.controller.edge.rpc import PASS_NEEDS
from understudy.controller.jobs.crontabs import only_entries_wait
from understudy.controller.jobs.hold import set_aside
from understudy.controller.jobs.stage_in import prepare
from understudy.controller.pending.eligibility import split_waiting
from understudy.controller.pending.prioritise import update_accrual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.core.core import Core
    from understudy.controller.core.locks import Locks
    from understudy.controller.ports import TimerHandle

SLICE_S: Final = 0.005  # ours: for as long a pass holds the locks at least
# ours: at most, where others have had them for as long before: a pass that got no more while
# requests poured in would take ten times as long and more, and no job would start
LONGEST_SLICE_S: Final = 0.02
PUT_OFF_S: Final = 1.0  # ours: until the schedulers check again whether there are fewer requests
# slurm.conf(5), the default of bf_yield_sleep: until a backfill pass checks again
YIELD_S: Final = 0.5
LONGEST_PUT_OFF_S: Final = 60.0  # ours: after passes that failed
# ours: by how much a pass that is due at once is later under virtual time: after all that other
# daemons say at that instant, in whichever order it comes
_MOMENT_S: Final = 0.001
FEW_REQUESTS: Final = 20  # with as many at most, or a tenth of max_rpc_cnt, such a pass goes on


class _End(Enum):
    """Why a pass has stopped."""

    OVER = auto()
    SLICE = auto()  # others have their turn
    PAUSED = auto()  # it wants to go on later, and will


class Passes:
    """Runs `core.policy`. `soon` calls a function after what waits now has been handled; `clock`
    measures real time (both the edge's).
    """

    def __init__(
        self,
        core: Core,
        locks: Locks,
        *,
        soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float],
    ) -> None:
        self._core, self._locks, self._soon, self._clock = core, locks, soon, clock
        self._timer: tuple[float, TimerHandle] | None = None
        self._is_running = False
        self._pass: Iterator[float | None] | None = None  # None until a running one has the locks
        self.passes = self.slices = 0
        # that wait for locks or are being answered in slices; the server counts them
        self.requests = 0
        self.most_requests = 0  # from so many on no pass begins (max_rpc_cnt); 0: any number
        self._not_before = -math.inf
        self._failures = 0  # one after the other, with nobody to blame
        self._began = 0.0
        self._stopped = 0.0  # when the last slice was over
        self._counted_before = (0, 0)  # the schedulers' cycles when the pass began

    @property
    def is_running(self) -> bool:
        """Whether a pass has begun and is not over."""
        return self._is_running

    def arm(self) -> None:
        """Set the timer to when the policy wants to run next. To be called after everything that
        was handled.
        """
        if self._core.power is not None:
            self._core.power.arm()
        if self._is_running:
            return
        when = self._core.policy.next_run()
        if when is not None and when < self._not_before:
            when = self._not_before
        core, timer = self._core, self._timer
        if when is not None and core.time.is_virtual and when <= core.time.now():
            when += _MOMENT_S
        if timer is not None:
            if timer[0] == when:
                return
            timer[1].cancel()
            self._timer = None
        if when is None or when == math.inf:
            return
        if core.crontabs.entries:
            self._timer = (
                when,
                core.time.call_periodically(when, lambda: not only_entries_wait(core), self._due),
            )
        else:
            self._timer = (when, core.time.call_at(when, self._due))

    def _due(self) -> None:
        self._timer = None
        if self._is_running:
            return
        if self.most_requests and self.requests >= self.most_requests:
            self._not_before = self._core.time.now() + PUT_OFF_S
            self.arm()
            return
        self.passes += 1
        main, backfill = self._core.policy.main_cycles, self._core.policy.backfill_cycles
        self._began, self._counted_before = self._clock(), (backfill.count, main.count)
        self._is_running = True
        self._go_on()

    def _begin(self) -> Iterator[float | None]:
        core = self._core
        now = core.time.now()
        core.tables.looked_at = None
        if core.unsplit:
            split_waiting(core, now)
        if core.tables.burst_buffers:
            prepare(core, now)
        update_accrual(core, now)
        return iter(core.policy.run(now))

    def _go_on(self) -> None:
        if self._core.time.is_virtual and self._locks.available(PASS_NEEDS):
            if self._advance(math.inf) is _End.OVER:
                self._ended()
        else:
            self._stopped = self._clock()
            self._locks.when_available(PASS_NEEDS, self._slice)

    def _advance(self, until: float) -> _End:
        """Let the pass run until then, by the real clock."""
        try:
            if self._pass is None:
                self._pass = self._begin()
            for pause in self._pass:
                if pause is not None and self._pauses(pause):
                    return _End.PAUSED
                if until != math.inf and self._clock() >= until:
                    return _End.SLICE
        except Exception as error:  # noqa: BLE001 - policies and selectors may be anybody's
            self._failed(error)
        else:
            self._failures = 0
        return _End.OVER

    def _failed(self, error: Exception) -> None:
        """The pass is over. The job that it was at is set aside, so that others have their turn;
        else the next pass waits, each time longer.
        """
        core, job = self._core, self._core.tables.looked_at
        now = core.time.now()
        if job is None or not job.is_pending or not job.priority:
            self._failures += 1
            self._not_before = now + min(PUT_OFF_S * 2**self._failures, LONGEST_PUT_OFF_S)
            core.fail("the scheduler's pass", error)
            return
        self._not_before = now + PUT_OFF_S
        core.fail(f"the scheduler's pass, at job {job.job_id}, which is held now,", error)
        set_aside(core, job, now)

    def _pauses(self, until: float) -> bool:
        """The pass wants to go on at that time; False if it has come."""
        if until <= self._core.time.now():
            return False
        self._core.time.call_at(until, self._go_on)
        self._core.after_event()
        return True

    def _slice(self) -> None:
        """One slice, with the locks held: as long as others had had since the last one."""
        self.slices += 1
        now = self._clock()
        turn = min(max(now - self._stopped, SLICE_S), LONGEST_SLICE_S)
        try:
            end = self._advance(now + turn)
        finally:
            self._core.shown_anew()  # before anybody is let in
            self._locks.drop(PASS_NEEDS)
            self._stopped = self._clock()
        if end is _End.OVER:
            self._ended()
        elif end is _End.SLICE:
            is_too_much = bool(self.most_requests) and self.requests >= self.most_requests
            self._soon(
                self._when_few if is_too_much and self._core.policy.gives_way else self._next_slice
            )

    def _next_slice(self) -> None:
        self._locks.when_available(PASS_NEEDS, self._slice)

    def _when_few(self) -> None:
        """A backfill pass that has made way for requests goes on when few of them are left; the
        main scheduler's, once begun, comes to its end.
        """
        if self.requests > max(self.most_requests // 10, FEW_REQUESTS):
            self._core.time.call_at(self._core.time.now() + YIELD_S, self._when_few)
        else:
            self._next_slice()

    def _ended(self) -> None:
        self._is_running, self._pass = False, None
        backfill, main = self._core.policy.backfill_cycles, self._core.policy.main_cycles
        before_backfill, before_main = self._counted_before
        # of both the one whose cycle takes longer
        cycles = backfill if backfill.count > before_backfill else main
        if cycles is backfill or main.count > before_main:
            cycles.took(int((self._clock() - self._began) * 1e6))
        self._core.after_event()
