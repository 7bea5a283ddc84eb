"""The accounting daemon's core: requests in, answers and news for controllers out.

Place: between the edge (main.py) and the ledger and store. It knows no messenger. `number` counts
the states of the ledger: controllers are told what has changed from one to the next, and ask for
the whole if they have missed one.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.accounting import archive, change_jobs, conditions, deleted, schema
from understudy.accounting.change import ACCESS_DENIED, Actor, change, is_admin, is_administrator
from understudy.accounting.change_clusters import register
from understudy.accounting.ledger import Draft, Ledger, first_ledger
from understudy.accounting.queries import run_query
from understudy.accounting.statistics import Counters
from understudy.accounting.tree import Tree
from understudy.accounting.usage import roll_up
from understudy.model.dbd_conf import purge_of
from understudy.model.errors import SlurmError
from understudy.model.states import JobState
from understudy.protocol.messages import (
    AccountingChange,
    AccountingChanged,
    AccountingQuery,
    AccountingRecords,
    Associations,
    AssociationsChanged,
    DumpArchive,
    EventRecord,
    FederationPlace,
    GetAssociations,
    GetStatistics,
    LoadArchive,
    Message,
    Ok,
    Ping,
    Rows,
    Shutdown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from understudy.accounting.ledger import Transaction
    from understudy.accounting.store import Store
    from understudy.model.dbd_conf import Purge

log = logging.getLogger("understudy.accounting")
UNEXPECTED_MESSAGE: Final = 1000
CLUSTER_REGISTERED: Final = "Cluster Registered TRES"
GATHERED: Final = 1000  # records that are written together


class Sender(NamedTuple):
    """Who asks, authenticated."""

    name: str
    user_id: int
    is_daemon: bool


class Accounting:
    """The state of the daemon."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], float],
        superusers: frozenset[int],
        user_name: Callable[[int], str],
        stop: Callable[[], None],
        gathers: bool = False,
        configuration: Callable[[], list[tuple[str, str]]] = list,
    ) -> None:
        """Load what is in the store.

        Args:
            store: the open database.
            now: tells the cluster's time.
            superusers: user ids who may do everything: root's, and that of who runs the cluster.
            user_name: gives names to user ids.
            stop: ends the daemon.
            configuration: tells what slurmdbd.conf says.
            gathers: records are written many at a time, before somebody asks for them; until then a
                crash would lose them.
        """
        self.store, self._now, self._superusers, self._user_name, self._stop = (
            store,
            now,
            superusers,
            user_name,
            stop,
        )
        self._gathers, self._configuration = gathers, configuration
        # by cluster: who told something last, and up to which of its records
        self._told: dict[str, tuple[float, int]] = {}
        self._waiting: dict[str, list[Any]] = {}  # by cluster
        self.number = 1
        self.counters = Counters(now())
        self.controllers: dict[str, str] = {}  # cluster: the peer that is its controller
        loaded = store.load()
        self.ledger = loaded if loaded is not None else first_ledger(int(now()))
        if loaded is None:
            store.save(Ledger(), self.ledger, [])

    def flush(self) -> None:
        """Write the records that have been gathered."""
        waiting, self._waiting = self._waiting, {}
        for cluster, records in waiting.items():
            self.store.add_records(cluster, records)

    def handle(
        self, message: Message, sender: Sender
    ) -> tuple[Message, list[tuple[str, AssociationsChanged]]]:
        """The answer, and what the controllers of clusters have to be told before it is given.

        Raises:
            SlurmError: refused.
        """
        begin = time.perf_counter_ns()
        try:
            return self._handle(message, sender)
        finally:
            self.counters.request(message, sender.user_id, (time.perf_counter_ns() - begin) // 1000)

    def _handle(
        self, message: Message, sender: Sender
    ) -> tuple[Message, list[tuple[str, AssociationsChanged]]]:
        match message:
            case AccountingQuery():
                return self._query(message, sender), []
            case AccountingChange():
                return self._change(message, sender)
            case AccountingRecords():
                self._require_daemon(sender)
                if not self._is_late(message):
                    self._add_records(message)
                return Ok(), []
            case GetAssociations():
                self._require_daemon(sender)
                return self._register(message, sender), []
            case GetStatistics():
                return self._statistics(message, sender), []
            case DumpArchive():
                return self._dump_archive(message, sender), []
            case LoadArchive():
                return self._load_archive(message, sender), []
            case Ping():
                return Ok(), []
            case Shutdown():
                if sender.user_id not in self._superusers:
                    raise SlurmError(ACCESS_DENIED)
                self._stop()
                return Ok(), []
        raise SlurmError(UNEXPECTED_MESSAGE, f"accounting does not take {type(message).__name__}")

    @staticmethod
    def _require_daemon(sender: Sender) -> None:
        if not sender.is_daemon:
            raise SlurmError(ACCESS_DENIED)

    def _statistics(self, message: GetStatistics, sender: Sender) -> Message:
        self._require_administrator(sender)
        now = self._now()
        if not message.reset:
            return self.counters.answer(now, self._user_name)
        self.counters = Counters(now)
        return Ok()

    def _query(self, query: AccountingQuery, sender: Sender) -> Rows:
        self.flush()
        now = self._now()
        if query.table == "config":
            return Rows([list(each) for each in self._configuration()], now)
        if query.table == "job_texts":
            return Rows(self._job_texts(query, sender), now)
        if query.table == "usage":
            for cluster in self.ledger.clusters:
                roll_up(self.store, self.ledger, cluster, now)
        return Rows(run_query(self.ledger, self.store, query), now)

    def _job_texts(self, query: AccountingQuery, sender: Sender) -> list[list[Any]]:
        """Of runs of jobs that the asker owns, the script or environment that is kept; to
        administrators of anybody's, and "" where none is.
        """
        jobs, texts = schema.jobs.c, schema.job_texts.c
        what = {"script": jobs.script, "environment": jobs.environment}.get(
            next(iter(query.columns), "")
        )
        clusters = query.where.get("clusters") or sorted(self.ledger.clusters)
        if what is None:
            raise SlurmError(-1, "job_texts has the columns script and environment")
        tests: list[Any] = [
            jobs.job_id.in_(query.where.get("job_ids") or []),
            jobs.cluster.in_(clusters),
        ]
        sees_all = is_admin(
            self.ledger, Actor(self._user_name(sender.user_id), sender.user_id in self._superusers)
        )
        if not sees_all:
            tests.append(jobs.user_id == sender.user_id)
        columns = ["cluster", "job_id", "submit_time", "restarts", what.name]
        rows = [list(row.values()) for row in self.store.find(schema.jobs, tests, columns=columns)]
        keys = sorted({row[-1] for row in rows if row[-1]})
        known = (
            {
                (row["cluster"], row["key"]): row["text"]
                for row in self.store.find(schema.job_texts, [texts.key.in_(keys)])
            }
            if keys
            else {}
        )
        found = [[*row[:-1], known.get((row[0], row[-1]), "")] for row in rows]
        return [row for row in found if sees_all or row[-1]]

    def _change(
        self, message: AccountingChange, sender: Sender
    ) -> tuple[Message, list[tuple[str, AssociationsChanged]]]:
        actor = Actor(self._user_name(sender.user_id), sender.user_id in self._superusers)
        if message.entity == "job":
            return self._change_jobs(message, actor), []
        if "raw_usage" in message.set:
            return self._forget_use(message, actor)
        now = int(self._now())
        changed = change(self.ledger, message, actor, now)
        if message.action == "delete" and changed.ledger.associations != self.ledger.associations:
            active = self._active_jobs(changed.ledger)
            if active:
                return AccountingChanged(problems=active), []
        if not message.commit:
            return changed.answer, []
        if message.action == "delete":
            deleted.keep(self.ledger, changed.ledger, now, self._has_jobs)
        return changed.answer, self._commit(changed.ledger, changed.transactions)

    def _active_jobs(self, after: Ledger) -> list[tuple[str, list[str]]]:
        """The jobs that have not ended, of associations that are no longer there."""
        self.flush()
        gone = {
            key: each
            for key, each in self.ledger.associations.items()
            if key not in after.associations
        }
        table = schema.jobs.c
        found = []
        for row in self.store.find(
            schema.jobs,
            [table.end_time.is_(None), table.state < int(JobState.COMPLETED)],
            [table.submit_time, table.job_id],
        ):
            each = gone.get(row["association_id"])
            if each is not None:
                found.append(
                    (
                        "active_job",
                        [str(row["job_id"]), each.cluster, each.account, each.user, each.partition],
                    )
                )
        return found

    def _has_jobs(self, kind: str, keys: list[Any]) -> bool:
        """Whether there were jobs of any of these."""
        self.flush()
        column = schema.jobs.c[
            {
                "associations": "association_id",
                "clusters": "cluster",
                "qos": "qos_id",
                "wckeys": "wckey_id",
            }[kind]
        ]
        return self.store.has_any(column, keys)

    def _forget_use(
        self, message: AccountingChange, actor: Actor
    ) -> tuple[Message, list[tuple[str, AssociationsChanged]]]:
        """RawUsage=0: the controllers forget what associations or qualities of service have used.
        The answer names these by number or name.
        """
        if not (is_administrator if message.entity == "qos" else is_admin)(self.ledger, actor):
            raise SlurmError(ACCESS_DENIED)
        where = message.where
        if message.entity == "qos":
            names, found = [each.name for each in conditions.qualities(self.ledger, where)], []
        else:
            key = "accounts" if message.entity == "account" else "users"
            named = {**where, key: where.get("names") or where.get(key, [])}
            names, found = (
                [],
                conditions.associations(
                    Tree(self.ledger), {**named, **({"users": [""]} if key == "accounts" else {})}
                ),
            )
        answer = AccountingChanged(names or [str(each.id) for each in found])
        if not message.commit or not answer.names:
            return answer, []
        self.number += 1
        clusters = where.get("clusters")
        tellings = []
        for cluster, peer in self.controllers.items():
            numbers = [each.id for each in found if each.cluster == cluster]
            told = AssociationsChanged(cluster, self.number, unused_associations=numbers)
            if names and (not clusters or cluster in clusters):
                told = AssociationsChanged(cluster, self.number, unused_qos=names)
            tellings.append((peer, told))
        return answer, tellings

    def _change_jobs(self, message: AccountingChange, actor: Actor) -> AccountingChanged:
        """Change what is on record of jobs. The answer names each as `number
        time-of-submission`.
        """
        self.flush()
        jobs = change_jobs.chosen(self.store, message)
        changed = change_jobs.changed(jobs, message.set)
        is_own = all(job["user"] == actor.name for job in jobs) and change_jobs.OWNERS.issuperset(
            message.set
        )
        if not is_own and not is_admin(self.ledger, actor):
            raise SlurmError(ACCESS_DENIED)
        if message.commit and changed:
            for cluster in sorted({job["cluster"] for job in jobs}):
                self.store.add_records(
                    cluster,
                    [
                        record
                        for job, record in zip(jobs, changed, strict=True)
                        if job["cluster"] == cluster
                    ],
                )
        return AccountingChanged([f"{record.job_id} {record.submit_time}" for record in changed])

    def _commit(
        self, after: Ledger, transactions: list[Transaction]
    ) -> list[tuple[str, AssociationsChanged]]:
        """Save and take over a changed ledger; what controllers have to be told."""
        before = self.ledger
        if before == after:
            if transactions:  # what is set as it was is on record, too
                self.store.save(before, after, transactions)
            return []
        self.store.save(before, after, transactions)
        self.ledger = after
        self.number += 1
        return [
            (peer, news(before, after, cluster, self.number))
            for cluster, peer in self.controllers.items()
            if cluster in after.clusters
        ]

    def _register(self, message: GetAssociations, sender: Sender) -> Associations:
        draft = Draft(self.ledger, self._user_name(sender.user_id), int(self._now()))
        register(draft, message)
        self._commit(draft.ledger, draft.transactions)
        self.flush()
        self._note_size(message)
        self.controllers[message.cluster] = sender.name
        self._told.pop(message.cluster, None)  # its clock may be behind that of who led before
        log.info("cluster %s: controller at %s:%d", message.cluster, message.host, message.port)
        ledger = self.ledger
        return Associations(
            message.cluster,
            self.number,
            [each for each in ledger.associations.values() if each.cluster == message.cluster],
            list(ledger.qos.values()),
            list(ledger.users.values()),
            [each for each in ledger.wckeys.values() if each.cluster == message.cluster],
            list(ledger.tres.values()),
            federation_place(ledger, message.cluster),
            remote_licenses(ledger, message.cluster),
        )

    def _note_size(self, message: GetAssociations) -> None:
        """Put on record what the cluster has, from now on, unless that is what it had."""
        events = schema.events
        open_one = [
            events.c.cluster == message.cluster,
            events.c.node == "",
            events.c.end_time.is_(None),
        ]
        known = self.store.find(events, open_one, columns=["tres", "nodes"])
        if known != [{"tres": message.tres, "nodes": message.nodes}]:
            record = EventRecord(
                "", int(self._now()), None, 0, CLUSTER_REGISTERED, None, message.tres, message.nodes
            )
            self._add_records(AccountingRecords(message.cluster, [record]))

    def _is_late(self, message: AccountingRecords) -> bool:
        """Whether it has been overtaken by a message that begins with the same records, and goes on
        with newer ones of the same jobs.
        """
        told = message.since, message.last
        is_late = message.last > 0 and told < self._told.get(message.cluster, (0.0, 0))
        if message.last and not is_late:
            self._told[message.cluster] = told
        return is_late

    def _add_records(self, message: AccountingRecords) -> None:
        waiting = self._waiting.setdefault(message.cluster, [])
        waiting += message.records
        if self._gathers and len(waiting) < GATHERED:
            return
        self.flush()

    def _dump_archive(self, message: DumpArchive, sender: Sender) -> Ok:
        self._require_administrator(sender)
        told = dict(self._configuration())
        texts = {
            kind: message.purges.get(kind) or told.get(f"Purge{kind}After", "")
            for kind in archive.KINDS
        }
        purges = {
            kind: purge
            for kind, text in texts.items()
            if (purge := purge_of(text, self._now())) is not None
        }
        if not purges.keys() >= set(message.archived):
            raise SlurmError(archive.UNSPECIFIED)
        self.purge(purges, message.archived, message.folder or told.get("ArchiveDir", ""))
        return Ok()

    def _load_archive(self, message: LoadArchive, sender: Sender) -> Ok:
        self._require_administrator(sender)
        self.flush()
        archive.load(self.store, message.path)
        return Ok()

    def _require_administrator(self, sender: Sender) -> None:
        if not is_administrator(
            self.ledger, Actor(self._user_name(sender.user_id), sender.user_id in self._superusers)
        ):
            raise SlurmError(ACCESS_DENIED)

    def purge(
        self, purges: Mapping[str, Purge], archived: Collection[str] = (), folder: str = ""
    ) -> None:
        """Forget old records, by kinds as in archive.KINDS; those archived are written to files
        before.

        Raises:
            SlurmError: a file cannot be written.
        """
        self.flush()
        archive.purge(
            self.store,
            purges,
            archived,
            folder,
            next(iter(sorted(self.ledger.clusters)), "cluster"),
        )

    def roll_up(self) -> None:
        """Add up what has not been, for all clusters."""
        begin = time.perf_counter_ns()
        self.flush()
        for cluster in self.ledger.clusters:
            roll_up(self.store, self.ledger, cluster, self._now())
        self.counters.rolled(self._now(), (time.perf_counter_ns() - begin) // 1000)


def news(before: Ledger, after: Ledger, cluster: str, number: int) -> AssociationsChanged:
    """What one cluster's controller has to know of a change."""
    old = {key: each for key, each in before.associations.items() if each.cluster == cluster}
    new = {key: each for key, each in after.associations.items() if each.cluster == cluster}
    names = {qos.name for qos in after.qos.values()}
    return AssociationsChanged(
        cluster,
        number,
        _changed(old, new),
        [key for key in old if key not in new],
        _changed(before.qos, after.qos),
        [qos.name for qos in before.qos.values() if qos.name not in names],
        _changed(before.users, after.users),
        [name for name in before.users if name not in after.users],
        None
        if before.wckeys == after.wckeys
        else [each for each in after.wckeys.values() if each.cluster == cluster],
        _changed(before.tres, after.tres),
        federation=federation_place(after, cluster),
        has_moved=federation_place(before, cluster) != federation_place(after, cluster),
        licenses=None if before.resources == after.resources else remote_licenses(after, cluster),
    )


def federation_place(ledger: Ledger, cluster: str) -> FederationPlace | None:
    """What a cluster is in its federation; None where it is in none."""
    known = ledger.clusters.get(cluster)
    if known is None or not known.federation:
        return None
    return FederationPlace(
        known.federation,
        cluster,
        known.control_host,
        known.control_port,
        known.fed_id,
        known.fed_state,
        known.features,
    )


def remote_licenses(ledger: Ledger, cluster: str) -> dict[str, int]:
    """What a cluster has of the licences that clusters share, by `name@server`."""
    return {
        f"{each.name}@{each.server}": each.count * each.allowed[cluster] // 100
        for each in ledger.resources.values()
        if cluster in each.allowed and each.type == "License"
    }


def _changed(old: dict[Any, Any], new: dict[Any, Any]) -> list[Any]:
    return [each for key, each in new.items() if old.get(key) is not each]
