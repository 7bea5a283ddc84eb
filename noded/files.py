"""Files that sbcast sends: written as their owner, beside their place, and moved there when they
are complete.

Place: the node daemon's edge with the real executor. The daemon stands for nodes that share this
host's disks, so a file that is there for one of them is there for all.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.protocol.messages import SendFile


class FileReceiver:
    """Takes files piece by piece."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], int] = {}  # (job, path) -> descriptor

    def take(self, message: SendFile, user_id: int, group_id: int) -> None:
        """Write one piece.

        Raises:
            OSError: as the user's own attempt would fail.
        """
        with _as_user(user_id, group_id):
            self._take(message)

    def _take(self, message: SendFile) -> None:
        key = message.job_id, message.path
        if message.number == 1:
            flags = (
                os.O_WRONLY
                | os.O_CREAT
                | os.O_CLOEXEC
                | (os.O_TRUNC if message.force else os.O_EXCL)
            )
            self._close(key)
            self._open[key] = os.open(message.path, flags, 0o700)
        descriptor = self._open.get(key)
        if descriptor is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        view = memoryview(message.data)
        while view:
            view = view[os.write(descriptor, view) :]
        if message.is_last:
            os.fchmod(descriptor, message.mode & 0o7777)
            if message.times is not None:
                os.utime(descriptor, message.times)
            self._close(key)

    def _close(self, key: tuple[int, str]) -> None:
        descriptor = self._open.pop(key, None)
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def _as_user(user_id: int, group_id: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
    if os.geteuid() != 0 or user_id == 0:
        yield
        return
    os.setegid(group_id)
    os.seteuid(user_id)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
