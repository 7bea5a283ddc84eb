"""Disks that may be full, slow, or fail to sync: where a controller writes its state that believes
in real time, and where accounting's database is.

Place: `Disk` is handed to the controller's `start` in place of a thread that writes. What a write
takes is virtual time; one that is under way when the controller dies may have been written or not,
but cannot be told. `DatabaseDisk` stands before the commits of accounting's database.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from understudy.controller.saved.database import DatabaseError
from understudy.controller.saved.lease import Lease

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Connection, Engine

    from understudy.clock.virtual_loop import VirtualEventLoop
    from understudy.tool.faults.lives import Life


class Disk:
    """`seconds`: what a write takes."""

    def __init__(self, loop: VirtualEventLoop, seconds: float, seed: int = 0) -> None:
        self._loop, self.seconds = loop, seconds
        self.is_full = self.fails_to_sync = False
        self._rng = random.Random(f"disk {seed}")  # noqa: S311

    def writer(
        self, life: Life
    ) -> Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]:
        """What carries out a write for this life of the controller, and then says how it went."""

        def run(write: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
            def write_now() -> None:
                if not life.is_alive:
                    return
                error = self._write(write)
                self._loop.call_later(self.seconds / 2, life.do, done, error)

            self._loop.call_later(self.seconds / 2, write_now)

        return run

    def _write(self, write: Callable[[], None]) -> BaseException | None:
        if self.is_full:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        # whether what could not be synced is there after a crash, nobody knows
        if not self.fails_to_sync or self._rng.random() < 0.5:
            try:
                write()
            except Exception as error:  # noqa: BLE001  handed on
                return error
        if self.fails_to_sync:
            return OSError(errno.EIO, os.strerror(errno.EIO))
        return None

    def doer(self, life: Life) -> Callable[[Callable[[], Any]], Awaitable[Any]]:
        """What does something with the lease, which is on this disk, for this life."""

        async def do(call: Callable[[], Any]) -> Any:
            found: asyncio.Future[Any] = self._loop.create_future()

            def do_now() -> None:
                try:
                    result = call()
                except Exception as error:  # noqa: BLE001  handed on
                    if not found.done():
                        found.set_exception(error)
                else:
                    if not found.done():  # else who asked has been told to end
                        found.set_result(result)

            def do_or_say() -> None:
                if life.is_alive:
                    life.do(do_now)
                elif not found.done():  # nobody but who ends the daemon still asks
                    found.set_exception(DatabaseError("the daemon is dead"))

            self._loop.call_later(self.seconds, do_or_say)
            return await found

        return do

    def try_to_write(self, write: Callable[[], None]) -> None:
        """Raise DatabaseError if the disk does not take it."""
        if isinstance(error := self._write(write), OSError):
            raise DatabaseError(error.strerror)
        if error is not None:
            raise error


class LeaseOnDisk(Lease):
    """A lease whose holder's disk may fail. Reads are answered whatever happens to it."""

    disk: Disk

    def _change(self, text: str, values: tuple[object, ...]) -> bool:
        found: list[bool] = []
        self.disk.try_to_write(lambda: found.append(super(LeaseOnDisk, self)._change(text, values)))
        return found[0]


class DatabaseDisk:
    """What is read is there whatever happens to the disk; what is written, when it is committed."""

    def __init__(self, seed: int = 0) -> None:
        self.is_full = self.fails_to_sync = False
        self.refused = 0  # commits
        self._rng = random.Random(f"database {seed}")  # noqa: S311

    def attach(self, engine: Engine) -> None:
        """Have the database be on this disk."""
        event.listen(engine, "commit", self._commit)

    def _commit(self, connection: Connection) -> None:
        if not self.is_full and not self.fails_to_sync:
            return
        self.refused += 1
        # whether what could not be synced is there, nobody knows
        if not self.is_full and self._rng.random() < 0.5:
            connection.connection.commit()
        text = "database or disk is full" if self.is_full else "disk I/O error"
        raise OperationalError("COMMIT", None, sqlite3.OperationalError(text))
