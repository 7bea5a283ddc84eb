"""When a reservation begins, ends and comes again: weekdays, repetitions, and the ticks of Slurm's
loop at which it is seen.

Place: reservations. Follows: scontrol(1) "RESERVATIONS".
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from understudy.model.reservations import DAILY, HOURLY, TIME_FLOAT, WEEKDAY, WEEKEND, WEEKLY

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.reservation import Reservation

# of the controller's loop, from one check for begun reservations to the next
TICKS_A_BEGIN: Final = 5
TICKS_AN_END: Final = 30
# a week of days, and some: jobs for which no time was right in all of them wait for something else
IDLE_ROUNDS: Final = 10
FRIDAY, SATURDAY, SUNDAY = 4, 5, 6

# --- time -----------------------------------------------------------------------------------------


def tick_from(core: Core, when: float, every: int) -> float:
    """The loop's first tick at or after that time, counting only each `every`th."""
    rhythm = core.tables.rhythm
    number = rhythm.number_from(when)
    return rhythm.tick(number + -(number + 1) % every)


def last_tick(core: Core, now: float, every: int) -> float:
    """The loop's last such tick; before the first, the start."""
    rhythm = core.tables.rhythm
    number = rhythm.number_before(now)
    number -= (number + 1) % every
    return rhythm.tick(number) if number >= 0 else rhythm.start


def come_again(reservation: Reservation) -> bool:
    """Move a repeating reservation to its next time. False if it is none."""
    flags = reservation.flags
    if flags & HOURLY:
        step = timedelta(hours=1)
    elif flags & (DAILY | WEEKDAY | WEEKEND):
        step = timedelta(days=1)
    elif flags & WEEKLY:
        step = timedelta(weeks=1)
    else:
        return False
    start = datetime.fromtimestamp(reservation.start_time)  # noqa: DTZ006 - days are those of the site's clock
    while True:
        start += step
        if flags & WEEKDAY and start.weekday() >= SATURDAY:
            continue
        if flags & WEEKEND and start.weekday() < SATURDAY:
            continue
        break
    duration = reservation.duration_s
    reservation.start_time = int(start.timestamp())
    reservation.end_time = reservation.start_time + duration
    reservation.has_ended = False
    return True


def skip(reservation: Reservation) -> bool:
    """Leave out the time that runs or comes next. False if it does not repeat, or floats."""
    return not reservation.flags & TIME_FLOAT and come_again(reservation)
