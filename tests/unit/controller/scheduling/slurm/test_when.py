"""When schedulers run: at the loop's ticks, as recordings of Slurm show."""

from math import inf

import pytest

from understudy.controller.rhythm import Rhythm
from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.slurm.when import FULL, BackfillTrigger, MainTrigger

START = 1000.0
RHYTHM = Rhythm(START)


def tick(number):
    return pytest.approx(RHYTHM.tick(number), abs=1e-6)


def started(parameters=None):
    """A trigger that has seen all there was at its third look."""
    trigger = MainTrigger(parameters or {}, RHYTHM)
    trigger.note(Note.START, START)
    at = trigger.next_run(None)
    assert at == tick(3)
    assert trigger.take(at, None)
    trigger.saw_all()
    return trigger


def test_the_loop_first_asks_when_the_delay_has_passed_since_the_start():
    started()


def test_a_submission_waits_for_the_next_look_of_the_loop():
    trigger = started()
    trigger.note(Note.SUBMIT, START + 10.3)
    at = trigger.next_run(None)
    assert at == tick(10)
    assert trigger.take(at, None) == 100


def test_resources_that_come_back_wait_for_the_loop_as_recordings_show():
    trigger = started()
    trigger.note(Note.FREE, START + 10.3)
    assert trigger.next_run(None) == tick(10)


def test_the_loop_does_not_ask_twice_within_the_delay():
    trigger = started()
    trigger.note(Note.SUBMIT, START + 10.3)
    trigger.take(trigger.next_run(None), None)
    trigger.note(Note.SUBMIT, START + 11.2)
    assert trigger.next_run(None) == tick(13)


def test_the_full_queue_is_looked_at_every_minute_if_something_changed():
    trigger = started()
    assert trigger.next_run(None) == inf
    trigger.note(Note.SUBMIT, START + 10.3)
    trigger.take(trigger.next_run(None), None)
    at = trigger.next_run(None)
    assert at == tick(59)
    assert trigger.take(at, None) == FULL
    assert trigger.next_run(None) == inf


def test_a_run_that_came_to_the_end_of_the_queue_spares_the_full_one():
    trigger = started()
    trigger.note(Note.SUBMIT, START + 10.3)
    trigger.take(trigger.next_run(None), None)
    trigger.saw_all()
    assert trigger.next_run(None) == inf


def test_a_begin_time_waits_for_the_full_run():
    trigger = started()
    at = trigger.next_run(START + 61.0)
    assert at == tick(119)
    assert trigger.take(at, START + 61.0) == FULL


def test_the_delay_counts_from_requests_that_nobody_needed():
    trigger = started()
    trigger.note(Note.CHANGE, START + 9.5)
    trigger.catch_up(START + 11.2)  # the loop asked at its tenth look
    trigger.note(Note.SUBMIT, START + 11.2)
    assert trigger.next_run(None) == tick(12)


def test_a_timer_that_lost_a_microsecond_runs_all_the_same():
    trigger = started()
    trigger.note(Note.SUBMIT, START + 10.3)
    assert trigger.take(trigger.next_run(None) - 1e-6, None) == 100
    assert trigger.next_run(None) == tick(59)


def test_parameters_set_the_times():
    trigger = MainTrigger(
        {"batch_sched_delay": "10", "default_queue_depth": "7", "sched_interval": "30"}, RHYTHM
    )
    trigger.note(Note.SUBMIT, START)
    at = trigger.next_run(None)
    assert at == tick(9)
    assert trigger.take(at, None) == 7
    assert trigger.next_run(None) == tick(29)


def test_full_runs_count_whole_seconds_from_the_first_look():
    start = START + 0.35
    rhythm = Rhythm(start)
    trigger = MainTrigger({}, rhythm)
    trigger.note(Note.START, start)
    at = trigger.next_run(None)
    trigger.take(at, None)
    trigger.saw_all()
    numbers = []
    for minute in range(1, 7):
        at = trigger.next_run(start + 60.0 * minute)
        numbers.append(rhythm.number_from(at))
        assert trigger.take(at, START) == FULL
    assert numbers == [60, 120, 180, 239, 299, 359], (
        "the fourth look of a minute comes at the end of its second: one look fewer is enough"
    )


def test_a_begin_time_far_away_is_asked_about_again_when_it_comes():
    trigger = started()
    when = START + 400 * 86400.0
    at = trigger.next_run(when)
    assert when <= at < when + 2 * RHYTHM.tick_s
    trigger.note(Note.MET, at)
    assert trigger.next_run(at) < at + 61


def test_a_dependency_that_is_met_waits_for_a_run_that_somebody_else_asks_for():
    trigger = started()
    trigger.note(Note.MET, START + 10.3)
    assert trigger.next_run(None) == tick(59), "the next full run"
    trigger.note(Note.SUBMIT, START + 20.3)
    assert trigger.next_run(None) == tick(20)


def test_a_full_run_resets_the_delay():
    trigger = started()
    trigger.note(Note.SUBMIT, tick(56).expected)
    assert trigger.take(trigger.next_run(None), None) == 100
    trigger.note(Note.SUBMIT, tick(58).expected + 0.1)
    assert trigger.take(tick(59).expected, None) == FULL
    trigger.note(Note.SUBMIT, tick(59).expected + 0.1)
    assert trigger.next_run(None) == tick(62)


def test_nodes_that_say_they_are_clean_run_the_main_scheduler_at_once_and_leave_the_loop_alone():
    trigger = started()
    trigger.note(Note.SUBMIT, START + 10.3)
    assert trigger.take(trigger.next_run(None), None) == 100
    trigger.note(Note.SUBMIT, START + 11.5)
    trigger.note(Note.CLEANED, START + 12.1)
    assert trigger.next_run(None) == START + 12.1
    assert trigger.take(START + 12.1, None) == 100
    trigger.note(Note.SUBMIT, START + 12.2)
    assert trigger.next_run(None) == tick(13)


def test_with_defer_clean_nodes_wait_for_the_loop():
    trigger = started({"defer": ""})
    trigger.note(Note.CLEANED, START + 10.3)
    assert trigger.next_run(None) == tick(10)


def test_nothing_is_left_to_do_at_once_after_a_time_without_jobs():
    trigger = started()
    trigger.note(Note.CLEANED, START + 12.1)
    trigger.catch_up(START + 500.0)
    trigger.note(Note.SUBMIT, START + 500.0)
    assert trigger.next_run(None) >= START + 500.0


def test_backfill_sleeps_first_and_after_each_pass():
    trigger = BackfillTrigger({}, RHYTHM)
    trigger.note(START)
    assert trigger.next_run() == pytest.approx(1030.57)
    trigger.ran(1030.57, changed=False, promised=False)
    assert trigger.next_run() == inf
    trigger.note(1041.7)
    assert trigger.next_run() == pytest.approx(1060.57)
    trigger.ran(1060.57, changed=True, promised=False)
    assert trigger.next_run() == pytest.approx(1090.57)


def test_backfill_looks_every_second_once_it_is_due():
    trigger = BackfillTrigger({"bf_interval": "60"}, RHYTHM)
    trigger.note(START)
    trigger.ran(1060.57, changed=False, promised=False)
    trigger.note(1200.4)
    assert trigger.next_run() == pytest.approx(1200.57)


def test_backfill_keeps_to_its_interval_after_promises():
    trigger = BackfillTrigger({}, RHYTHM)
    trigger.note(START)
    trigger.ran(1030.57, changed=False, promised=True)
    trigger.note(1063.4)
    assert trigger.next_run() == pytest.approx(1090.57)


def test_backfill_keeps_to_its_interval_once_more_when_it_has_taken_marks_from_idle_nodes():
    trigger = BackfillTrigger({}, RHYTHM)
    trigger.note(START)
    trigger.ran(1030.57, changed=False, promised=True, marked=True)
    trigger.note(1040.0)
    trigger.ran(trigger.next_run(), changed=False, promised=False)
    trigger.note(1095.4)
    assert trigger.next_run() == pytest.approx(1120.57), "there was one at 1090"
    trigger.ran(1120.57, changed=False, promised=False)
    trigger.note(1155.4)
    assert trigger.next_run() == pytest.approx(1155.57), "and from 1150 on it looks every second"


def test_a_change_in_the_second_of_a_backfill_pass_brings_the_next_at_the_interval():
    trigger = BackfillTrigger({"bf_interval": "15"}, RHYTHM)
    trigger.note(START)
    trigger.note(1015.1)
    trigger.ran(1015.57, changed=False, promised=False)
    assert trigger.next_run() == pytest.approx(1030.57)
    trigger.ran(1030.57, changed=False, promised=False)
    assert trigger.next_run() == inf
    trigger.note(1044.9)
    trigger.ran(1045.57, changed=False, promised=False)
    assert trigger.next_run() == inf


def test_nothing_is_left_to_backfill_after_a_time_without_jobs():
    trigger = BackfillTrigger({"bf_interval": "15"}, RHYTHM)
    trigger.note(START)
    trigger.note(1015.1)
    trigger.catch_up(1100.0)
    assert trigger.next_run() == inf
