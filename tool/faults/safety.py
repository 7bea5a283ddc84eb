"""What must hold of a cluster with faults after each step, whatever fails: the tables are right
(`invariants.py`), nothing acknowledged is lost, nothing runs twice without a requeue, and the state
on disk reads back as that in memory.

Place: beside `cluster.py`, which tells it of controllers that start. It looks, and changes nothing.
"""

from __future__ import annotations

import sqlite3
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Final

from understudy.accounting import schema as accounts
from understudy.controller.core.locks import WRITE, Needs
from understudy.controller.saved.records import decode_job
from understudy.tool.faults.invariants import Invariants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from understudy.accounting.store import Store as AccountingStore
    from understudy.controller.core.core import Core
    from understudy.controller.edge.main import Controller
    from understudy.controller.saved.lease import Lease
    from understudy.controller.tables.job import Job
    from understudy.noded.core import Key
    from understudy.tool.faults.cluster import FaultyCluster

_READ_BACK: Final = 50  # ours: the disk is read after so many steps
# what a restart must not change
_SAVED: Final = (
    "state",
    "flags",
    "restarts",
    "submit_time",
    "start_time",
    "end_time",
    "time_limit_s",
    "exit_code",
    "exit_signal",
    "held_by",
    "partitions",
    "user_id",
    "completing_nodes",
)


class Safety:
    """Watches one cluster. `fail` is told what does not hold; `acknowledged` says which jobs users
    were told of; `forgets`: the controller forgets jobs that are over (MinJobAge).
    """

    def __init__(
        self,
        fail: Callable[[str], None],
        acknowledged: Callable[[], Iterable[int]],
        *,
        forgets: bool = False,
    ) -> None:
        self._fail, self._acknowledged, self._forgets = fail, acknowledged, forgets
        self.steps = self.read_back = 0
        self._starts: Counter[Key] = Counter()
        self._leases: list[Lease] = []  # of controllers that have led beside others

    def watch(self, controller: Controller) -> None:
        """Look after each event of this controller."""
        core = controller.core
        if not self._forgets:
            for job_id in self._acknowledged():
                if job_id not in core.tables.jobs:
                    self._fail(f"job {job_id} was acknowledged, and a controller came back without")
        settle, invariants = core.after_event, Invariants(core)
        if controller.lease is not None and controller.lease.timeout_s is not None:
            self._leases.append(controller.lease)

        def after_event() -> None:
            settle()
            self.steps += 1
            if sum(lease.holds() for lease in self._leases) > 1:
                names = [lease.name for lease in self._leases if lease.holds()]
                self._fail(f"{' and '.join(names)} may answer at the same time")
            try:
                invariants.check()
            except AssertionError as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                self._fail(f"{error or 'assertion'} ({where.name}: {where.line})")
            if self.steps % _READ_BACK == 0 and controller.commits is not None:
                controller.commits.when_idle(lambda: self._compare_with_disk(controller))

        core.after_event = core.agents.after_event = after_event
        controller.server.after_event = after_event  # type: ignore[method-assign]

    def started(self, key: Key) -> None:
        """A script has been started on a node."""
        self._starts[key] += 1
        if self._starts[key] > 1:
            self._fail(f"job {key[0]} was started twice as its run {key[1]}")

    def _compare_with_disk(self, controller: Controller) -> None:
        store, commits = controller.store, controller.commits
        if store is None or commits is None or commits.is_over:  # what it could not write is lost
            return
        if controller.lease is not None and not controller.lease.holds():
            return
        self.read_back += 1
        database = sqlite3.connect(f"file:{store.place}?mode=ro", uri=True)
        try:
            saved = dict(database.execute(_JOBS))
        finally:
            database.close()
        jobs = controller.core.tables.jobs
        if saved.keys() != jobs.keys():
            self._fail(f"jobs on disk and in memory differ: {sorted(saved.keys() ^ jobs.keys())}")
        for job_id, record in saved.items():
            if job_id in jobs and (found := _difference(decode_job(record), jobs[job_id])):
                self._fail(f"job {job_id} on disk is not as in memory: {found}")

    def judge(self, cluster: FaultyCluster) -> None:
        """All has healed, and all should be as ever."""
        controller = cluster.controller
        if controller is None:
            self._fail("there is no controller, although all is healed")
            return
        if controller.commits is not None:
            controller.commits.when_idle(lambda: self._compare_with_disk(controller))
        for job_id in self._acknowledged():
            if job_id not in controller.core.tables.jobs and not self._forgets:
                self._fail(f"job {job_id} was acknowledged, and is lost")
        busy = {job.job_id for job in controller.core.tables.running.values()}
        for name, front_end in cluster.front_ends.items():
            left = [key for key in front_end.core.jobs if key[0] not in busy]
            if left and not controller.core.completing:
                self._fail(f"{name} still has {left}, of which the controller knows nothing")
        if controller.accounting is not None and controller.accounting.waiting:
            self._fail(f"{controller.accounting.waiting} records have not come to accounting")
        if cluster.accounting is not None:
            self._compare_with_accounting(controller.core, cluster.accounting.store)
        if not controller.locks.available(_ALL):
            self._fail("locks are still held, although nobody asks anything")
        responding = controller.core.daemons.values()
        if silent := [record.name for record in responding if not record.is_responding]:
            self._fail(f"{', '.join(silent)} should be there, and the controller does not know it")

    def _compare_with_accounting(self, core: Core, store: AccountingStore) -> None:
        """What accounting has of each job that is over is what ran: each run has ended there, and
        the last one began and ended as in the job table.
        """
        runs: dict[int, dict[int, list[tuple[int | None, int | None]]]] = {}
        for row in store.find(accounts.jobs, columns=_OF_RUNS):
            of_job = runs.setdefault(row["job_id"], {})
            of_job.setdefault(row["restarts"], []).append((row["start_time"], row["end_time"]))
        for job_id, job in core.tables.jobs.items():
            if not job.is_finished or job.is_completing or job.allocation is None:
                continue
            kept = runs.get(job_id, {})
            last = kept.get(job.restarts, [])
            if not last:
                self._fail(f"accounting has no record of run {job.restarts}: {job.story}")
            elif len(last) == 1 and last[0] != (job.start_time, job.end_time):  # else: resized
                self._fail(
                    f"accounting has {last[0]} of {job.start_time, job.end_time}: {job.story}"
                )
            if [part for parts in kept.values() for part in parts if part[1] is None]:
                self._fail(f"a run is open in accounting ({kept}): {job.story}")


_ALL: Final = Needs(WRITE, WRITE, WRITE, WRITE)
_OF_RUNS: Final = ("job_id", "restarts", "start_time", "end_time")
_JOBS: Final = "SELECT job_id, record FROM jobs"


def _difference(saved: Job, job: Job) -> str:
    for name in _SAVED:
        if getattr(saved, name) != getattr(job, name):
            return f"{name} {getattr(saved, name)!r}, {getattr(job, name)!r} ({job.story})"
    nodes = [each.allocation.nodes if each.allocation else 0 for each in (saved, job)]
    return f"nodes {nodes[0]:b}, {nodes[1]:b} ({job.story})" if nodes[0] != nodes[1] else ""
