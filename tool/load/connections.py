"""Connections to a controller, many in one process: the commands' own client, told by the loop when
an answer arrives.

Place: tool/load; all of the protocol is in commands/shared/client.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from understudy.auth.handshake import AuthError
from understudy.commands.shared.client import (
    AUTHENTICATION_FAILED,
    BACK_OFF,
    BACK_OFF_S,
    MAX_ANSWER,
    TIMED_OUT,
    ZERO_BYTES,
    Client,
    RefusedError,
    pack,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.commands.shared.locate import Location

_READ_BYTES = 1 << 18


class Connection(Client):
    """One connection, opened at the first question; one question at a time. `over_tcp`: by the
    handshake that commands on other hosts need, each frame sealed. `user`: the numbers of a user
    and of his group, as whom root opens it.
    """

    def __init__(
        self,
        locate: Callable[[], Location],
        timeout_s: float,
        *,
        over_tcp: bool = False,
        user: Sequence[int] = (),
    ) -> None:
        super().__init__(locate, timeout_s=timeout_s, waits=False)
        self._over_tcp = over_tcp
        self._user = user
        self._buffer = bytearray()
        self._arrived: asyncio.Future[None] | None = None
        self.sent = self.received = 0  # bytes of answers; messages

    def addresses(self) -> list[str]:
        return [self.location.controller] if self._over_tcp else super().addresses()

    async def ask(self, message: list[Any], timeout_s: float) -> tuple[str, list[Any]]:
        """Send a packed message; the name and fields of its answer, of one in parts the last.

        Raises:
            RefusedError: there is no answer in time, or no connection.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(message)
        except TimeoutError:
            self.forget()
            raise RefusedError(TIMED_OUT, "no answer in time") from None
        except AuthError as error:
            self.forget()
            raise RefusedError(AUTHENTICATION_FAILED, str(error)) from None
        except OSError as error:
            self.forget()
            raise RefusedError(ZERO_BYTES, error.strerror or str(error)) from None

    async def _exchange(self, message: list[Any]) -> tuple[str, list[Any]]:
        loop = asyncio.get_running_loop()
        if self._socket is None and self._over_tcp:
            # the handshake waits for its answer: not on the loop
            await loop.run_in_executor(None, self.send, message)
        elif self._socket is None and self._user:
            with _as_user(*self._user):  # the kernel vouches for who connects
                self.send(message)
        else:
            self.send(message)
        self.sent += 1
        while True:
            name, answer = self.opened(await self._frame(loop))
            if name == "Failure" and answer[0] == BACK_OFF:
                await asyncio.sleep(BACK_OFF_S)
                self.send(message)
                continue
            if name != "Rows" or not answer[3]:
                return name, answer

    async def _frame(self, loop: asyncio.AbstractEventLoop) -> bytes:
        needed = 4
        while len(self._buffer) < needed or needed == 4:
            if len(self._buffer) >= 4:
                length = int.from_bytes(self._buffer[:4], "big")
                if length > MAX_ANSWER:
                    raise AuthError(f"frame of {length} bytes")
                needed = 4 + length
                if len(self._buffer) >= needed:
                    break
            self._arrived = loop.create_future()
            descriptor = self.fileno()
            loop.add_reader(descriptor, self._read)
            try:
                await self._arrived
            finally:
                loop.remove_reader(descriptor)
        body = bytes(self._buffer[4:needed])
        del self._buffer[:needed]
        return body

    def _read(self) -> None:
        assert self._socket is not None
        assert self._arrived is not None
        if self._arrived.done():
            return
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError as error:
            self._arrived.set_exception(error)
            return
        if not data:
            self._arrived.set_exception(ConnectionResetError("closed by the controller"))
            return
        self.received += len(data)
        self._buffer += data
        self._arrived.set_result(None)

    def forget(self) -> None:
        """Close the connection; the next question opens it again."""
        self.drop()
        self._buffer.clear()


@contextlib.contextmanager
def _as_user(user_id: int, group_id: int) -> Iterator[None]:
    own_group = os.getegid()
    os.setegid(group_id)
    os.seteuid(user_id)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_group)


class Pool:
    """Connections that are not in use; who finds none waits in turn."""

    def __init__(self, connections: list[Connection]) -> None:
        self.all = connections
        self._idle: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
        for connection in connections:
            self._idle.put_nowait(connection)

    async def open_all(self, timeout_s: float) -> None:
        """Open and authenticate each.

        Raises:
            RefusedError: one cannot be.
        """
        for connection in self.all:
            await connection.ask(pack("Ping"), timeout_s)

    async def take(self) -> Connection:
        """One that nobody uses; to be given back."""
        return await self._idle.get()

    def give_back(self, connection: Connection) -> None:
        """It is free again."""
        self._idle.put_nowait(connection)

    def close(self) -> None:
        """Close all."""
        for connection in self.all:
            connection.close()
