"""Who is at the other end of a Unix socket, as the kernel says (SO_PEERCRED): a handshake without a
secret, for commands on the daemons' host.

Place: used by commands and by the messenger; imports next to nothing, since every command pays for
it. The kernel vouches for both ends, and nobody else can read or write what passes between them: so
nothing is sealed, nobody's key or agent is asked, and the first request comes right behind the
hello. A command believes a daemon that root or its own user runs; with others, and over TCP, both
prove themselves (handshake.py).
"""

import os
import sys
from _socket import SO_PEERCRED, SOL_SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

LOCAL_END = b" local"
LOCAL_HELLO = b"understudy/1" + LOCAL_END


def other_end(sock: "socket") -> tuple[int, int]:
    """User and group of the process that connected the socket, or that listens on it."""
    ids = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    return int.from_bytes(ids[4:8], sys.byteorder), int.from_bytes(ids[8:12], sys.byteorder)


def is_trusted(sock: "socket") -> bool:
    """Whether root or this process's user listens at the other end."""
    return other_end(sock)[0] in (0, os.geteuid())
