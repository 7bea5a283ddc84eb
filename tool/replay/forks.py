"""A run that is forked at an instant: each copy of the process goes on by itself, with another
change, and writes a folder of its own.

Place: under branch.py; traces.py and scenarios.py run as ever, and ask here where their results go
and how they end. What a change does to the cluster is in change.py.

All daemons are in this process, in one loop, with what they have in memory, so a fork is a copy of
the whole cluster at one instant (docs/adr/0045). The kernel copies a page when one of the two
writes to it. What a fork would share with its parent all the same is replaced in it: descriptors of
the loop, threads, the run directory, the log, the results' folder. State is in memory, SQLite's
database of accounting too.

    this process         runs to the instant, forks, waits for all
     |- original         goes on unchanged
     |- 1, 2 ...         each makes its change, says that it has begun, waits for its turn, goes on

A fork never returns to who called: where its results are written it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from understudy.clock.participant import ClockLost
from understudy.clock.timers import NEVER
from understudy.experiments.futures import ORIGINAL, Future
from understudy.model.nouns import many
from understudy.tool.cluster.clock_client import instant
from understudy.tool.cluster.launch import LaunchError
from understudy.tool.replay.change import ChangeFailedError, Scene, change
from understudy.tool.replay.results import (
    BAD_USAGE,
    FAILED,
    InterruptedRunError,
    ReplayError,
    UsageError,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from understudy.experiments.run_folder import JobsFile
    from understudy.tool.cluster.cluster_run import OneProcess
    from understudy.tool.replay.change import Subject
    from understudy.tool.replay.folder import ReplayDir

_SET_PARENT_DEATH_SIGNAL: Final = 1  # prctl(2)
_LIBC: Final = ctypes.CDLL(None)
_GO: Final = b"g"
_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


class _AllOver(BaseException):
    """All forks are over; this process only waited for them."""


@dataclass(slots=True)
class FutureResult:
    """What became of a future. `code` is its exit code as a replay's, `error` why it could not
    begin or did not come to its end, `began_s` real seconds from the first fork of its instant
    until its change was made, None if that did not come.
    """

    name: str
    at: str
    folder: Path
    shown: str = ""  # what it is called where several instants have one of its name
    code: int = FAILED
    error: str = ""
    began_s: float | None = None
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Fork:
    """One that lives, as its parent sees it."""

    result: FutureResult
    pid: int
    channel: socket.socket
    heard: bytes = b""
    goes: bool = False
    forked: float = 0.0


@dataclass(slots=True)
class Instant:
    """When the cluster is forked, as the user wrote it, and where the futures' folders are."""

    text: str
    folder: Path
    shown: str = ""  # before a future's name, where there are several instants
    at_us: int = 0  # the loop's time; known when there is a cluster


class Forks:
    """The forks of one run. `out` is where the results of this process's run go."""

    def __init__(
        self,
        out: Path,
        instants: Sequence[Instant],
        futures: Sequence[Future],
        most: int,
        say: Callable[[str], None],
    ) -> None:
        """`out`: of the unchanged run; `most`: how many go on at once; `say` is given lines for
        people.
        """
        self.out, self._instants, self._futures = out, list(instants), futures
        self._most, self._say = most, say
        self.results: list[FutureResult] = []
        self.name, self.future = ORIGINAL, Future(ORIGINAL)
        self.slurm_conf = ""  # of a future with another one
        self.branched_at: list[str] = []  # instants before which this run has what others have
        self._forks: dict[int, _Fork] = {}
        self._selector = selectors.DefaultSelector()
        self._channel: socket.socket | None = None  # of a fork, to its parent
        self.signal = 0
        self.over: Callable[[], NoReturn] = _raise_all_over  # when all forks are
        self.on_begun: Callable[[], None] = lambda: None  # in each fork: its change is made
        self._files: JobsFile | None = None
        self._subject: Subject | None = None
        self._made: OneProcess | None = None
        self._began = 0.0
        self._change: asyncio.Task[None] | None = None

    # --- the run --------------------------------------------------------------------------------

    @property
    def is_fork(self) -> bool:
        """Whether this process is one."""
        return self._channel is not None

    def place(self, zero: float) -> None:
        """Find out when it is.

        Raises:
            UsageError: an instant that is none, or lies before the run's zero.
        """
        for each in self._instants:
            try:
                when = instant(each.text, zero)
            except ValueError as error:
                raise UsageError(f"--at {error}") from None
            if when < zero:
                raise UsageError(f"--at {each.text}: the run begins later")
            each.at_us = round((when - zero) * 1e6)
        self._instants.sort(key=lambda each: each.at_us)

    def watch(self, made: OneProcess) -> None:
        """The cluster is there; nothing has happened yet."""
        lead_us = round((made.cluster.zero - made.cluster.epoch) * 1e6)
        for each in self._instants:
            each.at_us += lead_us
        self.begin(made)

    def place_at(self, instants: Sequence[Instant]) -> None:
        """These are the instants, in the loop's time."""
        self._instants = sorted(instants, key=lambda each: each.at_us)

    def begin(self, made: OneProcess) -> None:
        """Fork when the first instant comes."""
        self._made = made
        self._await_next()

    def heed(self, channel: socket.socket) -> None:
        """Who asked is at the other end; when that closes, all are to end."""
        self._selector.register(channel, selectors.EVENT_READ)

    def follow(self, subject: Subject) -> None:
        """Who submits the run's jobs."""
        self._subject = subject

    def keep(self, files: JobsFile) -> None:
        """Where the run's jobs are written."""
        self._files = files

    def about(self) -> dict[str, Any]:
        """What the run's config.json says of it."""
        if not self.branched_at:
            return {}
        return {
            "future": self.name,
            "branched_at": ", ".join(self.branched_at),
            "changes": self.future.changes(),
        }

    def finish(self, folder: ReplayDir, run: Callable[[], int]) -> int:
        """Run to the end: of this process's run and, where it forked, of all others.

        Raises:
            UsageError: the run was over before the instant; its results are written.
            ReplayError: as `run`, of what failed before the instant.
        """
        try:
            code = run()
            if self.is_fork:
                self.leave(code, "")
        except _AllOver:
            code = self.code()
            if self.signal:
                raise InterruptedRunError("interrupted", self.signal) from None
        except BaseException as raised:
            if self.is_fork:
                self.leave(*told(raised))
            self._end_all(raised)
            raise
        folder.has_failed |= any(each.code == FAILED for each in self.results)
        if self._instants:
            left = ", ".join(each.text for each in self._instants)
            self._end_all(None)
            raise UsageError(f"--at {left}: the run was over before; it is in {self.out}")
        return code

    # --- the parent -----------------------------------------------------------------------------

    def _await_next(self) -> None:
        assert self._made is not None
        loop = self._made.loop
        loop.window_end_us = self._instants[0].at_us if self._instants else NEVER
        loop.on_window_end = self._come if self._instants else None

    def _come(self) -> None:
        """All before the instant is done, or nothing is left to do: fork. Returns in forks, and in
        this process if it goes on to a later instant.
        """
        assert self._made is not None
        here = self._instants.pop(0)
        self.branched_at.append(here.text)
        self._say(f"at {here.text}: {many(len(self._futures), 'future')} begin")
        sys.stdout.flush()
        sys.stderr.flush()
        gc.collect()
        gc.freeze()
        self._began = time.perf_counter()
        with self._signals() as before:
            if not self._instants and self._fork(Future(ORIGINAL), here, self.out, before):
                return
            for future in self._futures:
                if self._fork(future, here, here.folder / future.name, before):
                    return
            if not self._instants:
                while self._forks:
                    self._hear()
        if not self._instants:
            self.over()
        self._await_next()

    def _fork(self, future: Future, here: Instant, folder: Path, before: dict[int, Any]) -> bool:
        """Whether this process is the fork. Where the host refuses another process, one that there
        is has to end first.
        """
        is_original = future.name == ORIGINAL
        shown = ORIGINAL if is_original else f"{here.shown}{future.name}"
        result = FutureResult(future.name, here.text, folder, shown)
        self.results.append(result)
        if self.signal:
            result.code, result.error = 128 + self.signal, "interrupted"
            return False
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        while True:
            # one that comes now would find a fork that is not listed yet, or has its parent's ears
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            try:
                pid = os.fork()
                break
            except OSError as error:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
                if self._forks and not self.signal:
                    count = len(self._forks)
                    while len(self._forks) == count:
                        self._hear()
                    continue
                ours.close()
                theirs.close()
                result.error = f"it could not begin: {error.strerror}"
                self._say(f"{result.shown}: {result.error}")
                return False
        if pid:
            theirs.close()
            fork = _Fork(result, pid, ours, forked=self._began)
            self._forks[ours.fileno()] = fork
            self._selector.register(ours, selectors.EVENT_READ, fork)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            self._release()
            return False
        ours.close()
        self._become(future, here, folder, theirs, parent, before)
        return True

    def _release(self) -> None:
        """Have the next ones go on, as many as may at once; all, when they are to end."""
        going = sum(fork.goes for fork in self._forks.values())
        for fork in self._forks.values():
            if going >= self._most and not self.signal:
                return
            if not fork.goes:
                fork.goes = True
                going += 1
                with contextlib.suppress(OSError):  # it is over
                    fork.channel.sendall(_GO)

    def _hear(self) -> None:
        """Wait until one of them says something, or is over."""
        for key, _ in self._selector.select():
            if key.data is None:  # who asked for all this is gone
                self._selector.unregister(key.fileobj)
                os.kill(os.getpid(), signal.SIGTERM)
                continue
            fork: _Fork = key.data
            try:
                data = fork.channel.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            fork.heard += data
            while b"\n" in fork.heard:
                line, fork.heard = fork.heard.split(b"\n", 1)
                self._told(fork, json.loads(line))
            if not data:
                self._ended(fork)

    def _told(self, fork: _Fork, told: dict[str, Any]) -> None:
        result = fork.result
        if "code" in told:
            result.code, result.error = told["code"], told["error"]
        else:
            result.began_s = time.perf_counter() - fork.forked

    def _ended(self, fork: _Fork) -> None:
        self._selector.unregister(fork.channel)
        del self._forks[fork.channel.fileno()]
        fork.channel.close()
        _, status = os.waitpid(fork.pid, 0)
        result = fork.result
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            result.code, result.error = 128 + number, f"ended by {signal.Signals(number).name}"
        with contextlib.suppress(OSError, ValueError):
            if not result.error or result.code != FAILED:
                result.summary = json.loads((result.folder / "summary.json").read_text())
        self._say(_line(result))
        self._release()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[dict[int, Any]]:
        """SIGINT and SIGTERM are for the forks while this process forks and waits: the first has
        them write what they know, a second ends them at once.
        """

        def handed_on(number: int, _frame: object) -> None:
            is_second, self.signal = bool(self.signal), self.signal or number
            for fork in self._forks.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(fork.pid, signal.SIGKILL if is_second else number)
            self._release()

        before: dict[int, Any] = {number: signal.signal(number, handed_on) for number in _ENDING}
        try:
            yield before
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end_all(self, error: BaseException | None) -> None:
        """Wait for forks of an earlier instant; they end as this process did, if somebody ended
        it.
        """
        if not self._forks:
            return
        with self._signals():
            if isinstance(error, InterruptedRunError | KeyboardInterrupt):
                self.signal = getattr(error, "number", signal.SIGINT)
                for fork in self._forks.values():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(fork.pid, self.signal)
            self._release()
            while self._forks:
                self._hear()

    def code(self) -> int:
        """Of all together: what failed weighs most, then refusals, then jobs that wait for ever."""
        codes = {each.code for each in self.results}
        rest = sorted(codes - {0, FAILED})
        return FAILED if FAILED in codes else (rest[0] if rest else 0)

    # --- a fork ---------------------------------------------------------------------------------

    def _become(
        self,
        future: Future,
        here: Instant,
        folder: Path,
        channel: socket.socket,
        parent: int,
        before: dict[int, Any],
    ) -> None:
        """Be the future from now on; whatever goes wrong is told to the parent."""
        self._channel, self.name, self.future = channel, future.name, future
        try:
            self._part(parent, before)
            self._instants.clear()
            self._await_next()
            self._take_folder(folder)
            if not future.is_changed:
                self._has_begun()
                return
            assert self._made is not None
            self._made.loop.call_at_us(here.at_us, self._begin_change, ())
        except BaseException as error:  # noqa: BLE001  nobody above is this process's
            self.leave(*told(error))

    def _part(self, parent: int, before: dict[int, Any]) -> None:
        """From the parent: its terminal's signals, its children, what it prints."""
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os.setpgid(0, 0)  # the parent hands on what comes from the terminal
        _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(FAILED)
        for fork in self._forks.values():
            fork.channel.close()
        self._forks.clear()
        self._selector.close()
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)

    def _take_folder(self, folder: Path) -> None:
        """Results, logs and the run directory are this process's own."""
        made = self._made
        assert made is not None
        shared = made.ending.run_dir
        earlier, self.out = self.out, folder
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        own = shared / "futures" / str(os.getpid())
        own.mkdir(parents=True)
        for path in shared.iterdir():
            if path.is_file() and not path.is_symlink():
                shutil.copy2(path, own / path.name)
        (own / "logs").symlink_to((folder / "logs").resolve())
        made.move(own)
        if folder == earlier:
            return
        for path in folder.glob("plan-*.json"):
            path.unlink()
        for path in earlier.glob("plan-*.json"):
            shutil.copy2(path, folder / path.name)
        if self._files is not None:
            self._files.move(folder)

    def _begin_change(self) -> None:
        assert self._made is not None
        self._change = self._made.loop.create_task(self._make_change())

    async def _make_change(self) -> None:
        assert self._made is not None
        assert self._subject is not None
        scene = Scene(self._made, self._subject, self._made.ending.run_dir, self._give_up)
        try:
            self.slurm_conf = await change(self.future, scene)
        except ChangeFailedError as error:
            self._give_up(str(error))
        except Exception as error:  # noqa: BLE001  told, with where it was
            self.leave(FAILED, _where(error))
        self._has_begun()

    def _has_begun(self) -> None:
        """Say so, and wait for the word to go on."""
        assert self._channel is not None
        self._channel.sendall(b'{"begun": true}\n')
        self._channel.recv(1)
        self.on_begun()

    def _give_up(self, why: str) -> NoReturn:
        """The change cannot be made: there is no such future, and so no results."""
        if self._files is not None:
            self._files.discard()
        for path in self.out.glob("plan-*.json"):
            path.unlink()
        self.leave(FAILED, why, keeps_logs=False)

    def leave(self, code: int, error: str, *, keeps_logs: bool = True) -> NoReturn:
        """End, and say how. Who interrupts now comes too late: what called is the parent's."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        if not (keeps_logs and error):
            (self.out / "logs" / "replay.log").unlink(missing_ok=True)
        for folder in (self.out / "logs", self.out):
            with contextlib.suppress(OSError):  # there are files
                folder.rmdir()
        with contextlib.suppress(OSError):  # the parent is no more
            assert self._channel is not None
            self._channel.sendall(json.dumps({"code": code, "error": error}).encode() + b"\n")
        os._exit(code & 0xFF)


def _raise_all_over() -> NoReturn:
    raise _AllOver


def told(error: BaseException) -> tuple[int, str]:
    """The exit code of a run that ended so, and why in a line."""
    if isinstance(error, InterruptedRunError):
        return 128 + error.number, "interrupted"
    if isinstance(error, KeyboardInterrupt):
        return 128 + (error.args[0] if error.args else signal.SIGINT), "interrupted"
    if isinstance(error, UsageError):
        return BAD_USAGE, str(error)
    if isinstance(error, ReplayError | LaunchError | ClockLost | OSError):
        return FAILED, str(error)
    return FAILED, _where(error)


def _where(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-3:])


def _line(result: FutureResult) -> str:
    """What is said of a future that is over."""
    if result.error:
        return f"{result.shown}: {result.error}"
    summary = result.summary
    wait = summary.get("mean_wait")
    shown = "-" if wait is None else f"{wait:,.3f}"
    others = "".join(
        f", {summary[key]:,} {what}"
        for key, what in (
            ("refused", "refused"),
            ("never_started", "never started"),
            ("unfinished", "have not ended"),
        )
        if summary.get(key)
    )
    return f"{result.shown}: {summary.get('ran', 0):,} jobs ran{others}, mean wait {shown} s"
