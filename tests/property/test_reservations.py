"""Whether two reservations ever meet: as if each time of the one were held against each of the
other.
"""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.reservations.choose import meet
from understudy.controller.reservations.times import come_again
from understudy.controller.tables.reservation import Reservation
from understudy.model.reservations import DAILY, HOURLY, TIME_FLOAT, WEEKDAY, WEEKEND, WEEKLY

NOW = 1_700_000_000
DAYS_AHEAD = 14


@st.composite
def reservations(draw: st.DrawFn) -> Reservation:
    start = draw(st.integers(0, 8 * 24 * 12)) * 300
    duration = draw(st.sampled_from((60, 300, 1800, 3600, 7200, 86_400, 400_000)))
    flags = draw(st.sampled_from((0, HOURLY, DAILY, WEEKDAY, WEEKEND, WEEKLY)))
    if draw(st.booleans()):
        return Reservation("r", 1, start, start + duration, flags=flags | TIME_FLOAT)
    return Reservation("r", 1, NOW + start, NOW + start + duration, flags=flags)


def times(reservation: Reservation) -> list[tuple[int, int]]:
    each = Reservation(
        "r", 1, reservation.start(NOW), reservation.end(NOW), flags=reservation.flags
    )
    found = [(each.start_time, each.end_time)]
    while come_again(each) and each.start_time < found[0][0] + DAYS_AHEAD * 86_400:
        found.append((each.start_time, each.end_time))
    return found


@given(reservations(), reservations())
def test_reservations_meet_if_any_of_their_times_do(one: Reservation, other: Reservation) -> None:
    expected = any(
        start < behind and begin < end
        for (start, end), (begin, behind) in product(times(one), times(other))
    )
    assert meet(one, other, NOW) == meet(other, one, NOW) == expected
