"""A replay in a process of its own that does not outlive who asked for it.

Place: under comparisons and sweeps, whose cells are replays. The process reads its standard input,
of which the other end is with whoever started it and says nothing; when that end is gone, however
that came about, the replay is interrupted as by hand. So neither a killed command nor a killed
worker leaves replays that nobody waits for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# exit codes of a replay with which its jobs can be looked at: some may have been refused, or wait
# for ever
FIT: Final = (0, 3, 4)
LOG: Final = "replay.log"


def start_replay(
    trace: Path, options: Sequence[str], folder: Path, environ: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `understudy replay TRACE --one-process OPTIONS --out FOLDER`; what it says is in
    FOLDER/replay.log. `environ`: of the process, if not this one's.

    Raises:
        OSError: it cannot be started.
    """
    command = [
        *(sys.executable, "-m", "understudy.tool.replay.apart"),
        *("replay", str(trace), "--one-process", *options, "--out", str(folder)),
    ]
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=environ
        )


def last_words(folder: Path) -> str:
    """The last line that a replay has said."""
    lines = (folder / LOG).read_text("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def end_with_starter(number: int = signal.SIGTERM) -> None:
    """Have this process get that signal once nobody holds the other end of its standard input."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), number)

    threading.Thread(target=watch, name="starter", daemon=True).start()


def main() -> None:
    """Of the process: `understudy` with the words behind the module's name."""
    from understudy.tool.understudy.understudy import main as understudy

    end_with_starter()
    understudy()


if __name__ == "__main__":
    main()
