"""What is told of a loop that keeps others waiting, and of garbage collections.

Covers: clock/pauses.
"""

import gc

from understudy.clock.pauses import Delays, Pauses


class Loop:
    """Time that moves when it is told to, and timers that are called late."""

    def __init__(self):
        self.now, self.timers = 5.0, []

    def clock(self):
        return self.now

    def later(self, delay, callback):
        self.timers.append((self.now + delay, callback))

    def turn(self, *, late):
        ((due, callback),) = self.timers
        self.timers.clear()
        self.now = due + late
        callback()


def test_the_loop_is_as_late_as_its_timers():
    loop = Loop()
    pauses = Pauses(loop.clock)
    pauses.watch_loop(loop.later)
    for late in (0.0, 0.25, 0.003):
        loop.turn(late=late)
    assert pauses.loop == Delays(count=3, last_us=3000, longest_us=250_000, us=253_000)


def test_a_timer_that_is_early_by_a_rounding_is_not_late():
    loop = Loop()
    pauses = Pauses(loop.clock)
    pauses.watch_loop(loop.later)
    loop.turn(late=-1e-5)
    assert pauses.loop.us == 0


def test_collections_are_counted_until_it_is_closed():
    pauses = Pauses()
    pauses.watch_collector()
    try:
        gc.collect()
        assert pauses.collections.count >= 1
        assert pauses.collections.us >= pauses.collections.longest_us > 0
    finally:
        pauses.close()
    counted = pauses.collections.count
    gc.collect()
    assert pauses.collections.count == counted


def test_after_a_reset_the_last_is_still_the_last():
    loop = Loop()
    pauses = Pauses(loop.clock)
    pauses.watch_loop(loop.later)
    loop.turn(late=0.25)
    pauses.reset()
    assert pauses.loop == Delays(last_us=250_000)


def test_a_loop_that_nobody_looks_at_has_no_numbers():
    assert Pauses().numbers() == {}


def test_prometheus_is_told_seconds():
    loop = Loop()
    pauses = Pauses(loop.clock)
    pauses.watch_loop(loop.later)
    loop.turn(late=0.5)
    loop.turn(late=0.25)
    told = {family.name: family.samples[()] for family in pauses.figures()}
    assert told["understudy_loop_delays_total"] == 2
    assert told["understudy_loop_delay_seconds_total"] == 0.75
    assert told["understudy_loop_delay_longest_seconds"] == 0.5
    assert told["understudy_gc_pauses_total"] == 0
