"""An instant of a host's monotonic clock means something on that host alone."""

import time

from understudy.clock.host_clock import host_clock, instant_here


def test_an_instant_of_this_host_is_what_it_is():
    assert instant_here(17.5, host_clock()) == 17.5


def test_one_of_a_host_that_has_been_up_for_years_is_now():
    before = time.monotonic()
    assert before <= instant_here(1e9, "another host") <= time.monotonic()
