"""Daemons as processes: who is meant by a pid file, whether it still runs, and ending it for good.

Place: under tool/cluster/launch.py; knows pids and /proc, and nothing of clusters, messages or what
the daemons do. A pid alone is not an identity: the kernel gives the number to another process
later. A pid file therefore says `PID STARTTIME`, the second being field 22 of /proc/PID/stat (clock
ticks since boot; proc(5)), and no signal is sent before both have been compared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

POLL_S = 0.005  # ours: between two looks for a process
# ours: a killed process that is still there has a system call that does not end; waiting longer
# helps nobody
KILL_S = 5.0


def heed_termination() -> None:
    """Have SIGTERM unwind this command as Ctrl-C does, so that it ends the daemons that it has
    started.
    """

    def unwind(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, unwind)


@dataclass(frozen=True, slots=True)
class Process:
    """One process that was started, and when (clock ticks since boot)."""

    name: str
    pid: int
    start_time: int

    @property
    def is_running(self) -> bool:
        """Whether it still runs. A zombie has ended: only its parent has not asked for it yet."""
        stat = _stat(self.pid)
        return stat is not None and stat.start_time == self.start_time and stat.state not in "ZX"

    def signal(self, number: int) -> bool:
        """Send it a signal; whether there was still a process to send it to."""
        if not self.is_running:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    parent: int
    start_time: int


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the command's name in parentheses and may itself hold spaces and
            # parentheses.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(fields[0].decode(), int(fields[1]), int(fields[19]))


def identify(name: str, pid: int) -> Process:
    """The process that has this pid now.

    Raises:
        ProcessLookupError: there is none.
    """
    stat = _stat(pid)
    if stat is None:
        raise ProcessLookupError(f"no process {pid}")
    return Process(name, pid, stat.start_time)


def read_pid_file(path: Path) -> Process | None:
    """Whom a file with a pid and a start time means, running or not; None if there is no such file,
    or it is still being written.
    """
    try:
        pid, start_time = path.read_text().split()
        return Process(path.stem, int(pid), int(start_time))
    except (FileNotFoundError, ValueError):
        return None


def recorded(run_dir: Path) -> list[Process]:
    """The daemons of which pid files speak, in the order of their names."""
    return [
        process
        for path in sorted(run_dir.glob("*.pid"))
        if (process := read_pid_file(path)) is not None
    ]


def daemons_of(run_dir: Path) -> list[Process]:
    """The daemons of a run directory by their command lines (see launch.daemon_command), also those
    that have not written their pid file yet.
    """
    found = []
    ours = os.fsencode(run_dir)
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry)
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            module, folder = words.index(b"-m") + 1, words.index(b"--run-dir") + 1
            if words[module].startswith(b"understudy.") and words[folder] == ours:
                found.append(identify(words[module].decode(), pid))
    return found


def descendants(processes: Iterable[Process]) -> list[Process]:
    """All children, grandchildren and so on of the processes, at this moment."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _stat(int(entry))) is not None:
            children.setdefault(stat.parent, []).append(int(entry))
    return list(_walk(children, [process.pid for process in processes]))


def _walk(children: dict[int, list[int]], pids: list[int]) -> Iterator[Process]:
    for pid in pids:
        for child in children.get(pid, []):
            with contextlib.suppress(ProcessLookupError):
                yield identify("child", child)
            yield from _walk(children, [child])


def end(processes: list[Process], patience_s: float) -> list[Process]:
    """Ask the processes to end and wait; those that have not ended after `patience_s` are killed,
    with all that they started.

    Returns:
        Those that had to be killed.
    """
    asked = [process for process in processes if process.signal(signal.SIGTERM)]
    stubborn = _wait(asked, patience_s)
    kill(stubborn)
    return stubborn


def kill(processes: list[Process]) -> None:
    """Kill the processes with all that they started, and wait until they are gone."""
    if not processes:
        return
    # Found before the kill: afterwards their children belong to init, and nobody could tell whose
    # they were.
    doomed = [*processes, *descendants(processes)]
    for process in doomed:
        process.signal(signal.SIGKILL)
    _wait(doomed, KILL_S)


def _wait(processes: list[Process], patience_s: float) -> list[Process]:
    """Wait until the processes have ended; those that still run after `patience_s`."""
    deadline = time.monotonic() + patience_s
    while processes := [process for process in processes if process.is_running]:
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    return processes
