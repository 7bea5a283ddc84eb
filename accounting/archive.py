"""Records that are purged by their age, and the files that they are written to before and read from
again.

Place: accounting, beside the core; it writes and reads files. A file holds the records of one
cluster and one table: a first line that says so, then one line of JSON for each record, with the
names of its columns. It is named as Slurm's are; what is in it is this program's own.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy.exc import IntegrityError

from understudy.accounting import schema
from understudy.model.dbd_conf import Purge, purge_of
from understudy.model.errors import SlurmError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from understudy.accounting.store import Store
    from understudy.model.dbd_conf import DbdConfig

UNSPECIFIED: Final = -1
BAD_ADDRESS: Final = 14
_FORMAT: Final = "understudy archive 1"


class Kind(NamedTuple):
    """A kind of record: its table, the column of the time by which it is old, and what Slurm calls
    its table.
    """

    table: str
    column: str
    name: str


KINDS: Final = {  # by what stands in Purge...After
    "Event": Kind("events", "end_time", "event"),
    "Job": Kind("jobs", "end_time", "job"),
    "Resv": Kind("reservations", "end_time", "resv"),
    "Step": Kind("steps", "end_time", "step"),
    "TXN": Kind("transactions", "time", "txn"),
    "Usage": Kind("usage", "start_time", "usage"),
}


def due(dbd: DbdConfig, now: float) -> tuple[dict[str, Purge], list[str], str]:
    """What slurmdbd.conf has forgotten by now, which kinds of it are to be written to files before,
    and where to. An age of 0 is none.
    """
    texts = {kind: dbd.text(f"Purge{kind}After") for kind in KINDS}
    purges = {
        kind: purge
        for kind, text in texts.items()
        if text.strip("hoursdaymntHOURSDAYMNT0") and (purge := purge_of(text, now)) is not None
    }
    archived = [
        kind
        for kind in purges
        if dbd.boolean(f"Archive{kind if kind in {'TXN', 'Usage'} else kind + 's'}")
    ]
    return purges, archived, dbd.text("ArchiveDir") or "/tmp"  # noqa: S108  as slurmdbd has it


def purge(
    store: Store, purges: Mapping[str, Purge], archived: Collection[str], folder: str, cluster: str
) -> None:
    """Forget what is older than the times of the kinds, those archived when they are in a file.
    What is still open stays.

    Args:
        store: the open database.
        purges: how old records may be, by their kinds.
        archived: the kinds to write to files before.
        folder: where to.
        cluster: whose file has what belongs to no cluster.

    Raises:
        SlurmError: a file cannot be written.
    """
    for name, purge in purges.items():
        kind = KINDS[name]
        table = schema.metadata.tables[kind.table]
        if name in archived:
            rows = store.find(table, [table.c[kind.column] < purge.before], [table.c[kind.column]])
            for owner in sorted({row["cluster"] or cluster for row in rows}):
                _write(
                    Path(folder),
                    owner,
                    kind,
                    purge,
                    [row for row in rows if (row["cluster"] or cluster) == owner],
                )
        store.forget(table, kind.column, purge.before)
    if "Job" in purges:
        store.forget_unused_texts()


def _write(
    folder: Path, cluster: str, kind: Kind, purge: Purge, rows: list[dict[str, Any]]
) -> None:
    first = purge.period_start(rows[0][kind.column])
    path = (
        folder / f"{cluster}_{kind.name}_table_archive_{_moment(first)}_{_moment(purge.before - 1)}"
    )
    new = path.with_name(f"{path.name}.new")
    lines = [
        json.dumps({"format": _FORMAT, "cluster": cluster, "table": kind.table}),
        *map(json.dumps, rows),
    ]
    try:
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write("".join([f"{line}\n" for line in lines]))
            file.flush()
            os.fsync(file.fileno())
        number = 1
        while path.exists():  # what was archived before stays
            path = path.with_name(f"{path.name.partition('.')[0]}.{number}")
            number += 1
        new.rename(path)
    except OSError as error:
        raise SlurmError(UNSPECIFIED) from error


def _moment(when: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(when))


def load(store: Store, path: str) -> None:
    """Put the records of a file back.

    Raises:
        SlurmError: it is no such file, or some of the records are there.
    """
    try:
        head, *lines = [
            json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()
        ]
        table = schema.metadata.tables[head["table"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SlurmError(BAD_ADDRESS, "Bad address") from error
    names = {column.name for column in table.columns}
    if (
        head.get("format") != _FORMAT
        or kind_of(head["table"]) is None
        or not all(isinstance(row, dict) and names == row.keys() for row in lines)
    ):
        raise SlurmError(BAD_ADDRESS, "Bad address")
    try:
        store.insert(table, lines)
    except IntegrityError as error:
        raise SlurmError(UNSPECIFIED) from error


def kind_of(table: str) -> str | None:
    """What records of a table are called."""
    return next((name for name, kind in KINDS.items() if kind.table == table), None)
