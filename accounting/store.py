"""The database behind accounting: SQLite, PostgreSQL or MariaDB by SQLAlchemy's URL.

Place: the edge of the accounting daemon's core. It keeps and finds records; it decides nothing.
Every method is one transaction, on disk when it returns. Used by one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import Table, create_engine, event, select
from sqlalchemy import delete as delete_from
from sqlalchemy.exc import SQLAlchemyError

from understudy.accounting import migrate, schema
from understudy.accounting.ledger import (
    TABLES,
    Account,
    ClusterRecord,
    Federation,
    Ledger,
    Resource,
)
from understudy.accounting.rollup import hour_of
from understudy.model.associations import AccountingUser, Association, Tres, Wckey
from understudy.model.errors import with_extra
from understudy.model.qos import Qos
from understudy.protocol.messages import (
    EventRecord,
    JobRecord,
    JobText,
    ReservationRecord,
    StepRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, RowMapping

    from understudy.accounting.ledger import Transaction
    from understudy.accounting.rollup import Usage

    Record = JobRecord | StepRecord | EventRecord | ReservationRecord | JobText

# table: the record's type, its key
_RECORDS: Final[dict[str, tuple[type[msgspec.Struct], str]]] = {
    "clusters": (ClusterRecord, "name"),
    "accounts": (Account, "name"),
    "users": (AccountingUser, "name"),
    "associations": (Association, "id"),
    "qos": (Qos, "id"),
    "wckeys": (Wckey, "id"),
    "tres": (Tres, "id"),
    "resources": (Resource, "id"),
    "federations": (Federation, "name"),
}
_HISTORY: Final[dict[type, tuple[Table, tuple[str, ...]]]] = {
    JobRecord: (schema.jobs, ("job_id", "submit_time", "restarts")),
    StepRecord: (schema.steps, ("job_id", "submit_time", "restarts", "step")),
    JobText: (schema.job_texts, ("key",)),
    ReservationRecord: (schema.reservations, ("id", "start_time")),
}
_MANY: Final = 400  # values in one condition: SQLite takes 32,766, and others plan long lists badly


class StoreError(Exception):
    """The database cannot be used; says why."""


class Store:
    """An open database, its schema brought up to date."""

    def __init__(self, url: str, *, durable: bool = True) -> None:
        """Open it and bring the schema up to date. `durable`: what is written survives the host
        (SQLite; servers have settings of their own).

        Raises:
            StoreError: it cannot be opened, or is of a later version.
        """
        try:
            self.engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
        except (SQLAlchemyError, ImportError) as error:
            raise StoreError(
                f"the accounting database {_without_password(url)} cannot be used: "
                f"{with_extra(error)}"
            ) from error
        try:
            if self.engine.dialect.name == "sqlite":
                event.listen(self.engine, "connect", _prepare_durable if durable else _prepare_fast)
            migrate.upgrade(self.engine)
        except (SQLAlchemyError, migrate.MigrationError) as error:
            self.close()
            raise StoreError(
                f"the accounting database {_without_password(url)} cannot be used: {error}"
            ) from error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    # --- the ledger -------------------------------------------------------------------------------

    def load(self) -> Ledger | None:
        """The ledger as saved; None in a new database."""
        ledger = Ledger()
        with self.engine.connect() as connection:
            for name, (kind, key) in _RECORDS.items():
                for row in connection.execute(select(schema.metadata.tables[name])).mappings():
                    record = _record(kind, row)
                    owner = ledger.deleted if row.get("deleted") else ledger
                    getattr(owner, name)[getattr(record, key)] = record
            ledger.counters = {
                row.name: row.value
                for row in connection.execute(
                    select(schema.counters.c.name, schema.counters.c.value)
                )
            }
        return ledger if ledger.counters else None

    def save(self, before: Ledger, after: Ledger, transactions: Sequence[Transaction]) -> None:
        """Write what differs between the two, and what goes on record."""
        with self.engine.begin() as connection:
            for name in TABLES:
                old, new = _rows(before, name), _rows(after, name)
                if old != new:
                    self._save_table(connection, name, old, new)
            if transactions:
                connection.execute(
                    schema.transactions.insert(),
                    [msgspec.structs.asdict(each) for each in transactions],
                )

    @staticmethod
    def _save_table(
        connection: Connection, name: str, old: dict[Any, Any], new: dict[Any, Any]
    ) -> None:
        table = schema.metadata.tables[name]
        key = table.c[_RECORDS[name][1] if name in _RECORDS else "name"]
        changed = [each for each in new if each not in old or old[each] != new[each]]
        stale = [each for each in old if each not in new or old[each] != new[each]]
        for part in _parts(stale):
            connection.execute(delete_from(table).where(key.in_(part)))
        if changed:
            marked = "deleted" in table.c
            rows = [
                {"name": each, "value": record}
                if name == "counters"
                else {
                    **msgspec.to_builtins(_named(record)),
                    **({"deleted": is_deleted} if marked else {}),
                }
                for each in changed
                for record, is_deleted in [new[each]]
            ]
            connection.execute(table.insert(), rows)

    # --- history ----------------------------------------------------------------------------------

    def add_records(self, cluster: str, records: Sequence[Record]) -> None:
        """Keep records, each in place of an earlier one with its key, and have the usage that they
        change be added up again.
        """
        earliest: int | None = None
        with self.engine.begin() as connection:
            for kind, (table, key) in _HISTORY.items():
                rows = {
                    tuple(getattr(each, name) for name in key): each
                    for each in records
                    if type(each) is kind
                }
                if not rows:
                    continue
                if kind is JobRecord:
                    earliest = self._earliest_change(connection, cluster, rows)  # type: ignore[arg-type]
                columns = [table.c[name] for name in key]
                for part in _parts(list(rows)):
                    first = columns[0]
                    known = connection.execute(
                        select(*columns).where(
                            table.c.cluster == cluster, first.in_({each[0] for each in part})
                        )
                    )
                    for found in [tuple(row) for row in known if tuple(row) in rows]:
                        same = [
                            column == value for column, value in zip(columns, found, strict=True)
                        ]
                        connection.execute(
                            delete_from(table).where(table.c.cluster == cluster, *same)
                        )
                kept = [
                    each
                    for each in rows.values()
                    if type(each) is not ReservationRecord or each.end_time > each.start_time
                ]
                if kept:
                    connection.execute(
                        table.insert(), [{**_named(each), "cluster": cluster} for each in kept]
                    )
            events = [each for each in records if type(each) is EventRecord]
            for each in events:
                self._add_event(connection, cluster, each)
            times = [
                each.start_time
                for each in records
                if isinstance(each, EventRecord | ReservationRecord)
            ]
            if earliest is not None:
                times.append(earliest)
            if times:
                self._add_up_again(connection, cluster, min(times))

    def _add_up_again(self, connection: Connection, cluster: str, since: int) -> None:
        """Usage from the hour of this time on has changed."""
        until = schema.rollups.c.until
        query = select(until).where(schema.rollups.c.cluster == cluster)
        rolled = connection.execute(query).scalar()
        if rolled is not None and since < rolled:
            self._set_until(connection, cluster, hour_of(since))

    @staticmethod
    def _add_event(connection: Connection, cluster: str, record: EventRecord) -> None:
        """Keep it, and end with it what was open of the same node."""
        table = schema.events
        same_node = (table.c.cluster == cluster, table.c.node == record.node)
        open_ones = (
            *same_node,
            table.c.end_time.is_(None),
            table.c.start_time <= record.start_time,
        )
        connection.execute(table.update().where(*open_ones).values(end_time=record.start_time))
        if record.end_time != record.start_time or record.reason:
            connection.execute(
                delete_from(table).where(*same_node, table.c.start_time == record.start_time)
            )
            connection.execute(table.insert(), [{**_named(record), "cluster": cluster}])

    @staticmethod
    def _earliest_change(
        connection: Connection, cluster: str, rows: dict[tuple[int, int, int], JobRecord]
    ) -> int | None:
        """From when on the usage of these jobs differs from that of the same jobs as known so
        far.
        """
        jobs = schema.jobs.c
        known: dict[tuple[int, ...], tuple[int | None, int | None]] = {}
        for part in _parts([each[0] for each in rows]):
            found = connection.execute(
                select(
                    jobs.job_id, jobs.submit_time, jobs.restarts, jobs.start_time, jobs.end_time
                ).where(jobs.cluster == cluster, jobs.job_id.in_(part))
            )
            known.update({(row[0], row[1], row[2]): (row[3], row[4]) for row in found})
        times = []
        for key, job in rows.items():
            if key not in known and job.eligible_time is not None:
                times.append(job.eligible_time)  # from when on it waits
            start, end = known.get(key, (None, None))
            if job.start_time is not None and start != job.start_time:
                times.append(job.start_time)
            if job.end_time is not None and end != job.end_time:
                times.append(job.end_time if end is None else min(end, job.end_time))
        return min(times, default=None)

    def find(
        self,
        table: Table,
        conditions: Iterable[ColumnElement[bool]] = (),
        order: Sequence[Any] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """Rows of a table of the history, by column name."""
        query = select(*(table.c[name] for name in columns)) if columns else select(table)
        with self.engine.connect() as connection:
            return [
                dict(row)
                for row in connection.execute(query.where(*conditions).order_by(*order)).mappings()
            ]

    def forget_unused_texts(self) -> None:
        """Delete the scripts and environments that no job on record has any more."""
        jobs, texts = schema.jobs.c, schema.job_texts
        used = [
            select(column).where(jobs.cluster == texts.c.cluster, column == texts.c.key).exists()
            for column in (jobs.script, jobs.environment)
        ]
        with self.engine.begin() as connection:
            connection.execute(delete_from(texts).where(*(~each for each in used)))

    def has_any(self, column: Column[Any], values: Sequence[Any]) -> bool:
        """Whether a column of the history has any of these values."""
        with self.engine.connect() as connection:
            return any(
                connection.execute(select(column).where(column.in_(part)).limit(1)).first()
                is not None
                for part in _parts(values)
            )

    def insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Put rows into a table of the history: all of them, or none if one is there."""
        with self.engine.begin() as connection:
            for part in _parts(rows):
                connection.execute(table.insert(), part)

    def forget(self, table: Table, column: str, before: int) -> None:
        """Delete the rows whose time in the column is earlier; those without one stay."""
        with self.engine.begin() as connection:
            connection.execute(delete_from(table).where(table.c[column] < before))

    # --- usage ------------------------------------------------------------------------------------

    def rolled_until(self, cluster: str) -> int | None:
        """Up to when usage has been added up."""
        with self.engine.connect() as connection:
            return connection.execute(
                select(schema.rollups.c.until).where(schema.rollups.c.cluster == cluster)
            ).scalar()

    @staticmethod
    def _set_until(connection: Connection, cluster: str, until: int) -> None:
        connection.execute(delete_from(schema.rollups).where(schema.rollups.c.cluster == cluster))
        connection.execute(schema.rollups.insert(), [{"cluster": cluster, "until": until}])

    def write_usage(
        self,
        cluster: str,
        period: str,
        spans: Sequence[tuple[int, Usage]],
        until: int | None = None,
    ) -> None:
        """Replace the usage of the periods that begin at these times; with `until`, note how far it
        goes.
        """
        table = schema.usage
        with self.engine.begin() as connection:
            for part in _parts([start for start, _ in spans]):
                connection.execute(
                    delete_from(table).where(
                        table.c.period == period,
                        table.c.cluster == cluster,
                        table.c.start_time.in_(part),
                    )
                )
            rows = [
                {
                    "period": period,
                    "cluster": cluster,
                    "start_time": start,
                    "kind": kind,
                    "subject": subject,
                    "tres": tres,
                    "amount": amount,
                }
                for start, usage in spans
                for (kind, subject, tres), amount in usage.items()
            ]
            if rows:
                connection.execute(table.insert(), rows)
            if until is not None:
                self._set_until(connection, cluster, until)


def _rows(ledger: Ledger, name: str) -> dict[Any, tuple[Any, bool]]:
    """The records of a table by key, and whether each was deleted."""
    rows = {key: (each, True) for key, each in getattr(ledger.deleted, name, {}).items()}
    rows.update({key: (each, False) for key, each in getattr(ledger, name).items()})
    return rows


def _record(kind: type[msgspec.Struct], row: RowMapping) -> Any:
    """A record of a row; a column without a value where there has to be one: the field's
    default.
    """
    given = {}
    for field in msgspec.structs.fields(kind):
        value = row[field.name]
        if value is not None:
            given[field.name] = msgspec.convert(value, field.type)
    return kind(**given)


def _named(record: msgspec.Struct) -> dict[str, Any]:
    return msgspec.structs.asdict(record)


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + _MANY] for start in range(0, len(values), _MANY))


def _prepare_durable(connection: Any, _record: object) -> None:
    """Readers do not wait for a writer, and a commit is on disk."""
    _pragmas(connection, "journal_mode=WAL", "synchronous=FULL")


def _prepare_fast(connection: Any, _record: object) -> None:
    _pragmas(connection, "journal_mode=WAL", "synchronous=OFF")


def _pragmas(connection: Any, *settings: str) -> None:
    cursor = connection.cursor()
    for setting in settings:
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    scheme, separator, rest = head.partition("://")
    user = rest.partition(":")[0]
    return f"{scheme}{separator}{user}{at}{tail}" if at else url
