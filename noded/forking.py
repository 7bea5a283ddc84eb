"""The process from which those between the daemon and scripts or tasks are forked (`forker.py`
starts it).

Place: a program of its own. A fork costs what its parent has in memory, page by page, so nothing is
imported here, nor by `stepd` and `taskd`, that starts threads, reads patterns or makes
enumerations: half of what a script cost was that. All that children will need is imported, since
they may not be able to read it where it lies.
"""

from __future__ import annotations

import _ctypes  # noqa: F401  for children, as some more below
import _socket
import fcntl  # noqa: F401
import gc
import os
import resource  # noqa: F401
import select
import sys
import termios  # noqa: F401

from understudy.noded import pmi, pmixd, stepd, taskd  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BURY_MS = 5000
_MOST = 8  # descriptors of a child


def main() -> None:
    """Fork for as long as the daemon is there."""
    gc.freeze()
    gc.disable()
    children = 0
    sock = _socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    while True:
        # Children are buried late, so that the daemon, who has just been told of one, finds it in
        # any case.
        if not poll.poll(_BURY_MS if children else None):
            children -= _bury()
            continue
        children -= _bury()
        data, found, *_ = sock.recvmsg(4096, _socket.CMSG_SPACE(4 * _MOST))
        if not data:
            return
        body = found[0][2] if found else b""
        descriptors = [
            int.from_bytes(body[at : at + 4], sys.byteorder) for at in range(0, len(body), 4)
        ]
        pid = os.fork()
        if pid == 0:
            sock.close()
            _become((stepd.main, taskd.main, pmixd.main)[data[0]], descriptors)
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
