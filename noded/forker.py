"""One process from which those between the daemon and scripts or tasks are forked: to start an
interpreter for each would take thirty times as long.

Place: the node daemon's end of it; the process is `forking.py`. Its children outlive it and the
daemon; each has a session of its own and is told what to do by what stands ready on its
descriptors.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER: Final = str(Path(__file__).parents[2])  # with it, a process without `site` finds the house
_CODE: Final = (
    f"import sys; sys.path.insert(0, {_FOLDER!r}); from understudy.noded import forking; "
    "forking.main()"
)
_KINDS: Final = ("stepd", "taskd", "pmixd")


class Forker:
    """Starts the process with its first child, and again if it should be lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None

    def fork(self, kind: str, descriptors: Sequence[int]) -> int:
        """Start a child whose descriptors 0, 1 ... are these (and 3, 4 ...; 2 stays). Its pid; it
        is nobody's to wait for.

        Raises:
            OSError: there is none.
        """
        for attempt in range(2):
            try:
                if self._sock is None:
                    self._begin()
                assert self._sock is not None
                socket.send_fds(self._sock, [bytes([_KINDS.index(kind)])], list(descriptors))
                pid = int.from_bytes(self._sock.recv(4), "big")
                if pid:
                    return pid
            except OSError:
                if attempt:
                    raise
            self.close()
        raise OSError(11, os.strerror(11))

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _CODE],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={
                    "LC_ALL": "C.UTF-8",
                    **({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}),
                },
                cwd="/",
                start_new_session=True,
            )
        self._sock = ours

    def close(self) -> None:
        """No more children; those that are there go on."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
