"""What `ps`, `pgrep`, `pidof` and `killall` see of a daemon: the name and the command line that
were typed, not those of the interpreter.

Place: under tool/cluster/daemons.py. Follows: proc(5), /proc/PID/comm, /proc/PID/cmdline, and
fields 48 and 49 of /proc/PID/stat.
"""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path


def set_title(words: list[str]) -> None:
    """Be known by these words, as far as the memory of this process's own command line goes; the
    first is the process's name, too.
    """
    # a /proc that cannot be written, or none: the title stays the interpreter's
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(words[0])
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        # 48 and 49, counted from 1 with two before the name's end
        start, end = int(fields[45]), int(fields[46])
        title = b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)[
            : end - start - 1
        ]
        if start and title:
            ctypes.memset(start, 0, end - start)
            ctypes.memmove(start, title, len(title))
