"""Signals that end a daemon: heeded until the end has begun, ignored from then on."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from understudy.model.signals import heed_signals, ignore_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = [signal.getsignal(number) for number in ALL]
    yield
    for number, handler in zip(ALL, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_once_its_turn_in_the_loop_has_come(number: signal.Signals) -> None:
    async def told() -> bool:
        ended = asyncio.Event()
        heed_signals(asyncio.get_running_loop(), ended.set)
        os.kill(os.getpid(), number)
        return await asyncio.wait_for(ended.wait(), 10)

    assert asyncio.run(told())


def test_signals_that_come_while_the_end_is_under_way_do_nothing() -> None:
    ended: list[bool] = []

    async def end() -> None:
        heed_signals(asyncio.get_running_loop(), lambda: ended.append(True))
        ignore_signals()
        for number in ALL:
            os.kill(os.getpid(), number)

    asyncio.run(end())
    os.kill(os.getpid(), signal.SIGTERM)
    assert ended == []
