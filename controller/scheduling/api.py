"""What a scheduling policy is given and what it may do: the contract for plug-ins.

A policy reads the tables and asks the planner to start jobs; the planner applies, and may refuse. A
policy does no I/O, never awaits, and gets the time handed to it. Long passes yield between jobs, so
that the edge can let requests in.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables


class Note(StrEnum):
    """What has happened, as a policy is told of it."""

    START = "start"  # the controller is up
    SUBMIT = "submit"  # jobs have been added at the end of `pending`, and nothing else
    FREE = "free"  # resources came back: the last epilog of a job is done
    # the same of a job that was ended from outside, whose nodes say so themselves: Slurm's main
    # scheduler runs at once
    CLEANED = "cleaned"
    # anything else that matters to a pending job: an update, a hold or release, a requeue, a
    # pending job cancelled, a node or partition changed, a time limit changed
    CHANGE = "change"
    # a dependency is met, a begin time has come: Slurm finds out when it next builds its queue, for
    # which nobody asks
    MET = "met"
    # nodes were switched off or on: the backfill scheduler sees it at its next pass, and the main
    # one when it looks anyway
    POWERED = "powered"
    # priorities of pending jobs were calculated again; no job could start for that reason alone
    PRIORITY = "priority"
    # jobs that share cores have changed places: nobody else's have come free
    TURN = "turn"


class Selector(Protocol):
    """Chooses nodes (`SelectType`)."""

    def select(
        self, job: Job, partition: Partition, usable: int, tables: Tables
    ) -> Allocation | None:
        """The nodes and CPUs for the job out of the bitmap `usable` with what is free now, or
        None.
        """

    def could_ever_run(self, job: Job, partition: Partition, tables: Tables) -> bool:
        """Whether the partition's configured nodes could hold the job if all were up and empty."""

    def nodes_if_empty(self, job: Job, partition: Partition, tables: Tables) -> int | None:
        """The nodes (bitmap) that it would get then, or None."""

    def will_run(
        self,
        job: Job,
        partition: Partition,
        usable: int,
        tables: Tables,
        now: int,
        until: int | None = None,
    ) -> tuple[int, int] | None:
        """(earliest start in seconds, bitmap of nodes) if the running jobs end at their limits, or
        None.

        A start after `until` is of no use to who asks; None will do.
        """


class Planner(Protocol):
    """How a policy acts. The controller implements it."""

    def start(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> bool:
        """Start the job. False if the controller refuses (something changed); the tables are then
        as before.

        Of a job array's record, which stands for several tasks, one task is started: as a job of
        its own, the last in `Tables.running`; the record stays pending with the others, unless it
        was the last. For policies with `exact_limits` every task has its own record.
        """

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        """Have the victims make room for the job. Whether they have done so at once, as suspended
        ones do.
        """

    def start_together(
        self, plans: Sequence[tuple[Job, Partition, Allocation]], now: float
    ) -> bool:
        """Start all components of a heterogeneous job, the leader first. False if the controller
        refuses one of them; then none has started.
        """

    def give_up(self, job: Job, now: float) -> None:
        """End a pending job that cannot be over by its deadline any more."""

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        """Record why a pending job does not start now."""

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        """Record the expected start and nodes of a pending job (None: no promise)."""


class SchedulingPolicy(Protocol):
    """A `SchedulerType`. Entry point group `understudy.schedulers`: a class called with (tables,
    selector, planner, parameters).

    `parameters` are SchedulerParameters split at commas, keys in lower case, "" for bare words. A
    policy that reads words of its own names them in a class attribute, `parameter_words`; words
    that nobody names are complained about.
    """

    name: str
    exact_limits: bool  # time limits to the second, enforced by the node daemon (textbook policies)

    def note(self, what: Note, now: float) -> None:
        """Something happened. The first call, whatever it says, also marks the controller's start,
        from which phases are counted.
        """

    def next_run(self) -> float | None:
        """When `run` should be called next (seconds of the cluster's clock), or None when there is
        nothing to do.
        """

    def run(self, now: float) -> Iterator[float | None]:
        """One pass. Yields between jobs: None, or the time at which it wants to go on."""


PolicyParameters: TypeAlias = "Mapping[str, str]"
