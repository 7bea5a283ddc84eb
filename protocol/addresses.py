"""Addresses of daemons: `tcp:HOST:PORT` and `unix:PATH`."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


def parse(address: str) -> tuple[socket.AddressFamily, Any]:
    """The address family and what `socket.connect` takes.

    Raises:
        ValueError: neither form.
    """
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return socket.AF_UNIX, rest
    if kind == "tcp":
        host, _, port = rest.rpartition(":")
        if host and port.isdigit():
            return (
                (socket.AF_INET6, (host.strip("[]"), int(port)))
                if host.startswith("[")
                else (socket.AF_INET, (host, int(port)))
            )
    raise ValueError(f"not an address: {address!r} (tcp:HOST:PORT or unix:PATH)")


def shown(peer: Any) -> str:
    """What `socket.accept` says of the other end, for the log."""
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a local process"


def listen(address: str, backlog: int = 512) -> socket.socket:
    """A non-blocking listening socket. A Unix socket's stale file is replaced; a busy one raises
    OSError as a busy port does.
    """
    family, where = parse(address)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_UNIX:
            _remove_stale(where)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        # "AF_UNIX path too long" has no number
        why = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(
            error.errno or errno.ENAMETOOLONG, f"cannot listen on {address}: {why}"
        ) from error
    sock.setblocking(False)
    return sock


async def connect(loop: asyncio.AbstractEventLoop, address: str) -> socket.socket:
    """A non-blocking socket connected to who listens there.

    Raises:
        OSError: there is nobody.
        ValueError: as `parse`.
    """
    family, where = parse(address)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await loop.sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _remove_stale(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError:
            pass  # absent, or something else than a socket: bind will say
