"""Where backfill looks at the components of heterogeneous jobs: bf_hetjob_prio.

Place: scheduling, pure. Follows slurm.conf(5) SchedulerParameters bf_hetjob_prio and
bf_hetjob_immediate; which components and partitions count, and how, was seen of 22.05.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.scheduling.slurm.queue import Rank, in_order
from understudy.controller.tables.het_job import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.controller.scheduling.api import PolicyParameters
    from understudy.controller.scheduling.slurm.queue import Key, Record
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition

    Combine = Callable[[list[int]], int]


def _average(values: list[int]) -> int:
    return sum(values) // len(values)


_COMBINE: Final[Mapping[str, Combine]] = {"min": min, "avg": _average, "max": max}


def combine_of(parameters: PolicyParameters) -> Combine | None:
    """How the components' tiers and priorities are made one; None: each has its own place."""
    chosen = _COMBINE.get(parameters.get("bf_hetjob_prio", "").lower())
    return min if chosen is None and "bf_hetjob_immediate" in parameters else chosen


def side_by_side(
    records: list[Record], partitions: Mapping[str, Partition], combine: Combine
) -> list[Record]:
    """The records anew in order, those of one heterogeneous job next to each other.

    All its components count, also those that are not in the queue: the tier of each partition of
    each, and the priority of each, or those that it has in its partitions. If one is in a
    reservation, all are looked at as such.
    """
    if all(record.job.het is None for record in records):
        return records
    places: dict[int, Key] = {}
    found = []
    for record in records:
        het = record.job.het
        if het is None or not record.job.is_pending:
            found.append(record)
            continue
        place = places.get(het.job_id)
        if place is None:
            place = places[het.job_id] = _place(whole(record.job), partitions, combine)
        at = int(isinstance(record.key[0], Rank))  # who may preempt others goes first
        outside = record.key[at]
        if any(each.spec.reservation for each in whole(record.job)):
            outside = -1
        found.append(record._replace(key=(*record.key[:at], outside, *place, *record.key[at:])))
    return in_order(found)


def _place(parts: list[Job], partitions: Mapping[str, Partition], combine: Combine) -> Key:
    """What a key has between who is in a reservation and what tells components apart."""
    tiers = [
        partitions[name].priority_tier
        for job in parts
        for name in job.partitions
        if name in partitions
    ]
    priorities = [each for job in parts for each in _priorities(job)]
    leader = parts[0]
    return (-combine(tiers), -combine(priorities), leader.submit_time, leader.job_id)


def _priorities(job: Job) -> list[int]:
    by_partition = job.partition_priorities
    if by_partition is None or not job.priority or job.admin_priority is not None:
        return [job.priority]
    return [by_partition.get(name, job.priority) for name in job.partitions]
