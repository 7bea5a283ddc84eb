"""The queue: pending jobs with the partitions in which they may run, in the order in which
schedulers look at them.

Place: scheduling, pure. Follows the order of Slurm's job queue: partition tier, priority, submit
time, job id.

The order is kept from one pass to the next: jobs that were submitted are inserted, jobs that have
left are dropped when they are met, and only a change that may concern any job (`Note`) makes it
sort again.
"""

from __future__ import annotations

from bisect import insort
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.tables.het_job import components
from understudy.controller.tables.partition import limit_broken
from understudy.controller.tables.preemption import BY_QOS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.preemption import Preemption
    from understudy.controller.tables.reservation import Reservation
    from understudy.controller.tables.tables import Tables
    from understudy.model.qos import Qos

_SUBMIT: Final = Note.SUBMIT
_FREED: Final = (Note.FREE, Note.CLEANED, Note.PARTLY_FREE)  # which jobs wait is as before


class Rank:
    """A job's place beside others by who may preempt whom: part of a key of the queue, and equal
    for most pairs.
    """

    __slots__ = ("qos",)

    def __init__(self, qos: Qos | None) -> None:
        self.qos = qos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rank) and not self < other and not other < self

    def __lt__(self, other: Rank) -> bool:
        return self.qos is not None and other.qos is not None and other.qos.name in self.qos.preempt

    def __gt__(self, other: Rank) -> bool:
        return other < self

    def __hash__(self) -> int:
        return 0


# A job's place in the queue: compared as tuples, lowest first; unique because the job id and the
# partition's place are part of it.
Key = tuple[int | str | Rank, ...]


class Record(NamedTuple):
    """A pending job in one of its partitions. `cpus` and `limit_s` (infinite without a limit) are
    the job's, at hand for policies that scan.
    """

    key: Key
    job: Job
    partition: Partition
    cpus: int
    limit_s: float
    # with the job's preferred features; another record without them comes next
    prefers: bool = False
    # as a job of it; if the job names none, a magnetic one, and another record without it comes
    # later
    reservation: Reservation | None = None

    def ask(
        self, usable: int, blocked_cores: Mapping[int, int] | None = None, switches: int = 0
    ) -> Ask:
        """For nodes out of the bitmap `usable`."""
        own = "" if self.reservation is None else self.reservation.name
        return Ask(
            self.job, self.partition, usable, self.prefers, None, blocked_cores, own, switches
        )


def slurm_order(job: Job, partition: Partition, *, is_drawn: bool = False) -> Key:
    """Jobs in reservations; higher tier, higher priority, earlier submission, lower job id, lower
    task; partitions by tier, then as listed.

    `is_drawn`: as a job of a reservation that it does not name.
    """
    priority = job.priority
    if job.partition_priorities is not None and priority and job.admin_priority is None:
        priority = job.partition_priorities.get(partition.name, priority)
    outside = -1 if is_drawn or job.spec.reservation else 0
    array = job.array
    place = 0 if len(job.partitions) == 1 else job.partitions.index(partition.name)
    if array is None:
        return (outside, -partition.priority_tier, -priority, job.submit_time, job.job_id, 0, place)
    task = (
        job.array_task_id
        if job.array_task_id is not None
        else (job.array_tasks & -job.array_tasks).bit_length() - 1
    )
    return (
        outside,
        -partition.priority_tier,
        -priority,
        job.submit_time,
        array.job_id,
        task,
        place,
    )


def first_come_order(job: Job, partition: Partition, *, is_drawn: bool = False) -> Key:
    """Order of submission, behind what an administrator has put first; reservations do not
    matter.
    """
    del is_drawn
    return (
        -(job.admin_priority or 0),
        job.submit_time,
        job.job_id,
        job.partitions.index(partition.name),
    )


class Order(Protocol):
    """Makes keys, which must be of one shape and type throughout a queue."""

    def __call__(self, job: Job, partition: Partition, *, is_drawn: bool = False) -> Key:
        """`is_drawn`: as a job of a reservation that it does not name."""


def preempting_order(preemption: Preemption, order: Order) -> Order:
    """The queue's order where a QOS may preempt others: who may preempt goes first. (Higher
    partition tiers go first anyway.)
    """
    if preemption.rules.kind != BY_QOS:
        return order
    return lambda job, partition, *, is_drawn=False: (
        Rank(preemption.qos_of(job)),
        *order(job, partition, is_drawn=is_drawn),
    )


def in_order(records: list[Record]) -> list[Record]:
    """The records by their keys.

    Who may preempt whom is no order of all jobs: one that waits behind a third may have to go
    before one in front of that. What comes out then depends on how it is sorted: Slurm merges the
    halves of the list of jobs, which are in the order of their submission (recorded from 22.05.8).
    """
    if not _is_ranked(records):
        return sorted(records, key=itemgetter(0))
    plain = sorted(records, key=lambda record: record.key[1:])
    seen: list[Rank] = []
    for record in plain:
        rank = record.key[0]
        assert isinstance(rank, Rank)
        if any(rank < other for other in seen):
            return _merged(sorted(records, key=lambda record: record.job.job_id))
        if all(rank.qos is not other.qos for other in seen):
            seen.append(rank)
    return plain


def _is_ranked(records: list[Record]) -> bool:
    """Whether their order depends on who else is among them, so that it is made for each pass."""
    return bool(records) and isinstance(records[0].key[0], Rank)


def _merged(records: list[Record]) -> list[Record]:
    if len(records) < 2:
        return records
    half = len(records) // 2
    left, right = _merged(records[:half]), _merged(records[half:])
    found: list[Record] = []
    one = other = 0
    while one < len(left) and other < len(right):
        if right[other].key < left[one].key:
            found.append(right[other])
            other += 1
        else:
            found.append(left[one])
            one += 1
    return found + left[one:] + right[other:]


class PendingQueue:
    """The pending and eligible jobs of the tables in order, in one list, or (`by_partition`) in one
    list a partition.

    With `prefers` a job that prefers some nodes has two records in each partition, with
    `reservations` one for each in which it may run. Jobs that are not eligible yet join when their
    time has come. Records of jobs that are no longer pending may still be there.
    """

    def __init__(
        self,
        tables: Tables,
        order: Order,
        *,
        by_partition: bool = False,
        prefers: bool = False,
        reservations: bool = False,
    ) -> None:
        self.tables = tables
        self.order = order
        self.by_partition = by_partition
        self.prefers = prefers
        self.reservations = reservations
        self.lists: dict[str, list[Record]] = {}
        # when the next job that waits for its begin time will be eligible
        self.next_eligible: float | None = None
        self._known: set[int] = set()
        self._added = True
        self._changed = True

    def note(self, what: Note) -> None:
        """As `SchedulingPolicy.note`."""
        if what is _SUBMIT:
            self._added = True
        elif what not in _FREED or _is_ranked(self.records):
            self._changed = True

    @property
    def records(self) -> list[Record]:
        """The one list of all partitions."""
        return self.lists.get("", [])

    def in_turn(self) -> list[tuple[str, list[Record]]]:
        """The lists of partitions, that whose first job has waited longest before the others,
        whatever the order in which the lists have come about.
        """
        if len(self.lists) == 1:
            return list(self.lists.items())

        def key(name: str) -> tuple[Key, int]:
            for record in self.lists[name]:
                if record.job.is_pending:
                    return record.key, record.job.partitions.index(name)
            return (), 0

        return [(name, self.lists[name]) for name in sorted(self.lists, key=key)]

    def refresh(self, now: float) -> list[Record] | None:
        """Bring the queue up to date. The records that have been added, or None if it was built
        anew.
        """
        if self._changed or (self.next_eligible is not None and self.next_eligible <= now):
            self._changed = self._added = False
            self._known.clear()
            self.next_eligible = None
            self.lists.clear()
            for record in self._of(list(self.tables.pending.values()), now):
                self.lists.setdefault(
                    record.partition.name if self.by_partition else "", []
                ).append(record)
            for name, records in self.lists.items():
                self.lists[name] = in_order(records)
            return None
        if not self._added:
            return []
        self._added = False
        jobs = []
        for job_id in reversed(self.tables.pending):
            if job_id in self._known:
                break
            jobs.append(self.tables.pending[job_id])
        jobs.reverse()
        added = self._of(jobs, now)
        if _is_ranked(added):
            self._changed = True
            return self.refresh(now)
        for record in added:
            records = self.lists.setdefault(record.partition.name if self.by_partition else "", [])
            if not records or record.key > records[-1].key:
                records.append(record)
            else:
                insort(records, record, key=itemgetter(0))
        return added

    def records_of(self, job: Job, now: float) -> list[Record]:
        """The records of one job, in order, whether it is in the tables or not."""
        return sorted(self._of([job], now), key=itemgetter(0))

    def _of(self, jobs: list[Job], now: float) -> list[Record]:
        found: list[Record] = []
        partitions, order, known, table = (
            self.tables.partitions,
            self.order,
            self._known,
            self.tables.reservations,
        )
        for job in jobs:
            known.add(job.job_id)
            if not job.is_eligible(now):
                at = job.eligible_time
                if at is not None and at > now and job.priority > 0:
                    self.next_eligible = (
                        at if self.next_eligible is None else min(self.next_eligible, at)
                    )
                continue
            limit = inf if job.time_limit_s is None else float(job.time_limit_s)
            for name in job.partitions:
                partition = partitions.get(name)
                # Of one partition that alone makes it eligible or not.
                if partition is not None and (
                    len(job.partitions) == 1 or not limit_broken(job, partition, for_backfill=True)
                ):
                    key, cpus = order(job, partition), self._cpus(job, partition)
                    if self.reservations and (table or job.spec.reservation):
                        found += self._in_reservations(job, partition, key, limit, now)
                        continue
                    if self.prefers and job.spec.prefer:
                        found.append(Record((*key, 0), job, partition, cpus, limit, prefers=True))
                        key = (*key, 1)
                    found.append(Record(key, job, partition, cpus, limit))
        return found

    def _in_reservations(
        self, job: Job, partition: Partition, key: Key, limit: float, now: float
    ) -> list[Record]:
        """Jobs in reservations come first, once for each; those that none draws or names, as
        ever.
        """
        table = self.tables.reservations
        named = bool(job.spec.reservation)
        own = table.of(job) if named else table.magnetic_for(job, now)
        cpus = self._cpus(job, partition)
        drawn = self.order(job, partition, is_drawn=True) if own else key
        found = [
            Record((*drawn, place), job, partition, cpus, limit, reservation=reservation)
            for place, reservation in enumerate(own)
        ]
        if named:
            return found or [Record(key, job, partition, cpus, limit)]
        if self.prefers and job.spec.prefer:
            found.append(Record((*key, 0), job, partition, cpus, limit, prefers=True))
            key = (*key, 1)
        return [*found, Record(key, job, partition, cpus, limit)]

    def _cpus(self, job: Job, partition: Partition) -> int:
        """What it needs. In lists of partitions a leader stands for all components that may be
        there, which start with it.
        """
        if job.het is None or not self.by_partition:
            return job.min_cpus
        return sum(each.min_cpus for each in components(job) if partition.name in each.partitions)

    def drop_departed(self) -> None:
        """Forget records of jobs that are no longer pending."""
        for name, records in self.lists.items():
            self.lists[name] = [record for record in records if record.job.is_pending]
