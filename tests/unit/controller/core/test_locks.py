"""The read/write locks."""

from __future__ import annotations

import asyncio

import pytest

from understudy.controller.core.locks import NONE, READ, WRITE, Locks, Needs

JOB_READ, JOB_WRITE, NODE_WRITE = Needs(NONE, READ), Needs(NONE, WRITE), Needs(NONE, NONE, WRITE)


def test_readers_share_and_a_writer_waits_for_them() -> None:
    locks, order = Locks(), []
    assert locks.take(JOB_READ)
    assert locks.take(JOB_READ)
    assert not locks.available(JOB_WRITE)
    locks.when_available(JOB_WRITE, lambda: order.append("writer"))
    locks.drop(JOB_READ)
    assert order == []
    locks.drop(JOB_READ)
    assert order == ["writer"]


def test_a_reader_does_not_overtake_a_waiting_writer_but_other_work_does() -> None:
    locks = Locks()
    assert locks.take(JOB_READ)
    locks.when_available(JOB_WRITE, lambda: None)
    assert not locks.available(JOB_READ)
    assert locks.available(NODE_WRITE)


async def test_hold_waits_in_a_task_and_gives_back_at_the_end() -> None:
    locks, order = Locks(), []

    async def write() -> None:
        async with locks.hold(job=WRITE):
            order.append("written")

    async with locks.hold(job=READ, node=READ):
        task = asyncio.create_task(write())
        await asyncio.sleep(0)
        assert order == []
    await task
    assert order == ["written"]
    assert locks.available(JOB_WRITE)


async def test_a_cancelled_waiter_keeps_nobody_back() -> None:
    locks = Locks()

    async def write() -> None:
        async with locks.hold(job=WRITE):
            raise AssertionError("never granted")

    assert locks.take(JOB_READ)
    task = asyncio.create_task(write())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert locks.available(JOB_READ)
    locks.drop(JOB_READ)
    assert locks.available(JOB_WRITE)


async def test_a_waiter_cancelled_in_the_instant_of_its_turn_gives_the_locks_back() -> None:
    locks = Locks()

    async def write() -> None:
        async with locks.hold(job=WRITE):
            raise AssertionError("cancelled before it ran")

    assert locks.take(JOB_READ)
    task = asyncio.create_task(write())
    await asyncio.sleep(0)
    locks.drop(JOB_READ)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert locks.available(JOB_WRITE)


def test_giving_back_twice_is_a_bug() -> None:
    locks = Locks()
    assert locks.take(JOB_READ)
    locks.drop(JOB_READ)
    with pytest.raises(AssertionError):
        locks.drop(JOB_READ)


def test_thousands_that_wait_are_served_one_after_the_other() -> None:
    locks = Locks()
    wanted = Needs(job=WRITE)
    assert locks.take(wanted)
    served: list[int] = []

    def granted(number: int) -> None:
        served.append(number)
        locks.drop(wanted)

    for number in range(5000):
        locks.when_available(wanted, lambda number=number: granted(number))  # type: ignore[misc]
    locks.drop(wanted)
    assert served == list(range(5000))
    assert locks.available(Needs(WRITE, WRITE, WRITE, WRITE))


def test_what_is_asked_for_while_others_are_served_has_its_turn_behind_them() -> None:
    locks = Locks()
    wanted = Needs(job=WRITE)
    assert locks.take(wanted)
    served: list[str] = []

    def first() -> None:
        locks.when_available(wanted, lambda: (served.append("third"), locks.drop(wanted)))  # type: ignore[arg-type, func-returns-value]
        assert not locks.available(Needs(job=READ)), "others wait"
        served.append("first")
        locks.drop(wanted)

    locks.when_available(wanted, first)
    locks.when_available(wanted, lambda: (served.append("second"), locks.drop(wanted)))  # type: ignore[arg-type, func-returns-value]
    locks.drop(wanted)
    assert served == ["first", "second", "third"]


def test_a_request_that_fails_when_served_leaves_the_others_their_turns() -> None:
    locks = Locks()
    wanted = Needs(job=WRITE)
    assert locks.take(wanted)

    def fail() -> None:
        locks.drop(wanted)
        raise ZeroDivisionError

    served: list[int] = []
    locks.when_available(wanted, fail)
    locks.when_available(wanted, lambda: served.append(1))
    with pytest.raises(ZeroDivisionError):
        locks.drop(wanted)
    assert served == [1]


def test_who_drops_for_another_while_served_gives_the_kept_their_turn() -> None:
    locks = Locks()
    reader, writer, both = Needs(job=READ), Needs(node=WRITE), Needs(job=WRITE)
    assert locks.take(reader)
    assert locks.take(writer)
    served: list[str] = []
    locks.when_available(both, lambda: served.append("writes jobs"))

    def drops_for_another() -> None:
        served.append("writes nodes")
        locks.drop(writer)
        locks.drop(reader)

    locks.when_available(writer, drops_for_another)
    locks.drop(writer)
    assert served == ["writes nodes", "writes jobs"]
