"""Preemption: which running jobs a pending one takes.

Place: scheduling, pure. It names victims; the planner ends, requeues or suspends them. Follows:
slurm.conf(5) PreemptType, SchedulerParameters preempt_*.

Candidates are sorted by importance, the least important and smallest first, and taken away one by
one until the job fits. Then they are sorted anew by how much they were of use, and it is tried
again, so that a few big jobs are taken in place of many small ones. In the end only jobs on the
chosen nodes are hit. What jobs hold that are completing counts as free already: who waits for them
takes nobody else.

Where jobs of higher partitions suspend others (PreemptMode=SUSPEND,GANG), they look for cores that
nobody has, not even a job that stands still, and then for those that jobs of lower partitions have.
Who has one of the cores that they get makes room when they start (understudy.controller.jobs.gang).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.scheduling.select.free import StateWithout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.scheduling.api import Ask, Selector
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.preemption import Preemption
    from understudy.controller.tables.tables import Tables


def victims(
    preemption: Preemption,
    tables: Tables,
    ask: Ask,
    selector: Selector,
    now: int,
) -> list[Job]:
    """The jobs to preempt so that this one can run; none if that is of no use, or somebody ends
    already.
    """
    if not preemption.is_on:
        return []
    order = preemption.candidates(ask.job, ask.partition, now)
    if not order or selector.choose_in(ask, tables, StateWithout(tables, order)) is None:
        return []
    passes = 0
    while True:
        state = StateWithout(tables)
        if selector.choose_in(ask, tables, state) is not None:
            return []
        removed: list[Job] = []
        use: dict[int, int] = {}
        nodes: int | None = None
        for victim in order:
            assert victim.allocation is not None
            state.remove(victim, suspended=preemption.stands_still(victim))
            removed.append(victim)
            nodes = selector.choose_in(ask, tables, state)
            use[victim.job_id] = (
                victim.allocation.nodes & selector.serving(ask, tables, state)
            ).bit_count()
            if nodes is not None:
                break
        if nodes is None:
            return []
        if len(order) == 1 or passes >= preemption.reorders:
            return [
                each
                for each in removed
                if each.allocation is not None and each.allocation.nodes & nodes
            ]
        passes += 1
        order = [removed[-1], *(each for each in order if each is not removed[-1])]
        # by nodes that would do for the job once each was gone; of equals first who was removed
        # last
        if not preemption.strict_order:
            order.sort(key=lambda each: -use.get(each.job_id, 0))


def place_of(
    preemption: Preemption,
    tables: Tables,
    victims: Iterable[Job],
    ask: Ask,
    selector: Selector,
) -> Allocation | None:
    """What the job would get once those are gone."""
    state = StateWithout(tables)
    for victim in victims:
        state.remove(victim, suspended=preemption.stands_still(victim))
    return selector.select_in(ask, tables, state)
