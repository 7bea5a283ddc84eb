"""When the controller's main loop ticks."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.rhythm import (
    LATE_EVERY,
    LATE_FIRST,
    LATE_S,
    TICK_S,
    next_tick,
    tick,
    tick_before,
    tick_from,
)

START = 1_600_000_000.0


def test_the_first_tick_comes_a_second_after_the_start_and_others_every_second():
    assert tick(START, 0) == START + 0.98
    steps = [
        tick(START, number) - tick(START, number - 1)
        for number in range(LATE_FIRST + 1, LATE_FIRST + LATE_EVERY)
    ]
    assert all(abs(step - TICK_S) < 1e-6 for step in steps)


def test_one_tick_a_minute_is_late():
    for number in (LATE_FIRST, LATE_FIRST + LATE_EVERY, LATE_FIRST + 7 * LATE_EVERY):
        assert abs(tick(START, number) - tick(START, number - 1) - TICK_S - LATE_S) < 1e-6


@given(st.integers(0, 10_000_000))
def test_a_look_is_found_by_its_time(number):
    at = tick(START, number)
    assert tick_from(START, at) == number == tick_before(START, at)
    assert tick_from(START, at + 0.01) == number + 1
    assert tick_before(START, at - 0.01) == number - 1
    assert next_tick(START, at - 0.01) == at


def test_before_the_first_tick_there_is_none():
    assert tick_before(START, START + 0.5) == -1
    assert tick_from(START, START - 10) == 0
