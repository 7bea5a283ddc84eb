"""A cluster's run directory on disk: who may start or end there, what a cluster that has ended left
behind, where its sockets and its port are.

Place: under tool/cluster/launch.py; the layout itself is described in understudy.model.cluster.
Starts and ends no process.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from understudy.commands.shared import locate
from understudy.model.cluster import Cluster
from understudy.tool.cluster.processes import POLL_S, Process, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKET_PATH_BYTES: Final = 107  # unix(7): sun_path has 108 bytes, one of them the final zero
LONGEST_SOCKET_NAME: Final = len("/controller.sock") + 2


class LaunchError(Exception):
    """The cluster cannot be started or ended; the text is for the user."""


@contextlib.contextmanager
def exclusive(run_dir: Path, patience_s: float = 0.0) -> Iterator[int]:
    """Hold the run directory for starting or ending: two at a time would leave daemons of which no
    pid file speaks. Gives the lock's descriptor.

    Raises:
        LaunchError: another `understudy` holds it.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / "lock").open("w") as file:
        until = time.monotonic() + patience_s
        while not _lock(file):
            if time.monotonic() >= until:
                raise LaunchError(
                    "another understudy command is starting or ending the cluster in "
                    f"{run_dir}; try again when it is done"
                )
            time.sleep(POLL_S)
        yield file.fileno()


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def running(run_dir: Path) -> list[Process]:
    """The cluster's daemons that run now."""
    return [process for process in recorded(run_dir) if process.is_running]


def clear_stale(run_dir: Path) -> list[str]:
    """Remove what a cluster that is no more has left: pid files, sockets, its place in the
    registry.

    Returns:
        The daemons of which stale pid files spoke, as "controller (pid 17)".

    Raises:
        LaunchError: the cluster runs.
    """
    if alive := running(run_dir):
        leader = next((process for process in alive if process.name == "controller"), alive[0])
        raise LaunchError(
            f"the cluster in {run_dir} is already running: {leader.name}, pid {leader.pid}. "
            f"`understudy down --run-dir {run_dir}` ends it"
        )
    stale = [f"{process.name} (pid {process.pid})" for process in recorded(run_dir)]
    remove_traces(run_dir)
    return stale


def remove_traces(run_dir: Path) -> None:
    """Remove what only a running cluster has: pid files, sockets, its place in the registry. State,
    logs and the key stay.
    """
    for path in [*run_dir.glob("*.pid"), *run_dir.glob("*.sock")]:
        path.unlink(missing_ok=True)
    try:
        cluster = Cluster.load(run_dir)
    except (OSError, ValueError, TypeError):
        return
    locate.unregister(cluster.name, str(run_dir))
    # From cluster.json, not from socket_folder: the environment may have changed since.
    elsewhere = Path(cluster.controller_unix.removeprefix("unix:")).parent
    if elsewhere.name.startswith("understudy-") and elsewhere.resolve() != run_dir.resolve():
        for path in elsewhere.glob("*.sock"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            elsewhere.rmdir()


def check_port(port: int, origin: str) -> None:
    """See now, with words for it, whether the port can be listened on; 0, which is any that is
    free, always can. `origin`: who asked for it.

    Raises:
        LaunchError: it is taken.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            # A port that somebody listens on can be bound again with SO_REUSEADDR in some cases,
            # but not listened on.
            probe.listen(1)
        except OSError as error:
            raise LaunchError(
                f"cannot listen on port {port} ({origin}): {error.strerror}. Choose another, "
                "or --port 0 for any that is free"
            ) from None


def socket_folder(run_dir: Path) -> Path:
    """Where the cluster's sockets are: the run directory, or a short path that follows from it
    where that is too long for a socket's address.
    """
    if len(os.fsencode(run_dir)) + LONGEST_SOCKET_NAME <= SOCKET_PATH_BYTES:
        return run_dir
    digest = hashlib.sha256(os.fsencode(run_dir)).hexdigest()[:12]
    name = f"understudy-{os.getuid()}-{digest}"
    bases = [
        os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(),
        tempfile.gettempdir(),
        "/tmp",  # noqa: S108  a private folder in it
    ]
    return next(
        (
            Path(base) / name
            for base in bases
            if len(os.fsencode(base)) + len(name) + 1 + LONGEST_SOCKET_NAME <= SOCKET_PATH_BYTES
        ),
        run_dir,
    )


def make_socket_folder(run_dir: Path) -> Path:
    """`socket_folder`, made if absent.

    Raises:
        LaunchError: the short path exists and is not ours alone.
    """
    folder = socket_folder(run_dir)
    if folder != run_dir:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o755)  # others' commands speak to the sockets
        found = folder.lstat()
        if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise LaunchError(
                f"{folder}, where the sockets of {run_dir} would be, belongs to somebody "
                "else: use a shorter --run-dir"
            )
    return folder
