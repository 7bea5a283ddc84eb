"""Ports for daemons of a test that must be told them before they listen. Two tests, in whatever
processes, never have the same one.
"""

import itertools
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def reserved(count: int) -> Iterator[list[int]]:
    """The ports are ours until the end, and free now.

    They lie below those that the system gives to whoever asks for any, so nobody comes between; a
    local socket by each one's name keeps other tests away, and goes when its process does.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with ExitStack() as held:
        ports: list[int] = []
        for port in itertools.chain(range(max(lowest - 8000, 1024), lowest), range(lowest, 65536)):
            if len(ports) == count:
                break
            with suppress(OSError), ExitStack() as trial:
                name = trial.enter_context(socket.socket(socket.AF_UNIX))
                name.bind(f"\0understudy test port {port}")
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
                held.enter_context(trial.pop_all())
                ports.append(port)
        yield ports
