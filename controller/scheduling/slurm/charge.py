"""The cost model: what looking at a job costs the scheduler, in the cluster's time.

Place: scheduling, pure. Off unless SchedulerParameters has `understudy_cost_main_us` or
`understudy_cost_backfill_us` (microseconds for each job tested): computing takes no virtual time
then, and bf_max_time, bf_yield_interval, bf_yield_sleep, bf_continue and max_sched_time have
nothing to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.model.scheduler_parameters import backfill_interval_s, number

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import PolicyParameters

_US: int = 1_000_000


class Charge:
    """What one pass has cost so far. What is decided between two pauses is decided at the earlier
    one's end.
    """

    def __init__(
        self, cost_us: int, max_s: int, *, yield_interval_us: int = 0, yield_sleep_us: int = 0
    ) -> None:
        self.cost_us, self._max_us = cost_us, max_s * _US
        self._yield_interval_us, self._yield_sleep_us = yield_interval_us, yield_sleep_us
        self._began = 0.0
        self._spent_us = self._paused_us = 0

    @classmethod
    def of_main(cls, parameters: PolicyParameters) -> Charge:
        """The main scheduler's: it never yields."""
        return cls(
            number(parameters, "understudy_cost_main_us", 0),
            number(parameters, "max_sched_time", 2, least=1),
        )

    @classmethod
    def of_backfill(cls, parameters: PolicyParameters) -> Charge:
        """A backfill pass's."""
        interval_s = backfill_interval_s(parameters)
        return cls(
            number(parameters, "understudy_cost_backfill_us", 0),
            number(parameters, "bf_max_time", interval_s, least=1, most=3600),
            yield_interval_us=number(
                parameters, "bf_yield_interval", 2_000_000, least=1, most=10_000_000
            ),
            yield_sleep_us=number(parameters, "bf_yield_sleep", 500_000, least=1, most=10_000_000),
        )

    def begin(self, now: float) -> None:
        """A pass begins."""
        self._began = now
        self._spent_us = self._paused_us = 0

    @property
    def now(self) -> float:
        """What time it is when what has been done is paid for."""
        return self._began + self._spent_us / _US

    @property
    def is_used_up(self) -> bool:
        """Whether the pass has had its time."""
        return self._spent_us >= self._max_us

    def test(self) -> None:
        """A job has been tested."""
        self._spent_us += self.cost_us

    def pause(self) -> bool:
        """Whether it is time to let others in; then that is over at `now`."""
        if (
            not self._yield_interval_us
            or self._spent_us - self._paused_us < self._yield_interval_us
        ):
            return False
        self._spent_us += self._yield_sleep_us
        self._paused_us = self._spent_us
        return True
