"""What the daemons are like during a load, second by second: the controller's own counts, and what
the kernel says of its processes.

Place: tool/load. A thread asks, as a controller that keeps it waiting must not stop the table.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.shared.client import RefusedError
from understudy.tool.load.target import TargetError

if TYPE_CHECKING:
    from understudy.tool.cluster.processes import Process
    from understudy.tool.load.target import Target

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SLURM_NUMBERS: Final = {
    "Agent queue size": "agent_queue",
    "Agent count": "agents",
    "Jobs pending": "pending",
    "Jobs running": "running",
}
PERIOD_S: Final = 1.0  # ours


def process_use(process: Process) -> tuple[float, float] | None:
    """Seconds of CPU so far, and MB of memory now; None if it has ended."""
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if int(fields[19]) != process.start_time:
        return None
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE / 1e6


class Sampler(threading.Thread):
    """Takes a sample each second, from `start` until `finish`; the answer to its own question is
    timed, too.
    """

    def __init__(self, target: Target, begin: float) -> None:
        super().__init__(daemon=True)
        self._target, self._begin = target, begin
        self._over = threading.Event()
        self.samples: list[dict[str, Any]] = []

    def run(self) -> None:
        client = self._target.client() if self._target.location is not None else None
        while not self._over.is_set():
            asked = time.monotonic()
            sample: dict[str, Any] = {"at": round(asked - self._begin, 3)}
            with contextlib.suppress(RefusedError, TargetError):
                if client is not None:
                    sample.update(client.call("GetStatistics")[2])
                else:
                    sample.update(slurm_numbers(self._target.command("sdiag")))
                sample["answered_ms"] = round((time.monotonic() - asked) * 1000, 3)
            sample["daemons"] = self.uses()
            self.samples.append(sample)
            self._over.wait(max(0.0, PERIOD_S - (time.monotonic() - asked)))
        if client is not None:
            client.close()

    def uses(self) -> dict[str, dict[str, float]]:
        """CPU seconds and MB of each daemon that runs."""
        found = {}
        for daemon in self._target.daemons:
            use = process_use(daemon)
            if use is not None:
                found[daemon.name] = {"cpu_s": use[0], "mb": round(use[1], 1)}
        return found

    def finish(self) -> None:
        """Take no more."""
        self._over.set()
        self.join()


def slurm_numbers(text: str) -> dict[str, int]:
    """Numbers of real Slurm's sdiag, by the names that ours have."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*([^:]+):\s+(\d+)\s*$", line)
        if match and match[1] in _SLURM_NUMBERS:
            found[_SLURM_NUMBERS[match[1]]] = int(match[2])
    return found
