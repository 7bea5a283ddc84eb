"""A disk that may be full, slow, or fail to sync: where a controller writes its state that believes
in real time.

Place: handed to the controller's `start` in place of a thread that writes. What a write takes is
virtual time; one that is under way when the controller dies may have been written or not, but
cannot be told.
"""

from __future__ import annotations

import errno
import os
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
