"""What the processes of jobs use, sampled from /proc, task by task; and who uses
more memory than he may.

Place: the node daemon's edge, where jobs are real. One sample serves all jobs. Follows:
slurm.conf(5) JobAcctGatherFrequency, JobAcctGatherParams.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.model.task_usage import QUANTITIES, summed_up

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")
FIRST_SAMPLE_S: Final = 1.0  # ours: after a step has begun
ENFORCING_S: Final = 1.0  # ours: memory fills quickly


class _Process(NamedTuple):
    resident: int  # bytes
    address_space: int
    faults: int  # pages that had to be fetched
    cpu_us: int
    waited_us: int  # of children that have ended


@dataclass(slots=True)
class _Task:
    """The most that a task and its processes were seen to use, in the order of QUANTITIES."""

    number: int
    node: int  # its place among the step's nodes
    most: list[int] = field(default_factory=lambda: [0] * len(QUANTITIES))


@dataclass(slots=True)
class Watched:
    """The tasks below one of our processes. `over` is called when they use more memory than
    `limit`.
    """

    root: int
    limit: int = 0  # bytes; 0: none
    # what is used in all; the largest process
    over: Callable[[int, int], None] = lambda _used, _largest: None
    due: float = 0.0  # when it is to be sampled, in the loop's time
    tasks: dict[int, _Task] = field(default_factory=dict)  # by pid

    def usage(self) -> dict[str, int]:
        """What was seen, for accounting; {}: nothing."""
        return summed_up([(task.number, task.node, task.most) for task in self.tasks.values()])

    def note(self, pid: int, family: list[int], processes: dict[int, _Process]) -> None:
        """What the task of this pid uses now."""
        task = self.tasks.get(pid) or _task(pid)
        if task is None:
            return
        self.tasks[pid] = task
        found = [processes[each] for each in family]
        read, written = _moved(pid)
        now = (
            sum(each.cpu_us + each.waited_us for each in found),
            sum(each.resident for each in found),
            sum(each.address_space for each in found),
            sum(each.faults for each in found),
            read,
            written,
        )
        task.most = [max(pair) for pair in zip(task.most, now, strict=True)]


class MemoryWatch:
    """Samples all that is watched every `interval_s`; 0: never. `enforces`: and calls `over`."""

    def __init__(self, interval_s: float, *, enforces: bool) -> None:
        self.reconfigure(interval_s, enforces=enforces)
        self._loop = asyncio.get_running_loop()
        self._watched: list[Watched] = []
        self._timer: asyncio.TimerHandle | None = None

    def reconfigure(self, interval_s: float, *, enforces: bool) -> None:
        """Sample as often as that from the next sample on, and those who are added from now on."""
        self._interval_s = min(interval_s or ENFORCING_S, ENFORCING_S) if enforces else interval_s
        self._enforces = enforces

    def add(self, watched: Watched) -> None:
        """Watch from now on."""
        if not self._interval_s:
            return
        self._watched.append(watched)
        watched.due = self._loop.time() + min(FIRST_SAMPLE_S, self._interval_s)
        if self._timer is None or self._timer.when() > watched.due:
            self._arm(watched.due)

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
        self._timer = self._loop.call_at(when, self._sample)

    def _sample(self) -> None:
        self._timer = None
        if not self._interval_s:
            self._watched.clear()
        if not self._watched:
            return
        first = min([watched.due for watched in self._watched])
        # who was to be sampled has ended by now: a sample is of all processes of the host
        if first > self._loop.time():
            self._arm(first)
            return
        children, processes = _scan()
        again = self._loop.time() + self._interval_s
        for watched in list(self._watched):
            watched.due = again
            family = _below(watched.root, children)
            used = sum([processes[pid].resident for pid in family])
            _note(watched, children, processes)
            if self._enforces and watched.limit and used > watched.limit:
                watched.over(used, max(family, key=lambda pid: processes[pid].resident))
        self._arm(again)


def sample(watched: Watched) -> None:
    """Sample these tasks now."""
    _note(watched, *_scan())


def _note(watched: Watched, children: dict[int, list[int]], processes: dict[int, _Process]) -> None:
    for pid in children.get(watched.root, ()):
        watched.note(pid, [pid, *_below(pid, children)], processes)


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
        cpu, waited = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        processes[pid] = _Process(
            int(fields[21]) * _PAGE,
            int(fields[20]),
            int(fields[9]),
            cpu * _TICK_US,
            waited * _TICK_US,
        )
    return children, processes


def _task(pid: int) -> _Task | None:
    """Which task this is, as its environment says; None: it has not begun yet, or is an orphan of
    one.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            given = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
        return _Task(int(given[b"SLURM_PROCID"]), int(given[b"SLURM_NODEID"]))
    except (OSError, KeyError, ValueError):
        return None


def _moved(pid: int) -> tuple[int, int]:
    """Bytes that the process and its children that have ended have read and written."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            counts = dict(line.split(": ") for line in file.read().splitlines())
        return int(counts["rchar"]), int(counts["wchar"])
    except (OSError, KeyError, ValueError):
        return 0, 0


def _below(root: int, children: dict[int, list[int]]) -> list[int]:
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found[1:]
