"""Daemons that have died while others of their cluster run: which they are, starting just those,
and a supervisor that does so by itself, with a pause that grows.

    python -m understudy.tool.cluster.come_back --run-dir DIR

Place: beside launch.py, which starts whole clusters. Under virtual time nobody comes back: the
clock ends a run in which a daemon died.
"""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.clock.daemon import set_up_logging, write_pid_file
from understudy.model.cluster import Cluster
from understudy.tool.cluster import launch
from understudy.tool.cluster.processes import read_pid_file, recorded
from understudy.tool.cluster.run_dir import LaunchError, exclusive

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPERVISOR: Final = launch.SUPERVISOR
_LOOK_S: Final = 0.25  # ours: between two looks at the daemons
FIRST_PAUSE_S: Final = 0.5  # ours
LONGEST_PAUSE_S: Final = 60.0  # ours
WELL_S: Final = 60.0  # ours: a daemon that lived so long begins with the first pause again
log = logging.getLogger("understudy.supervisor")


def missing(cluster: Cluster, run_dir: Path) -> list[str]:
    """The cluster's daemons that do not run."""
    alive = {process.name for process in recorded(run_dir) if process.is_running}
    return [name for name in launch.daemon_names(cluster) if name not in alive]


def start_missing(cluster: Cluster, run_dir: Path, names: Sequence[str]) -> launch.Started:
    """Start these daemons beside those that run; they listen when this returns.

    Raises:
        LaunchError: one ended at its start, or time is virtual.
    """
    if cluster.time == "virtual":
        raise LaunchError(
            f"{', '.join(names)} died under virtual time, which does not go on without: "
            f"`understudy down --run-dir {run_dir}` ends the rest"
        )
    for name in names:
        (run_dir / f"{name}.pid").unlink(missing_ok=True)
    started = launch.start_daemons(cluster, run_dir, names=names)
    started.joins = True
    launch.wait_listening(started)
    return started


class Pauses:
    """When each daemon that has died is started again: at first soon, then ever later."""

    def __init__(self) -> None:
        self._pause_s: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def look(self, names: Sequence[str], now: float) -> list[tuple[str, float]]:
        """These daemons are missing now: those of which that is news, with the pause before they
        are started.
        """
        found = []
        for name in names:
            if name in self._due:
                continue
            pause_s = FIRST_PAUSE_S
            if now - self._started.get(name, -WELL_S) < WELL_S:
                pause_s = min(2 * self._pause_s[name], LONGEST_PAUSE_S)
            self._pause_s[name], self._due[name] = pause_s, now + pause_s
            found.append((name, pause_s))
        self._due = {name: when for name, when in self._due.items() if name in names}
        return found

    def take_due(self, now: float) -> list[str]:
        """Whom to start now."""
        names = [name for name, when in self._due.items() if when <= now]
        for name in names:
            del self._due[name]
            self._started[name] = now
        return names


def supervise(run_dir: Path) -> None:
    """Start daemons again for as long as the cluster is there."""
    pauses, children = Pauses(), list[subprocess.Popen[bytes]]()
    while True:
        try:
            cluster = Cluster.load(run_dir)
        except (OSError, ValueError, TypeError):
            log.info("the cluster is no more: ending")
            return
        children = [child for child in children if child.poll() is None]
        absent = missing(cluster, run_dir)
        for name, pause_s in pauses.look(absent, time.monotonic()):
            log.warning("%s has ended; it is started again in %g s", name, pause_s)
        for name in pauses.take_due(time.monotonic()):
            children += _start(cluster, run_dir, name)
        time.sleep(_LOOK_S)


def _start(cluster: Cluster, run_dir: Path, name: str) -> list[subprocess.Popen[bytes]]:
    try:
        with exclusive(run_dir):
            if name not in missing(cluster, run_dir):
                return []
            started = start_missing(cluster, run_dir, [name])
    except (LaunchError, OSError) as error:
        log.error("%s", error)  # noqa: TRY400  the text says all
        return []
    process = read_pid_file(run_dir / f"{name}.pid")
    log.info("%s runs again%s", name, "" if process is None else f", pid {process.pid}")
    return list(started.children.values())


def start_supervisor(run_dir: Path) -> bool:
    """Start one, unless there is one; whether it was started."""
    process = read_pid_file(run_dir / f"{SUPERVISOR}.pid")
    if process is not None and process.is_running:
        return False
    with (run_dir / "logs" / f"{SUPERVISOR}.log").open("ab") as file:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, "--run-dir", str(run_dir.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            cwd=run_dir,
        )
    started = launch.Started(run_dir, {SUPERVISOR: child}, {SUPERVISOR: 0}, joins=True)
    launch.wait_listening(started)
    return True


def main() -> None:
    """The supervisor's process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", type=Path, required=True)
    run_dir = parser.parse_args().run_dir
    set_up_logging()

    def end(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    pid_file = write_pid_file(run_dir, SUPERVISOR)
    try:
        supervise(run_dir)
    finally:
        pid_file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
