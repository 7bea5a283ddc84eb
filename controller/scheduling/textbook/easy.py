"""sched/easy: EASY backfilling. A job may pass the head of the queue if that does not delay the
head.

Place: scheduling, pure; a textbook policy for research (see
understudy.controller.scheduling.textbook.pools). Follows Lifka (1995) and Mu'alem and Feitelson
(2001):

1. jobs start from the head on while they fit;
2. the first that does not fit, the head, gets a promise: the shadow time, at which enough
   processors will be free if the running jobs end at their limits, jobs with the same expected end
   taken together; what is free then beyond its need is extra;
3. the others start in queue order if they fit now, and either end (by their limit) by the shadow
   time, or take no more than the extra processors, which they use up.

Where jobs may hold more than processors (understudy.controller.scheduling.textbook.further), the
same steps are taken for all of it (understudy.controller.scheduling.textbook.backfilling).

What is kept from pass to pass, because a pass a completion over a queue of hundreds is the whole
cost: the running jobs sorted by expected end, the smallest waiting job, of a long queue its sizes
as vectors, and, while nothing has come free, the promise. A job that was refused stays refused
until resources come back: time that passes only makes its expected end later, and a backfilled job
changes neither the shadow time nor (beyond what it took) the extra processors.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.scheduling.textbook.backfilling import Backfilling
from understudy.controller.scheduling.textbook.pools import TextbookPolicy
from understudy.controller.scheduling.textbook.waiting import Waiting
from understudy.controller.tables.het_job import components

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

_MANY: Final = 40  # jobs from which on vectors are quicker than a loop
_HUGE: Final = 2**62


@dataclass(slots=True)
class _Promise:
    """When the head will start at the latest, and how many processors are free then beyond its
    need.
    """

    shadow: float
    extra: int


@dataclass(slots=True, eq=False)
class _Pool:
    """What is kept of a partition from one pass to the next."""

    partition: Partition
    nodes: int = 0
    # (expected end, job id, processors) of running jobs, sorted
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    free: int = 0
    smallest: float = 0  # no waiting job behind the head needs fewer processors
    promise: _Promise | None = None
    head: Record | None = None
    waiting: Waiting | None = None  # the queue's sizes, while it is long

    def may_start(self, second: int, places: range) -> list[int]:
        """Those of the places whose jobs would fit now and not delay the head. With what starts the
        processors only become fewer.
        """
        assert self.waiting is not None
        assert self.promise is not None
        part = slice(places.start, places.stop)
        cpus, limits_s = self.waiting.cpus[part], self.waiting.limits_s[part]
        fitting = (cpus <= self.free) & (
            (limits_s <= self.promise.shadow - second) | (cpus <= self.promise.extra)
        )
        listed: list[int] = (np.flatnonzero(fitting) + places.start).tolist()
        return listed


class Easy(TextbookPolicy):
    """EASY backfilling on each partition's pool."""

    name = "easy"

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self._pools: dict[str, _Pool] = {}
        self._with_further = Backfilling(self)

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """One pass over each pool."""
        if self.further:
            self._with_further.decide(added, freed, second, now)
            return
        if self.is_stale:
            freed = True
            self._rebuild()
        freed |= len(self._pools) > 1  # what one pool starts may take from another
        for name, records in self.queue.in_turn():
            pool = self._pools.get(name)
            if pool is None or not records:
                continue
            if added is None:
                pool.smallest = 0
                pool.waiting = None
                self._review(pool, records, second, now)
                continue
            new = len(added)
            for record in added:
                pool.smallest = min(pool.smallest, record.cpus)
            is_behind = not new or (new < len(records) and records[-new:] == added)
            if pool.waiting is not None and new:
                if is_behind:
                    pool.waiting.append(added)
                else:
                    pool.waiting = None
            if freed or pool.head is None or not is_behind:
                self._review(pool, records, second, now)
            elif pool.free:
                self._backfill(pool, records, range(len(records) - new, len(records)), second, now)

    def _rebuild(self) -> None:
        """Forget everything and look at the tables."""
        self._pools = {name: _Pool(partition) for name, partition in self.tables.partitions.items()}
        for job in self.tables.running.values():
            self._enter(job)

    def _enter(self, job: Job) -> None:
        """A job runs: note its expected end in each pool in which it holds nodes."""
        assert job.holding is not None
        assert job.start_time is not None
        end = (
            inf
            if job.time_limit_s is None
            else job.start_time + job.pre_suspend_s + job.time_limit_s
        )
        for pool in self._pools.values():
            held = job.holding.cpus_on(pool.partition.nodes)
            if held:
                insort(pool.ends, (end, job.job_id, held))

    def _review(self, pool: _Pool, records: list[Record], second: int, now: float) -> None:
        """A whole pass: start from the head on, then backfill behind the first that does not
        fit.
        """
        pool.nodes = self.usable(pool.partition)
        pool.free = self.free_processors(pool.nodes)
        pool.promise = pool.head = None
        passed = 0
        for record in records:
            if record.job.is_pending and (
                record.cpus > pool.free
                or not (self._start(pool, record, now) or self.waits_alone(record))
            ):
                pool.head = record
                break
            passed += 1
        if passed:
            del records[:passed]
            if pool.waiting is not None:
                pool.waiting.drop_first(passed)
        if pool.head is None:
            return
        self.explain(pool.head, "Resources")
        if pool.free >= max(pool.smallest, 1):
            self._backfill(pool, records, range(1, len(records)), second, now)

    def _backfill(
        self, pool: _Pool, records: list[Record], places: range, second: int, now: float
    ) -> None:
        """Start what does not delay the head, out of the records at `places`."""
        if len(places) > _MANY:
            if pool.waiting is None:
                pool.waiting = Waiting(records)
            gone = self._backfill_among_many(pool, records, places, second, now)
            pool.waiting.drop(gone)
            smallest = float(
                pool.waiting.cpus[places.start : places.stop - len(gone)].min(initial=_HUGE)
            )
        else:
            gone, smallest = self._backfill_among_few(pool, records, places, second, now)
            if pool.waiting is not None:
                pool.waiting.drop(gone)
        for place in reversed(gone):
            del records[place]
        whole = places.start == 1
        pool.smallest = smallest if whole else min(pool.smallest, smallest)

    def _backfill_among_few(
        self, pool: _Pool, records: list[Record], places: range, second: int, now: float
    ) -> tuple[list[int], float]:
        """(the places of those that are not waiting any more, what the smallest of the others needs
        at the least).
        """
        gone: list[int] = []
        free = pool.free
        smallest = inf
        for place in places:
            record = records[place]
            need = record.cpus
            if need <= free and self._passes(pool, record, second, now):
                gone.append(place)
                free = pool.free
                if not free:
                    return gone, 0
            elif need < smallest:
                smallest = need
        return gone, smallest

    def _backfill_among_many(
        self, pool: _Pool, records: list[Record], places: range, second: int, now: float
    ) -> list[int]:
        """The places of those that are not waiting any more."""
        assert pool.waiting is not None
        if pool.promise is None:
            if int(pool.waiting.cpus[places.start : places.stop].min()) > pool.free:
                return []
            pool.promise = self._promise(pool, second)
        return [
            place
            for place in pool.may_start(second, places)
            if records[place].cpus <= pool.free and self._passes(pool, records[place], second, now)
        ]

    def _passes(self, pool: _Pool, record: Record, second: int, now: float) -> bool:
        """Start a job that fits now, unless it delays the head. Whether it does not wait any
        more.
        """
        promise = pool.promise
        if promise is None:
            promise = pool.promise = self._promise(pool, second)
        in_time = second + record.limit_s <= promise.shadow
        if not in_time and record.cpus > promise.extra:
            return False
        if not record.job.is_pending:
            return True
        if not self._start(pool, record, now):
            return False
        if not in_time:
            promise.extra -= record.cpus
        return True

    def _start(self, pool: _Pool, record: Record, now: float) -> bool:
        taken = self.start(record, pool.nodes, now)
        if not taken:
            return False
        pool.free -= taken
        for job in components(record.job):
            self._enter(job)
        return True

    def _promise(self, pool: _Pool, second: int) -> _Promise:
        """The head's shadow time and the extra processors."""
        assert pool.head is not None
        need, running = pool.head.cpus, self.tables.running
        closed = pool.partition.nodes & ~pool.nodes
        held = 0
        ends: list[tuple[float, int, int]] = []
        for entry in pool.ends:
            if entry[1] in running:
                ends.append(entry)
                held += entry[2]
        pool.ends = ends
        available = pool.free
        # What is neither free nor held by running jobs belongs to jobs that are completing; it
        # comes back now.
        capacity = self.capacity(pool.nodes)
        if closed:
            ends = [
                (end, job_id, self._on_open_nodes(job_id, pool.nodes)) for end, job_id, _ in ends
            ]
            held = sum(entry[2] for entry in ends)
        completing = capacity - available - held
        if completing > 0:
            available += completing
            if available >= need:
                return self._promised(pool, float(second), available - need)
        shadow = inf
        for end, _, processors in ends:
            if available >= need and end > shadow:
                break
            available += processors
            if available >= need:
                shadow = end
        return self._promised(pool, shadow, available - need)

    def _promised(self, pool: _Pool, shadow: float, extra: int) -> _Promise:
        assert pool.head is not None
        head = pool.head.job
        start = int(shadow) if isfinite(shadow) else None
        if head.expected_start != start:
            self.planner.promise(head, start, 0)
        return _Promise(shadow, extra)

    def _on_open_nodes(self, job_id: int, nodes: int) -> int:
        allocation = self.tables.running[job_id].holding
        return 0 if allocation is None else allocation.cpus_on(nodes)
