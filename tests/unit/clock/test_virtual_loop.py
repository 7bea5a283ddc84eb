"""Ordinary asyncio code under virtual time.

Covers: clock/timers.
"""

import asyncio
import os
import socket
import time

import pytest

from understudy.clock.timers import NEVER
from understudy.clock.virtual_loop import VirtualEventLoop


def run(main):
    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        return runner.run(main())


def test_a_year_of_sleep_takes_no_real_time():
    async def main():
        began = time.monotonic()
        await asyncio.sleep(365 * 86400)
        return asyncio.get_running_loop().time(), time.monotonic() - began

    virtual, real = run(main)
    assert virtual == pytest.approx(365 * 86400)
    assert real < 5


def test_timeouts_and_sleeps_see_one_time():
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.sleep(20)
        return loop.time()

    assert run(main) == pytest.approx(10)


def test_timers_of_one_instant_run_in_the_order_of_their_creation_and_after_its_messages():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        for name in "abcdefgh":
            loop.call_at(5.0, seen.append, name)
        loop.post(5_000_000, "z", 1, seen.append, "message of z")
        loop.post(5_000_000, "y", 2, seen.append, "second of y")
        loop.post(5_000_000, "y", 1, seen.append, "first of y")
        await asyncio.sleep(6)
        return seen

    assert run(main) == ["first of y", "second of y", "message of z", *"abcdefgh"]


def test_a_cancelled_timer_does_not_run_even_in_its_own_instant():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        timers = []
        loop.call_at(1.0, lambda: [timer.cancel() for timer in timers])
        timers.append(loop.call_at(1.0, seen.append, "second"))
        await asyncio.sleep(2)
        return seen

    assert run(main) == []


def test_thousands_of_cancelled_timers_are_dropped():
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(20_000):
            loop.call_later(1000, print).cancel()
        return len(loop._timers)

    assert run(main) < 5000


def test_an_exception_in_a_timer_is_reported_and_the_others_run():
    async def main():
        loop = asyncio.get_running_loop()
        reported, seen = [], []
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        loop.call_at(1.0, lambda: 1 / 0)
        loop.call_at(1.0, seen.append, "next")
        await asyncio.sleep(2)
        return reported, seen

    reported, seen = run(main)
    assert isinstance(reported[0], ZeroDivisionError)
    assert seen == ["next"]


def test_a_stall_is_told_instead_of_hanging():
    async def main():
        loop = asyncio.get_running_loop()
        stalled = loop.create_future()
        loop.on_stalled = stalled.set_result
        return await stalled

    assert "nothing" in run(main) or "nobody" in run(main)


def test_time_stands_when_only_periodic_work_is_left_unless_that_matters():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        matters_until = 40.0

        def again():
            seen.append(loop.time())
            loop.call_periodically(
                loop.time() + 10, lambda: loop.time() + 10 <= matters_until, again
            )

        stalled = loop.create_future()
        loop.on_stalled = lambda reason: stalled.set_result((loop.time(), reason))
        loop.call_periodically(10.0, lambda: False, again)
        loop.call_at(15.0, lambda: None)
        loop.call_at(25.0, lambda: None)
        return await stalled, seen

    (end, reason), seen = run(main)
    assert seen == [10.0, 20.0, 30.0, 40.0]
    assert end == 40.0
    assert "left to do" in reason


def test_who_waits_for_the_end_of_a_window_is_called_before_anything_of_it_and_sets_another():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []

        def ended():
            seen.append(("window", loop.now_us))
            loop.window_end_us, loop.on_window_end = NEVER, None

        loop.window_end_us, loop.on_window_end = 5_000_000, ended
        loop.call_at(4.5, seen.append, "before")
        loop.call_at(5.0, seen.append, "at the end")
        loop.post(5_000_000, "a", 1, seen.append, "message")
        await asyncio.sleep(6)
        return seen

    assert run(main) == ["before", ("window", 4_500_000), "message", "at the end"]


def test_who_has_nothing_left_to_do_before_the_end_of_a_window_is_told_of_that_end_first():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []

        def ended():
            seen.append("window")
            loop.window_end_us, loop.on_window_end = NEVER, None

        stalled = loop.create_future()
        loop.window_end_us, loop.on_window_end = 5_000_000, ended
        loop.on_stalled = stalled.set_result
        return seen, await stalled, loop.now_us

    assert run(main) == (["window"], "nobody has anything left to do", 0)


def await_end(child):
    os.waitpid(child, 0)


def test_a_fork_of_the_process_has_a_loop_of_its_own():
    async def main():
        loop = asyncio.get_running_loop()
        mine, theirs = socket.socketpair()
        child = os.fork()
        if not child:  # wakes itself by a thread, as through a pipe of its own
            loop.go_on_in_fork()
            told = await loop.run_in_executor(None, os.getpid)
            await asyncio.sleep(10)
            is_well = told == os.getpid() and asyncio.get_running_loop() is loop
            theirs.sendall(f"{is_well} {loop.time():.0f}".encode())
            os._exit(0)
        theirs.close()
        await_end(child)
        heard = mine.recv(100).decode()
        mine.close()
        # nothing of what woke the child has woken this one
        return heard, await loop.run_in_executor(None, os.getpid) == os.getpid(), loop.time()

    assert run(main) == ("True 10", True, 0.0)
