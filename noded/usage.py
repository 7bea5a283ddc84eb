"""How much memory the processes of jobs use, looked at from time to time in /proc; and who uses more than he may.

Place: the node daemon's edge, where jobs are real. One look serves all jobs. Follows: slurm.conf(5) JobAcctGatherFrequency, JobAcctGatherParams.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
FIRST_LOOK_S: Final = 1.0
ENFORCING_S: Final = 1.0  # memory fills quickly


class _Process(NamedTuple):
    resident: int  # bytes
    address_space: int


@dataclass(slots=True)
class Watched:
    """The processes below one of ours: the most that they were seen to use, in bytes. `over` is called when they use more than `limit`."""

    root: int
    limit: int = 0  # bytes; 0: none
    over: Callable[[int, int], None] = lambda _used, _largest: None  # what is used in all; the largest process
    resident: int = 0
    address_space: int = 0


class MemoryWatch:
    """Looks at all that is watched every `interval_s`; 0: never. `enforces`: and calls `over`."""

    def __init__(self, interval_s: float, *, enforces: bool) -> None:
        self._interval_s = min(interval_s or ENFORCING_S, ENFORCING_S) if enforces else interval_s
        self._enforces = enforces
        self._loop = asyncio.get_running_loop()
        self._watched: list[Watched] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watched: Watched) -> None:
        """Watch from now on."""
        if not self._interval_s:
            return
        self._watched.append(watched)
        when = self._loop.time() + min(FIRST_LOOK_S, self._interval_s)
        if self._timer is None or self._timer.when() > when:
            self._arm(when)

    def remove(self, watched: Watched) -> None:
        """Watch no more."""
        if watched in self._watched:
            self._watched.remove(watched)

    def close(self) -> None:
        """The daemon ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._watched:
            return
        children, processes = _scan()
        for watched in list(self._watched):
            family = _below(watched.root, children)
            used = sum([processes[pid].resident for pid in family])
            watched.resident = max(watched.resident, used)
            watched.address_space = max(watched.address_space, sum([processes[pid].address_space for pid in family]))
            if self._enforces and watched.limit and used > watched.limit:
                watched.over(used, max(family, key=lambda pid: processes[pid].resident))
        self._arm(self._loop.time() + self._interval_s)


def _scan() -> tuple[dict[int, list[int]], dict[int, _Process]]:
    children: dict[int, list[int]] = {}
    processes: dict[int, _Process] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        pid = int(entry)
        children.setdefault(int(fields[1]), []).append(pid)
        processes[pid] = _Process(int(fields[21]) * _PAGE, int(fields[20]))
    return children, processes


def _below(root: int, children: dict[int, list[int]]) -> list[int]:
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found[1:]
