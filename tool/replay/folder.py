"""The run directory of one replay: a folder among temporary files that is gone when the replay is,
however it ends.

Place: under traces.py and scenarios.py. What users may want to read afterwards, the daemons'
logs, is in the results' folder, where it stays if the replay failed. A lock says that the replay
lives: the kernel gives it up with the process, and so a later replay finds what a host that went
down left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.tool.cluster.if_killed import clear_away, ended_if_killed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PREFIX: Final = "understudy-replay-"
_LOCK: Final = "replaying"


@dataclass(slots=True)
class ReplayDir:
    """The folder, where the daemons' logs are, and whether these stay."""

    path: Path
    logs: Path
    has_failed: bool = False


def is_replays(run_dir: Path) -> bool:
    """Whether a run directory is that of a replay."""
    return (run_dir / _LOCK).exists()


@contextlib.contextmanager
def replay_dir(out: Path | None) -> Iterator[ReplayDir]:
    """The run directory. Its `logs` are OUT/logs, which stay if the block raises or says that the
    replay has failed; without `out` they go with it.

    Raises:
        OSError: it cannot be made.
    """
    remove_stale(Path(tempfile.gettempdir()))
    run_dir = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    logs = (out.resolve() if out is not None else run_dir) / "logs"
    try:
        with held(run_dir) as lock, ended_if_killed(run_dir, lock, remove=True):
            logs.mkdir(parents=True, exist_ok=True)
            _remove_logs(logs)
            if out is not None:
                (run_dir / "logs").symlink_to(logs)
            replay = ReplayDir(run_dir, logs)
            yield replay
            if not replay.has_failed:
                _remove_logs(logs)
    finally:
        with contextlib.suppress(OSError):  # there are files
            logs.rmdir()
        shutil.rmtree(run_dir, ignore_errors=True)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[int]:
    """As long as this lasts, nobody takes the folder for what one that is no more has left; the
    descriptor of the lock.
    """
    # Locked before it has its name: who looks for what is stale must not find it between the two.
    new = folder / f"{_LOCK}.new"
    with new.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        new.rename(folder / _LOCK)
        yield file.fileno()


def _remove_logs(logs: Path) -> None:
    """Those of daemons: a folder of this name may be somebody's own."""
    for pattern in (
        "controller.log",
        "accounting.log",
        "agent.log",
        "clock.log",
        "replay.log",
        "noded[0-9]*.log",
    ):
        for path in logs.glob(pattern):
            path.unlink(missing_ok=True)


def remove_stale(base: Path) -> list[Path]:
    """Remove the run directories of this user's replays that are no more, and end their daemons,
    should some live. Which they were.
    """
    return remove_left(base, _PREFIX, lambda folder: clear_away(folder, remove=True))


def remove_left(
    base: Path, prefix: str, remove: Callable[[Path], None] = shutil.rmtree
) -> list[Path]:
    """Remove this user's folders whose names begin so, and which nobody holds any more. Which they
    were.
    """
    removed = []
    for folder in sorted(base.glob(f"{prefix}*")):
        # One without the file is just being made, or of a version that had none. The folders of
        # other users are not ours to judge.
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            descriptor = os.open(folder / _LOCK, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
                removed.append(folder)
            finally:
                os.close(descriptor)
    return removed
