"""Passes over pools in which jobs need more than processors: who starts from the head of the queue,
what is kept for the first that does not fit, and who may pass it.

Place: scheduling, pure; used by textbook policies. All that a job needs is one int
(understudy.controller.scheduling.resources), so that a look at three resources costs what a look at
one does. The steps are those of understudy.controller.scheduling.textbook.easy, which stays beside
it for pools of processors alone:

1. jobs start from the head on while all that they need is free;
2. the first that does not fit, the head, gets a promise: the shadow time, at which enough of
   everything will be free if the running jobs end at their limits; what is free then beyond its
   need is extra;
3. the others start if they fit now, and either end by the shadow time or take no more than the
   extra, which they use up.

`Style` says what of that a policy does. Where the promise counts processors alone, as in EASY that
was given burst buffers and nothing else, a head that lacks only the other resource has its shadow
now: its processors stand idle while small jobs go on taking what it waits for. With more than one
promise (a depth beyond 1) the first jobs that cannot start all get the earliest place in a profile,
in order, and the others start if they fit into what is left of it; all promises are made anew in
each pass.

A job that needs more than there is of a further resource is never considered: it waits until that
changes. So does, as ever, a job whose processors are not there, but as the head.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from understudy.controller.scheduling.profile import FOREVER, Profile
from understudy.controller.scheduling.resources import Resources
from understudy.controller.scheduling.textbook.waiting import Waiting
from understudy.controller.tables.het_job import components

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.scheduling.textbook.pools import TextbookPolicy
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition

CPU: Final = "cpu"
_MANY: Final = 40  # jobs from which on vectors are quicker than a loop
_LACKS_PROCESSORS: Final = "Resources"


class Style(NamedTuple):
    """What a policy does of it all."""

    passes: bool = True  # somebody may pass the head
    promises: bool = True  # something is kept for the head
    counts_further: bool = True  # the promise is of all resources, not of processors alone
    shortest_first: bool = False  # who may pass the head is asked by time limit
    depth: int = 1  # so many get a promise


EASY: Final = Style()


class Amounts:
    """What a pool's jobs need, hold, and have free: processors and further resources in one int."""

    def __init__(self, policy: TextbookPolicy, partition: Partition) -> None:
        self.policy, self.partition = policy, partition
        self.further = policy.further
        self.capacity = {CPU: policy.capacity(partition.nodes)} | {
            each.name: each.capacity(partition.nodes) for each in self.further
        }
        # Jobs may hold more than there is, where it has become less.
        held = {each.name: -min(each.free(partition.nodes), 0) for each in self.further}
        self.kinds = Resources(
            {name: amount + held.get(name, 0) for name, amount in self.capacity.items()}
        )
        self._needs: dict[int, tuple[int, ...]] = {}
        self._packed: dict[int, int] = {}

    def left_to_jobs(self, nodes: int) -> dict[str, int]:
        """What is free of these nodes, and of what belongs to none, when nobody runs any more."""
        found = {CPU: self.policy.capacity(nodes)}
        found.update((each.name, each.left_to_jobs(nodes)) for each in self.further)
        return found

    def free(self, nodes: int) -> int:
        """What is free there."""
        amounts = [self.policy.free_processors(nodes)]
        amounts += [max(each.free(nodes), 0) for each in self.further]
        return self.kinds.guards | self.kinds.packed(amounts)

    def need(self, record: Record) -> int:
        """What a pending job needs."""
        job_id = record.job.job_id
        packed = self._packed.get(job_id)
        if packed is None:
            amounts = [record.cpus]
            wanted = (
                [record.job] if record.job.het is None else _here(record.job, self.partition.name)
            )
            amounts += [
                sum(each.of(job, self.partition) for job in wanted) for each in self.further
            ]
            packed = self.kinds.packed(amounts)
            buffer = record.job.burst_buffer
            if buffer is None or not buffer.creates:  # which somebody else may have made by then
                self._packed[job_id] = packed
        return packed

    def further_of(self, record: Record) -> tuple[int, ...]:
        """Of each further resource what a pending job needs."""
        _, *others = self.kinds.amounts(self.need(record)).values()
        return tuple(others)

    def held(self, job: Job, nodes: int) -> int:
        """What a running job holds on these nodes, and of what belongs to none."""
        assert job.holding is not None
        self._packed.pop(job.job_id, None)
        amounts = [job.holding.cpus_on(nodes)]
        amounts += [each.held(job, nodes) for each in self.further]
        return self.kinds.packed(amounts)

    def exceeded(self, record: Record) -> str:
        """Why the job could never start, whatever is given back: a reason, or ""."""
        need, amount = self.need(record), self.kinds.amount
        return next(
            (e.reason for e in self.further if amount(need, e.name) > self.capacity[e.name]), ""
        )

    def lacking_for_good(self, record: Record, nodes: int) -> str:
        """The same of what is there now, less persistent burst buffers."""
        need, amount = self.need(record), self.kinds.amount
        return next(
            (e.reason for e in self.further if amount(need, e.name) > e.left_to_jobs(nodes)), ""
        )

    def lacking(self, need: int, free: int) -> str:
        """The reason of a job that does not fit: processors, if they are among what it lacks."""
        amount = self.kinds.amount
        if amount(need, CPU) > amount(free, CPU):
            return _LACKS_PROCESSORS
        return next(
            (e.reason for e in self.further if amount(need, e.name) > amount(free, e.name)),
            _LACKS_PROCESSORS,
        )


def _here(job: Job, partition: str) -> list[Job]:
    """Of the components that start with it those that may be in the partition."""
    return [each for each in components(job) if partition in each.partitions]


@dataclass(slots=True)
class Promise:
    """When the head will start at the latest, and what is free then beyond its need."""

    shadow: float
    extra: int


@dataclass(slots=True, eq=False)
class Pool:
    """What is kept of a partition from one pass to the next."""

    partition: Partition
    amounts: Amounts
    counted: int  # those bits of a need that a promise counts
    nodes: int = 0
    # (expected end, job id, what it holds) of running jobs, sorted
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    free: int = 0
    promise: Promise | None = None
    head: Record | None = None
    waiting: Waiting | None = None  # the queue as vectors, if it was needed

    def fits(self, need: int) -> bool:
        """Whether so much is free now."""
        guards = self.amounts.kinds.guards
        return (self.free - need) & guards == guards

    def ends_from(self, running: Iterable[int]) -> list[tuple[float, int, int]]:
        """The ends of jobs that still run, without those of jobs that do not."""
        self.ends = [entry for entry in self.ends if entry[1] in running]
        return self.ends


def _once(pool: Pool, ends: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """The same where jobs share CPUs: each comes back when the last that has it ends, so the first
    to end give back none of what is held more than once.
    """
    kinds = pool.amounts.kinds
    held = [kinds.amount(each, CPU) for _, _, each in ends]
    twice = sum(held) + kinds.amount(pool.free, CPU) - kinds.amount(kinds.totals, CPU)
    found = []
    for (end, job_id, each), cpus in zip(ends, held, strict=True):
        less = max(min(twice, cpus), 0)
        twice -= less
        found.append((end, job_id, each - kinds.need({CPU: less})))
    return found


class Backfilling:
    """Passes for a policy, in one style. The records are those of its queue."""

    def __init__(self, policy: TextbookPolicy, style: Style = EASY) -> None:
        self.policy, self.style = policy, style
        self.pools: dict[str, Pool] = {}

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """As in `TextbookPolicy`."""
        if self.policy.is_stale or not self.pools:
            self.rebuild()
            freed = True
        freed |= len(self.pools) > 1  # what one pool starts may take from another
        for pool, records, new in self.take_in(added):
            if not records:
                continue
            if new is None or freed or pool.head is None or self.style.depth > 1:
                self.open(pool)
                self.review(pool, records, second, now)
            elif new and self.style.passes:
                self._backfill(pool, records, range(len(records) - new, len(records)), second, now)

    def take_in(self, added: list[Record] | None) -> list[tuple[Pool, list[Record], int | None]]:
        """Look at what has been added to the queues. Each pool that has one in its turn, with how
        many new records are behind all others (None if some are not).
        """
        lists = self.policy.queue.lists
        new = {
            name: self._take_in(self.pools[name], records, added)
            for name, records in lists.items()
            if name in self.pools
        }
        return [
            (self.pools[name], records, new[name])
            for name, records in self.policy.queue.in_turn()
            if name in new
        ]

    def _take_in(self, pool: Pool, records: list[Record], added: list[Record] | None) -> int | None:
        """Look at what has been added to a queue, and leave out who can never start. How many new
        records are behind all others; None if some are not.
        """
        if added is None:
            pool.waiting = None
            self._leave_out(pool, records, 0)
            return None
        if not added:
            return 0
        here = [record for record in added if record.partition.name == pool.partition.name]
        if here and records[-len(here) :] != here:
            pool.waiting = None
            self._leave_out(pool, records, 0)
            return None
        first = len(records) - len(here)
        self._leave_out(pool, records, first)
        if pool.waiting is not None:
            pool.waiting.append(records[first:])
        return len(records) - first

    def _leave_out(self, pool: Pool, records: list[Record], first: int) -> None:
        for place in range(len(records) - 1, first - 1, -1):
            if reason := pool.amounts.exceeded(records[place]):
                self.policy.explain(records[place], reason)
                del records[place]

    def rebuild(self) -> None:
        """Forget everything and look at the tables."""
        tables = self.policy.tables
        self.pools = {}
        for name, partition in tables.partitions.items():
            amounts = Amounts(self.policy, partition)
            every = -1 if self.style.counts_further else amounts.kinds.need({CPU: 1 << 62})
            self.pools[name] = Pool(partition, amounts, every)
        for job in tables.running.values():
            self._enter(job)

    def _enter(self, job: Job, here: Pool | None = None) -> int:
        """A job runs: note its expected end in each pool in which it holds something. What it holds
        of the usable nodes `here`.
        """
        assert job.start_time is not None
        limit = inf if job.time_limit_s is None else job.time_limit_s
        end = job.start_time + job.pre_suspend_s + limit
        taken = 0
        for pool in self.pools.values():
            held = pool.amounts.held(job, pool.partition.nodes)
            if held:
                insort(pool.ends, (end, job.job_id, held))
            if pool is here:
                # it is on usable nodes alone
                taken = held
        return taken

    def open(self, pool: Pool) -> None:
        """See what is free now; what was promised is forgotten."""
        pool.nodes = self.policy.usable(pool.partition)
        pool.free = pool.amounts.free(pool.nodes)
        pool.promise = pool.head = None

    def review(self, pool: Pool, records: list[Record], second: int, now: float) -> None:
        """A whole pass: start from the head on, then backfill behind the first that does not
        fit.
        """
        passed = 0
        for record in records:
            if record.job.is_pending and not (
                self.start(pool, record, now) or self._waits_alone(pool, record)
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
        self.policy.explain(
            pool.head, pool.amounts.lacking(pool.amounts.need(pool.head), pool.free)
        )
        if self.style.depth > 1:
            self._plan(pool, records, second, now)
        elif self.style.passes:
            self._backfill(pool, records, range(1, len(records)), second, now)

    def start(self, pool: Pool, record: Record, now: float) -> bool:
        """Start a pending job if it fits. Whether it runs."""
        if not pool.fits(pool.amounts.need(record)):
            return False
        if not self.policy.start(record, pool.nodes, now):
            return False
        taken = sum(self._enter(job, pool) for job in components(record.job))
        if self._shares:  # some of what it took was in use before
            pool.free = pool.amounts.free(pool.nodes)
        else:
            pool.free -= taken
        return True

    def _waits_alone(self, pool: Pool, record: Record) -> bool:
        """Whether nobody waits behind the job: it `waits_alone`, or needs more of a further
        resource than there will be when all that run have ended.
        """
        reason = pool.amounts.lacking_for_good(record, pool.nodes)
        if reason:
            self.policy.explain(record, reason)
            self.policy.leave_out()
        return bool(reason) or self.policy.waits_alone(record)

    @property
    def _shares(self) -> bool:
        """Whether jobs share CPUs."""
        return any(self.policy.tables.nodes.sharing.held.values())

    # --- who may pass the head --------------------------------------------------------------------

    def _backfill(
        self, pool: Pool, records: list[Record], places: range, second: int, now: float
    ) -> None:
        """Start what does not delay the head, out of the records at `places`."""
        if not pool.amounts.kinds.amount(pool.free, CPU):
            return
        if len(records) <= _MANY:
            pool.waiting = None
            gone = self._backfill_among_few(pool, records, places, second, now)
        else:
            if pool.waiting is None:
                amounts = pool.amounts
                pool.waiting = Waiting(records, amounts.further_of, len(amounts.further))
            gone = [
                place
                for place in self._may_start(pool, records, places, second)
                if not records[place].job.is_pending
                or self._passes(pool, records[place], second, now)
            ]
            gone.sort()
            pool.waiting.drop(gone)
        for place in reversed(gone):
            del records[place]

    def _backfill_among_few(
        self, pool: Pool, records: Sequence[Record], places: range, second: int, now: float
    ) -> list[int]:
        """The places of those that are not waiting any more, ascending."""
        need_of, kinds = pool.amounts.need, pool.amounts.kinds
        guards = kinds.guards
        order: Sequence[int] = places
        if self.style.shortest_first:
            order = sorted(places, key=lambda place: records[place].limit_s)
        gone = []
        for place in order:
            record = records[place]
            if (pool.free - need_of(record)) & guards == guards:
                if self.style.promises and pool.promise is None:
                    pool.promise = self._promise(pool, second)
                if not record.job.is_pending or self._passes(pool, record, second, now):
                    gone.append(place)
            elif pool.amounts.further and record.cpus <= kinds.amount(pool.free, CPU):
                self._explain(pool, record)
        return sorted(gone)

    def _may_start(
        self, pool: Pool, records: Sequence[Record], places: range, second: int
    ) -> list[int]:
        """Those of the places whose jobs would fit now and not delay the head, in the order in
        which they are asked. With what starts only less is left.
        """
        assert pool.waiting is not None
        part = slice(places.start, places.stop)
        kinds = pool.amounts.kinds
        vectors = [vector[part] for vector in pool.waiting.amounts]
        has_processors = vectors[0] <= kinds.amount(pool.free, CPU)
        fitting = has_processors & _within(vectors[1:], list(kinds.amounts(pool.free).values())[1:])
        for place in np.flatnonzero(has_processors & ~fitting).tolist():
            self._explain(pool, records[place + places.start])
        if not fitting.any():
            return []
        limits_s = pool.waiting.limits_s[part]
        if self.style.promises:
            if pool.promise is None:
                pool.promise = self._promise(pool, second)
            extra = list(kinds.amounts(pool.promise.extra).values())
            small = _within(vectors, extra) if self.style.counts_further else vectors[0] <= extra[0]
            fitting &= (limits_s <= pool.promise.shadow - second) | small
        found = np.flatnonzero(fitting)
        if self.style.shortest_first:
            found = found[np.argsort(limits_s[found], kind="stable")]
        listed: list[int] = (found + places.start).tolist()
        return listed

    def _explain(self, pool: Pool, record: Record) -> None:
        """Say of who has processors and nothing else what it lacks."""
        if record.job.is_pending:
            need = pool.amounts.need(record)
            self.policy.explain(record, pool.amounts.lacking(need, pool.free))

    def _passes(self, pool: Pool, record: Record, second: int, now: float) -> bool:
        """Start a job that fits now, unless it delays the head. Whether it runs."""
        promise = pool.promise
        if promise is None:
            return self.start(pool, record, now)
        guards = pool.amounts.kinds.guards
        left = promise.extra - (pool.amounts.need(record) & pool.counted)
        in_time = second + record.limit_s <= promise.shadow
        if not (in_time or left & guards == guards) or not self.start(pool, record, now):
            return False
        if not in_time:
            promise.extra = left
        return True

    # --- promises ---------------------------------------------------------------------------------

    def returning(self, pool: Pool, ends: Sequence[tuple[float, int, int]]) -> int:
        """What is neither free nor held by running jobs: it is of jobs that are completing, and
        comes back now.
        """
        kinds = pool.amounts.kinds
        in_use = sum(entry[2] for entry in ends)
        if pool.free + in_use == kinds.totals:
            return 0
        held = kinds.amounts(in_use)
        free = kinds.amounts(pool.free)
        return kinds.need(
            {
                name: max(total - free[name] - held[name], 0)
                for name, total in pool.amounts.left_to_jobs(pool.nodes).items()
            }
        )

    def ends_of(self, pool: Pool) -> list[tuple[float, int, int]]:
        """(expected end, job id, what it gives back then) of who runs, sorted."""
        running = self.policy.tables.running
        ends = pool.ends_from(running)
        if pool.partition.nodes & ~pool.nodes:
            ends = [
                (end, job_id, pool.amounts.held(running[job_id], pool.nodes))
                for end, job_id, _ in ends
            ]
        if self._shares:
            return _once(pool, ends)
        return ends

    def _promise(self, pool: Pool, second: int) -> Promise:
        """The head's shadow time and what is extra."""
        assert pool.head is not None
        need = pool.amounts.need(pool.head) & pool.counted
        guards = pool.amounts.kinds.guards
        ends = self.ends_of(pool)
        returning = self.returning(pool, ends)
        available = pool.free + returning
        # A head that has all that it needs and was refused waits for somebody to end: there are
        # enough processors, but not where it can have them.
        returns_processors = pool.amounts.kinds.amount(returning, CPU)
        is_refused = not returns_processors and pool.fits(pool.amounts.need(pool.head))
        if not is_refused and (available - need) & guards == guards:
            return self._promised(pool, float(second), available - need)
        shadow = inf
        for end, _, held in ends:
            if shadow < end:
                break
            available += held
            if (available - need) & guards == guards:
                shadow = end
        if shadow == inf and (available - need) & guards != guards:
            need = 0  # it is never there: the head waits for a change, and delays nobody
        return self._promised(pool, shadow, available - need)

    def _promised(self, pool: Pool, shadow: float, extra: int) -> Promise:
        assert pool.head is not None
        self.tell(pool.head, int(shadow) if isfinite(shadow) else None)
        return Promise(shadow, extra)

    def tell(self, record: Record, start: int | None) -> None:
        """Promise a start, unless that is what was promised last; None: there is none."""
        if record.job.expected_start != start:
            self.policy.planner.promise(record.job, start, 0)

    def profile(self, pool: Pool, second: int) -> Profile:
        """What is free from now on, if the running jobs end at their limits."""
        ends = self.ends_of(pool)
        return Profile.with_ends(
            second,
            [(int(end), held, 0) for end, _, held in ends if isfinite(end)],
            pool.amounts.kinds,
            pool.free + self.returning(pool, ends),
        )

    def _plan(self, pool: Pool, records: list[Record], second: int, now: float) -> None:
        """Promise places to the first `depth` that cannot start; start who fits beside them."""
        profile = self.profile(pool, second)
        left = [record for record in records if record.job.is_pending]
        promised = 0
        while left and promised < self.style.depth:
            record = left.pop(0)
            start = self._place(pool, profile, record, second, now)
            if record.job.is_pending and not self.policy.waits_alone(record):
                promised += 1
                self.tell(record, start)
        if self.style.shortest_first:
            left.sort(key=lambda record: record.limit_s)
        for record in left:
            if pool.fits(pool.amounts.need(record)):
                self._place(pool, profile, record, second, now, only_now=True)
        records[:] = [record for record in records if record.job.is_pending]
        pool.waiting = None

    @staticmethod
    def after_refusal(profile: Profile, need: int, length: int) -> int | None:
        """The earliest place of a job that has all that it needs now and was refused, as there are
        enough processors, but not where it can have them: when somebody has ended.
        """
        return profile.earliest(need, length, profile.times[1]) if len(profile) > 1 else None

    def _place(
        self,
        pool: Pool,
        profile: Profile,
        record: Record,
        second: int,
        now: float,
        *,
        only_now: bool = False,
    ) -> int | None:
        """Start the job if it has a place now, else reserve the earliest one, unless `only_now`.
        When that is.
        """
        need = pool.amounts.need(record) & pool.counted
        length = planned_length(record)
        start = profile.earliest(need, length, second)
        runs = start == second and self.start(pool, record, now)
        if start == second and not runs and pool.fits(pool.amounts.need(record)):
            if self.policy.waits_alone(record):
                return None
            start = self.after_refusal(profile, need, length)
        if start is not None and (runs or not only_now):
            profile.reserve(start, min(start + length, FOREVER), need)
        return start


def planned_length(record: Record) -> int:
    """For how many seconds a profile has room for the job: at least one, also where its limit has
    been taken down to none.
    """
    return FOREVER if record.limit_s == inf else max(int(record.limit_s), 1)


def _within(vectors: Sequence[NDArray[np.int64]], amounts: Sequence[int]) -> NDArray[np.bool_]:
    """Where each vector is at most its amount."""
    found: NDArray[np.bool_] | bool = True
    for vector, amount in zip(vectors, amounts, strict=True):
        found = found & (vector <= amount)
    return np.asarray(found, dtype=np.bool_)
