"""Programs that triggers run, and those of the site around jobs (`job_programs.py`, `mail.py`), on
the controller's host.

Place: the edge. A trigger's program runs as the user who set the trigger, in the run directory,
without input or output, and is killed with all that it has started if it takes longer than LIMIT_S.
Virtual time stands still as long as it runs. The site's own run as the controller does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
from errno import EPERM
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from pathlib import Path

    from understudy.clock.timekeeper import Timekeeper

LIMIT_S: Final = 300.0  # ours: then the program is killed
log = logging.getLogger("understudy.controller.edge.programs")


def is_executable(program: str) -> bool:
    """Whether the first word is a file that can be run."""
    path = next(iter(program.split()), "")
    return os.path.isfile(path) and os.access(path, os.X_OK)


def run_alone(program: str, run_dir: Path) -> None:
    """Run one of the site's that outlives this controller's time as leader. That it fails is
    logged.
    """
    try:
        process = subprocess.Popen(
            program.split(),
            cwd=run_dir,
            env={**os.environ, "SLURM_CONF": str(run_dir / "slurm.conf")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        log.error("%s: %s", program, error.strerror)  # noqa: TRY400 - the text says all
        return

    def wait() -> None:
        if code := process.wait():
            log.error("%s ended with exit code %d", program, code)

    Thread(target=wait, daemon=True).start()


class Told(NamedTuple):
    """How a program ended, and what it printed."""

    code: int
    output: str
    errors: str

    @property
    def complaint(self) -> str:
        """What it says of its failure, "" if it went well."""
        if self.code == 0:
            return ""
        lines = (self.output or self.errors).strip().splitlines()
        return lines[0] if lines else f"exit code {self.code}"


class Programs:
    """Starts programs and sees to their end, as long as it `may_run` any."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        time: Timekeeper,
        run_dir: Path,
        *,
        may_run: Callable[[], bool] = lambda: True,
    ) -> None:
        self._loop, self._time, self._run_dir = loop, time, run_dir
        self._may_run = may_run
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, user_id: int, group_id: int, program: str, argument: str) -> None:
        """Start it; what goes wrong is logged."""
        if not self._may_run():
            return
        ids = (
            {"user": user_id, "group": group_id, "extra_groups": []}
            if os.geteuid() == 0 and user_id != 0
            else {}
        )
        try:
            process = subprocess.Popen(
                [*program.split(), argument],
                cwd=self._run_dir,
                env={**os.environ, "SLURM_CONF": str(self._run_dir / "slurm.conf")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                **ids,  # type: ignore[call-overload]
            )
        except (OSError, ValueError) as error:
            log.error("trigger program %s: %s", program, error)  # noqa: TRY400 - the text says all
            return
        self._running[process.pid] = process
        hold = self._time.hold()
        hold.__enter__()
        future = self._loop.run_in_executor(None, _await_end, process)

        def ended(_future: asyncio.Future[None]) -> None:
            hold.__exit__(None, None, None)
            self._running.pop(process.pid, None)

        future.add_done_callback(ended)

    def _start(
        self, words: list[str], environment: dict[str, str], streams: int, errors: int
    ) -> subprocess.Popen[bytes]:
        """One of the site's, in a session of its own; that it cannot be started is logged."""
        try:
            if not self._may_run():
                raise OSError(EPERM, "another controller leads")
            process = subprocess.Popen(
                words,
                cwd=self._run_dir,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **environment},
                stdin=streams,
                stdout=streams,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            log.error("%s: %s", words[0], error.strerror)  # noqa: TRY400 - the text says all
            raise
        self._running[process.pid] = process
        return process

    def run_script(
        self, words: list[str], environment: dict[str, str], done: Callable[[int], None]
    ) -> None:
        """Start one of the site's; `done` gets its exit code, or 127."""
        try:
            process = self._start(words, environment, subprocess.DEVNULL, subprocess.DEVNULL)
        except OSError:
            self._loop.call_soon(done, 127)
            return
        pidfd = os.pidfd_open(process.pid)

        def ended() -> None:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
            if self._running.pop(process.pid, None) is not None:
                done(process.wait())

        self._loop.add_reader(pidfd, ended)

    def run_heard(
        self,
        words: list[str],
        limit_s: int,
        done: Callable[[Told | None], None],
        *,
        environment: dict[str, str] | None = None,
        given: str = "",
        errors: int = subprocess.PIPE,
    ) -> Callable[[], None]:
        """Start one of the site's that reads `given` and is killed after so long: then `done` gets
        None. Where no environment is given, it has the controller's. What is returned kills it.
        """
        try:
            process = self._start(words, self._own(environment), subprocess.PIPE, errors)
        except OSError as error:
            self._loop.call_soon(done, Told(127, "", f"{words[0]}: {error.strerror}"))
            return lambda: None
        future = self._loop.run_in_executor(None, _hear, process, given, limit_s)

        def ended(told: asyncio.Future[Told | None]) -> None:
            if self._running.pop(process.pid, None) is not None:
                done(told.result())

        future.add_done_callback(ended)
        return lambda: _kill(process)

    def run_told(
        self,
        words: list[str],
        environment: dict[str, str],
        given: str,
        limit_s: int,
        done: Callable[[str | None], None],
    ) -> Callable[[], None]:
        """As `run_heard`; `done` gets the first line that it printed if it failed, "" if it did
        not, and None if its time was over.
        """
        return self.run_heard(
            words,
            limit_s,
            lambda told: done(None if told is None else told.complaint),
            environment=environment,
            given=given,
            errors=subprocess.STDOUT,
        )

    def run_asked(self, words: list[str], limit_s: int, done: Callable[[str | None], None]) -> None:
        """Start one of the site's that tells something, and is killed after so long. `done` gets
        what it printed, None if it failed.
        """
        self.run_heard(
            words,
            limit_s,
            lambda told: done(None if told is None or told.code else told.output),
            environment={},
            errors=subprocess.DEVNULL,
        )

    def wait_for(self, words: list[str], limit_s: int) -> Told | None:
        """Run one of the site's, with the controller's environment, and do nothing else until it
        has ended; None: it took too long, and was killed.
        """
        try:
            process = self._start(words, self._own(None), subprocess.PIPE, subprocess.PIPE)
        except OSError as error:
            return Told(127, "", f"{words[0]}: {error.strerror}")
        del self._running[process.pid]
        return _hear(process, "", limit_s)

    def _own(self, environment: dict[str, str] | None) -> dict[str, str]:
        if environment is not None:
            return environment
        return {**os.environ, "SLURM_CONF": str(self._run_dir / "slurm.conf")}

    async def close(self) -> None:
        """The controller ends: so do its programs."""
        running, self._running = list(self._running.values()), {}
        for process in running:
            _kill(process)


def _await_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        log.warning("trigger program with pid %d is killed after %d s", process.pid, LIMIT_S)
        _kill(process)
        process.wait()


def _hear(process: subprocess.Popen[bytes], given: str, limit_s: int) -> Told | None:
    """How it ended, given something to read; None: it took too long."""
    try:
        output, errors = process.communicate(given.encode(errors="surrogateescape"), limit_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.communicate()
        return None
    output, errors = output or b"", errors or b""
    return Told(
        process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:  # it is over, and its number may be another's
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
