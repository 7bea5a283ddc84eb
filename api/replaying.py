"""The process of a replay that was begun in Python: `understudy`, which ends when its input does.

Place: run by replay.py. Nobody writes to the pipe; it closes with who holds its other end.
"""

from __future__ import annotations

import os
import signal
import threading


def main() -> None:
    """Run `understudy` with the words of the command line."""
    from understudy.tool.understudy.understudy import main as understudy

    threading.Thread(target=_end_with_input, daemon=True).start()
    understudy()


def _end_with_input() -> None:
    while os.read(0, 64):
        pass
    # as a person would end it: what it has started is ended, too
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
