"""bf_hetjob_prio and bf_hetjob_immediate: orders and starts as 22.05.8 shows them.

Covers: controller/scheduling/slurm/het_order.
"""

import msgspec
import pytest
from scheduling_harness import World, form, make_job, table, tables_of

from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.het_order import combine_of, side_by_side
from understudy.controller.scheduling.slurm.queue import Rank, Record, in_order, slurm_order
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.reservation import Reservation

PARTITIONS = {
    f"p{tier}": Partition(f"p{tier}", nodes=0b1111, priority_tier=tier) for tier in range(1, 10)
}


def job(number, partitions, priority, **more):
    made = make_job(number, **more)
    made.partitions = tuple(partitions.split(","))
    made.priority = priority
    return made


def order(jobs, word, *, ranked=False):
    """The jobs' ids, and the tiers of heterogeneous ones, in the order of backfill."""
    records = []
    for each in jobs:
        for name in each.partitions:
            key = slurm_order(each, PARTITIONS[name])
            records.append(
                Record((Rank(None), *key) if ranked else key, each, PARTITIONS[name], 1, 60.0)
            )
    combine = combine_of({"bf_hetjob_prio": word})
    assert combine is not None
    found = side_by_side(in_order(records), PARTITIONS, combine)
    return [
        (record.job.job_id, record.partition.priority_tier)
        if record.job.het is not None
        else record.job.job_id
        for record in found
    ]


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize(("word", "ahead"), [("min", [3, 5, 4, 6]), ("avg", [3, 5]), ("max", [3])])
def test_components_are_looked_at_next_to_each_other(word, ahead, ranked):
    parts = [job(1, "p9", 90), job(2, "p1", 20)]
    form(parts)
    # tier 9 before all; tiers 5 and priorities about the mean, 55; tier 1
    others = [job(3, "p9", 95), job(4, "p5", 50), job(5, "p5", 60), job(6, "p1", 30)]
    last = [each for each in (3, 5, 4, 6) if each not in ahead]
    assert order([*parts, *others], word, ranked=ranked) == [*ahead, (1, 9), (2, 1), *last]


def test_each_partition_counts_and_each_component_waiting_or_not():
    parts = [job(1, "p9,p8,p7", 90), job(2, "p2", 20)]
    form(parts)
    # (9 + 8 + 7 + 2) // 4 and (90 + 20) // 2
    others = [job(3, "p6", 60), job(4, "p6", 50)]
    assert order([parts[0], *others], "avg") == [3, (1, 9), (1, 8), (1, 7), 4]


def test_priorities_by_partition_count_each():
    parts = [job(1, "p9,p1", 111), job(2, "p9", 333)]
    parts[0].partition_priorities = {"p9": 1000, "p1": 111}
    form(parts)
    one_tier = {name: Partition(name, nodes=1, priority_tier=1) for name in ("p1", "p9")}
    others = [job(3, "p1", 500), job(4, "p1", 460)]
    records = [
        Record(slurm_order(each, one_tier[name]), each, one_tier[name], 1, 60.0)
        for each in [*parts, *others]
        for name in each.partitions
    ]
    combine = combine_of({"bf_hetjob_prio": "avg"})
    assert combine is not None
    found = side_by_side(in_order(records), one_tier, combine)
    assert [record.job.job_id for record in found] == [3, 1, 2, 1, 4]


def test_with_one_component_in_a_reservation_all_go_first():
    parts = [job(1, "p1", 5), job(2, "p1", 5, reservation="r")]
    form(parts)
    assert order([*parts, job(3, "p9", 90)], "min") == [(2, 1), (1, 1), 3]


def test_immediate_means_the_least_where_nothing_is_said():
    assert combine_of({}) is None
    assert combine_of({"bf_hetjob_immediate": ""}) is min
    assert combine_of({"bf_hetjob_immediate": "", "bf_hetjob_prio": "max"}) is max


@pytest.mark.parametrize(("words", "at_once"), [({}, False), ({"bf_hetjob_immediate": ""}, True)])
def test_an_immediate_one_starts_when_its_last_component_is_found_able_to(words, at_once):
    simulation = World(
        table(4), Backfill, SelectConsTres(), {"bf_max_job_start": "2"} | words, check=True
    )
    parts = [simulation.submit(at=1, run_s=50, limit_s=60, min_nodes=1) for _ in range(2)]
    form(parts)
    behind = simulation.submit(at=2, run_s=50, limit_s=60, min_nodes=1)
    simulation.run()
    starts = simulation.starts
    assert starts[parts[0].job_id] == starts[parts[1].job_id]
    assert (starts[behind.job_id] > starts[parts[0].job_id]) is at_once


@pytest.mark.parametrize(("nodes", "keeps_some"), [((4, 1), False), ((1, 4), True)])
def test_behind_a_component_without_nodes_the_others_keep_none(nodes, keeps_some):
    """Seen of 22.05.8: that a component before it keeps nodes keeps others waiting for ever."""
    simulation = World(table(3), Backfill, SelectConsTres())
    form([simulation.submit(at=1, run_s=50, limit_s=60, min_nodes=count) for count in nodes])
    behind = simulation.submit(at=2, run_s=50, limit_s=600, min_nodes=3)
    simulation.run()
    assert (behind.job_id in simulation.starts) is not keeps_some


def test_no_component_keeps_nodes_while_the_reservation_of_one_has_not_begun():
    tables = tables_of(table(3))
    tables.reservations.by_name["r"] = Reservation("r", 1, 5000, 6000, nodes=0b1)
    simulation = World(tables, Backfill, SelectConsTres())
    parts = [simulation.submit(at=1, run_s=50, limit_s=60, min_nodes=1) for _ in range(2)]
    parts[1].spec = msgspec.structs.replace(parts[1].spec, reservation="r")
    form(parts)
    behind = simulation.submit(at=2, run_s=50, limit_s=600, min_nodes=3)
    simulation.run(until=1000)
    assert behind.job_id in simulation.starts
    assert [job.reason for job in parts] == ["Reservation"] * 2
