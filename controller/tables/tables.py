"""The controller's tables together, as policies read them, and the limits that stand beside them.

Place: tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from understudy.controller.rhythm import Rhythm
from understudy.controller.tables.burst_buffers import BurstBuffers
from understudy.controller.tables.licenses import LicensePool
from understudy.controller.tables.reservation import ReservationTable

if TYPE_CHECKING:
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.preemption import Preemption


class Limits(Protocol):
    """Limits of associations and qualities of service. Each question is answered by the reason to
    show, "" if no limit is in the way.

    Ask nothing of it unless `enforced`.
    """

    @property
    def enforced(self) -> bool:
        """Whether there are any."""

    def before(self, job: Job, partition: Partition, now: float) -> str:
        """Whether the job may start, whatever nodes there are."""

    def by_request(self, job: Job, partition: Partition, now: float, *, whole: bool = True) -> str:
        """Whether it may have the resources that it asks for; not `whole`: no nodes could help."""

    def by_allocation(
        self, job: Job, partition: Partition, allocation: Allocation, now: float
    ) -> str:
        """Whether it may have just this."""

    def most_nodes(self, job: Job, partition: Partition) -> int | None:
        """How many nodes it may have at most."""

    def favoured_nodes(self, job: Job, partition: Partition) -> int:
        """The nodes (bitmap) that come first among those of a weight, 0 for none."""

    def keeps_no_nodes(self, job: Job, partition: Partition) -> bool:
        """Whether no nodes may be kept for it."""


class NoLimits:
    """A cluster without accounting, or one whose AccountingStorageEnforce does not say `limits`."""

    enforced = False

    def before(self, job: Job, partition: Partition, now: float) -> str:
        del job, partition, now
        return ""

    def by_request(self, job: Job, partition: Partition, now: float, *, whole: bool = True) -> str:
        del job, partition, now, whole
        return ""

    def by_allocation(
        self, job: Job, partition: Partition, allocation: Allocation, now: float
    ) -> str:
        del job, partition, allocation, now
        return ""

    def most_nodes(self, job: Job, partition: Partition) -> int | None:
        del job, partition
        return None

    def favoured_nodes(self, job: Job, partition: Partition) -> int:
        del job, partition
        return 0

    def keeps_no_nodes(self, job: Job, partition: Partition) -> bool:
        del job, partition
        return False


@dataclass(slots=True, eq=False)
class Tables:
    """The controller's tables, as a policy reads them.

    `pending` and `running` are kept by the controller: insertion-ordered, keyed by job id. A job
    whose resources are not yet given back (completing) is in neither, but its nodes are in
    `nodes.completing_nodes` and their resources still taken.
    """

    nodes: NodeTable
    partitions: dict[str, Partition]
    jobs: dict[int, Job] = field(default_factory=dict)
    pending: dict[int, Job] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    licenses: LicensePool = field(default_factory=LicensePool)
    burst_buffers: BurstBuffers = field(default_factory=BurstBuffers)
    limits: Limits = field(default_factory=NoLimits)
    # QOS whose jobs have no place in backfill's plan (NoReserve), whatever is enforced
    unreserving_qos: frozenset[str] = frozenset()
    reservations: ReservationTable = field(default_factory=ReservationTable)
    rhythm: Rhythm = field(default_factory=lambda: Rhythm(0.0))  # of the controller's loop
    preemption: Preemption | None = None  # None: no job may preempt another
    version: int = 0  # raised with every change that could let a job start
    # raised with those of them that may be about more than jobs that wait: plans of when running
    # jobs give back what they hold are good until then
    held_version: int = 0
    # jobs whose resources are not all given back
    completing: dict[int, Job] = field(default_factory=dict)
    complete_wait_s: int = 0  # CompleteWait
    looked_at: Job | None = None  # the job that a pass is at: who is to blame if the pass fails

    def waits_for_cleaning(self, now: float) -> bool:
        """Whether no job may start because one ended less than CompleteWait ago whose nodes are not
        clean.
        """
        wait = self.complete_wait_s
        return bool(wait) and any(
            job.end_time is not None and now - job.end_time < wait
            for job in self.completing.values()
        )
