"""One process from which those between the daemon and scripts or tasks are forked: to start an interpreter for each would take thirty times as long.

Place: `Forker` is the node daemon's end of it, `main` the process. Its children outlive it and the daemon; each has a session of its own and is told
what to do by what stands ready on its descriptors.
"""

from __future__ import annotations

import _ctypes  # noqa: F401  for children, as some more below: they may not be able to read it where it lies
import _socket
import fcntl  # noqa: F401
import gc
import os
import resource  # noqa: F401
import select
import socket
import subprocess
import sys
import termios  # noqa: F401
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.noded import pmi, stepd, taskd  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FOLDER: Final = str(Path(__file__).parents[2])  # with it, a process without `site` finds the house
_CODE: Final = f"import sys; sys.path.insert(0, {_FOLDER!r}); from understudy.noded import forker; forker.main()"
_KINDS: Final = ("stepd", "taskd")
_BURY_MS: Final = 5000
_MOST: Final = 8  # descriptors of a child


class Forker:
    """Starts the process with its first child, and again if it should be lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None

    def fork(self, kind: str, descriptors: Sequence[int]) -> int:
        """Start a child whose descriptors 0, 1 ... are these (and 3, 4 ...; 2 stays). Its pid; it is nobody's to wait for.

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
                env={"LC_ALL": "C.UTF-8", **({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {})},
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


def main() -> None:
    """Fork for as long as the daemon is there."""
    # All that children will need, while this process may read its own folder.
    gc.freeze()
    children = 0
    sock = _socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    while True:
        # Children are buried late, so that the daemon, who has just been told of one, finds it in any case.
        if not poll.poll(_BURY_MS if children else None):
            children -= _bury()
            continue
        children -= _bury()
        data, found, *_ = sock.recvmsg(4096, _socket.CMSG_SPACE(4 * _MOST))
        if not data:
            return
        body = found[0][2] if found else b""
        descriptors = [int.from_bytes(body[at : at + 4], sys.byteorder) for at in range(0, len(body), 4)]
        pid = os.fork()
        if pid == 0:
            sock.close()
            _become((stepd.main, taskd.main)[data[0]], descriptors)
        children += 1
        sock.send(pid.to_bytes(4, "big"))
        for each in descriptors:
            os.close(each)


def _bury() -> int:
    """Take note of children that have ended; how many."""
    count = 0
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            count += 1
    except ChildProcessError:
        pass
    return count


def _become(run: Callable[[], int], descriptors: list[int]) -> None:
    """Turn this process, a child, into what it is to be. Does not return."""
    code = 1
    try:
        os.setsid()
        # First out of the way of each other, then to their places; 2 stays the daemon's log.
        copies = [os.dup(each) for each in descriptors]
        for each in descriptors:
            os.close(each)
        for place, copy in zip((0, 1, *range(3, 3 + len(copies))), copies, strict=False):
            if place != copy:
                os.dup2(copy, place, inheritable=place < 2)
                os.close(copy)
        code = run()
    except BaseException:  # noqa: BLE001  nobody above would say it
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
