"""A cluster's time, for who drives it: under virtual time it stands until it is told to go on.

Place: of the API; the questions are those of `understudy clock`.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from understudy.api.errors import UnderstudyError, in_our_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.shared.locate import Location
    from understudy.protocol.messages import ClockStatus

_POLL_S: Final = (0.002, 0.1)  # ours: between two looks, at first and at last
# seconds since the epoch, an instant of the time zone of this process or of its own, a time after
# the cluster's start (or as text: 30d, 12h, 2030-01-20T12:00:00)
When: TypeAlias = "float | datetime | timedelta | str"


class Clock:
    """The clock of one cluster.

    Under real time it can be read alone; whatever else is asked raises `UnderstudyError`.
    """

    def __init__(self, location: Callable[[], Location], zero: float) -> None:
        """Not for callers: a cluster has one (`Cluster.clock`). `zero`: when its time began."""
        self._location = location
        self._zero = zero

    @property
    def now(self) -> float:
        """The cluster's time, in seconds since the epoch."""
        return self._ask("status").now if self._location().clock else time.time()

    @property
    def state(self) -> str:
        """`running`; `paused`; `idle`: nobody in the cluster has anything left to do, so that
        virtual time stands until something is submitted.
        """
        return self._ask("status").state if self._location().clock else "running"

    def pause(self) -> None:
        """Stop time. Commands go on working on the cluster as it is."""
        self._ask("pause")

    def resume(self) -> None:
        """Let time go on: under virtual time as fast as possible, until nothing is left to do."""
        self._ask("resume")

    def run_until(self, when: When, timeout_s: float | None = 60.0) -> float:
        """Let time go on to an instant, and stop there; returns when it is there, with the time.

        Args:
            when: seconds since the epoch; a datetime; a timedelta, or a text as `1d12h`, after the
                cluster's start; a text as `2030-01-20T12:00:00`.
            timeout_s: how long to wait for it, in real seconds; None: as long as it takes.

        Raises:
            UnderstudyError: the instant is past, or no instant; or time cannot be driven.
            TimeoutError: it takes longer.
        """
        from understudy.tool.cluster.clock_client import instant

        match when:
            case str():
                try:
                    until = instant(when, self._zero)
                except ValueError as error:
                    raise UnderstudyError(str(error)) from None
            case datetime():
                until = when.timestamp()
            case timedelta():
                until = self._zero + when.total_seconds()
            case _:
                until = float(when)
        self._ask("run-until", until)
        return self._stopped(f"the clock to come to {when}", timeout_s)

    def advance(self, seconds: float, timeout_s: float | None = 60.0) -> float:
        """Let so many seconds pass in the cluster, and stop; returns the time then.

        Raises:
            UnderstudyError, TimeoutError: as `run_until`.
        """
        self._ask("step-for", seconds)
        return self._stopped(f"{seconds:g} s to pass in the cluster", timeout_s)

    def _stopped(self, what: str, timeout_s: float | None) -> float:
        pause, longest = _POLL_S
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (status := self._ask("status")).state == "running":
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"waited {timeout_s:g} s for {what}; it is at {status.now:.3f}")
            time.sleep(pause)
            pause = min(pause * 2, longest)
        return status.now

    def _ask(self, action: str, value: float = 0.0) -> ClockStatus:
        from understudy.tool.cluster.clock_client import ask

        with in_our_words():
            return ask(self._location(), action, value)
