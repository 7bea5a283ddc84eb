"""Records for accounting that have not been taken over yet: in order, bounded, on disk while the
accounting daemon is away.

Place: the controller's. `RecordQueue` is pure; `QueueFile` is its store. A record leaves the queue
when accounting has said that it is in the database; one that was told twice replaces itself there.
Follows: slurm.conf(5) on MaxDBDMsgs: what does not fit any more is dropped, steps first.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.protocol.messages import (
    EventRecord,
    JobRecord,
    JobText,
    ReservationRecord,
    StepRecord,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.ports import Database

    Record = JobRecord | StepRecord | EventRecord | ReservationRecord | JobText

log = logging.getLogger("understudy.controller.accounting.link")
LEAST_BOUND: Final = 10_000  # MaxDBDMsgs by default: this, or more for large clusters
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS queue (number INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS fence (one INTEGER PRIMARY KEY, number INTEGER NOT NULL)
"""
_decode: Final = msgspec.msgpack.Decoder(
    JobRecord | StepRecord | EventRecord | ReservationRecord | JobText
).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class RecordQueue:
    """Records by the numbers under which they came in."""

    def __init__(self, most: int = LEAST_BOUND) -> None:
        self._most = most
        self._records: OrderedDict[int, Record] = OrderedDict()
        self._next = 1
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._records)

    def restore(self, records: Sequence[tuple[int, Record]]) -> None:
        """What was saved, in order."""
        self._records.update(records)
        self._next = max(self._records, default=0) + 1

    def add(self, records: Sequence[Record]) -> tuple[list[tuple[int, Record]], list[int]]:
        """Put records at the end; those that came in with their numbers, and the numbers of those
        that had to make room.
        """
        added = []
        for record in records:
            self._records[self._next] = record
            added.append((self._next, record))
            self._next += 1
        dropped = self._make_room()
        gone = set(dropped)
        return [each for each in added if each[0] not in gone], dropped

    def _make_room(self) -> list[int]:
        excess = len(self._records) - self._most
        if excess <= 0:
            return []
        steps = list(
            islice(
                (
                    number
                    for number, record in self._records.items()
                    if isinstance(record, StepRecord)
                ),
                excess,
            )
        )
        newest = list(
            islice(
                (number for number in reversed(self._records) if number not in set(steps)),
                excess - len(steps),
            )
        )
        for number in (*steps, *newest):
            del self._records[number]
        self.dropped += excess
        log.error(
            "accounting has been away for long: %d records dropped, %d in all", excess, self.dropped
        )
        return [*steps, *newest]

    def batch(self, most: int) -> list[tuple[int, Record]]:
        """The first ones, which stay in the queue."""
        return list(islice(self._records.items(), most))

    def taken(self, numbers: Sequence[int]) -> None:
        """Accounting has these."""
        for number in numbers:
            self._records.pop(number, None)


class QueueFile:
    """The queue on disk. Survives the end of the process at any instant. `fence`: the fencing
    number of the controller's lease. Who has opened the queue last is the only one who can write.
    """

    def __init__(self, database: Database, fence: int) -> None:
        self._database, self._fence = database, fence
        database.create(_SCHEMA)
        database.execute(
            "INSERT INTO fence VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET number = ?",
            (fence, fence),
        )

    def read(self) -> list[tuple[int, Record]]:
        """All records, in order."""
        return [
            (number, _decode(record))
            for number, record in self._database.execute(
                "SELECT number, record FROM queue ORDER BY number"
            )
        ]

    def write(self, added: Sequence[tuple[int, Record]], gone: Sequence[int]) -> None:
        """Put some in and take some out, in one transaction; nothing if another controller has
        opened the queue since.
        """
        database = self._database
        with database.transaction():
            found = database.read_locked("SELECT number FROM fence").fetchone()
            if found[0] != self._fence:
                return
            database.executemany(
                "INSERT INTO queue VALUES (?, ?) "
                "ON CONFLICT (number) DO UPDATE SET record = excluded.record",
                [(number, _encode(record)) for number, record in added],
            )
            database.executemany(
                "DELETE FROM queue WHERE number = ?", [(number,) for number in gone]
            )

    def close(self) -> None:
        """Close the database."""
        self._database.close()
