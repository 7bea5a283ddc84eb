"""Programs of the site that the node daemon runs as itself: prolog, epilog, health check.

Place: the node daemon's edge, where jobs are real. The event loop sees their end through a pidfd.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping, Sequence

NOT_RUN: Final = 127


@dataclass(slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    killer: asyncio.TimerHandle | None = None


class Programs:
    """The programs that run now."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, _Running] = {}  # by pidfd

    def run(self, programs: Sequence[str], environment: Mapping[str, str], done: Callable[[int], None], *, limit_s: float = 0.0) -> None:
        """Run one after another, up to the first that fails; `done` gets its exit code (of a signal the negative), or 0."""
        if not programs:
            self._loop.call_soon(done, 0)
            return
        program, *rest = programs
        try:
            process = subprocess.Popen(
                [program],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._log.error("%s: %s", program, error.strerror)
            self._loop.call_soon(done, NOT_RUN)
            return
        pidfd = os.pidfd_open(process.pid)
        running = self._running[pidfd] = _Running(process)
        if limit_s:
            running.killer = self._loop.call_later(limit_s, _kill, process)

        def ended() -> None:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
            del self._running[pidfd]
            if running.killer is not None:
                running.killer.cancel()
            code = process.wait()
            if code:
                self._log.error("%s ended with %d", program, code)
                done(code)
            else:
                self.run(rest, environment, done, limit_s=limit_s)

        self._loop.add_reader(pidfd, ended)

    def close(self) -> None:
        """The daemon ends: so do they."""
        for pidfd, running in self._running.items():
            self._loop.remove_reader(pidfd)
            if running.killer is not None:
                running.killer.cancel()
            _kill(running.process)
            running.process.wait()
            os.close(pidfd)
        self._running.clear()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
