"""What the textbook policies share: instants of one second, and pools of identical processors.

Place: scheduling, pure; research policies that decide as papers do, not as Slurm does.

Textbooks know instants: at one instant all completions come first, then all submissions, then one
pass decides. In a cluster of daemons a completion takes several messages, a millisecond each, until
the resources are free. So the instant here is a second: all that arrives within second s belongs to
it, the pass runs at s + 0.5, and the jobs that it starts have the start time s. Time limits are
enforced by the second. What arrives in the second half of a second, after the pass, is part of the
next instant.

A pool is a partition: as many processors as its usable nodes have CPUs. Partitions that overlap are
pools of their own that share what is free, as all share licences; a pass asks the pool first whose
first job has waited longest (`PendingQueue.in_turn`). What jobs hold beside processors is counted
by understudy.controller.scheduling.textbook.further.
"""

from __future__ import annotations

from abc import abstractmethod
from math import floor, inf
from typing import TYPE_CHECKING, ClassVar, Final

from understudy.controller.enforcement.reasons import is_limit
from understudy.controller.scheduling.api import Ask, Note, SchedulingPolicy
from understudy.controller.scheduling.slurm.queue import PendingQueue, first_come_order
from understudy.controller.scheduling.textbook.further import KEY, further_resources, named_kinds
from understudy.controller.tables.het_job import components
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.scheduling.textbook.further import Further
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

_SUBMIT = Note.SUBMIT
# the order is that of submission; and with one node daemon for a job none of its nodes is free
# before the others
_UNHEEDED: Final = (Note.PRIORITY, Note.PARTLY_FREE)
_KNOWN: Final = (Note.SUBMIT, Note.FREE, Note.CLEANED)  # of these it is seen what has changed
PASS_OFFSET_S = 0.5  # ours: whatever comes within a second is one instant


class TextbookPolicy(SchedulingPolicy):
    """Passes at every second in which something happened; one queue a pool."""

    exact_limits = True
    parameter_words: ClassVar[tuple[str, ...]] = (KEY,)

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self.queue = PendingQueue(tables, first_come_order, by_partition=True)
        self.must_review = True  # something other than submissions happened since the last pass
        # during a pass: something may be other than what a policy has kept of the tables
        self.is_stale = self._will_be_stale = True
        # what is counted beside processors
        self.further = self._what_counts(parameters)
        self._started = 0  # in this pass
        # whom the controller has not let start last, though there were nodes for it
        self._refused: Job | None = None
        self._due: float | None = None
        self.last_pass = -inf

    def _what_counts(self, parameters: PolicyParameters) -> tuple[Further, ...]:
        consumes_memory = self.selector.consumes_memory
        return further_resources(self.tables, parameters, consumes_memory=consumes_memory)

    def note(self, what: Note, now: float) -> None:
        """As in `SchedulingPolicy`."""
        if what in _UNHEEDED:
            return
        self.queue.note(what)
        self.must_review |= what is not _SUBMIT
        self._will_be_stale |= what not in _KNOWN
        due = floor(now) + PASS_OFFSET_S
        if due < now or due <= self.last_pass:
            due += 1
        if self._due is None or due < self._due:
            self._due = due

    @classmethod
    def check_parameters(cls, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        named_kinds(parameters)

    @classmethod
    def check_cluster(cls, tables: Tables, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        further_resources(tables, parameters)

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`.

        Raises:
            ConfigError: a word cannot be read; nothing is changed then.
        """
        self._what_counts(parameters)
        super().reconfigure(parameters)

    def next_run(self) -> float | None:
        """The middle of the second in which something happened, or in which a job's begin time
        comes.
        """
        begin = self.queue.next_eligible
        if begin is None:
            return self._due
        at = floor(begin) + PASS_OFFSET_S + (1 if begin % 1 > PASS_OFFSET_S else 0)
        return at if self._due is None else min(at, self._due)

    def run(self, now: float) -> Iterator[float | None]:
        """One pass: an instant, which nothing may interrupt unless `decide` lets it."""
        self._due, self.last_pass = None, now
        self.is_stale, self._will_be_stale = self._will_be_stale, False
        if self.is_stale:
            self.further = self._what_counts(self.parameters)
        added = self.queue.refresh(now)
        waiting = sum(map(len, self.queue.lists.values()))
        self._started = 0
        freed, self.must_review = self.must_review, False
        yield from self.decide(added, freed or added is None, floor(now), now) or ()
        for records in self.queue.lists.values() if added is None else (added,):
            for record in records:
                if record.job.reason == "None" and record.job.is_pending:
                    self.planner.explain(record.job, "Priority")
        self.main_cycles.ran(waiting, self._started, now)
        yield None

    @abstractmethod
    def decide(
        self, added: list[Record] | None, freed: bool, second: int, now: float
    ) -> Iterator[None] | None:
        """Start what is to be started in this second: at once, or by an iterator that lets others
        have their turn with each None.

        `added`: the new records; None if any may be new. `freed`: something else than submissions
        has happened since the last pass.
        """

    # --- for policies -----------------------------------------------------------------------------

    def usable(self, partition: Partition) -> int:
        """The nodes of the pool (a bitmap)."""
        return partition.nodes & self.tables.nodes.up_nodes if partition.can_schedule else 0

    def free_processors(self, nodes: int) -> int:
        """Free CPUs on the nodes."""
        table = self.tables.nodes
        return table.free_cpus_on(
            nodeset.without(nodes, table.exclusive_nodes | table.completing_nodes)
        )

    def capacity(self, nodes: int) -> int:
        """All CPUs of the nodes."""
        table = self.tables.nodes
        kind = table.kind_of(nodes)
        return (
            nodes.bit_count() * kind.cpus
            if kind is not None
            else int(table.cpus[nodeset.to_flags(nodes, len(table.nodes))].sum())
        )

    def explain(self, record: Record, reason: str) -> None:
        """Record why a pending job waits, unless that is known."""
        if record.job.reason != reason:
            self.planner.explain(record.job, reason)

    def start(self, record: Record, nodes: int, now: float) -> int:
        """Choose nodes and start the job, a leader with all its components. How many processors
        were taken there; 0 if it is not pending any more, is another component than the leader, or
        the selector or the controller refuses.
        """
        job = record.job
        self._refused = None
        if not job.is_pending or job.het_offset:
            return 0
        if job.het is not None:
            return self._start_components(record, nodes, now)
        self.tables.looked_at = job
        ask = record.ask(nodes & ~self.tables.nodes.completing_nodes)
        allocation = self.selector.select(ask, self.tables)
        if allocation is None:
            return 0
        if not self.planner.start(ask, allocation, now):
            self._refused = job
            return 0
        self._started += 1
        return allocation.cpus

    def is_kept(self, record: Record) -> bool:
        """Whether the controller has just refused to start the job for what no other job may give
        back: a limit keeps it, or a persistent buffer that nobody has made.
        """
        buffers = self.tables.burst_buffers
        return self._refused is record.job and any(
            is_limit(job.reason) or buffers.lacks_persistent(job) for job in components(record.job)
        )

    def waits_alone(self, record: Record) -> bool:
        """Whether nobody waits behind the job, as it `is_kept`: it is left out of the queue until
        the next pass.
        """
        alone = self.is_kept(record)
        if alone:
            self.leave_out()
        return alone

    def leave_out(self) -> None:
        """Somebody is taken out of the queue, and back with the next pass."""
        self.queue.note(Note.CHANGE)

    def _start_components(self, record: Record, nodes: int, now: float) -> int:
        """All components of a heterogeneous job, on nodes of their own."""
        taken, plans = 0, []
        for job in components(record.job):
            self.tables.looked_at = job
            for name in job.partitions:
                partition = self.tables.partitions[name]
                usable = self.usable(partition) & ~self.tables.nodes.completing_nodes & ~taken
                ask = Ask(job, partition, usable)
                allocation = self.selector.select(ask, self.tables)
                if allocation is not None:
                    break
            else:
                return 0
            plans.append((ask, allocation))
            taken |= allocation.nodes
        if not self.planner.start_together(plans, now):
            self._refused = record.job
            return 0
        self._started += len(plans)
        return sum(allocation.cpus_on(nodes) for _, allocation in plans)
