"""The controller's state on disk: in a database, written by group commit.

Place: the edge. What changes is noted (`Dirty`, the core's journal) and written in one transaction
with all that changed meanwhile. Answers and messages that tell of a change leave after the
transaction that holds it is on disk (`Commits`), so nobody is told of what a crash could undo.

While one transaction is being written, in a thread, the next one collects. Under virtual time the
transaction is written at once, between two steps of the loop: no virtual time passes meanwhile, and
the order of all that follows stays defined.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from understudy.controller.saved import documents, node_order
from understudy.controller.saved.database import FILE_NAME, DatabaseError, open_database
from understudy.controller.saved.lease import check
from understudy.controller.saved.records import (
    DAMAGED,
    StateError,
    decode_job,
    decode_node,
    decode_partition,
    decode_reservation,
    encode_job,
    encode_node,
    encode_partition,
    encode_reservation,
)
from understudy.model import nodeset
from understudy.model.cluster import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Database
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import Message

if TYPE_CHECKING:
    from understudy.controller.ports import Wire

log = logging.getLogger("understudy.controller.saved.store")
SCHEMA_VERSION: Final = 1
_BUSY_S: Final = 10.0  # ours: so long the lease's transactions are waited for, which are short
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS jobs (job_id INTEGER PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS scripts (job_id INTEGER PRIMARY KEY, script TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS partitions (name TEXT PRIMARY KEY, record BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservations (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (association_id INTEGER PRIMARY KEY, use REAL NOT NULL);
CREATE TABLE IF NOT EXISTS limits_use (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS submissions (
    user_id INTEGER, token TEXT, job_id INTEGER NOT NULL, PRIMARY KEY (user_id, token)
);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


def _putting(table: str, key: tuple[str, ...], value: str) -> str:
    """Puts whole rows into a table, in place of those with the same key."""
    places, keys = ", ".join("?" * len((*key, value))), ", ".join(key)
    conflict = f"ON CONFLICT ({keys}) DO UPDATE SET {value} = excluded.{value}"
    return " ".join(("INSERT INTO", table, f"VALUES ({places})", conflict))


_PUT: Final = {
    table: _putting(table, key, value)
    for table, key, value in (
        ("jobs", ("job_id",), "record"),
        ("scripts", ("job_id",), "script"),
        ("nodes", ("name",), "record"),
        ("partitions", ("name",), "record"),
        ("reservations", ("name",), "record"),
        ("limits_use", ("name",), "record"),
        ("documents", ("name",), "record"),
        ("submissions", ("user_id", "token"), "job_id"),
        ("state", ("name",), "value"),
    )
}
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[int, dict[str, float], float]).decode


class Batch(NamedTuple):
    """What one transaction writes; None as a record: gone."""

    jobs: list[tuple[int, bytes]]
    forgotten: list[tuple[int]]
    scripts: list[tuple[int, str]]
    nodes: list[tuple[str, bytes]]
    partitions: list[tuple[str, bytes | None]]
    state: list[tuple[str, int]]
    reservations: list[tuple[str, bytes | None]]
    usage: list[tuple[int, float]] | None  # of associations, for fair share; None: as it was
    limits_use: list[tuple[str, bytes]]  # of associations and QOS, for their limits
    documents: list[tuple[str, bytes | None]]  # what is saved as a whole
    submissions: list[tuple[int, str, int | None]]  # user, token, job


class Dirty:
    """The core's journal: what has changed since the last batch was taken."""

    def __init__(self) -> None:
        self._jobs: dict[int, None] = {}
        self._nodes = 0
        self._partitions: dict[str, None] = {}
        self._reservations: dict[str, None] = {}
        self._documents: dict[str, None] = {}
        self._submissions: dict[tuple[int, str], None] = {}
        self._saved_scripts: set[int] = set()
        self._saved_counters: tuple[int, int] = (0, 0)
        self._saved_usage = 0  # as of when

    def job(self, job_id: int) -> None:
        self._jobs[job_id] = None

    def nodes(self, nodes: int) -> None:
        self._nodes |= nodes

    def partition(self, name: str) -> None:
        self._partitions[name] = None

    def reservation(self, name: str) -> None:
        self._reservations[name] = None

    def document(self, name: str) -> None:
        self._documents[name] = None

    def submission(self, user_id: int, token: str) -> None:
        self._submissions[user_id, token] = None

    def scripts_are_saved(self, job_ids: set[int]) -> None:
        """These scripts were read from the store."""
        self._saved_scripts |= job_ids

    def __bool__(self) -> bool:
        return bool(
            self._jobs
            or self._nodes
            or self._partitions
            or self._reservations
            or self._documents
            or self._submissions
        )

    def take(self, core: Core) -> Batch:
        """What has changed, as it is now; from here on the next batch collects."""
        jobs, forgotten, scripts = [], [], []
        table, saved = core.tables.jobs, self._saved_scripts
        for job_id in self._jobs:
            job = table.get(job_id)
            if job is None:
                forgotten.append((job_id,))
                saved.discard(job_id)
                continue
            jobs.append((job_id, encode_job(job)))
            if job_id not in saved and not job.interactive:
                saved.add(job_id)
                scripts.append((job_id, core.scripts.get(job_id, "")))
        nodes = [
            (node.name, encode_node(node))
            for node in (core.tables.nodes.nodes[index] for index in nodeset.indices(self._nodes))
        ]
        partitions = [
            (
                name,
                None
                if (partition := core.tables.partitions.get(name)) is None
                else encode_partition(partition),
            )
            for name in self._partitions
        ]
        reservations = [(name, _reservation_record(core, name)) for name in self._reservations]
        counters = (core.next_job_id, core.priorities.last)
        state = []
        if counters != self._saved_counters:
            self._saved_counters = counters
            state = [("next_job_id", counters[0]), ("last_priority", counters[1])]
        usage: list[tuple[int, float]] | None = None
        usage_time = core.priorities.usage_time
        if usage_time != self._saved_usage:
            self._saved_usage = usage_time
            usage = list(core.priorities.usage().items())
            state.append(("usage_time", usage_time))
        if reservations:
            state.append(("next_reservation_id", core.tables.reservations.next_id))
        saved_whole = [(name, documents.encode(core, name)) for name in self._documents]
        self._jobs, self._nodes, self._partitions, self._reservations, self._documents = (
            {},
            0,
            {},
            {},
            {},
        )
        submissions = [(*each, core.submissions.job_of(*each)) for each in self._submissions]
        self._submissions = {}
        limits_use = (
            []
            if core.job_limits is None
            else [(key, _pack(use)) for key, use in core.job_limits.take_touched().items()]
        )
        return Batch(
            jobs,
            forgotten,
            scripts,
            nodes,
            partitions,
            state,
            reservations,
            usage,
            limits_use,
            saved_whole,
            submissions,
        )


def _reservation_record(core: Core, name: str) -> bytes | None:
    reservation = core.tables.reservations.by_name.get(name)
    if reservation is None:
        return None
    nodes = core.names.to_expression(reservation.nodes) if reservation.nodes else ""
    return encode_reservation(reservation, nodes, [node.name for node in core.tables.nodes.nodes])


class Store:
    """The database. Used by one thread at a time."""

    def __init__(self, place: Path | str, name: str = CONTROLLER, *, one_host: bool = True) -> None:
        """Open it, or begin a new one. `place`: a folder, or a URL; the others are those of
        `open_database`.

        Raises:
            StateError: not a database of ours.
            OSError: the folder cannot be made.
        """
        if isinstance(place, Path):
            place.mkdir(parents=True, exist_ok=True)
            place /= FILE_NAME
        self.place = place
        self.fence: int | None = None  # of our lease; None: nobody shares the state
        self._database = database = open_database(place, name, one_host=one_host, busy_s=_BUSY_S)
        try:
            self._take_over(database)
        except (DatabaseError, StateError) as error:
            database.close()
            raise StateError(str(error)) from error

    def _take_over(self, database: Database) -> None:
        version = database.version()
        if version > SCHEMA_VERSION:
            raise StateError(
                f"{database.shown} is of version {version}, this program knows {SCHEMA_VERSION}"
            )
        database.create(_SCHEMA)
        database.set_version(SCHEMA_VERSION)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Database]:
        """A transaction of who has the lease."""
        with self._database.transaction():
            if self.fence is not None:
                check(self._database, self.fence)
            yield self._database

    def write(self, batch: Batch) -> None:
        """Write the batch in one transaction; it is on disk when this returns.

        Raises:
            LeaseLostError: another controller leads by now, and nothing was written.
            DatabaseError: it cannot be written.
        """
        with self._writing() as database:
            put = database.executemany
            put(_PUT["jobs"], batch.jobs)
            put(_PUT["scripts"], batch.scripts)
            put("DELETE FROM jobs WHERE job_id = ?", batch.forgotten)
            put("DELETE FROM scripts WHERE job_id = ?", batch.forgotten)
            put(_PUT["nodes"], batch.nodes)
            put(_PUT["partitions"], batch.partitions)
            for table, rows in (
                ("reservations", batch.reservations),
                ("documents", batch.documents),
            ):
                gone = f"DELETE FROM {table} WHERE name = ?"  # noqa: S608
                put(gone, [(name,) for name, record in rows if record is None])
                put(_PUT[table], [each for each in rows if each[1] is not None])
            if batch.usage is not None:
                database.execute("DELETE FROM usage")
                put("INSERT INTO usage VALUES (?, ?)", batch.usage)
            put(_PUT["limits_use"], batch.limits_use)
            put(_PUT["submissions"], [each for each in batch.submissions if each[2] is not None])
            put(
                "DELETE FROM submissions WHERE user_id = ? AND token = ?",
                [each[:2] for each in batch.submissions if each[2] is None],
            )
            put(_PUT["state"], batch.state)

    def read(self, core: Core, *, in_full: bool = False) -> list[Job]:
        """Set states of nodes and counters of the core to what was saved; the saved jobs, for
        `understudy.controller.saved.recover`.

        Features of nodes and partitions are slurm.conf's, and those that were saved come back
        `in_full` alone (slurmctld -R). A partition that slurm.conf does not have is kept as long as
        there are jobs for it.

        Raises:
            StateError: a damaged record, or a database that is damaged where it is read.
        """
        try:
            return self._read(core, in_full=in_full)
        except DatabaseError as error:  # which names the database
            raise StateError(str(error)) from error
        except (StateError, *DAMAGED) as error:
            raise StateError(f"{self._database.shown}: {error}") from error

    def _read(self, core: Core, *, in_full: bool) -> list[Job]:
        database = self._database
        self._read_nodes(core, in_full=in_full)
        jobs = [
            decode_job(octets)
            for (octets,) in database.execute("SELECT record FROM jobs ORDER BY job_id")
        ]
        self._move(core, jobs)
        if not in_full:
            self._forget_partitions(core, jobs)
        self._read_partitions(core)
        self._read_reservations(core)
        self._read_counters(core)
        if core.job_limits is not None:
            core.job_limits.restore(
                {
                    name: _unpack(record)
                    for name, record in database.execute("SELECT name, record FROM limits_use")
                }
            )
        for row in database.execute(
            "SELECT user_id, token, job_id FROM submissions ORDER BY job_id"
        ):
            core.submissions.restore(*row)
        for name, record in database.execute("SELECT name, record FROM documents"):
            documents.decode(core, name, record)
        core.scripts.update(database.execute("SELECT job_id, script FROM scripts"))
        return jobs

    def _move(self, core: Core, jobs: list[Job]) -> None:
        """Have the jobs know the nodes by their places in slurm.conf, which may have changed."""
        found = self._database.execute(
            "SELECT record FROM documents WHERE name = ?", (node_order.SAVED_AS,)
        ).fetchone()
        if found is not None and found[0] == node_order.encode(core):
            return
        if found is not None:
            moves = node_order.Moves(found[0], core)
            for job in jobs:
                moves.job(job)
        moved = [(job.job_id, encode_job(job)) for job in jobs if found is not None]
        with self._writing() as database:  # both at once: the one says how to read the other
            database.executemany(_PUT["jobs"], moved)
            database.execute(_PUT["documents"], (node_order.SAVED_AS, node_order.encode(core)))

    def _read_nodes(self, core: Core, *, in_full: bool) -> None:
        index_of = core.tables.nodes.index_of
        for name, record in self._database.execute("SELECT name, record FROM nodes"):
            if name in index_of:
                node = core.tables.nodes.nodes[index_of[name]]
                decode_node(record, node, in_full=in_full)
                # what is not taken up now must not come back another time
                if encode_node(node) != record:
                    core.journal.nodes(1 << node.index)

    def _forget_partitions(self, core: Core, jobs: list[Job]) -> None:
        """Of the saved ones those that slurm.conf has, and those for which there are no jobs."""
        asked_for = {
            partition for job in jobs if not job.is_finished for partition in job.partitions
        }
        unwanted = [
            name
            for (name,) in self._database.execute("SELECT name FROM partitions")
            if name in core.tables.partitions or name not in asked_for
        ]
        with self._writing() as database:
            database.executemany(
                "DELETE FROM partitions WHERE name = ?", [(name,) for name in unwanted]
            )

    def _read_partitions(self, core: Core) -> None:
        for name, record in self._database.execute("SELECT name, record FROM partitions"):
            if record is None:
                core.tables.partitions.pop(name, None)
                continue
            partition = decode_partition(record)
            partition.cluster_memory_limits_mb = core.settings.memory_limits_mb
            try:
                expression = partition.node_expression
                nodes = (
                    core.names.all
                    if expression.upper() == "ALL"
                    else core.names.to_bitmap(expression)
                )
                partition.place(nodes, core.tables.nodes)
                partition.has_other_nodes = False
            except ValueError as error:
                log.warning(
                    "partition %s as saved has nodes that are not in slurm.conf: %s", name, error
                )
            core.tables.partitions[name] = partition

    def _read_reservations(self, core: Core) -> None:
        reservations = [
            decode_reservation(record, core.tables.nodes.index_of)
            for (record,) in self._database.execute("SELECT record FROM reservations")
        ]
        for reservation in sorted(reservations, key=lambda each: each.reservation_id):
            try:
                reservation.nodes = (
                    core.names.to_bitmap(reservation.node_expression)
                    if reservation.node_expression
                    else 0
                )
            except ValueError as error:
                log.warning(
                    "reservation %s is lost, its nodes are not in slurm.conf: %s",
                    reservation.name,
                    error,
                )
                continue
            core.tables.reservations.by_name[reservation.name] = reservation

    def _read_counters(self, core: Core) -> None:
        """The next numbers of jobs and reservations, the last priority, and decayed use."""
        state = dict(self._database.execute("SELECT name, value FROM state"))
        reservations, priorities = core.tables.reservations, core.priorities
        reservations.next_id = max(reservations.next_id, state.get("next_reservation_id", 0))
        core.next_job_id = max(core.next_job_id, state.get("next_job_id", 0))
        priorities.last = min(priorities.last, state.get("last_priority", priorities.last))
        priorities.restore(
            state.get("usage_time", 0),
            dict(self._database.execute("SELECT association_id, use FROM usage")),
        )

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class Commits:
    """Answers and messages held back until what they tell of is on disk.

    `run` carries out a function elsewhere (a thread) and then calls the second with None or the
    exception; or does both at once under virtual time.
    """

    def __init__(
        self,
        core: Core,
        dirty: Dirty,
        store: Store,
        *,
        run: Callable[[Callable[[], None], Callable[[BaseException | None], None]], None],
        soon: Callable[[Callable[[], None]], object],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._core, self._dirty, self._store = core, dirty, store
        self._run, self._soon, self._failed = run, soon, failed
        self._held: list[Callable[[], None]] = []  # for the next batch
        self._is_writing = self._is_due = False
        self.is_over = False  # nothing more is written, and nobody told what is not
        self._when_idle: list[Callable[[], None]] = []
        self.written = 0

    def after(self, release: Callable[[], None]) -> None:
        """Call `release` when all that has changed so far is on disk; at once if it is."""
        if not (self._dirty or self._held or self._is_writing or self.is_over):
            release()
            return
        self._held.append(release)
        self.due()

    def due(self) -> None:
        """Something may have changed: write it soon."""
        if self._is_writing or self._is_due or self.is_over:
            return
        if not (self._dirty or self._held):
            return
        self._is_due = True
        self._soon(self._begin)

    def close(self) -> None:
        """Write nothing more."""
        self.is_over = True

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call when nothing is left to write."""
        self._when_idle.append(call)
        self._check_idle()

    def _begin(self) -> None:
        self._is_due = False
        held, self._held = self._held, []
        if not self._dirty:
            for release in held:
                release()
            self._check_idle()
            return
        batch = self._dirty.take(self._core)
        self._is_writing = True

        def written(error: BaseException | None) -> None:
            self._is_writing = False
            if error is not None:
                # Nobody is told what is not on disk, and without it what follows makes no sense.
                self.is_over = True
                self._failed(error)
                self._check_idle()
                return
            self.written += 1
            for release in held:
                release()
            self.due()
            self._check_idle()

        self._run(lambda: self._store.write(batch), written)

    def _check_idle(self) -> None:
        is_done = self.is_over or not (self._is_due or self._dirty or self._held)
        if self._when_idle and is_done and not self._is_writing:
            waiting, self._when_idle = self._when_idle, []
            for call in waiting:
                call()


class HeldWire:
    """A wire whose messages leave after what they tell of is on disk."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.commits: Commits | None = None

    def add_peer(self, name: str, address: str) -> None:
        self._wire.add_peer(name, address)

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
        *,
        only_failures: bool = False,
    ) -> None:
        """Send it when all that has changed so far is on disk."""
        assert self.commits is not None
        self.commits.after(
            lambda: self._wire.send(peer, message, on_reply, timeout_s, only_failures=only_failures)
        )
