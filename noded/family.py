"""All processes of a job, whatever they have done to get away: double forks, sessions of their own,
ignored signals.

Place: used by the node daemon and by the small processes between it and scripts or tasks
(`stepd.py`, `taskd.py`), which start often; so it imports nothing of the house and little of the
library.

The process between is a subreaper (prctl(2)): whoever loses his parent becomes its child, so
everything that a job starts stays below it, and nothing of the job is left when it has no children
any more.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # without enumerations, see forking.py
import os
import time

PR_SET_CHILD_SUBREAPER = 36
# slurm.conf(5), UnkillableStepTimeout: what is there still has a system call that does not end
UNKILLABLE_S = 60.0
_ASK_S = 1.0  # ours: between two signals to what is left
# to some of these each of the processes between listens
_HANDLED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def adopt_orphans() -> None:
    """Become the parent of all descendants who lose theirs."""
    import _ctypes  # noqa: PLC0415  a seventh of what importing ctypes costs each script

    library = _ctypes.dlopen("libc.so.6", 0)
    _ctypes.call_function(_ctypes.dlsym(library, "prctl"), (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def fork() -> int:
    """As `os.fork`. The child hears nothing until it says `listen`: before it has taken back this
    process's handlers, a signal that is meant to end it would be theirs, and lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def listen() -> None:
    """Hear signals from now on, and those that came meanwhile."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)


def below(pid: int) -> list[int]:
    """The living descendants of a process."""
    return [each for each, _ in _members(pid)]


def _members(pid: int) -> list[tuple[int, int]]:
    """The living descendants of a process, each with its process group."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split(None, 3)
        except OSError:
            continue
        if fields[0] not in b"ZX":
            children.setdefault(int(fields[1]), []).append((int(entry), int(fields[2])))
    found = [(pid, 0)]
    for each, _ in found:
        found += children.get(each, ())
    return found[1:]


def send(pid: int, number: int) -> int:
    """Send a signal to all processes below one; how many there were."""
    family = _members(pid)
    for each, _ in family:
        try:  # noqa: SIM105  contextlib costs a script time
            os.kill(each, number)
        except OSError:
            pass
    if number == signal.SIGKILL:
        # Who forks faster than one can look still has its process group, and that is the family's:
        # `pid` began the session.
        for group in {group for _, group in family} - {pid, os.getpgrp(), 0}:
            try:  # noqa: SIM105
                os.killpg(group, number)
            except OSError:
                pass
    return len(family)


def end(ask: Callable[[], None], reaped: Callable[[int, int, object], None]) -> None:
    """Kill all processes below this one, and wait for them.

    `ask` is called again and again if some cannot be killed from here: they run as somebody else.
    `reaped` hears of each that has ended.
    """
    pid = os.getpid()
    begun = asked = time.monotonic()
    pause = 0.0
    while True:
        try:
            while True:
                number, status, usage = os.wait4(-1, os.WNOHANG)
                if not number:
                    break
                reaped(number, status, usage)
        except ChildProcessError:
            return
        now = time.monotonic()
        if now - begun > UNKILLABLE_S:
            return
        if now - asked > _ASK_S:
            asked = now
            ask()
        send(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2 or 0.001, 0.1)


def end_strays(mark: bytes, session: int) -> None:
    """Kill what is left of a script or step whose process between was killed.

    They are in the session that it led, or have what it gave to all of them in their environment:
    `mark`, entries joined by zero bytes in any order.
    """
    wanted = set(mark.split(b"\0"))
    me = os.getpid()
    for _ in range(100):
        found = False
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == me:
                continue
            try:
                if _session(entry) == session > 1 or wanted <= _environment(entry):
                    os.kill(int(entry), signal.SIGKILL)
                    found = True
            except OSError:
                continue
        if not found:
            return
        time.sleep(0.005)


def _session(entry: str) -> int:
    with open(f"/proc/{entry}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split(None, 4)
    return int(fields[3]) if fields[0] not in b"ZX" else -1


def _environment(entry: str) -> set[bytes]:
    with open(f"/proc/{entry}/environ", "rb") as file:
        return set(file.read().split(b"\0"))
