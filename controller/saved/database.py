"""The database that holds the saved state: a file of SQLite's, or a PostgreSQL server by
SQLAlchemy's URL, for controllers whose hosts share no folder. In a process that will be forked it
is a file that SQLite has in memory (`in_memory`), which the fork has a copy of.

Place: saved, under the store and the lease. The statements and tables are the same for both, with
`?` for values; what is different is here. Each connection is used by one thread at a time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.saved.records import StateError
from understudy.model.errors import with_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, CursorResult

    from understudy.controller.ports import Database, Rows

FILE_NAME: Final = "state.sqlite"
_IN_MEMORY: Final = "file:/"
# the latter after 100 tries, when another holds what readers lock for a moment
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
_LOOK_S: Final = 0.05  # ours: so long SQLite waits by itself
_PAUSE_S: Final = 0.01  # ours: before it is tried again
_OPEN_S: Final = 10.0  # ours: so long others that open it at the same time are waited for
_SERVER_TYPES: Final = {
    " INTEGER": " BIGINT",
    " BLOB": " BYTEA",
    " REAL": " DOUBLE PRECISION",
    " WITHOUT ROWID": "",
}


class DatabaseError(Exception):
    """The database cannot be read or written."""


class LockedError(DatabaseError):
    """Another transaction kept it from ours for too long."""


def in_memory(name: str) -> str:
    """Where a file in memory is: for all who open it in this process, as long as one of them has it
    open.
    """
    return f"{_IN_MEMORY}{name}?vfs=memdb"


def open_database(
    place: Path | str, name: str, *, one_host: bool = True, busy_s: float, durable: bool = True
) -> Database:
    """Open the database, which may be new. `place`: a file, or a URL. `name`: of the controller,
    under which the server knows it. `one_host`: in write-ahead mode, which needs memory that all
    who use the file share. `busy_s`: so long others' transactions are waited for. Not `durable`:
    what was written last may be lost with the host.

    Raises:
        StateError: it is no database, or cannot be reached.
    """
    try:
        if isinstance(place, str) and not place.startswith(_IN_MEMORY):
            return ServerDatabase(place, name, busy_s)
        return FileDatabase(place, one_host=one_host, busy_s=busy_s, durable=durable)
    except DatabaseError as error:
        raise StateError(str(error)) from error


class FileDatabase:
    """SQLite's."""

    def __init__(self, path: Path | str, *, one_host: bool, busy_s: float, durable: bool) -> None:
        self.shown, self._busy_s = str(path), busy_s
        self._place, self._is_logged = path, one_host
        with self._errors():
            self._connection = sqlite3.connect(
                path,
                check_same_thread=False,
                isolation_level=None,
                timeout=min(busy_s, _LOOK_S),
                uri=isinstance(path, str),
            )
        self._patiently(f"PRAGMA journal_mode={'WAL' if one_host else 'DELETE'}")
        self.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of what is damaged
            code = getattr(error, "sqlite_errorcode", None)
            kind = LockedError if code in _LOCKED else DatabaseError
            raise kind(f"{self.shown}: {error}") from error

    def _patiently(self, text: str) -> None:
        """Execute what others may keep from us while they open the database as we do."""
        self._until(_OPEN_S, text)

    def execute(self, text: str, values: Sequence[object] = ()) -> Rows:
        return self._until(self._busy_s, text, values)

    def _until(self, busy_s: float, text: str, values: Sequence[object] = ()) -> Rows:
        """Execute it, and wait so long for others who have the database. By a clock: SQLite counts
        what it meant to sleep, of which a busy machine makes three times as much, and does not wait
        for some statements at all.
        """
        until = time.monotonic() + busy_s
        while True:
            try:
                with self._errors():
                    return _FileRows(self._connection.execute(text, values), self._errors)
            except LockedError:
                if time.monotonic() >= until:
                    raise
            time.sleep(_PAUSE_S)

    def read_locked(self, select: str) -> Rows:
        """Within a transaction: what is read does not change until it is over."""
        return self.execute(select)  # nobody else writes meanwhile

    def executemany(self, text: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            with self._errors():
                self._connection.executemany(text, rows)

    def create(self, schema: str) -> None:
        for text in schema.split(";"):
            self._patiently(text)

    def version(self) -> int:
        return int(self.execute("PRAGMA user_version").fetchone()[0])

    def set_version(self, number: int) -> None:
        self.execute(f"PRAGMA user_version={number}")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk has ended it already
                self.execute("ROLLBACK")
            raise

    def locked_by(self) -> set[int]:
        """The pids of other processes of this host that keep it from others now (proc_locks(5))."""
        if not isinstance(self._place, Path):
            return set()
        files = []
        for path in (self._place, Path(f"{self._place}-shm")):
            with contextlib.suppress(OSError):
                files.append((path.stat(), "WRITE" if self._is_logged else "READ WRITE"))
        by_number = {str(stat.st_ino): (stat, kinds) for stat, kinds in files}
        found, lines = set(), []
        with contextlib.suppress(OSError):  # a host may not tell
            lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        for line in lines:
            words = line.split()
            if "->" in words:  # waits for it
                continue
            kind, pid, file = words[3:6]
            stat, kinds = by_number.get(file.rpartition(":")[2], (None, ""))
            if stat is not None and kind in kinds and _has_open(int(pid), stat):
                found.add(int(pid))
        return found - {os.getpid()}

    def close(self) -> None:
        self._connection.close()


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Whether a process, if it is ours to look at, has this file open."""
    try:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(each.stat(), file):
                    return True
    except OSError:
        pass
    return False


class _FileRows:
    """Rows that are read as they are asked for, and may be damaged."""

    def __init__(
        self, cursor: sqlite3.Cursor, errors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._cursor, self._errors = cursor, errors
        self.rowcount = cursor.rowcount

    def fetchone(self) -> Any:
        with self._errors():
            return self._cursor.fetchone()

    def __iter__(self) -> Iterator[Any]:
        with self._errors():
            yield from self._cursor


class _ServerRows:
    """Rows as plain tuples."""

    def __init__(self, result: CursorResult[Any]) -> None:
        self._result, self.rowcount = result, result.rowcount

    def fetchone(self) -> Any:
        return self._result.fetchone()

    def __iter__(self) -> Iterator[Any]:
        return map(tuple, self._result)


class ServerDatabase:
    """PostgreSQL's."""

    def __init__(self, url: str, name: str, busy_s: float) -> None:
        from sqlalchemy import create_engine, make_url  # noqa: PLC0415  few have a server
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError  # noqa: PLC0415

        self._own_error, self._name = DBAPIError, name
        self._connection: Connection | None = None
        try:
            self.shown = make_url(url).render_as_string(hide_password=True)
            if not self.shown.startswith("postgresql"):
                raise DatabaseError(f"{self.shown}: the state may be in PostgreSQL alone")
            options = f"-c lock_timeout={round(1000 * busy_s)}"
            self._engine = create_engine(
                url,
                isolation_level="AUTOCOMMIT",
                connect_args={"application_name": _known_as(name), "options": options},
            )
            self._connection = self._engine.connect()
        except (SQLAlchemyError, ImportError) as error:
            raise DatabaseError(f"the state cannot be had: {with_extra(error)}") from error

    def _run(self, text: str, values: Any) -> CursorResult[Any]:
        if self._connection is None:
            raise DatabaseError(f"{self.shown} is closed")
        try:
            return self._connection.exec_driver_sql(text.replace("?", "%s"), values)
        except self._own_error as error:
            self._connection.rollback()  # so that a connection that was lost is made again
            is_locked = getattr(error.orig, "sqlstate", "") == "55P03"  # lock_not_available
            kind = LockedError if is_locked else DatabaseError
            raise kind(f"{self.shown}: {error.orig}") from error

    def execute(self, text: str, values: Sequence[object] = ()) -> Rows:
        return _ServerRows(self._run(text, _storable(values)))

    def read_locked(self, select: str) -> Rows:
        """Within a transaction: what is read does not change until it is over."""
        return self.execute(f"{select} FOR SHARE")

    def executemany(self, text: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._run(text, [_storable(row) for row in rows])

    def create(self, schema: str) -> None:
        for name, own in _SERVER_TYPES.items():
            schema = schema.replace(name, own)
        with self.transaction():
            self.execute("SELECT pg_advisory_xact_lock(6817)")  # others may create it right now
            for text in filter(str.strip, schema.split(";")):
                self.execute(text)

    def version(self) -> int:
        self.create("CREATE TABLE IF NOT EXISTS schema_version (number INTEGER NOT NULL)")
        return int(self.execute("SELECT max(number) FROM schema_version").fetchone()[0] or 0)

    def set_version(self, number: int) -> None:
        with self.transaction():
            self.execute("DELETE FROM schema_version")
            self.execute("INSERT INTO schema_version VALUES (?)", (number,))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(DatabaseError):
                self.execute("ROLLBACK")
            raise

    def end_sessions_of(self, name: str) -> bool:
        """Have the server end what the controller of this name has open; whether there was any."""
        ended = self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ? "
            "AND datname = current_database() AND pid <> pg_backend_pid()",
            (_known_as(name),),
        )
        return bool(list(ended))

    def locked_by(self) -> set[int]:
        """Of the server's locks nothing is known here."""
        return set()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._engine.dispose()


def _storable(row: Sequence[object]) -> tuple[object, ...]:
    """The row, with U+FFFD in place of the one character that PostgreSQL's texts cannot hold: no
    user's text may keep the state from being written.
    """
    return tuple(
        value.encode(errors="replace").decode().replace("\0", "\ufffd")
        if isinstance(value, str)
        else value
        for value in row
    )


def _known_as(name: str) -> str:
    return f"understudy {name}"
