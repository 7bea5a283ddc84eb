"""Preemption: which running jobs a pending one may push aside, and which of them it takes.

Place: scheduling, pure. It names victims; the planner ends, requeues or suspends them. Follows: slurm.conf(5) PreemptType, PreemptMode,
PreemptExemptTime, SchedulerParameters preempt_*; sacctmgr(1) Preempt, PreemptMode, PreemptExemptTime, GraceTime.

Candidates are sorted by importance, the least important and smallest first, and taken away one by one until the job fits. Then they are sorted
anew by how much they were of use, and it is tried again, so that a few big jobs are taken in place of many small ones. In the end only jobs on
the chosen nodes are hit. What jobs hold that are completing counts as free already: who waits for them takes nobody else.

Where jobs of higher partitions suspend others (PreemptMode=SUSPEND,GANG), they look for cores that nobody has, not even a job that stands still, and
then for those that jobs of lower partitions have. Who has one of the cores that they get makes room when they start (understudy.controller.gang).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.controller.scheduling.free import StateWithout
from understudy.controller.scheduling.parameters import number
from understudy.controller.scheduling.selection import ChoosingSelector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from understudy.controller.job import Allocation, Job
    from understudy.controller.partitions import Partition
    from understudy.controller.scheduling.api import PolicyParameters, Selector, Tables
    from understudy.controller.scheduling.queue import Order
    from understudy.model.qos import Qos

OFF: Final = "OFF"
CANCEL: Final = "CANCEL"
REQUEUE: Final = "REQUEUE"
SUSPEND: Final = "SUSPEND"
BY_PARTITION: Final = "partition_prio"
BY_QOS: Final = "qos"


@dataclass(frozen=True, slots=True)
class Rules:
    """What slurm.conf says of preemption. `kind`: BY_PARTITION, BY_QOS, or "" for none."""

    kind: str = ""
    mode: str = OFF
    within: bool = False  # jobs of one QOS preempt each other
    gang: bool = False
    exempt_s: int = 0

    @classmethod
    def read(cls, preempt_type: str, preempt_mode: str, exempt_s: int | None) -> Rules:
        """From PreemptType, PreemptMode and PreemptExemptTime."""
        kind = preempt_type.strip().lower().rpartition("/")[2]
        mode, within, gang = read_mode(preempt_mode)
        return cls(kind if kind in (BY_PARTITION, BY_QOS) else "", mode or OFF, within, gang, max(exempt_s or 0, 0))


def read_mode(text: str) -> tuple[str, bool, bool]:
    """(OFF, CANCEL, REQUEUE, SUSPEND or "", whether WITHIN is among the words, whether GANG is)."""
    words = {word.strip().upper() for word in text.split(",")}
    mode = next((each for each in (SUSPEND, REQUEUE, CANCEL, OFF) if each in words), "")
    return mode, "WITHIN" in words, "GANG" in words


class Preemption:
    """The rules, applied to the tables."""

    def __init__(self, tables: Tables, rules: Rules, parameters: PolicyParameters, qos_of: Callable[[Job], Qos | None]) -> None:
        self.tables, self.rules, self._qos_of = tables, rules, qos_of
        self._youngest_first = "preempt_youngest_first" in parameters
        self._strict_order = "preempt_strict_order" in parameters
        self.spared_until: int | None = None  # when the first job may be preempted that the last pass had to spare
        self._reorders = number(parameters, "preempt_reorder_count", 1)

    @property
    def is_on(self) -> bool:
        return bool(self.rules.kind)

    # --- who may preempt whom, and how ----------------------------------------------------------------------------------------

    def goes_before(self, one: Job, other: Job) -> bool:
        """Whether the first job's QOS may preempt the other's."""
        qos, against = self._qos_of(one), self._qos_of(other)
        return qos is not None and against is not None and against.name in qos.preempt

    def may_preempt(self, job: Job, partition: Partition, victim: Job) -> bool:
        """Whether the rules let a pending job, in this partition, preempt one that runs."""
        if self.rules.kind == BY_PARTITION:
            where = self.tables.partitions.get(victim.partition)
            return where is not None and where.priority_tier < partition.priority_tier and self.mode_of(victim) != OFF
        qos, against = self._qos_of(job), self._qos_of(victim)
        if qos is None or against is None:
            return False
        if qos.name == against.name:
            within = self.rules.within or read_mode(against.preempt_mode)[1]
            return within and job.priority > victim.priority
        return against.name in qos.preempt and self.mode_of(victim) != OFF

    def mode_of(self, victim: Job) -> str:
        """What happens to the job when it is preempted."""
        if self.rules.kind == BY_PARTITION:
            where = self.tables.partitions.get(victim.partition)
            own = where.preempt_mode if where is not None else ""
        else:
            qos = self._qos_of(victim)
            own = qos.preempt_mode if qos is not None else ""
            if read_mode(own)[0] == OFF:
                own = ""
        return read_mode(own)[0] or self.rules.mode

    def grace_s(self, victim: Job) -> int:
        """How long the job may go on after it has been chosen."""
        if self.rules.kind == BY_QOS:
            qos = self._qos_of(victim)
            return qos.grace_time_s if qos is not None else 0
        where = self.tables.partitions.get(victim.partition)
        return where.grace_time_s if where is not None else 0

    def exempt_s(self, victim: Job) -> int:
        """How long the job runs before anybody may preempt it."""
        qos = self._qos_of(victim)
        own = qos.preempt_exempt_time_s if qos is not None else None
        return self.rules.exempt_s if own is None else max(own, 0)

    def importance(self, job: Job) -> int:
        """Of two candidates the one with less goes first."""
        if self.rules.kind == BY_QOS:
            qos = self._qos_of(job)
            return qos.priority if qos is not None else 0
        where = self.tables.partitions.get(job.partition)
        return where.priority_tier if where is not None else 0

    @property
    def pushes_aside(self) -> bool:
        """Whether jobs of higher partitions take the cores of lower ones as if they were free: who is in their way makes room once they start.

        So where PreemptMode says SUSPEND, and where it says GANG and a partition has a PreemptMode=SUSPEND of its own.
        """
        if self.rules.kind != BY_PARTITION:
            return False
        if self.rules.mode == SUSPEND:
            return True
        return self.rules.gang and any(read_mode(each.preempt_mode)[0] == SUSPEND for each in self.tables.partitions.values())

    def may_push_aside(self, partition: Partition, other: Job) -> bool:
        """Whether one of that partition may have the other job's cores; it stands still, or goes, when that one starts."""
        where = self.tables.partitions.get(other.partition)
        if where is None or where.priority_tier >= partition.priority_tier or other.allocation is None or not other.allocation.overlaid:
            return False
        return self.mode_of(other) != OFF if self.rules.mode == SUSPEND else self.suspends(other)

    def loses_its_place(self, other: Job) -> bool:
        """Whether it goes for good when one of a higher partition has started on its cores; else it stands still."""
        return self.rules.kind == BY_PARTITION and self.rules.mode == SUSPEND and self.mode_of(other) not in (SUSPEND, OFF)

    def suspends(self, victim: Job) -> bool:
        """Whether the job stands still when it is preempted, and goes on later."""
        return self.mode_of(victim) == SUSPEND

    def stands_still(self, victim: Job) -> bool:
        """Whether a victim that is chosen is suspended; partitions alone have it ended instead."""
        return self.rules.kind == BY_QOS and self.suspends(victim)

    # --- whom ------------------------------------------------------------------------------------------------------------------

    def candidates(self, job: Job, partition: Partition, now: int, *, whole_nodes: bool = False) -> list[Job]:
        """Running jobs that the job may preempt, in the order in which they are taken. `whole_nodes`: as select/linear does.

        Where those in its way make room once it starts, only those are named that give back more than their cores, if they stand still, too.
        Nobody stands still without gang scheduling: whose partition wants that is spared, and ended where whole nodes are given. (As recorded.)
        """
        pushes_aside = self.pushes_aside
        spares_suspended = self.rules.kind == BY_PARTITION and (pushes_aside or not whole_nodes)
        found: list[Job] = []
        for victim in self.tables.running.values():
            held = victim.allocation
            if held is None or not held.nodes & partition.nodes or not self.may_preempt(job, partition, victim):
                continue
            if (spares_suspended and self.suspends(victim)) or not (victim.is_running or pushes_aside):
                continue
            assert victim.start_time is not None
            if not self.stands_still(victim) and victim.start_time + self.exempt_s(victim) > now:
                until = victim.start_time + self.exempt_s(victim)
                self.spared_until = until if self.spared_until is None else min(until, self.spared_until)
                continue
            found.append(victim)
        if self._youngest_first:
            found.sort(key=lambda each: (-(each.start_time or 0), each.job_id))
        else:
            found.sort(key=lambda each: (self.importance(each), each.allocation.node_count if each.allocation else 0, each.job_id))
        return found

    def victims(self, job: Job, partition: Partition, usable: int, selector: Selector, now: int) -> list[Job]:
        """The jobs to preempt so that this one can run on nodes out of the bitmap `usable`; none if that is of no use, or somebody ends already."""
        if not self.is_on or not isinstance(selector, ChoosingSelector):
            return []
        order = self.candidates(job, partition, now, whole_nodes=selector.whole_nodes)
        if not order or selector.choose_in(job, partition, usable, self.tables, StateWithout(self.tables, order)) is None:
            return []
        passes = 0
        while True:
            state = StateWithout(self.tables)
            if selector.choose_in(job, partition, usable, self.tables, state) is not None:
                return []
            removed: list[Job] = []
            use: dict[int, int] = {}
            nodes: int | None = None
            for victim in order:
                assert victim.allocation is not None
                state.remove(victim, suspended=self.stands_still(victim))
                removed.append(victim)
                nodes = selector.choose_in(job, partition, usable, self.tables, state)
                use[victim.job_id] = (victim.allocation.nodes & selector.serving(job, partition, usable, self.tables, state)).bit_count()
                if nodes is not None:
                    break
            if nodes is None:
                return []
            if len(order) == 1 or passes >= self._reorders:
                return [each for each in removed if each.allocation is not None and each.allocation.nodes & nodes]
            passes += 1
            order = [removed[-1], *(each for each in order if each is not removed[-1])]
            if not self._strict_order:  # by nodes that would do for the job once each was gone; of equals first who was removed last
                order.sort(key=lambda each: -use.get(each.job_id, 0))

    def place_of(self, victims: Iterable[Job], job: Job, partition: Partition, usable: int, selector: Selector) -> Allocation | None:
        """What the job would get out of the bitmap `usable` once those are gone."""
        if not isinstance(selector, ChoosingSelector):
            return None
        state = StateWithout(self.tables)
        for victim in victims:
            state.remove(victim, suspended=self.stands_still(victim))
        return selector.select_in(job, partition, usable, self.tables, state)

    def fits_without_them(self, job: Job, partition: Partition, usable: int, selector: ChoosingSelector, now: int) -> int | None:
        """The nodes on which the job would run if all whom it may preempt were gone; None if that does not help either."""
        order = self.candidates(job, partition, now, whole_nodes=selector.whole_nodes)
        if not order:
            return None
        return selector.choose_in(job, partition, usable, self.tables, StateWithout(self.tables, order, completing=False))


class Rank:
    """A job's place beside others by who may preempt whom: part of a key of the queue, and equal for most pairs."""

    __slots__ = ("job", "preemption")

    def __init__(self, preemption: Preemption, job: Job) -> None:
        self.preemption, self.job = preemption, job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rank) and not self < other and not other < self

    def __lt__(self, other: Rank) -> bool:
        return self.preemption.goes_before(self.job, other.job)

    def __gt__(self, other: Rank) -> bool:
        return other < self

    def __hash__(self) -> int:
        return 0


def preempting_order(preemption: Preemption, order: Order) -> Order:
    """The queue's order where a QOS may preempt others: who may preempt goes first. (Higher partition tiers go first anyway.)"""
    if preemption.rules.kind != BY_QOS:
        return order
    return lambda job, partition, *, is_drawn=False: (Rank(preemption, job), *order(job, partition, is_drawn=is_drawn))
