"""Jobs that preempt each other for ever, as in Slurm: what a fuzzed schedule may end with.

For who may preempt whom by QOS is no order of all jobs: one may be before others that are, one
after the other, before one which may preempt the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from understudy.controller.enforcement.reasons import is_limit
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.tables.licenses import read_licenses
from understudy.controller.tables.partition import limit_broken
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.scheduling.slurm.queue import Key
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition


class Circle:
    """Jobs that were requeued again and again, and those that may have done it.

    Others start in the place that such a job has taken: where it keeps no nodes for itself
    (bf_min_prio_reserve, bf_min_age_reserve), where it is behind them in the queue, where
    backfill alone would start it (--time-min within a MaxTime that --time is above), where its
    partition is closed by then (assoc_limit_stop), where so many of its partition are tried first
    that it is not (partition_job_depth), where those ahead of it plan nothing as
    long as such a job runs, since the nodes are its user's (ExclusiveUser), it has the licences
    that they wait for, or a limit is met, or where they are
    shorter or smaller: a heterogeneous job that never starts is promised the nodes at once, again
    and again, whom it holds up is promised them soon, and what ends before, or does with those that
    are left, may start.
    """

    def __init__(self, core: Core, now: float, busy: list[Job], within_s: float) -> None:
        """`busy` were requeued; who took a place within so many seconds counts."""
        assert isinstance(core.policy, Builtin)
        assert core.tables.preemption is not None
        self._policy, self._preemption = core.policy, core.tables.preemption
        self._partitions = core.tables.partitions
        self._now, self._within_s = now, within_s
        self._busy = busy
        pending = core.tables.pending.values()
        self._pending = [job for job in pending if job.priority and job not in busy]

    def closes(self) -> bool:
        """Whether each of the jobs will be preempted for ever, by jobs that never start, or that
        start elsewhere, as the main pass does not come to them where they preempt.
        """
        return all(
            any(self._takes(taker, job) for taker in self._pending)
            or any(self._starts_elsewhere(taker, job) for taker in self._busy)
            for job in self._busy
        )

    def _starts_elsewhere(self, taker: Job, other: Job) -> bool:
        """Whether the taker preempts in a partition of which others are tried before it in vain
        (partition_job_depth), and starts in another, where it is preempted.
        """
        return self._has_tried(taker) and any(
            self._may_preempt(taker, where, other) and self._is_left_out(way, where)
            for way, where in self._records(taker)
        )

    def _records(self, job: Job) -> list[tuple[Key, Partition]]:
        each = [self._partitions[name] for name in job.partitions]
        return [(self._policy.queue.order(job, partition), partition) for partition in each]

    def _takes(self, taker: Job, other: Job) -> bool:
        if not self._has_tried(taker):
            return False
        ways = [
            (key, where)
            for key, where in self._records(taker)
            if self._may_preempt(taker, where, other)
        ]
        return bool(ways) and (
            not self._policy.main.reserves.holds_back(taker, int(self._now))
            or any(limit_broken(taker, where) for _, where in ways)
            or any(
                own < way or self._leads(own, way)
                for way, _ in ways
                for own, _ in self._records(other)
            )
            or any(self._is_stopped(way, where, other) for way, where in ways)
            or any(self._is_left_out(way, where) for way, where in ways)
            or any(self._keeps_out(other, way) for way, _ in ways)
            or any(self._fits_around(taker, other, way) for way, _ in ways)
        )

    def _may_preempt(self, taker: Job, where: Partition, other: Job) -> bool:
        """Whether it may in one of the partitions in which the other may run."""
        return any(
            self._preemption.may_preempt(taker, where, replace(other, partition=name))
            for name in other.partitions
        )

    def _has_tried(self, taker: Job) -> bool:
        """Whether it has preempted somebody lately."""
        since = taker.preempting_since
        return since is not None and self._now - since <= self._within_s

    def _leads(self, first: Key, last: Key) -> bool:
        """Whether one is before another that is before another ... that is before the last."""
        left = [key for job in (*self._pending, *self._busy) for key, _ in self._records(job)]
        ahead = [first]
        while ahead:
            key = ahead.pop()
            if key < last:
                return True
            ahead += [other for other in left if key < other]
            left = [other for other in left if not key < other]
        return False

    def _is_stopped(self, way: Key, where: Partition, other: Job) -> bool:
        """Whether the partition is closed to all behind a job that meets a limit as soon as
        the other has given back its licences (assoc_limit_stop): while the other runs, that
        job is passed over.
        """
        held = _licenses(other)
        return self._policy.main.stops_at_limits and any(
            third < way and partition is where and is_limit(job.reason) and held & _licenses(job)
            for job in self._pending
            for third, partition in self._records(job)
        )

    def _is_left_out(self, way: Key, where: Partition) -> bool:
        """Whether the main pass ends with those of the partition that are ahead."""
        depth = self._policy.main.partition_depth
        ahead = sum(
            third < way and partition is where
            for job in self._pending
            for third, partition in self._records(job)
        )
        return 0 < depth <= ahead

    def _keeps_out(self, other: Job, way: Key) -> bool:
        """Whether backfill plans nothing for one ahead while the other runs: the nodes are its
        user's, licences are all in use, or a limit is met.
        """
        held = _licenses(other)
        is_owner = other.allocation is not None and other.allocation.owned
        return any(
            third < way
            and (
                (is_owner and job.user_id != other.user_id)
                or held & _licenses(job)
                or is_limit(job.reason)
            )
            for job in self._pending
            for third, _ in self._records(job)
        )

    def _fits_around(self, taker: Job, other: Job, way: Key) -> bool:
        """Whether the other is shorter or smaller, and a heterogeneous job ahead of the taker never
        starts.
        """
        is_less = (
            (other.time_limit_s or YEAR) < (taker.time_limit_s or YEAR)
            or other.min_nodes < taker.min_nodes
            or other.min_cpus < taker.min_cpus
        )
        return is_less and any(
            third < way
            for job in self._pending
            if job.het is not None
            for third, _ in self._records(job)
        )


def _licenses(job: Job) -> set[str]:
    text = job.spec.licenses
    return {name for name, _ in read_licenses(text)} if text else set()
