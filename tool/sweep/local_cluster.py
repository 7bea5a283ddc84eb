"""A Dask cluster on this host: a scheduler and workers, each a process of its own, in a private
folder. Who is gone is started anew; all end with whoever made it.

Place: the edge of sweeps; `dask_runner` gives it work. They speak TLS on the loopback interface
with a key that only this user can read: a port without would run whatever anybody on this host
sends to it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final, Self

from understudy.tool.cluster import processes
from understudy.tool.replay.folder import held, remove_left
from understudy.tool.sweep.member import command, tls_options

_START_S: Final = 120.0  # ours: how long a scheduler may take until it listens, on a busy host
_POLL_S: Final = 0.05  # ours
_END_S: Final = 5.0  # ours: how long replays may take to end
_HOST: Final = "127.0.0.1"
_PREFIX: Final = "understudy-sweep-"


class LocalClusterError(Exception):
    """The cluster cannot be started; the text is for the user."""


def remove_dead() -> list[Path]:
    """Remove the folders of sweeps that were killed; their processes have ended with them. Which
    they were.
    """
    return remove_left(Path(tempfile.gettempdir()), _PREFIX)


class LocalCluster:
    """A context manager. `address` is that of the scheduler."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._folder = Path()
        self._held = contextlib.ExitStack()
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self._started = 0  # processes, so that each has a name of its own
        self.address = ""
        self.security: Any = None

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            self._held.enter_context(held(self._folder))
            self.security = _security(self._folder)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end_all()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._held.close()

    @property
    def has_scheduler(self) -> bool:
        """Whether it still runs."""
        return self._scheduler is not None and self._scheduler.poll() is None

    def start(self) -> None:
        """Start a scheduler and its workers; those that were there before are ended.

        Raises:
            LocalClusterError: the scheduler does not come up.
        """
        self._end_all()
        told = self._folder / "scheduler.json"
        told.unlink(missing_ok=True)
        self._scheduler = self._member(
            "scheduler",
            [
                *("--host", f"tls://{_HOST}", "--port", "0", "--scheduler-file", str(told)),
                *("--no-dashboard", "--dashboard-address", f"{_HOST}:0"),
            ],
        )
        deadline = time.monotonic() + _START_S
        while not (address := _address(told)):
            if not self.has_scheduler or time.monotonic() > deadline:
                raise LocalClusterError(f"the Dask scheduler does not start: {self._said()}")
            time.sleep(_POLL_S)
        self.address = address
        self._workers = [self._worker() for _ in range(self._count)]

    def mend(self) -> int:
        """Start workers in place of those that have ended; how many."""
        gone = [place for place, each in enumerate(self._workers) if each.poll() is not None]
        for place in gone:
            self._workers[place] = self._worker()
        return len(gone)

    def _worker(self) -> subprocess.Popen[bytes]:
        name = f"worker{self._started}"
        return self._member(
            "worker",
            [
                *(self.address, "--name", name, "--nthreads", "1", "--no-nanny"),
                *("--host", f"tls://{_HOST}", "--no-dashboard", "--memory-limit", "0"),
                *("--dashboard-address", f"{_HOST}:0", "--death-timeout", f"{_START_S:g}"),
                *("--local-directory", str(self._folder)),
            ],
        )

    def _member(self, kind: str, options: list[str]) -> subprocess.Popen[bytes]:
        self._started += 1
        with (self._folder / f"{kind}.log").open("ab") as log:
            # not in the terminal's group: an interrupt is ours to carry out
            return subprocess.Popen(
                command(kind, [*options, *tls_options(self._folder)]),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _end_all(self) -> None:
        """End them, and wait for the replays that they have started."""
        members = [*self._workers, *([self._scheduler] if self._scheduler else [])]
        replays = processes.descendants(
            processes.identify("member", each.pid) for each in members if each.poll() is None
        )
        for each in members:
            each.kill()
            each.wait()
            assert each.stdin is not None
            each.stdin.close()
        processes.end(replays, _END_S)
        self._scheduler, self._workers = None, []

    def _said(self) -> str:
        try:
            lines = (self._folder / "scheduler.log").read_text("utf-8", "replace").split("\n")
        except OSError:
            return "nothing is known"
        return next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")


def _address(told: Path) -> str:
    """What a scheduler has written of itself; "" as long as it is not all there."""
    try:
        return str(json.loads(told.read_text())["address"])
    except (OSError, ValueError, KeyError):
        return ""


def _security(folder: Path) -> Any:
    """A key and a certificate for this cluster alone, also as files in the folder."""
    from distributed import security

    made: Any = security.Security.temporary()
    for name, text in (("cert.pem", made.tls_worker_cert), ("key.pem", made.tls_worker_key)):
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text)
    return made
