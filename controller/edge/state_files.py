"""What a controller's daemon has of the saved state: where it lies, its lease, and the queue of
what accounting has yet to be told.

Place: the edge, which knows the daemon's folder and cluster. What is in them is for
understudy.controller.saved and understudy.controller.accounting.queue to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.controller.accounting.queue import QueueFile
from understudy.controller.saved.database import (
    FILE_NAME,
    DatabaseError,
    LockedError,
    open_database,
)
from understudy.controller.saved.lease import Lease
from understudy.controller.saved.records import DAMAGED, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.clock.daemon import Daemon
    from understudy.controller.accounting.queue import Record
    from understudy.controller.ports import Database

_QUEUE_NAME: Final = "accounting.sqlite"
_BUSY_S: Final = 2.0  # ours: so long who led before is waited for to write into the queue


def state_place(daemon: Daemon) -> Path | str:
    """Where the state lies that controllers share: a folder, or a server's URL."""
    cluster = daemon.cluster
    return cluster.state_url or Path(cluster.state_dir or daemon.run_dir / "state")


def open_queue(daemon: Daemon) -> Database:
    """The database of what accounting has yet to be told."""
    place = state_place(daemon)
    if isinstance(place, Path):
        place /= _QUEUE_NAME
    one_host = bool(daemon.cluster.controller_unix)
    return open_database(place, daemon.name, one_host=one_host, busy_s=_BUSY_S, durable=False)


class KeptQueue(QueueFile):
    """The queue, of which is said in a sentence that it is damaged or cannot be written. `failed`
    is told of the latter, as of any state that cannot be saved.
    """

    def __init__(
        self, daemon: Daemon, lease: Lease, failed: Callable[[DatabaseError], None]
    ) -> None:
        """Open it, and have who led before write nothing more: who stands still within a write is
        ended for it, as for the lease.
        """
        try:
            super().__init__(open_queue(daemon), lease.fence)
        except LockedError:
            if not lease.end_former():
                raise
            super().__init__(open_queue(daemon), lease.fence)
        place = state_place(daemon)
        self._shown = place / _QUEUE_NAME if isinstance(place, Path) else "the queue on the server"
        self._failed = failed

    def read(self) -> list[tuple[int, Record]]:
        try:
            return super().read()
        except DAMAGED as error:
            raise StateError(f"{self._shown}: damaged record: {error}") from error

    def write(self, added: Sequence[tuple[int, Record]], gone: Sequence[int]) -> None:
        try:
            super().write(added, gone)
        except DatabaseError as error:
            self._failed(error)


def open_lease(daemon: Daemon, timeout_s: float | None) -> Lease:
    """The lease under which the state is written. `timeout_s`: see `Lease`.

    Raises:
        StateError: the saved state cannot be opened.
    """
    place = state_place(daemon)
    if isinstance(place, Path):
        place.mkdir(parents=True, exist_ok=True)
        place /= FILE_NAME
    one_host = bool(daemon.cluster.controller_unix)
    return Lease(place, daemon.name, timeout_s, one_host=one_host)
