"""A task of a step, and what waits for its standard input.

Place: a part of a step's process (`taskd.py`).
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Task:
    """A task. `node` is what the order says of its node, `local` its number there."""

    def __init__(self, number: int, node: dict[str, Any], local: int) -> None:
        self.number, self.node, self.local = number, node, local
        self.pid = 0
        self.status: int | None = None
        self.stdin = -1
        self.errors = -1  # its standard error, kept for its epilogs
        self._waiting = bytearray()  # for its stdin
        self._stdin_ends = False

    def give(self, data: bytes, poll: select.poll) -> None:
        """Something for its standard input; nothing: there will be no more."""
        if self.stdin < 0:
            return
        if data:
            self._waiting += data
        else:
            self._stdin_ends = True
        self.write_stdin(poll)

    def write_stdin(self, poll: select.poll) -> None:
        """As much as it takes now."""
        try:
            while self._waiting:
                del self._waiting[: os.write(self.stdin, self._waiting)]
        except BlockingIOError:
            poll.register(self.stdin, select.POLLOUT)
            return
        except OSError:
            self._waiting.clear()
            self._stdin_ends = True
        unregister(poll, self.stdin)
        if self._stdin_ends:
            self.close_stdin(poll)

    def close_stdin(self, poll: select.poll) -> None:
        if self.stdin >= 0:
            unregister(poll, self.stdin)
            os.close(self.stdin)
            self.stdin = -1


def unregister(poll: select.poll, descriptor: int) -> None:
    """It may be that it was not registered."""
    try:  # noqa: SIM105  contextlib costs time
        poll.unregister(descriptor)
    except KeyError:
        pass
