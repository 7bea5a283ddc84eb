"""Which nodes, cores and memory select/cons_tres gives.

Covers: controller/scheduling/select/best_fit, controller/scheduling/select/features,
controller/scheduling/select/free, controller/scheduling/select/picks,
controller/scheduling/select/request, controller/scheduling/select/selection.
"""

import pytest
from scheduling_harness import make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.tables.allocation import Allocation
from understudy.controller.tables.partition import Partition
from understudy.model import nodeset

ALL = (1 << 64) - 1


def chosen(tables, selector=None, partition="main", usable=ALL, *, prefers=False, **fields):
    job = make_job(**fields)
    return (selector or SelectConsTres(frozenset({"CR_CORE"}))).select(
        Ask(job, tables.partitions[partition], usable, prefers), tables
    )


def indices(allocation):
    return nodeset.indices(allocation.nodes)


def hold(tables, **fields):
    allocation = chosen(tables, **fields)
    tables.nodes.allocate(allocation)
    return allocation


def test_twelve_tasks_on_empty_nodes_of_eight_cpus_are_packed_eight_and_four():
    assert chosen(tables_of(table(4, cores=8)), num_tasks=12).per_node_text() == "8,4"


def test_four_tasks_on_two_nodes_are_three_and_one():
    assert (
        chosen(tables_of(table(4, cores=8)), num_tasks=4, min_nodes=2, max_nodes=2).per_node_text()
        == "3,1"
    )


def test_whole_cores_are_given_with_all_their_threads():
    allocation = chosen(tables_of(table(2, cores=4, threads=2)), num_tasks=3)
    assert (allocation.cpus, allocation.shares[0].cores) == (4, 0b11)


def test_one_thread_per_core_takes_a_core_a_task():
    allocation = chosen(tables_of(table(2, cores=4, threads=2)), num_tasks=3, threads_per_core=1)
    assert (allocation.cpus, allocation.shares[0].cores) == (6, 0b111)


def test_the_lowest_free_cores_are_taken():
    tables = tables_of(table(1, cores=4))
    first = hold(tables, num_tasks=1)
    hold(tables, num_tasks=1)
    tables.nodes.release(first, first.nodes)
    assert chosen(tables, num_tasks=2).shares[0].cores == 0b101


def test_the_tightest_run_that_suffices_is_taken():
    tables = tables_of(table(10))
    hold(tables, usable=0b0000001000, num_tasks=1)  # runs of 3 and of 6
    assert indices(chosen(tables, num_tasks=2)) == [0, 1]
    assert indices(chosen(tables, num_tasks=4)) == [4, 5, 6, 7]


def test_without_a_run_that_suffices_the_largest_is_used_up_first():
    tables = tables_of(table(10))
    hold(tables, usable=0b0000001000, num_tasks=1)
    assert indices(chosen(tables, num_tasks=8)) == [0, 1, 4, 5, 6, 7, 8, 9]
    assert indices(chosen(tables, num_tasks=7)) == [0, 4, 5, 6, 7, 8, 9]


def test_lower_weight_goes_before_a_better_fit():
    nodes = [node(i, cores=4, weight=1 if i >= 2 else 5) for i in range(6)]
    assert indices(chosen(tables_of(table_of(nodes)), num_tasks=4)) == [2]


def test_one_more_node_is_the_one_with_the_fewest_cpus_that_are_enough():
    tables = tables_of(table(3, cores=8))
    hold(tables, usable=0b010, num_tasks=5)
    assert indices(chosen(tables, num_tasks=3)) == [1]
    assert indices(chosen(tables, num_tasks=4)) == [0]


def test_required_nodes_are_taken_and_others_beside_them():
    tables = tables_of(table(8))
    assert indices(chosen(tables, num_tasks=3, min_nodes=3, required_nodes=0b10000)) == [4, 5, 6]


def test_excluded_nodes_are_not_taken():
    assert indices(chosen(tables_of(table(4)), num_tasks=2, excluded_nodes=0b1)) == [1, 2]


def test_features_are_joined_by_and_and_or():
    tables = tables_of(
        table_of([node(0, features="a"), node(1, features="a,b"), node(2, features="b"), node(3)])
    )
    assert indices(chosen(tables, num_tasks=1, features="a&b")) == [1]
    assert indices(chosen(tables, num_tasks=3, features="a|b")) == [0, 1, 2]
    assert chosen(tables, num_tasks=3, features="a") is None
    assert indices(chosen(tables, num_tasks=2, features="[a|b]")) == [0, 1]
    assert chosen(tables, num_tasks=3, features="[a|b]") is None


def test_counts_of_features_are_met_one_by_one():
    tables = tables_of(
        table_of(
            [
                node(0, features="a"),
                node(1, features="b"),
                node(2, features="a"),
                node(3, features="b"),
                node(4),
            ]
        )
    )
    assert indices(chosen(tables, min_nodes=3, features="[a*1&b*2]")) == [0, 1, 3]
    assert indices(chosen(tables, min_nodes=3, features="[a*2&b*1]")) == [0, 1, 2]
    assert indices(chosen(tables, min_nodes=4, features="b*2")) == [1, 2, 3, 4], (
        "the rest is found anywhere"
    )
    assert indices(chosen(tables, min_nodes=4, features="[a*1&b*1]")) == [0, 1, 2, 3], (
        "the rest is of the same kinds"
    )
    assert chosen(tables, min_nodes=5, features="[a*1&b*1]") is None
    assert chosen(tables, min_nodes=4, features="[a*3&b*1]") is None
    assert chosen(tables, min_nodes=1, max_nodes=1, features="[a*1&b*1]") is None


def test_counts_without_brackets_go_with_features_of_all_nodes():
    tables = tables_of(
        table_of(
            [
                node(0, features="a,c"),
                node(1, features="c"),
                node(2, features="a"),
                node(3, features="b,c"),
            ]
        )
    )
    assert indices(chosen(tables, min_nodes=2, max_nodes=2, num_tasks=2, features="b*1&c")) == [
        0,
        3,
    ]
    assert chosen(tables, min_nodes=2, max_nodes=2, num_tasks=2, features="a*1&c*1") is None, (
        "accepted by Slurm, but never satisfied"
    )


def test_counted_nodes_may_be_more_than_there_are_tasks():
    tables = tables_of(
        table_of([node(0, features="a"), node(1, features="b"), node(2, features="b")])
    )
    assert indices(chosen(tables, num_tasks=1, features="[a*1&b*2]")) == [0, 1, 2]


def test_what_is_counted_may_be_an_expression_in_parentheses():
    tables = tables_of(
        table_of(
            [
                node(0, features="a,c"),
                node(1, features="a"),
                node(2, features="b,c"),
                node(3, features="b"),
            ]
        )
    )
    assert indices(chosen(tables, min_nodes=2, features="[(a&c)*1&(b&c)*1]")) == [0, 2]


def test_the_earliest_of_several_alternatives_is_promised():
    tables = tables_of(table_of([node(0, features="a"), node(1, features="b")]))
    running(tables, 1, 9000, num_tasks=1, features="a")
    running(tables, 2, 1000, num_tasks=1, features="b")
    main = tables.partitions["main"]
    assert SelectConsTres(frozenset({"CR_CORE"})).will_run(
        Ask(make_job(9, features="[a|b]"), main, 0b11), tables, 100
    ) == (1000, 0b10)


def test_only_jobs_on_nodes_with_the_features_make_up_the_groups_of_ends():
    tables = tables_of(table_of([node(0, features="a"), node(1, features="b")]))
    running(tables, 1, 1000, num_tasks=1, features="b")
    running(tables, 2, 1045, num_tasks=1, features="a")
    running_ends = SelectConsTres(frozenset({"CR_CORE"})).will_run(
        Ask(make_job(9, features="b"), tables.partitions["main"], 0b11), tables, 100
    )
    assert running_ends == (1000, 0b10)


def test_a_required_node_counts_for_its_feature():
    tables = tables_of(
        table_of([node(0, features="a"), node(1, features="b"), node(2, features="a")])
    )
    assert indices(chosen(tables, min_nodes=2, features="[a*1&b*1]", required_nodes=0b100)) == [
        1,
        2,
    ]


def test_preferred_features_take_the_place_of_required_ones_while_they_are_tried():
    tables = tables_of(table_of([node(0, features="a"), node(1, features="b")]))
    assert indices(chosen(tables, features="a", prefer="b")) == [0]
    assert indices(chosen(tables, features="a", prefer="b", prefers=True)) == [1]


def test_a_policy_may_ask_for_fewer_nodes_than_the_job_would_take():
    tables, job = (
        tables_of(table(4)),
        make_job(min_nodes=1, max_nodes=4, cpus_per_task=1, min_cpus=2),
    )
    main, selector = tables.partitions["main"], SelectConsTres(frozenset({"CR_CORE"}))
    assert indices(selector.select(Ask(job, main, ALL), tables)) == [0, 1, 2, 3]
    assert indices(selector.select(Ask(job, main, ALL, most_nodes=3), tables)) == [0, 1, 2]
    assert selector.select(Ask(job, main, ALL, most_nodes=1), tables) is None
    assert selector.will_run(Ask(job, main, ALL, most_nodes=2), tables, 0) == (0, 0b0011)
    assert selector.will_run(Ask(job, main, ALL, most_nodes=1), tables, 0) is None


def test_after_required_nodes_light_ones_come_before_heavy_neighbours():
    tables = tables_of(
        table_of([node(0, weight=9), node(1, weight=9), node(2, weight=1), node(3, weight=1)])
    )
    assert indices(chosen(tables, min_nodes=3, required_nodes=0b1)) == [0, 2, 3]


def test_an_exclusive_job_gets_idle_nodes_with_all_their_cpus():
    tables = tables_of(table(3, cores=4))
    hold(tables, num_tasks=1)
    allocation = chosen(tables, num_tasks=2, exclusive=True)
    assert (indices(allocation), allocation.cpus, allocation.whole) == ([1], 4, True)


def test_nobody_joins_an_exclusive_job():
    tables = tables_of(table(1, cores=4))
    tables.nodes.allocate(
        Allocation.of_groups(chosen(tables, num_tasks=1, exclusive=True).groups, whole=True)
    )
    assert chosen(tables, num_tasks=1) is None


def test_tasks_per_node_spread_the_job():
    allocation = chosen(tables_of(table(4, cores=8)), num_tasks=6, ntasks_per_node=2)
    assert allocation.per_node_text("tasks") == "2(x3)"


def test_cpus_of_one_task_are_on_one_node():
    tables = tables_of(table(4, cores=4))
    assert chosen(tables, num_tasks=2, cpus_per_task=3).per_node_text() == "3(x2)"
    assert chosen(tables, num_tasks=1, cpus_per_task=5) is None


def test_memory_per_node_bounds_the_jobs_on_a_node():
    tables = tables_of(table(2, cores=4, memory=1000))
    memory = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
    for _ in range(2):
        assert indices(hold(tables, selector=memory, num_tasks=1, memory_per_node_mb=500)) == [0]
    assert indices(hold(tables, selector=memory, num_tasks=1, memory_per_node_mb=500)) == [1]
    assert tables.nodes.free_memory.tolist() == [0, 500]


def test_memory_per_cpu_bounds_the_cpus_of_a_node():
    memory = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
    allocation = chosen(
        tables_of(table(2, cores=4, memory=1000)),
        selector=memory,
        num_tasks=4,
        memory_per_cpu_mb=400,
    )
    assert (allocation.per_node_text(), allocation.shares[0].memory_mb) == ("2(x2)", 800)


def test_memory_zero_is_all_memory_of_a_node_on_which_none_is_used():
    tables = tables_of(table(2, cores=4, memory=1000))
    memory = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
    hold(tables, selector=memory, num_tasks=1, memory_per_node_mb=10)
    allocation = hold(tables, selector=memory, num_tasks=1, memory_per_node_mb=0)
    assert (indices(allocation), allocation.shares[0].memory_mb) == ([1], 1000)
    assert chosen(tables, selector=memory, num_tasks=1, memory_per_node_mb=0) is None


def test_without_consumable_memory_only_the_size_of_nodes_counts():
    tables = tables_of(table(1, cores=4, memory=1000))
    hold(tables, num_tasks=1, memory_per_node_mb=900)
    assert hold(tables, num_tasks=1, memory_per_node_mb=900)
    assert chosen(tables, num_tasks=1, memory_per_node_mb=1001) is None


def test_a_range_of_nodes_gets_as_many_as_there_are():
    tables = tables_of(table(3, cores=2))
    assert indices(chosen(tables, min_nodes=2, max_nodes=5)) == [0, 1, 2]
    assert indices(chosen(tables, min_nodes=2, max_nodes=5, num_tasks=2)) == [0, 1]


def test_small_nodes_are_left_out_where_few_nodes_are_allowed():
    tables = tables_of(
        table_of(
            [
                node(0, cores=1),
                node(1, cores=1),
                node(2, cores=4),
                node(3, cores=1),
                node(4, cores=4),
            ]
        )
    )
    assert indices(chosen(tables, num_tasks=8, max_nodes=2)) == [2, 4]


def test_contiguous_jobs_get_neighbours_or_nothing():
    tables = tables_of(table(6))
    hold(tables, usable=0b000100, num_tasks=1)
    assert indices(chosen(tables, num_tasks=3, contiguous=True)) == [3, 4, 5]
    assert chosen(tables, num_tasks=4, contiguous=True) is None


@pytest.mark.parametrize("selector", [SelectConsTres(), SelectLinear()])
def test_contiguous_jobs_get_neighbours_of_the_nodes_that_they_must_have(selector):
    tables = tables_of(table(7))
    hold(tables, usable=0b000010, num_tasks=1)
    two, three = (
        {"min_nodes": 2, "max_nodes": 2, "num_tasks": 2},
        {"min_nodes": 3, "max_nodes": 3, "num_tasks": 3},
    )
    assert chosen(tables, selector, contiguous=True, required_nodes=0b0000001, **two) is None
    assert indices(
        chosen(tables, selector, contiguous=True, required_nodes=0b0010000, **three)
    ) == [4, 5, 6]
    assert indices(
        chosen(tables, selector, contiguous=True, required_nodes=0b1000000, **three)
    ) == [4, 5, 6]
    assert indices(
        chosen(
            tables,
            selector,
            contiguous=True,
            required_nodes=0b0000001,
            num_tasks=1,
            min_nodes=1,
            max_nodes=2,
        )
    ) == [0]


def test_least_loaded_nodes_come_first_where_asked_for():
    tables = tables_of(table(3, cores=4))
    hold(tables, usable=0b001, num_tasks=2)
    hold(tables, usable=0b010, num_tasks=1)
    assert indices(
        chosen(tables, selector=SelectConsTres(frozenset({"CR_CORE", "CR_LLN"})), num_tasks=1)
    ) == [2]


def test_whole_sockets_are_given_where_sockets_are_the_unit():
    allocation = chosen(
        tables_of(table(1, sockets=2, cores=4)),
        selector=SelectConsTres(frozenset({"CR_SOCKET"})),
        num_tasks=1,
    )
    assert (allocation.cpus, allocation.shares[0].cores) == (4, 0b1111)


def test_a_job_larger_than_the_partition_could_never_run():
    tables = tables_of(table(4, cores=2), [Partition("main", nodes=0b11)])
    selector = SelectConsTres(frozenset({"CR_CORE"}))
    assert selector.could_ever_run(
        Ask(make_job(num_tasks=4), tables.partitions["main"], ALL), tables
    )
    assert not selector.could_ever_run(
        Ask(make_job(num_tasks=5), tables.partitions["main"], ALL), tables
    )


def running(tables, job_id, end, **fields):
    selector = SelectConsTres(frozenset({"CR_CORE"}))
    job = make_job(job_id, limit_s=end, **fields)
    job.allocation = selector.select(Ask(job, tables.partitions["main"], ALL), tables)
    job.start_time = 0
    tables.nodes.allocate(job.allocation)
    tables.running[job_id] = job


def test_starts_in_the_future_are_looked_for_on_nodes_in_use_first_with_bf_busy_nodes():
    tables = tables_of(table(6, cores=2))
    main = tables.partitions["main"]
    running(tables, 1, 1000, required_nodes=0b111000, num_tasks=6, min_nodes=3)
    selector = SelectConsTres(frozenset({"CR_CORE"}))
    four = make_job(9, num_tasks=8, min_nodes=4, max_nodes=4)
    assert selector.will_run(Ask(four, main, ALL), tables, 100) == (1000, 0b1111)
    selector.expect(overrun_s=30, spares_idle=True)
    assert selector.will_run(Ask(four, main, ALL), tables, 100) == (1000, 0b111001)
    assert selector.will_run(Ask(make_job(10, num_tasks=2), main, ALL), tables, 100) == (
        100,
        0b000001,
    )  # now


def test_a_job_will_run_when_enough_running_jobs_have_reached_their_limits():
    tables = tables_of(table(4))
    running(tables, 1, 1000, num_tasks=2)
    running(tables, 2, 5000, num_tasks=1)
    selector, main = SelectConsTres(frozenset({"CR_CORE"})), tables.partitions["main"]
    assert selector.will_run(Ask(make_job(9, num_tasks=1), main, ALL), tables, 100) == (100, 0b1000)
    assert selector.will_run(Ask(make_job(9, num_tasks=3), main, ALL), tables, 100) == (
        1000,
        0b1011,
    )
    assert selector.will_run(Ask(make_job(9, num_tasks=4), main, ALL), tables, 100) == (
        5000,
        0b1111,
    )
    assert selector.will_run(Ask(make_job(9, num_tasks=5), main, ALL), tables, 100) is None


def test_jobs_that_end_within_the_first_window_count_as_one_group():
    tables = tables_of(table(2))
    running(tables, 1, 1000, num_tasks=1)
    # 1000 is rounded up to 1020; the window of 30 s lasts until 1050
    running(tables, 2, 1040, num_tasks=1)
    selector = SelectConsTres(frozenset({"CR_CORE"}))
    assert selector.will_run(
        Ask(make_job(9, num_tasks=1), tables.partitions["main"], ALL), tables, 0
    ) == (1040, 0b01)


def test_behind_a_job_elsewhere_the_next_one_joins_the_group_whenever_it_ends():
    tables = tables_of(table(4))
    for job_id, end, place in ((1, 1000, 0), (2, 1000, 1), (3, 9000, 2)):
        running(tables, job_id, end, required_nodes=1 << place)
    selector, main = SelectConsTres(frozenset({"CR_CORE"})), tables.partitions["main"]
    assert selector.will_run(Ask(make_job(9, num_tasks=2), main, 0b1101), tables, 100) == (
        9000,
        0b1100,
    )
    assert selector.will_run(Ask(make_job(9, num_tasks=2), main, 0b1011), tables, 100) == (
        1000,
        0b0011,
    )


def test_a_job_that_ought_to_have_ended_is_given_until_it_is_killed():
    tables = tables_of(table(1))
    running(tables, 1, 60, num_tasks=1)
    selector = SelectConsTres(frozenset({"CR_CORE"}))
    assert selector.will_run(Ask(make_job(9), tables.partitions["main"], ALL), tables, 70) == (
        90,
        0b1,
    )
    assert selector.will_run(Ask(make_job(9), tables.partitions["main"], ALL), tables, 500) == (
        501,
        0b1,
    )


def test_how_long_a_job_may_overrun_its_limit_is_as_configured():
    tables, selector = tables_of(table(1)), SelectConsTres(frozenset({"CR_CORE"}))
    running(tables, 1, 100, num_tasks=1)
    selector.expect(overrun_s=75)
    assert selector.will_run(Ask(make_job(9), tables.partitions["main"], ALL), tables, 150) == (
        175,
        1,
    )


def test_windows_may_grow_by_a_fixed_time():
    tables, selector = tables_of(table(3)), SelectConsTres(frozenset({"CR_CORE"}))
    for job_id, end in enumerate((100, 200, 235), 1):
        running(tables, job_id, end, num_tasks=1)
    job = make_job(9, num_tasks=2, min_nodes=2)
    assert selector.will_run(Ask(job, tables.partitions["main"], 0b111), tables, 10) == (235, 0b011)
    selector.expect(overrun_s=30, linear_window_s=60)
    assert selector.will_run(Ask(job, tables.partitions["main"], 0b111), tables, 10) == (200, 0b011)


# Ends of jobs on a node each, and when Slurm 22.05.8 says that one node, two nodes and so on are
# free.
WINDOWS = [
    (
        (16, 24, 30, 53, 65, 97, 115, 120, 124, 126, 145, 166, 194, 195, 201, 205),
        {53: 4, 65: 1, 145: 6, 205: 5},
    ),
    ((0, 13, 29, 34, 40, 49, 55, 57, 75, 77, 89, 92, 97, 98, 102, 106), {57: 8, 89: 3, 106: 5}),
    ((1, 2, 3, 3, 27, 28, 48, 54, 56, 67, 69, 83, 87, 92, 97, 112), {56: 9, 87: 4, 112: 3}),
    ((4, 10, 11, 21, 27, 32, 39, 46, 74, 77, 77, 85, 94, 103, 106, 109), {46: 8, 85: 4, 109: 4}),
    (
        (7, 9, 68, 81, 93, 95, 100, 110, 113, 119, 128, 130, 139, 163, 185, 205),
        {9: 2, 81: 2, 139: 9, 205: 3},
    ),
    (
        (24, 139, 168, 177, 180, 181, 236, 241, 332, 368, 433, 522, 522, 526, 538, 573),
        {24: 1, 139: 1, 241: 6, 433: 3, 573: 5},
    ),
]


@pytest.mark.parametrize(("ends", "expected"), WINDOWS)
def test_starts_are_those_of_the_recorded_windows(ends, expected):
    tables, selector = tables_of(table(len(ends))), SelectConsTres(frozenset({"CR_CORE"}))
    for job_id, end in enumerate(ends, 1):
        running(tables, job_id, 6000 + end, num_tasks=1)
    everywhere = (1 << len(ends)) - 1
    found = [
        selector.will_run(
            Ask(make_job(99, num_tasks=k), tables.partitions["main"], everywhere), tables, 100
        )
        for k in range(1, len(ends) + 1)
    ]
    assert [start - 6000 for start, _ in found] == [
        start for start, count in expected.items() for _ in range(count)
    ]


def test_a_job_elsewhere_that_ends_within_the_window_keeps_a_group_open():
    tables, selector = tables_of(table(3)), SelectConsTres(frozenset({"CR_CORE"}))
    running(tables, 1, 179, num_tasks=1)
    running(tables, 2, 183, num_tasks=1, required_nodes=0b010)
    running(tables, 3, 239, num_tasks=1, required_nodes=0b100)
    main = tables.partitions["main"]
    assert selector.will_run(Ask(make_job(9), main, 0b101), tables, 10) == (239, 0b001)
    tables.nodes.release(tables.running[2].allocation, 0b010)
    del tables.running[2]
    tables.held_version += 1
    assert selector.will_run(Ask(make_job(9), main, 0b101), tables, 10) == (179, 0b001)


def test_windows_grow_as_far_as_the_next_end_on_any_node():
    """Five nodes of a recorded cluster of 24, one of them idle, and two jobs elsewhere."""
    tables, selector = tables_of(table(7)), SelectConsTres(frozenset({"CR_CORE"}))
    for place, end in enumerate((20, 132, 137, 198, 72, 133)):
        running(tables, place + 1, 6000 + end, num_tasks=1, required_nodes=1 << place)
    main = tables.partitions["main"]
    assert selector.will_run(
        Ask(make_job(9, num_tasks=3, min_nodes=3), main, 0b1001111), tables, 10
    ) == (6132, 0b1000011)
    tables.nodes.release(tables.running[5].allocation, 0b10000)
    del tables.running[5]
    tables.held_version += 1
    assert selector.will_run(
        Ask(make_job(9, num_tasks=3, min_nodes=3), main, 0b1001111), tables, 10
    ) == (6137, 0b0000111)


def weighted():
    """Light and heavy nodes as in a recorded cluster: 6 of weight 50, 8 of 10, 6 of 100, 4 small
    ones of 10.
    """
    rows = [(6, 8, 50), (8, 8, 10), (6, 16, 100), (4, 4, 10)]
    sizes = [(cores, weight) for count, cores, weight in rows for _ in range(count)]
    return tables_of(
        table_of([node(i, cores=cores, weight=weight) for i, (cores, weight) in enumerate(sizes)])
    )


# The required node, how many nodes, and the nodes that Slurm 22.05.8 takes, all numbered from 1.
REQUIRED = [
    ("16", 3, "16 21 22"), ("18", 5, "18 21 22 23 24"), ("18", 6, "18 19 21 22 23 24"),
    ("18", 9, "16 17 18 19 20 21 22 23 24"),
    ("18", 12, "7 8 15 16 17 18 19 20 21 22 23 24"), ("15", 6, "7 8 9 10 11 15"),
    ("15", 12, "7 8 9 10 11 12 13 14 15 21 22 23"),
    ("21", 5, "7 8 9 10 21"), ("24", 5, "7 21 22 23 24"), ("24", 3, "22 23 24"),
    ("6", 6, "6 7 8 9 10 11"), ("14", 6, "9 10 11 12 13 14"),
    ("6", 16, "3 4 5 6 7 8 9 10 11 12 13 14 21 22 23 24"), ("15 16", 7, "7 8 9 10 11 15 16"),
    ("15 20", 7, "15 19 20 21 22 23 24"),
    ("3 18", 9, "3 17 18 19 20 21 22 23 24"), ("10 24", 6, "10 11 12 13 14 24"),
]  # fmt: skip


@pytest.mark.parametrize(("required", "count", "expected"), REQUIRED)
def test_required_nodes_draw_in_their_neighbours_as_recorded(required, count, expected):
    bits = sum(1 << int(number) - 1 for number in required.split())
    allocation = hold(
        weighted(),
        usable=(1 << 24) - 1,
        min_nodes=count,
        max_nodes=count,
        num_tasks=count,
        required_nodes=bits,
    )
    assert [i + 1 for i in indices(allocation)] == [int(number) for number in expected.split()]


def test_cpus_follow_the_order_in_which_nodes_were_taken():
    allocation = hold(
        weighted(),
        usable=(1 << 24) - 1,
        min_nodes=9,
        max_nodes=9,
        num_tasks=40,
        required_nodes=1 << 17,
    )
    assert [(share.node + 1, share.cpus) for share in allocation.shares] == [
        (16, 1), (17, 1), (18, 16), (19, 5), (20, 1), (21, 4), (22, 4), (23, 4), (24, 4)
    ]  # fmt: skip


def test_nodes_of_completing_jobs_are_free_in_a_second():
    tables = tables_of(table(1))
    running(tables, 1, 60, num_tasks=1)
    del tables.running[1]
    selector = SelectConsTres(frozenset({"CR_CORE"}))
    assert selector.will_run(Ask(make_job(9), tables.partitions["main"], ALL), tables, 30) == (
        31,
        0b1,
    )


def test_a_job_without_a_limit_never_ends():
    tables = tables_of(table(1))
    running(tables, 1, None, num_tasks=1)
    assert (
        SelectConsTres().will_run(Ask(make_job(9), tables.partitions["main"], ALL), tables, 30)
        is None
    )


def test_all_16384_nodes_are_one_group():
    tables = tables_of(table(16_384, cores=4))
    allocation = chosen(tables, usable=(1 << 16_384) - 1, min_nodes=16_384, max_nodes=16_384)
    assert (allocation.node_count, len(allocation.groups), allocation.per_node_text()) == (
        16_384,
        1,
        "1(x16384)",
    )


def test_counted_features_are_promised_each_on_its_own_for_the_whole_job():
    tables = tables_of(table_of([node(i, features="a" if i < 2 else "b") for i in range(4)]))
    running(tables, 1, 500, num_tasks=1, required_nodes=0b0001)
    running(tables, 2, 900, num_tasks=1, required_nodes=0b0100)
    selector, main = SelectConsTres(frozenset({"CR_CORE"})), tables.partitions["main"]
    assert selector.will_run(
        Ask(make_job(9, min_nodes=2, num_tasks=2, features="[a*1&b*1]"), main, 0b1111), tables, 100
    ) == (900, 0b1111)


def test_memory_that_is_not_counted_only_keeps_small_nodes_out():
    tables = tables_of(table(2, cores=4, memory=4000))
    assert chosen(tables, num_tasks=4, memory_per_cpu_mb=3000).per_node_text() == "4"
    assert chosen(tables, num_tasks=1, memory_per_cpu_mb=5000) is None


def by(*words):
    return SelectConsTres(frozenset(words))


def test_where_cpus_are_given_memory_goes_by_those_of_the_tasks():
    tables = tables_of(table_of([node(i, cores=4, threads=2, memory=4000) for i in range(2)]))
    allocation = chosen(tables, by("CR_CPU_MEMORY"), num_tasks=3, memory_per_cpu_mb=900)
    assert [(share.cores, share.memory_mb) for share in allocation.shares] == [(0b11, 2700)]
    allocation = chosen(
        tables, by("CR_CPU_MEMORY"), num_tasks=4, memory_per_cpu_mb=900, ntasks_per_core=1
    )
    assert [(share.cores, share.memory_mb) for share in allocation.shares] == [(0b1111, 3600)]


def test_whole_sockets_do_not_take_more_memory_than_there_is():
    tables = tables_of(
        table_of([node(i, sockets=4, cores=2, threads=2, memory=4000) for i in range(2)])
    )
    assert (
        chosen(tables, by("CR_SOCKET_MEMORY"), num_tasks=5, memory_per_cpu_mb=500) is None
    )  # a core in each of three sockets of four CPUs
    assert (
        chosen(tables, by("CR_SOCKET_MEMORY"), num_tasks=4, memory_per_cpu_mb=500)
        .shares[0]
        .memory_mb
        == 4000
    )


def test_a_node_with_too_little_memory_for_whole_sockets_is_passed_over():
    tables = tables_of(table_of([node(i, sockets=2, cores=4, memory=8000) for i in range(3)]))
    selector = by("CR_SOCKET_MEMORY")
    tables.nodes.allocate(chosen(tables, selector, num_tasks=1, memory_per_node_mb=4000))
    assert indices(chosen(tables, selector, num_tasks=1, memory_per_cpu_mb=1500)) == [1]
    assert indices(
        chosen(tables, selector, num_tasks=2, min_nodes=2, max_nodes=2, memory_per_cpu_mb=1500)
    ) == [1, 2]
    assert (
        chosen(tables, selector, num_tasks=2, memory_per_cpu_mb=1500) is None
    )  # both sockets of any node would need too much


def test_nobody_waits_for_nodes_whose_memory_is_too_little_for_whole_sockets():
    """Slurm 22.05.8 refuses such jobs at once: the requested node configuration is not
    available.
    """
    tables = tables_of(table_of([node(i, sockets=2, cores=4, memory=1000) for i in range(2)]))
    selector, main = by("CR_SOCKET_MEMORY"), tables.partitions["main"]
    for memory, fits in ((200, True), (300, False)):
        job = make_job(1, num_tasks=1, memory_per_cpu_mb=memory)
        assert selector.could_ever_run(Ask(job, main, main.nodes), tables) == fits
        assert (selector.will_run(Ask(job, main, ALL), tables, 100) == (100, 0b01)) == fits
        assert (selector.select(Ask(job, main, ALL), tables) is not None) == fits


@pytest.mark.parametrize("words", [(), ("CR_LLN",)])
def test_a_job_whose_nodes_keep_back_more_for_each_other_than_those_can_give_does_not_start(words):
    """As 22.05.8 decides: of two nodes with cores of two CPUs and one with a single CPU, each of
    the first keeps back two for the third.
    """
    tables = tables_of(
        table_of(
            [
                node(0, cores=2, threads=2),
                node(1, cores=2, threads=2),
                node(2, cores=1),
                node(3, cores=2, threads=2),
            ]
        )
    )
    selector, first = by("CR_CORE", *words), {"excluded_nodes": 0b1000}
    assert chosen(tables, selector, num_tasks=3, min_nodes=3, max_nodes=3, **first).cpus == 5
    for tasks in (4, 6, 9):
        assert chosen(tables, selector, num_tasks=tasks, min_nodes=3, max_nodes=3, **first) is None
    assert chosen(tables, selector, num_tasks=9, **first).cpus == 9
    assert chosen(tables, selector, num_tasks=4, min_nodes=2, max_nodes=3, **first).cpus == 5
    assert indices(chosen(tables, selector, num_tasks=4, min_nodes=3, max_nodes=3)) == [0, 1, 3]


def test_nodes_whose_memory_is_too_little_for_a_core_keep_back_one_for_each_other_all_the_same():
    tables = tables_of(table_of([node(i, cores=2, threads=4, memory=1000) for i in range(3)]))
    selector, asked = by("CR_CPU_MEMORY"), {"memory_per_cpu_mb": 300}
    two = {**asked, "min_nodes": 2, "max_nodes": 2}
    assert [share.tasks for share in chosen(tables, selector, num_tasks=4, **two).shares] == [1, 3]
    for tasks in (5, 6):
        assert chosen(tables, selector, num_tasks=tasks, **two) is None
        assert not selector.could_ever_run(
            Ask(make_job(1, num_tasks=tasks, **two), tables.partitions["main"], ALL), tables
        )
    assert [share.tasks for share in chosen(tables, selector, num_tasks=6, **asked).shares] == [
        3,
        3,
    ]


def test_a_job_that_is_to_be_spread_has_no_more_nodes_than_tasks():
    tables = tables_of(table(3, cores=4))
    assert chosen(tables, spread_job=True).nodes.bit_count() == 1
    assert chosen(tables, min_nodes=2, max_nodes=3, spread_job=True).nodes.bit_count() == 3


@pytest.mark.parametrize("options", [{"spread_job": True}, {"least": True}])
def test_nodes_that_are_taken_in_order_go_by_weight_and_small_ones_are_passed(options):
    tables = tables_of(table_of([node(0, cores=8, weight=2), node(1, cores=2), node(2, cores=4)]))
    selector = by("CR_CORE", "CR_LLN") if options.pop("least", False) else None
    assert indices(chosen(tables, selector, num_tasks=3, min_nodes=1, max_nodes=1, **options)) == [
        2
    ]
    assert indices(chosen(tables, selector, num_tasks=6, min_nodes=1, max_nodes=1, **options)) == [
        0
    ]


def test_a_task_that_does_not_fit_gets_the_cpus_that_are_left():
    tables = tables_of(table_of([node(0, cores=6), node(1, cores=6)]))
    allocation = chosen(tables, num_tasks=3, cpus_per_task=4)
    assert (allocation.cpus, [share.cores.bit_count() for share in allocation.shares]) == (
        10,
        [6, 4],
    )


def test_cpus_that_a_node_must_have_are_held_in_whole_tasks():
    tables = tables_of(table(1, cores=8))
    assert chosen(tables, num_tasks=1, cpus_per_task=4, min_cpus_node=6).cpus == 4
    assert chosen(tables, num_tasks=1, cpus_per_task=2, min_cpus_node=4).cpus == 4
    assert chosen(tables, num_tasks=1, cpus_per_task=2, min_cpus_node=9) is None


def test_a_task_of_two_cores_has_the_last_sockets_of_one_core_where_it_is_alone_on_its_socket():
    tables = tables_of(table_of([node(0, sockets=8)]))
    assert (
        chosen(tables, num_tasks=1, cpus_per_task=2, ntasks_per_socket=1).shares[0].cores
        == 0b11000000
    )
