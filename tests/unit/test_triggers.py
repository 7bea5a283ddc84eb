from math import inf

from understudy.controller.scheduling.triggers import FULL, BackfillTrigger, MainTrigger


def started(parameters=None):
    trigger = MainTrigger(parameters or {})
    trigger.note("start", 1000.0)
    assert trigger.take(1003.0, None)
    trigger.saw_all()
    return trigger


def test_the_loop_first_asks_when_the_delay_has_passed_since_the_start():
    trigger = MainTrigger({})
    trigger.note("submit", 1000.0)
    assert trigger.next_run(None) == 1003.0


def test_a_submission_waits_for_the_next_look_of_the_loop():
    trigger = started()
    trigger.note("submit", 1010.3)
    assert trigger.next_run(None) == 1011.0
    assert trigger.take(1011.0, None) == 100


def test_the_loop_does_not_ask_twice_within_the_delay():
    trigger = started()
    trigger.note("submit", 1010.3)
    trigger.take(1011.0, None)
    trigger.note("submit", 1011.2)
    assert trigger.next_run(None) == 1014.0


def test_resources_that_come_back_are_used_at_once():
    trigger = started()
    trigger.note("free", 1010.3)
    assert trigger.next_run(None) == 1010.3
    assert trigger.take(1010.3, None) == 100


def test_with_defer_resources_that_come_back_wait_for_the_loop():
    trigger = started({"defer": ""})
    trigger.note("free", 1010.3)
    assert trigger.next_run(None) == 1011.0


def test_the_full_queue_is_looked_at_every_minute_if_something_changed():
    trigger = started()
    assert trigger.next_run(None) == inf
    trigger.note("submit", 1010.3)
    trigger.take(1011.0, None)
    assert trigger.next_run(None) == 1060.0
    assert trigger.take(1060.0, None) == FULL
    assert trigger.next_run(None) == inf


def test_a_run_that_came_to_the_end_of_the_queue_spares_the_full_one():
    trigger = started()
    trigger.note("submit", 1010.3)
    trigger.take(1011.0, None)
    trigger.saw_all()
    assert trigger.next_run(None) == inf


def test_a_begin_time_waits_for_the_full_run():
    trigger = started()
    assert trigger.next_run(1061.0) == 1120.0
    assert trigger.take(1120.0, 1061.0) == FULL


def test_the_delay_counts_from_requests_that_nobody_needed():
    trigger = started()
    trigger.note("change", 1009.5)
    trigger.catch_up(1011.2)  # the loop asked at 1010
    trigger.note("submit", 1011.2)
    assert trigger.next_run(None) == 1013.0


def test_parameters_set_the_times():
    trigger = MainTrigger({"batch_sched_delay": "10", "default_queue_depth": "7", "sched_interval": "30"})
    trigger.note("submit", 0.0)
    assert trigger.next_run(None) == 10.0
    assert trigger.take(10.0, None) == 7
    assert trigger.next_run(None) == 30.0


def test_backfill_sleeps_first_and_after_each_pass():
    trigger = BackfillTrigger({})
    trigger.note(1000.0)
    assert trigger.next_run() == 1030.0
    trigger.ran(1030.0, changed=False)
    assert trigger.next_run() == inf
    trigger.note(1041.7)
    assert trigger.next_run() == 1060.0
    trigger.ran(1060.0, changed=True)
    assert trigger.next_run() == 1090.0


def test_backfill_looks_every_second_once_it_is_due():
    trigger = BackfillTrigger({"bf_interval": "60"})
    trigger.note(1000.0)
    trigger.ran(1060.0, changed=False)
    trigger.note(1200.4)
    assert trigger.next_run() == 1201.0
