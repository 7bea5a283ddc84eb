"""Who leads: a lease with a fencing number in the saved state, which all controllers share.

Place: saved, beside the store. One row of the database says who leads and under which fencing
number. Whoever takes the lease raises the number, in a transaction; each transaction of the store
looks whether the number is still its own. So a controller that was stopped, or cut off, and that
goes on later can write nothing, however late it notices.

Reads write nothing. For them the lease ends by time: the leader beats, and from `timeout_s` after
the beginning of its last beat it acts no more before it has beaten again (`may_act`). Others take
the lease when they have seen no beat for as long. Nobody compares clocks of two hosts: the number
of beats is compared, and each measures by a clock of its own, which also goes on while the host
sleeps.

Who stands still within a write keeps the database's lock, as long as the process is there. If it is
on the same host, it is killed by who takes the lease; a server is told to end its sessions. Any
process that was stopped (SIGSTOP) and keeps the database from others, a standby's too, is killed by
who cannot beat for it, or sees no beat.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.controller.saved.database import (
    DatabaseError,
    LockedError,
    ServerDatabase,
    open_database,
)
from understudy.controller.saved.records import StateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from understudy.controller.ports import Database

log = logging.getLogger("understudy.controller.saved.lease")
_BUSY_S: Final = 2.0  # ours: so long another's transaction is waited for
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS lease (
    one INTEGER PRIMARY KEY CHECK (one = 1), fence INTEGER NOT NULL, holder TEXT NOT NULL,
    beats INTEGER NOT NULL, wanted TEXT NOT NULL, because TEXT NOT NULL, process TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS cluster (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL)
"""
_TYPES: Final = [int, str, int, str, str, str]  # of its columns, as `Row` has them
_NOBODYS: Final = "INSERT INTO lease VALUES (1, 0, '', 0, '', '', '') ON CONFLICT DO NOTHING"


class LeaseLostError(Exception):
    """Another controller leads, or may lead by now."""


class Row(NamedTuple):
    """The lease as it is. `holder`: "" if it was given back; `wanted`: who asks for it, or to whom
    it was left; `because`: why; `process`: the holder's, as `this_process` says.
    """

    fence: int
    holder: str
    beats: int
    wanted: str
    because: str
    process: str


def host_clock() -> float:
    """Seconds that go on while the host sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def this_process() -> str:
    """Where it is, pid, and start of the process in ticks since the boot (proc(5))."""
    return f"{_here()} {os.getpid()} {_start_of(os.getpid())}"


def _here() -> str:
    """Which pids ours are: the host's since this boot, or those of a container on it."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"


def _start_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


def check(database: Database, fence: int) -> None:
    """Within a transaction of the shared database: whether the fencing number is still this. Nobody
    can take the lease until the transaction is over.

    Raises:
        LeaseLostError: it is not.
    """
    found = database.read_locked("SELECT fence FROM lease").fetchone()
    if found is None or found[0] != fence:
        raise LeaseLostError("another controller leads")


class Lease:
    """The lease as one controller sees it, `name`. Threads may share it.

    `timeout_s`: SlurmctldTimeout; None: there is no other controller, and nobody beats.
    """

    def __init__(
        self,
        place: Path | str,
        name: str,
        timeout_s: float | None,
        *,
        one_host: bool = True,
        clock: Callable[[], float] = host_clock,
    ) -> None:
        """Open the database, which may be new.

        Raises:
            StateError: it cannot be.
        """
        self.name, self.timeout_s, self.clock = name, timeout_s, clock
        self.fence = 0  # our fencing number; 0: we have never led
        self._until = float("-inf")
        self._is_lost = True
        self._former: Row | None = None  # of whom it was taken by force
        self._lock = Lock()
        self._database = open_database(place, name, one_host=one_host, busy_s=_BUSY_S)
        try:
            self._database.create(_SCHEMA)
            if self._database.execute("SELECT fence FROM lease").fetchone() is None:
                self._database.create(_NOBODYS)
        except DatabaseError as error:
            raise StateError(str(error)) from error

    def belong_to(self, cluster_name: str) -> None:
        """Have the state be this cluster's, if it is nobody's yet. Case does not matter.

        Raises:
            StateError: it is another cluster's, which may be running.
            DatabaseError: the database cannot be read or written.
        """
        database, name_of = self._database, "SELECT name FROM cluster"
        with self._lock:
            found = database.execute(name_of).fetchone()
            if found is None:  # else nothing is written: who leads may stand still within a write
                database.execute(
                    "INSERT INTO cluster VALUES (1, ?) ON CONFLICT DO NOTHING", (cluster_name,)
                )
                found = database.execute(name_of).fetchone()
        known = str(found[0])
        if known.lower() != cluster_name.lower():
            raise StateError(
                f'{database.shown}: is the state of cluster "{known}", and slurm.conf says '
                f"ClusterName={cluster_name}. Give each cluster a state of its own, or forget the "
                "jobs of the earlier one (understudy up --clean, slurmctld -c)"
            )

    def holds(self) -> bool:
        """Whether nobody else can lead yet."""
        return self.clock() < self._until

    def may_act(self) -> bool:
        """Whether what is done now is done by who leads. Where the time is over, as after a long
        pause, the database is asked; who does not have the lease then has lost it for good.
        """
        if self.holds():
            return True
        if not self._is_lost:
            try:
                self.beat()
            except (DatabaseError, LeaseLostError) as error:
                log.error("cannot lead any longer: %s", error)  # noqa: TRY400
                self.lose()
        return not self._is_lost

    def read(self) -> Row:
        """The lease as it is now.

        Raises:
            DatabaseError: the database cannot be read, or has none.
        """
        text = "SELECT fence, holder, beats, wanted, because, process FROM lease"
        with self._lock:
            found = self._database.execute(text).fetchone() or ()
            if [type(each) for each in found] != _TYPES:
                raise DatabaseError(f"{self._database.shown}: damaged lease")
            return Row(*found)

    def _change(self, text: str, values: tuple[object, ...]) -> bool:
        """Execute an UPDATE; whether it met the row."""
        with self._lock:
            return self._database.execute(text, values).rowcount == 1

    def take(self, seen: Row, *, by_force: bool = False) -> bool:
        """Lead, if the lease is still as it was seen. From here on nobody else can write.
        `by_force`: the holder does not beat; if it keeps the database locked, it is killed.

        Raises:
            DatabaseError: the database cannot be written.
        """
        began = self.clock()
        changes = (self.name, this_process(), seen.fence, seen.beats, seen.holder)
        text = (
            "UPDATE lease SET fence = fence + 1, beats = beats + 1, wanted = '', because = '', "
            "holder = ?, process = ? WHERE fence = ? AND beats = ? AND holder = ?"
        )
        try:
            taken = self._change(text, changes)
        except LockedError:
            if not (by_force and self._end(seen)):
                raise
            began = self.clock()
            taken = self._change(text, changes)
        if taken:
            self.fence, self._is_lost = seen.fence + 1, False
            self._former = seen if by_force else None
            if by_force and isinstance(self._database, ServerDatabase):
                self._end(seen)  # what it has open may keep other tables locked
            self._extend(began)
        return taken

    def end_former(self) -> bool:
        """End who had the lease and did not beat, as it keeps something else of the state locked;
        whether that was done.
        """
        return self._former is not None and self._end(self._former)

    def end_stopped(self) -> None:
        """End processes of this host that were stopped (SIGSTOP) as they kept the database from
        others, be it for the instructions in which a reader changes its mark in the log.
        """
        for pid in self._database.locked_by():
            with contextlib.suppress(OSError):  # gone
                if _state_of(pid) == "T":
                    _kill(pid, _start_of(pid))

    def _end(self, seen: Row) -> bool:
        """End who keeps the database locked; whether that was done."""
        if isinstance(self._database, ServerDatabase):
            with self._lock:
                return self._database.end_sessions_of(seen.holder)
        return _end_process(seen.process)

    def beat(self) -> Row:
        """Hold it for longer. The lease as it is then.

        Raises:
            LeaseLostError: another has it.
            DatabaseError: the database cannot be written; the lease ends by and by.
        """
        began = self.clock()
        text = "UPDATE lease SET beats = beats + 1 WHERE fence = ?"
        if not self._change(text, (self.fence,)):
            self.lose()
            raise LeaseLostError("another controller leads")
        self._extend(began)
        return self.read()

    def _extend(self, began: float) -> None:
        self._until = float("inf") if self.timeout_s is None else began + self.timeout_s

    def lose(self) -> None:
        """Hold it no longer, whatever the time."""
        self._until, self._is_lost = float("-inf"), True

    def want(self, because: str) -> None:
        """Ask who leads for the lease."""
        self._change(
            "UPDATE lease SET wanted = ?, because = ? WHERE holder <> ''", (self.name, because)
        )

    def decline(self, asker: str) -> None:
        """Go on leading although another wants to."""
        self._change("UPDATE lease SET wanted = '', because = '' WHERE wanted = ?", (asker,))

    def leave_to(self, name: str) -> None:
        """Give the lease back; `name` may take it at once, others after their timeout. "": nobody
        in particular.
        """
        self.lose()
        self._change(
            "UPDATE lease SET holder = '', wanted = ?, because = '', beats = beats + 1 "
            "WHERE fence = ?",
            (name, self.fence),
        )

    def close(self) -> None:
        """Close the database."""
        self.lose()
        with self._lock:
            self._database.close()


def _end_process(process: str) -> bool:
    """End a process of this host that keeps the database from others, given as `this_process` says;
    whether that was done.
    """
    boot, pid, start = process.split() if process else ("", "0", "")
    try:
        if boot != _here() or start != _start_of(int(pid)) or int(pid) == os.getpid():
            return False
        _kill(int(pid), start)
    except OSError as error:
        log.error("cannot end the controller that keeps the state locked: %s", error)  # noqa: TRY400
        return False
    return True


def _kill(pid: int, start: str) -> None:
    """Kill it, and wait until its locks are gone."""
    os.kill(pid, signal.SIGKILL)
    log.error("process %s, which stood still with the state locked, was killed", pid)
    with contextlib.suppress(OSError):  # gone
        while start == _start_of(pid) and _state_of(pid) not in "ZX":
            time.sleep(0.01)


def _state_of(pid: int) -> str:
    """The letter of proc(5)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]
