"""Where the daemons tell Prometheus their figures: what `--metrics [HOST:]PORT` means.

Place: beside launch.py and hosts.py; used by `understudy up` and `understudy prepare`.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final

from understudy.tool.cluster.run_dir import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOCAL: Final = "127.0.0.1"
_LAST_PORT: Final = 65535


def parse(text: str) -> tuple[str, int]:
    """Host, the local one where none is named, and port.

    Raises:
        LaunchError: it is neither PORT nor HOST:PORT.
    """
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT or (colon and not host):
        raise LaunchError(f"--metrics {text}: expected PORT or HOST:PORT")
    return host or _LOCAL, int(port)


def on_one_host(text: str, daemons: Sequence[str]) -> dict[str, str]:
    """HOST:PORT of each daemon: ports side by side from the one that is named, or, for 0, any that
    are free. "": none.

    Raises:
        LaunchError: it is not an address, or one of the ports cannot be listened on.
    """
    if not text:
        return {}
    host, first = parse(text)
    if first + len(daemons) - 1 > _LAST_PORT:
        raise LaunchError(f"--metrics {text}: {len(daemons)} daemons need a port each")
    found = {}
    with contextlib.ExitStack() as stack:  # all are held until all are found
        for number, name in enumerate(daemons):
            port = first + number if first else 0
            probe = stack.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                probe.listen(1)
            except OSError as error:
                reason = f"cannot listen on {host}:{port} for {name}: {error.strerror}"
                raise LaunchError(f"--metrics {text}: {reason}") from None
            found[name] = f"{host}:{probe.getsockname()[1]}"
    return found


def on_many_hosts(text: str, daemons: Sequence[str], helpers: Sequence[str]) -> dict[str, str]:
    """The same port on each daemon's own host, and the next ones for those that may run beside it.

    Raises:
        LaunchError: it is not an address, names no port, or leaves none for all.
    """
    if not text:
        return {}
    host, port = parse(text)
    if not port:
        raise LaunchError(f"--metrics {text}: daemons on hosts of their own need a port")
    if port + len(helpers) > _LAST_PORT:
        raise LaunchError(f"--metrics {text}: {len(helpers) + 1} daemons need a port each")
    beside = {name: f"{host}:{port + number}" for number, name in enumerate(helpers, 1)}
    return dict.fromkeys(daemons, f"{host}:{port}") | beside
