"""What becomes of a cluster whose command is killed before it could end what it has started:
`understudy replay`, or `understudy up` half way.

Place: beside launch.py. A process of its own waits at a pipe. The command says through it that all
is well; if the pipe closes without a word, the command is no more, and the process ends the
daemons, whether they have written their pid files yet or not. It holds the lock on the run
directory along with the command, so nobody starts there in between.

The pipe's end cannot be missed, as a signal of a parent's death could be by a daemon that is just
starting or hangs, and daemons need not know of it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ALL_IS_WELL: Final = b"."
_REMOVE: Final = "--remove"
_PAUSE_S: Final = 0.2  # ours: between two looks for daemons
_PATIENCE_S: Final = 8.0  # ours: for a daemon to end


@contextlib.contextmanager
def ended_if_killed(run_dir: Path, lock: int, *, remove: bool = False) -> Iterator[None]:
    """While this lasts, a process stands by that ends the daemons of the run directory if this one
    is killed.

    Args:
        run_dir: of the cluster.
        lock: the descriptor of a file on which this process holds a lock, for as long as one of the
            two lives.
        remove: whether the run directory is removed then.
    """
    reads, writes = os.pipe()
    try:
        command = [
            sys.executable,
            "-P",
            "-m",
            "understudy.tool.cluster.if_killed",
            str(run_dir.resolve()),
            *([_REMOVE] if remove else []),
        ]
        guard = subprocess.Popen(
            command,
            stdin=reads,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            pass_fds=[lock],
        )
    except BaseException:
        os.close(writes)
        raise
    finally:
        os.close(reads)
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # killed as well
            os.write(writes, _ALL_IS_WELL)
        os.close(writes)
        guard.wait()


def clear_away(run_dir: Path, *, remove: bool) -> None:
    """End all daemons of the run directory and remove what only a running cluster has; with
    `remove`, all of it.
    """
    import shutil
    import time

    from understudy.tool.cluster import launch
    from understudy.tool.cluster.processes import daemons_of, end

    launch.stop(run_dir)
    quiet = 0
    # one that was being started when the command was killed may not have had its name yet
    while quiet < 2:
        found = daemons_of(run_dir)
        end(found, _PATIENCE_S)
        quiet = 0 if found else quiet + 1
        time.sleep(_PAUSE_S)
    launch.stop(run_dir)
    if remove:
        shutil.rmtree(run_dir, ignore_errors=True)


def main() -> int:
    """Wait for the end of the command, good or bad."""
    if os.read(0, 1):
        return 0
    from pathlib import Path

    clear_away(Path(sys.argv[1]), remove=_REMOVE in sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
