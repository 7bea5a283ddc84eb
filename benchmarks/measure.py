"""One case on one side, in a process of its own: `python -m benchmarks.measure CASE SIDE` prints
what it cost and its figures as one line of JSON.

The process adopts the daemons that the case leaves behind (PR_SET_CHILD_SUBREAPER), so that their
CPU time and memory are counted like those of any child, and so that none outlives it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.sides import BenchError, Slurm, Tree, side_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SET_CHILD_SUBREAPER = 36  # prctl(2)
_TICK = os.sysconf("SC_CLK_TCK")
_PATIENCE_S = 20


def stat_of(pid: str) -> list[str]:
    """The fields of /proc/PID/stat from its third on, the state: proc(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def descendants() -> dict[int, list[str]]:
    """The stat of every process below this one."""
    below: dict[int, list[int]] = {}
    stats: dict[int, list[str]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (fields := stat_of(entry.name)):
            stats[int(entry.name)] = fields
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = {}, list(below.get(os.getpid(), ()))
    while left:
        pid = left.pop()
        found[pid] = stats[pid]
        left += below.get(pid, ())
    return found


def cpu_s() -> float:
    """User and system seconds of all that are or were below this process."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(sum(map(int, fields[11:15])) for fields in descendants().values())
    return ended.ru_utime + ended.ru_stime + living / _TICK


def now() -> tuple[float, float]:
    """The time on the wall, and that of the processors."""
    return time.perf_counter(), cpu_s()


def since(began: tuple[float, float]) -> dict[str, float]:
    wall, cpu = now()
    return {"wall_s": wall - began[0], "cpu_s": cpu - began[1]}


def resident_mb(pids: list[int]) -> float:
    """Together."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * resource.getpagesize() / 2**20


class Run:
    """What a case is given: a side, a folder that goes when it is over, and where figures go."""

    def __init__(self, side: Tree | Slurm, folder: Path) -> None:
        self.side, self.folder = side, folder
        self.figures: dict[str, tuple[float, str]] = {}
        self.notes: dict[str, str] = {}
        self.cost: dict[str, float] = {}

    @property
    def tree(self) -> Tree:
        assert isinstance(self.side, Tree), "this case is not for real Slurm"
        return self.side

    def figure(self, what: str, value: float, unit: str) -> None:
        self.figures[what] = (value, unit)

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """What is inside is what the case costs; a case without such a part costs all of it."""
        began = now()
        yield
        self.cost = since(began)


def end_all() -> list[str]:
    """Wait for what is left; those that do not go are killed and named."""
    end, slow = time.monotonic() + _PATIENCE_S, []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return slow
        if not pid and time.monotonic() > end:
            for left in descendants():
                with contextlib.suppress(OSError):
                    slow.append(Path(f"/proc/{left}/cmdline").read_text().replace("\0", " "))
                    os.kill(left, signal.SIGKILL)
        if not pid:
            time.sleep(0.01)


def measure(name: str, side: Tree | Slurm) -> dict[str, object]:
    """The case's cost and figures, or why there are none."""
    from benchmarks.cases import CASES

    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    failed = ""
    with tempfile.TemporaryDirectory(prefix="understudy-bench-") as folder:
        run = Run(side, Path(folder))
        try:
            began = now()
            CASES[name].how(run)
            run.cost = run.cost or since(began)
        except BenchError as error:
            failed = str(error)
        slow = end_all()
    # of real Slurm, slurmstepd waits for its slurmd for minutes
    if slow and not failed and isinstance(side, Tree):
        failed = f"had to be killed: {'; '.join(slow)}"
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        **run.cost,
        "largest_mb": largest,
        "figures": run.figures,
        "notes": run.notes,
        "failed": failed,
    }


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(json.dumps(measure(sys.argv[1], side_of(sys.argv[2]))))
