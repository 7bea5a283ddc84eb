"""Preemption: who may preempt whom, and how; and which jobs are candidates.

Place: tables, pure. Which of them are taken is `victims.py`'s. Follows: slurm.conf(5) PreemptType,
PreemptMode, PreemptExemptTime, SchedulerParameters preempt_*; sacctmgr(1) Preempt, PreemptMode,
PreemptExemptTime, GraceTime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model.scheduler_parameters import number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
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
        return cls(
            kind if kind in (BY_PARTITION, BY_QOS) else "",
            mode or OFF,
            within,
            gang,
            max(exempt_s or 0, 0),
        )


def read_mode(text: str) -> tuple[str, bool, bool]:
    """(OFF, CANCEL, REQUEUE, SUSPEND or "", whether WITHIN is among the words, whether GANG is)."""
    words = {word.strip().upper() for word in text.split(",")}
    mode = next((each for each in (SUSPEND, REQUEUE, CANCEL, OFF) if each in words), "")
    return mode, "WITHIN" in words, "GANG" in words


class Preemption:
    """The rules, applied to the tables."""

    def __init__(
        self,
        partitions: Mapping[str, Partition],
        running: Mapping[int, Job],
        rules: Rules,
        parameters: Mapping[str, str],
        qos_of: Callable[[Job], Qos | None],
        *,
        whole_nodes: bool = False,
    ) -> None:
        """`whole_nodes`: they are given whole, as select/linear does."""
        self.whole_nodes = whole_nodes
        self._partitions, self._running, self.rules, self.qos_of = (
            partitions,
            running,
            rules,
            qos_of,
        )
        self._youngest_first = "preempt_youngest_first" in parameters
        self.strict_order = "preempt_strict_order" in parameters
        # when the first job may be preempted that the last pass had to spare
        self.spared_until: int | None = None
        self.reorders = number(parameters, "preempt_reorder_count", 1)

    @property
    def is_on(self) -> bool:
        return bool(self.rules.kind)

    # --- who may preempt whom, and how ------------------------------------------------------------

    def may_preempt(self, job: Job, partition: Partition, victim: Job) -> bool:
        """Whether the rules let a pending job, in this partition, preempt one that runs."""
        if self.rules.kind == BY_PARTITION:
            where = self._partitions.get(victim.partition)
            return (
                where is not None
                and where.priority_tier < partition.priority_tier
                and self.mode_of(victim) != OFF
            )
        qos, against = self.qos_of(job), self.qos_of(victim)
        if qos is None or against is None:
            return False
        if qos.name == against.name:
            within = self.rules.within or read_mode(against.preempt_mode)[1]
            return within and job.priority > victim.priority
        return against.name in qos.preempt and self.mode_of(victim) != OFF

    def mode_of(self, victim: Job) -> str:
        """What happens to the job when it is preempted."""
        if self.rules.kind == BY_PARTITION:
            where = self._partitions.get(victim.partition)
            own = where.preempt_mode if where is not None else ""
        else:
            qos = self.qos_of(victim)
            own = qos.preempt_mode if qos is not None else ""
            if read_mode(own)[0] == OFF:
                own = ""
        return read_mode(own)[0] or self.rules.mode

    def grace_s(self, victim: Job) -> int:
        """How long the job may run after it has been chosen (GraceTime)."""
        if self.rules.kind == BY_QOS:
            qos = self.qos_of(victim)
            return qos.grace_time_s if qos is not None else 0
        where = self._partitions.get(victim.partition)
        return where.grace_time_s if where is not None else 0

    def exempt_s(self, victim: Job) -> int:
        """How long the job runs before anybody may preempt it."""
        qos = self.qos_of(victim)
        own = qos.preempt_exempt_time_s if qos is not None else None
        return self.rules.exempt_s if own is None else max(own, 0)

    def importance(self, job: Job) -> int:
        """Of two candidates the one with less goes first."""
        if self.rules.kind == BY_QOS:
            qos = self.qos_of(job)
            return qos.priority if qos is not None else 0
        where = self._partitions.get(job.partition)
        return where.priority_tier if where is not None else 0

    @property
    def overlays(self) -> bool:
        """Whether jobs of higher partitions take the cores of lower ones as if they were free: who
        is in their way makes room once they start. So where PreemptMode says SUSPEND or GANG.
        """
        return self.rules.kind == BY_PARTITION and (self.rules.gang or self.rules.mode == SUSPEND)

    def may_overlay(self, partition: Partition, other: Job) -> bool:
        """Whether one of that partition may have the other job's cores; it stands still, or goes,
        when that one starts. Where nodes are given whole, and PreemptMode says GANG alone, none is
        given before who goes is gone.
        """
        where = self._partitions.get(other.partition)
        if (
            where is None
            or where.priority_tier >= partition.priority_tier
            or other.allocation is None
            or not other.allocation.overlaid
        ):
            return False
        only_suspended = self.whole_nodes and self.rules.mode != SUSPEND
        return self.suspends(other) if only_suspended else self.mode_of(other) != OFF

    def loses_its_place(self, other: Job) -> bool:
        """Whether it goes for good when one of a higher partition has started on its cores; else it
        stands still.
        """
        return self.overlays and self.mode_of(other) not in (SUSPEND, OFF)

    def suspends(self, victim: Job) -> bool:
        """Whether the job is suspended when it is preempted, and resumed later."""
        return self.mode_of(victim) == SUSPEND

    def stands_still(self, victim: Job) -> bool:
        """Whether a victim that is chosen is suspended; partitions alone have it ended instead."""
        return self.rules.kind == BY_QOS and self.suspends(victim)

    # --- whom -------------------------------------------------------------------------------------

    def candidates(
        self, job: Job, partition: Partition, now: int, *, looks_ahead: bool = False
    ) -> list[Job]:
        """Running jobs that the job may preempt, in the order in which they are taken.
        `looks_ahead`: the question is when it could run.

        Where those in its way make room once it starts, only those are named that give back more
        than their cores, if they stand still, too. Nobody stands still without gang scheduling:
        whose partition wants that is spared, and ended where whole nodes are given. Who shares his
        cores in turn stands still for nobody. But backfill believes that both do, and keeps their
        nodes from now on. (As recorded.)
        """
        overlays = self.overlays
        spares_suspended = self.rules.kind == BY_PARTITION and (overlays or not self.whole_nodes)
        found: list[Job] = []
        for victim in self._running.values():
            held = victim.allocation
            if (
                held is None
                or not held.nodes & partition.nodes
                or not self.may_preempt(job, partition, victim)
            ):
                continue
            believes = looks_ahead and not self.whole_nodes and (held.shared_in or not overlays)
            spared = spares_suspended and self.suspends(victim) and not believes
            if spared or not (victim.is_running or overlays):
                continue
            assert victim.start_time is not None
            if not self.stands_still(victim) and victim.start_time + self.exempt_s(victim) > now:
                until = victim.start_time + self.exempt_s(victim)
                self.spared_until = (
                    until if self.spared_until is None else min(until, self.spared_until)
                )
                continue
            found.append(victim)
        return self.in_order(found)

    def in_order(self, victims: list[Job]) -> list[Job]:
        """The least important and smallest first, or the youngest if the site says so."""
        if self._youngest_first:
            return sorted(victims, key=lambda each: (-(each.start_time or 0), each.job_id))
        return sorted(
            victims,
            key=lambda each: (
                self.importance(each),
                each.allocation.node_count if each.allocation else 0,
                each.job_id,
            ),
        )
