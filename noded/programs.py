"""Programs of the site that the node daemon runs as itself: prolog, epilog, health check.

Place: the node daemon's edge, where jobs are real. The event loop sees their end through a pidfd.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections import deque
from dataclasses import dataclass
from functools import partial
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
        # what waits in each lane; a lane that is there is busy
        self._lanes: dict[str, deque[Callable[[], None]]] = {}

    def run(
        self,
        programs: Sequence[str],
        environment: Mapping[str, str],
        done: Callable[[int], None],
        *,
        limit_s: float = 0.0,
        lane: str = "",
    ) -> None:
        """Run one after another, up to the first that fails; `done` gets its exit code (of a signal
        the negative), or 0.

        In a lane that has a name, one call's programs run at a time.
        """
        if not lane:
            self._run(programs, environment, done, limit_s)
        elif lane in self._lanes:
            self._lanes[lane].append(
                lambda: self._run(programs, environment, partial(self._leave, lane, done), limit_s)
            )
        else:
            self._lanes[lane] = deque()
            self._run(programs, environment, partial(self._leave, lane, done), limit_s)

    def _leave(self, lane: str, done: Callable[[int], None], code: int) -> None:
        if self._lanes[lane]:
            self._lanes[lane].popleft()()
        else:
            del self._lanes[lane]
        done(code)

    def _run(
        self,
        programs: Sequence[str],
        environment: Mapping[str, str],
        done: Callable[[int], None],
        limit_s: float,
    ) -> None:
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
                self._run(rest, environment, done, limit_s)

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
