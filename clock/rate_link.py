"""A daemon's connection to the clock service of scaled time, which tells the rate.

Place: beside participant.py, which is for virtual time. Time goes on without the service, at the
rate that it told last; who lost it looks for it until it is there again. A daemon that starts waits
for it, as it does not know what time it is.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

import msgpack

from understudy.auth.handshake import SealedChannel, client_hello
from understudy.clock import frames
from understudy.clock.host_clock import instant_here
from understudy.clock.participant import ClockLost
from understudy.protocol import addresses
from understudy.protocol.connection import Connection

if TYPE_CHECKING:
    import logging
    import socket

    from understudy.auth.keys import Keys
    from understudy.clock.scaled_loop import ScaledEventLoop

_AGAIN_S: Final = 0.05  # ours: between two attempts to connect, while a daemon starts
_LOOK_S: Final = 1.0  # ours: later


class RateLink:
    """Follows the rate on a loop until it is closed."""

    def __init__(
        self, loop: ScaledEventLoop, address: str, name: str, keys: Keys, log: logging.Logger
    ) -> None:
        self._loop, self._address, self._name, self._keys = loop, address, name, keys
        self._log = log
        self._told: asyncio.Future[None] = loop.create_future()  # what time it is
        self._connection: Connection | None = None
        self._search: asyncio.Task[None] | None = None

    async def start(self, patience_s: float) -> None:
        """Learn what time it is.

        Raises:
            ClockLost: nobody says so, in real seconds.
        """
        late = self._loop.call_later_real(patience_s, self._give_up)
        self._search = self._loop.create_task(self._connect(_AGAIN_S))
        try:
            await self._told
        finally:
            late.cancel()

    def _give_up(self) -> None:
        if not self._told.done():
            self._told.set_exception(ClockLost(f"no clock service at {self._address}"))

    async def _connect(self, pause_s: float) -> None:
        while (sock := await self._reach()) is None:
            await self._pause(pause_s)
        hello = client_hello(self._name, os.getuid(), os.getgid(), is_daemon=True)

        def challenged(connection: Connection, body: bytes) -> None:
            secret, _ = self._keys.secret(hello, body, "clock")
            connection.secure(SealedChannel(secret, is_client=True))
            connection.on_body = self._hear
            connection.send(msgpack.packb([frames.JOIN, False]))

        self._connection = Connection(self._loop, sock, challenged, self._lost, peer="clock")
        self._connection.send(hello)

    async def _reach(self) -> socket.socket | None:
        try:
            return await addresses.connect(self._loop, self._address)
        except OSError:
            return None

    async def _pause(self, real_s: float) -> None:
        over = asyncio.Event()
        timer = self._loop.call_later_real(real_s, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def _hear(self, _: Connection, body: bytes) -> None:
        content = msgpack.unpackb(body)
        if content[0] == frames.RATE:
            now_us, sent_s, rate, clock = content[1:]
            self._loop.set_segment(now_us, instant_here(sent_s, clock), rate)
            if not self._told.done():
                self._told.set_result(None)

    def _lost(self, connection: Connection, reason: str) -> None:
        why = f" ({reason})" if reason else ""
        was_there = connection.on_body == self._hear
        if was_there:
            self._log.error("the clock service is gone%s: time goes on at its last rate", why)
        pause_s = _LOOK_S if self._told.done() else _AGAIN_S
        self._search = self._loop.create_task(self._again(pause_s))

    async def _again(self, pause_s: float) -> None:
        await self._pause(pause_s)
        await self._connect(pause_s)

    def close(self) -> None:
        """Follow it no longer."""
        if self._search is not None:
            self._search.cancel()
        if self._connection is not None:
            self._connection.on_closed = lambda _connection, _reason: None
            self._connection.close()
