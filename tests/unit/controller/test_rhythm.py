"""When the controller's main loop looks."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.rhythm import (
    LATE_EVERY,
    LATE_FIRST,
    LATE_S,
    LOOK_S,
    look,
    look_before,
    look_from,
    next_look,
)

START = 1_600_000_000.0


def test_the_first_look_comes_a_second_after_the_start_and_others_every_second():
    assert look(START, 0) == START + 0.98
    steps = [
        look(START, number) - look(START, number - 1)
        for number in range(LATE_FIRST + 1, LATE_FIRST + LATE_EVERY)
    ]
    assert all(abs(step - LOOK_S) < 1e-6 for step in steps)


def test_one_look_a_minute_is_late():
    for number in (LATE_FIRST, LATE_FIRST + LATE_EVERY, LATE_FIRST + 7 * LATE_EVERY):
        assert abs(look(START, number) - look(START, number - 1) - LOOK_S - LATE_S) < 1e-6


@given(st.integers(0, 10_000_000))
def test_a_look_is_found_by_its_time(number):
    at = look(START, number)
    assert look_from(START, at) == number == look_before(START, at)
    assert look_from(START, at + 0.01) == number + 1
    assert look_before(START, at - 0.01) == number - 1
    assert next_look(START, at - 0.01) == at


def test_before_the_first_look_there_is_none():
    assert look_before(START, START + 0.5) == -1
    assert look_from(START, START - 10) == 0
