"""Nobody is preempted for a job that limits would keep from what it got then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controller_harness import OTHER
from enforcement_harness import House

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.preemption import Preemption, Rules
from understudy.model import nodeset

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job

SELECTORS = [SelectConsTres(frozenset({"CR_CORE"})), SelectLinear()]
EVERY = nodeset.mask(4)


def cluster(policy: Any = Backfill, selector: Any = SELECTORS[0]) -> House:
    """Two partitions, of which the higher one preempts, on four nodes of eight CPUs."""
    house = House()
    core, tables = house.core, house.core.tables
    tables.partitions = {
        each.name: each
        for each in (
            Partition("low", EVERY, priority_tier=1),
            Partition("high", EVERY, priority_tier=10),
        )
    }
    core.selector = selector
    tables.preemption = Preemption(
        tables.partitions,
        tables.running,
        Rules.read("preempt/partition_prio", "REQUEUE", None),
        {},
        lambda _job: None,
    )
    core.policy = policy(
        tables, selector, Planning(core), {"bf_interval": "10", "bf_resolution": "1"}
    )
    core.policy.note(Note.START, house.time.now())
    return house


def filled(house: House, **spec: Any) -> list[Job]:
    """Jobs of the lower partition, one a node, of a user whom no limit concerns."""
    jobs = [
        house.submit(
            OTHER,
            9000.0,
            partition="low",
            account="other",
            num_tasks=8,
            min_nodes=1,
            max_nodes=1,
            **spec,
        )
        for _ in range(4)
    ]
    house.run(15)
    house.acknowledge()
    assert all(job.is_running for job in jobs)
    return jobs


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("policy", [Builtin, Backfill])
def test_a_job_whose_whole_nodes_would_break_a_limit_waits_for_that_and_preempts_nobody(
    policy: Any, selector: Any
) -> None:
    house = cluster(policy, selector)
    low = filled(house)
    house.set_association(4, grp_tres={"cpu": 2})
    high = house.submit(partition="high", exclusive=True, num_tasks=1)
    house.run(70)
    assert [job.is_running for job in low] == [True] * 4
    assert (high.is_pending, high.reason) == (True, "AssocGrpCpuLimit")
    house.set_association(4, grp_tres={"cpu": 8})
    house.run(15)
    assert [job.is_running for job in low] == [False, True, True, True]


def test_minutes_that_the_nodes_of_others_would_cost_count_before_they_go() -> None:
    house = cluster()
    low = filled(house)
    house.set_association(4, grp_tres_run_mins={"cpu": 79})
    high = house.submit(partition="high", exclusive=True, num_tasks=1, time_limit_s=600)
    house.run(70)
    assert [job.is_running for job in low] == [True] * 4
    assert high.reason == "AssocGrpCPURunMinutesLimit"


def test_no_more_nodes_are_taken_from_others_than_the_job_may_have() -> None:
    house = cluster()
    low = filled(house)
    high = house.submit(partition="high", num_tasks=16, min_nodes=1, max_nodes=4)
    wide = house.submit(partition="high", num_tasks=24, min_nodes=1, max_nodes=4)
    house.set_association(4, grp_tres={"node": 2})
    house.run(15)
    assert [job.is_running for job in low] == [False, False, True, True]
    for job in low[:2]:
        house.acknowledge()
        house.epilog(job)
    house.run(15)
    assert high.is_running
    assert high.allocation is not None
    assert high.allocation.node_count == 2
    assert wide.is_pending
    assert [job.is_running for job in low] == [False, False, True, True]
