"""When the controller's main loop ticks."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.rhythm import LATE_EVERY, LATE_FIRST, Rhythm
from understudy.model.cadence import Cadence

START = 1_600_000_000.0
RHYTHM = Rhythm(START, Cadence(late_s=0.025))


def test_the_first_tick_comes_a_second_after_the_start_and_others_every_second():
    assert RHYTHM.tick(0) == START + 0.98
    steps = [
        RHYTHM.tick(number) - RHYTHM.tick(number - 1)
        for number in range(LATE_FIRST + 1, LATE_FIRST + LATE_EVERY)
    ]
    assert all(abs(step - RHYTHM.tick_s) < 1e-6 for step in steps)


def test_one_tick_a_minute_is_late():
    for number in (LATE_FIRST, LATE_FIRST + LATE_EVERY, LATE_FIRST + 7 * LATE_EVERY):
        late = RHYTHM.tick(number) - RHYTHM.tick(number - 1) - RHYTHM.tick_s
        assert abs(late - RHYTHM.cadence.late_s) < 1e-6


def test_no_tick_is_late_unless_the_host_is_said_to_have_been():
    rhythm = Rhythm(START)
    far = 1000 * LATE_EVERY
    assert abs(rhythm.tick(far) - rhythm.tick(0) - far * rhythm.tick_s) < 1e-6


def test_the_host_may_take_other_times():
    rhythm = Rhythm(START, Cadence(begin_s=0.25, tick_s=1.5, late_s=0.0, backfill_begin_s=0.125))
    assert [rhythm.tick(0), rhythm.tick(100)] == [START + 0.25, START + 150.25]
    assert rhythm.backfill_begins == START + 0.125


@given(st.integers(0, 10_000_000))
def test_a_tick_is_found_by_its_time(number):
    at = RHYTHM.tick(number)
    assert RHYTHM.number_from(at) == number == RHYTHM.number_before(at)
    assert RHYTHM.number_from(at + 0.01) == number + 1
    assert RHYTHM.number_before(at - 0.01) == number - 1
    assert RHYTHM.next_tick(at - 0.01) == at


def test_before_the_first_tick_there_is_none():
    assert RHYTHM.number_before(START + 0.5) == -1
    assert RHYTHM.number_from(START - 10) == 0
