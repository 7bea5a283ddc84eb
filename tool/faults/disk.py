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
from typing import TYPE_CHECKING

from sqlalchemy import event
from sqlalchemy.exc import OperationalError

if TYPE_CHECKING:
    from collections.abc import Callable

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
