"""What a scheduling policy is given and what it may do: the contract for plug-ins.

A policy reads the tables and asks the planner to start jobs; the planner applies, and may refuse. A policy does no I/O, never awaits, and gets the
time handed to it. Long passes yield between jobs, so that the edge can let requests in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from understudy.controller.scheduling.licenses import LicensePool
from understudy.controller.scheduling.reserved import ReservationTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from understudy.controller.job import Allocation, Job
    from understudy.controller.nodes import NodeTable
    from understudy.controller.partitions import Partition
    from understudy.controller.scheduling.preempt import Preemption


class Limits(Protocol):
    """Limits of associations and qualities of service. Each question is answered by the reason to show, "" if no limit is in the way.

    Ask nothing of it unless `enforced`.
    """

    @property
    def enforced(self) -> bool:
        """Whether there are any."""

    def before(self, job: Job, partition: Partition, now: float) -> str:
        """Whether the job may start, whatever nodes there are."""

    def by_request(self, job: Job, partition: Partition, now: float, *, whole: bool = True) -> str:
        """Whether it may have the resources that it asks for; not `whole`: no nodes could help."""

    def by_allocation(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> str:
        """Whether it may have just this."""

    def most_nodes(self, job: Job, partition: Partition) -> int | None:
        """How many nodes it may have at most."""

    def favoured_nodes(self, job: Job, partition: Partition) -> int:
        """The nodes (bitmap) that come first among those of a weight, 0 for none."""

    def keeps_no_nodes(self, job: Job, partition: Partition, *, in_plan: bool) -> bool:
        """Whether no nodes may be kept for it; `in_plan`: in backfill's plan."""


class NoLimits:
    """A cluster without accounting, or one whose AccountingStorageEnforce does not say `limits`."""

    enforced = False

    def before(self, job: Job, partition: Partition, now: float) -> str:
        del job, partition, now
        return ""

    def by_request(self, job: Job, partition: Partition, now: float, *, whole: bool = True) -> str:
        del job, partition, now, whole
        return ""

    def by_allocation(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> str:
        del job, partition, allocation, now
        return ""

    def most_nodes(self, job: Job, partition: Partition) -> int | None:
        del job, partition
        return None

    def favoured_nodes(self, job: Job, partition: Partition) -> int:
        del job, partition
        return 0

    def keeps_no_nodes(self, job: Job, partition: Partition, *, in_plan: bool) -> bool:
        del job, partition, in_plan
        return False


@dataclass(slots=True, eq=False)
class Tables:
    """The controller's tables, as a policy reads them.

    `pending` and `running` are kept by the controller: insertion-ordered, keyed by job id. A job whose resources are not yet given back
    (completing) is in neither, but its nodes are in `nodes.completing_nodes` and their resources still taken.
    """

    nodes: NodeTable
    partitions: dict[str, Partition]
    jobs: dict[int, Job] = field(default_factory=dict)
    pending: dict[int, Job] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    licenses: LicensePool = field(default_factory=LicensePool)
    limits: Limits = field(default_factory=NoLimits)
    reservations: ReservationTable = field(default_factory=ReservationTable)
    preemption: Preemption | None = None  # None: no job may preempt another
    version: int = 0  # raised with every change that could let a job start
    completing: dict[int, Job] = field(default_factory=dict)  # jobs whose resources are not all given back
    complete_wait_s: int = 0  # CompleteWait
    looked_at: Job | None = None  # the job that a pass is at: who is to blame if the pass fails

    def waits_for_cleaning(self, now: float) -> bool:
        """Whether no job may start because one ended less than CompleteWait ago whose nodes are not clean."""
        wait = self.complete_wait_s
        return bool(wait) and any(job.end_time is not None and now - job.end_time < wait for job in self.completing.values())


class Selector(Protocol):
    """Chooses nodes (`SelectType`)."""

    def select(self, job: Job, partition: Partition, usable: int, tables: Tables) -> Allocation | None:
        """The nodes and CPUs for the job out of the bitmap `usable` with what is free now, or None."""

    def could_ever_run(self, job: Job, partition: Partition, tables: Tables) -> bool:
        """Whether the partition's configured nodes could hold the job if all were up and empty."""

    def nodes_if_empty(self, job: Job, partition: Partition, tables: Tables) -> int | None:
        """The nodes (bitmap) that it would get then, or None."""

    def will_run(self, job: Job, partition: Partition, usable: int, tables: Tables, now: int, until: int | None = None) -> tuple[int, int] | None:
        """(earliest start in seconds, bitmap of nodes) if the running jobs end at their limits, or None.

        A start after `until` is of no use to who asks; None will do.
        """


class Planner(Protocol):
    """How a policy acts. The controller implements it."""

    def start(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> bool:
        """Start the job. False if the controller refuses (something changed); the tables are then as before.

        Of a job array's record, which stands for several tasks, one task is started: as a job of its own, the last in `Tables.running`; the record
        stays pending with the others, unless it was the last. For policies with `exact_limits` every task has its own record.
        """

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        """Have the victims make room for the job. Whether they have done so at once, as suspended ones do."""

    def start_together(self, plans: Sequence[tuple[Job, Partition, Allocation]], now: float) -> bool:
        """Start all components of a heterogeneous job, the leader first. False if the controller refuses one of them; then none has started."""

    def give_up(self, job: Job, now: float) -> None:
        """End a pending job that cannot be over by its deadline any more."""

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        """Record why a pending job does not start now."""

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        """Record the expected start and nodes of a pending job (None: no promise)."""


class SchedulingPolicy(Protocol):
    """A `SchedulerType`. Entry point group `understudy.schedulers`: a class called with (tables, selector, planner, parameters).

    `parameters` are SchedulerParameters split at commas, keys in lower case, "" for bare words. A policy that reads words of its own names them in
    a class attribute, `parameter_words`; words that nobody names are complained about.
    """

    name: str
    exact_limits: bool  # time limits to the second, enforced by the node daemon (textbook policies)

    def note(self, what: str, now: float) -> None:
        """Something happened. The first call, whatever it says, also marks the controller's start, from which phases are counted.

        "start"   the controller is up
        "submit"  jobs have been added at the end of `pending`, and nothing else
        "free"    resources came back: the last epilog of a job is done
        "cleaned" as "free", of a job that was ended from outside, whose nodes say so themselves: Slurm's main scheduler runs at once
        "change"  anything else that matters to a pending job: an update, a hold or release, a requeue, a pending job cancelled, a node or
                  partition changed, a time limit changed
        "met"     a dependency is met, a begin time has come: Slurm finds out when it next builds its queue, for which nobody asks
        "powered" nodes were switched off or on: the backfill scheduler sees it at its next pass, and the main one when it looks anyway
        "priority" priorities of pending jobs were calculated again; no job could start for that reason alone
        """

    def next_run(self) -> float | None:
        """When `run` should be called next (seconds of the cluster's clock), or None when there is nothing to do."""

    def run(self, now: float) -> Iterator[float | None]:
        """One pass. Yields between jobs: None, or the time at which it wants to go on."""


PolicyParameters: TypeAlias = "Mapping[str, str]"
