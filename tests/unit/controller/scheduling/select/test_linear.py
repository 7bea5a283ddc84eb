"""Which whole nodes select/linear gives."""

import pytest
from scheduling_harness import make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.preemption import Preemption, Rules
from understudy.model import nodeset
from understudy.model.hostlist import compress, expand
from understudy.model.states import JobState

ALL = (1 << 64) - 1


def chosen(tables, usable=ALL, **fields):
    return SelectLinear().select(Ask(make_job(**fields), tables.partitions["main"], usable), tables)


def test_whole_nodes_are_given():
    allocation = chosen(tables_of(table(3, cores=4)), num_tasks=5)
    assert (nodeset.indices(allocation.nodes), allocation.cpus, allocation.whole) == (
        [0, 1],
        8,
        True,
    )


def test_tasks_are_spread_evenly_over_whole_nodes():
    assert chosen(tables_of(table(3, cores=4)), num_tasks=5).per_node_text("tasks") == "3,2"


def test_only_idle_nodes_are_taken():
    tables = tables_of(table(2, cores=4))
    tables.nodes.allocate(chosen(tables, num_tasks=1))
    assert nodeset.indices(chosen(tables, num_tasks=1).nodes) == [1]
    assert chosen(tables, num_tasks=5) is None


def test_nodes_of_higher_weight_join_only_when_needed():
    tables = tables_of(table_of([node(0, weight=9), node(1, weight=1), node(2, weight=1)]))
    assert nodeset.indices(chosen(tables, num_tasks=2, min_nodes=2).nodes) == [1, 2]
    assert nodeset.indices(chosen(tables, num_tasks=3, min_nodes=3).nodes) == [0, 1, 2]


def test_the_biggest_nodes_come_first_where_the_smallest_would_not_do():
    tables = tables_of(
        table_of([node(0, cores=2), node(1, cores=8), node(2, cores=8), node(3, cores=2)])
    )
    assert nodeset.indices(chosen(tables, num_tasks=8).nodes) == [2]


def test_the_biggest_nodes_come_first_there_though_they_are_to_be_neighbours():
    tables = tables_of(
        table_of([node(0, cores=2), node(1, cores=8), node(2, cores=2), node(3, cores=8)])
    )
    assert nodeset.indices(chosen(tables, num_tasks=12, contiguous=True).nodes) == [1, 3]


def test_heavier_nodes_join_to_give_a_job_the_nodes_that_it_would_like():
    tables = tables_of(table_of([node(0, weight=1), node(1, weight=9), node(2, weight=9)]))
    assert nodeset.indices(chosen(tables, min_nodes=1, max_nodes=2).nodes) == [0, 1]


def test_required_nodes_are_taken():
    tables = tables_of(table(5))
    assert nodeset.indices(
        chosen(tables, num_tasks=2, min_nodes=2, required_nodes=0b1000).nodes
    ) == [3, 4]
    tables.nodes.allocate(chosen(tables, usable=0b1000, num_tasks=1))
    assert chosen(tables, num_tasks=1, required_nodes=0b1000) is None


def test_nodes_with_too_little_memory_are_not_taken():
    tables = tables_of(table_of([node(0, memory=100), node(1, memory=500)]))
    assert nodeset.indices(chosen(tables, memory_per_node_mb=300).nodes) == [1]
    assert chosen(tables, memory_per_node_mb=501) is None


def test_running_jobs_are_taken_to_end_one_by_one():
    tables = tables_of(table(4))
    selector, main = SelectLinear(), tables.partitions["main"]
    for job_id, nodes in ((1, 0b0001), (2, 0b0110)):
        job = make_job(job_id, limit_s=600, required_nodes=nodes, min_nodes=nodes.bit_count())
        job.allocation, job.start_time = selector.select(Ask(job, main, 0b0111), tables), 0
        tables.nodes.allocate(job.allocation)
        tables.running[job_id] = job
    wanted = make_job(9, min_nodes=2, num_tasks=2)
    assert selector.will_run(Ask(wanted, main, 0b1111), tables, 100) == (600, 0b1001), (
        "both end at 600, but the first is enough"
    )


def test_where_memory_is_counted_a_job_needs_that_of_all_cpus_of_its_nodes():
    """Slurm 22.05.8, nodes of 8 CPUs and 1,000 MB: --mem-per-cpu=125 runs; 126 is taken in, has no
    expected start and never starts.
    """
    tables, main = tables_of(table(2, cores=8, memory=1000)), tables_of(table(2)).partitions["main"]
    selector = SelectLinear(frozenset({"CR_MEMORY"}))
    for memory, tasks, starts in ((125, 8, True), (126, 1, False), (200, 6, False)):
        job = make_job(num_tasks=tasks, memory_per_cpu_mb=memory)
        assert selector.could_ever_run(Ask(job, main, main.nodes), tables)
        assert (selector.select(Ask(job, main, ALL), tables) is not None) == starts
        assert (selector.will_run(Ask(job, main, ALL), tables, 100) is not None) == starts
    assert not selector.could_ever_run(
        Ask(make_job(memory_per_cpu_mb=1001), main, main.nodes), tables
    )
    assert (
        SelectLinear().select(Ask(make_job(memory_per_cpu_mb=126), main, ALL), tables) is not None
    )


def test_where_memory_is_not_counted_a_node_needs_that_of_one_cpu():
    tables = tables_of(table(1, cores=8, memory=1000))
    main, selector = tables.partitions["main"], SelectLinear()
    for tasks, memory, starts in ((2, 600, True), (8, 1000, True), (1, 1001, False)):
        job = make_job(num_tasks=tasks, memory_per_cpu_mb=memory)
        assert (selector.select(Ask(job, main, 1), tables) is not None) == starts


def pushing_aside(running, size):
    """The nodes, of seven, for a job of the highest partition beside jobs of (partition, nodes)."""
    every = nodeset.mask(7)
    tiers = {"low": 1, "mid": 5, "main": 9}
    tables = tables_of(
        table(7), [Partition(name, every, priority_tier=tier) for name, tier in tiers.items()]
    )
    rules = Rules.read("preempt/partition_prio", "SUSPEND,GANG", 0)
    tables.preemption = Preemption(tables.partitions, tables.running, rules, {}, lambda _job: None)
    for job_id, (name, nodes) in enumerate(running, 1):
        usable = nodeset.from_positions([int(each[1:]) - 1 for each in expand(nodes)])
        job = make_job(job_id, min_nodes=usable.bit_count(), partitions=(name,))
        job.allocation = SelectLinear().select(Ask(job, tables.partitions[name], usable), tables)
        tables.nodes.allocate(job.allocation)
        job.state, job.start_time, job.partition = JobState.RUNNING, 0, name
        tables.running[job_id] = tables.jobs[job_id] = job
    found = chosen(tables, job_id=99, min_nodes=size)
    return compress([f"n{index + 1}" for index in nodeset.indices(found.nodes)])


@pytest.mark.parametrize(
    ("running", "size", "nodes"),
    [
        ("low=n3 low=n5 low=n[6-7]", 4, "n[1-4]"),
        ("low=n[1-3] low=n4 low=n[5-7]", 1, "n4"),
        ("low=n[1-3] low=n[4-6] low=n7", 2, "n[1-2]"),
        ("low=n[1-2] low=n[3-5] low=n6 low=n7", 3, "n[1-2,6]"),
        ("low=n2 low=n3 low=n[4-6] low=n7", 5, "n[1-2,4-6]"),
        ("mid=n1 low=n[2-4] low=n[5-7]", 1, "n2"),
        ("mid=n1 mid=n2 mid=n[3-4] low=n[5-6] low=n7", 5, "n[1-2,5-7]"),
        ("mid=n1 mid=n2 low=n[3-5] low=n[6-7]", 3, "n[3-5]"),
    ],
)
def test_jobs_make_room_from_the_smallest_of_the_lowest_tier_up_as_far_as_is_needed(
    running, size, nodes
):
    """Recorded from 22.05.8."""
    jobs = [each.split("=") for each in running.split()]
    assert pushing_aside(jobs, size) == nodes


@pytest.mark.parametrize(
    "asked", [{"threads_per_core": 1}, {"ntasks_per_core": 1}, {"hint": "nomultithread"}]
)
def test_nothing_that_is_said_of_threads_takes_more_nodes(asked):
    """Seen of 22.05.8: a node with four cores of two threads is for seven tasks all the same."""
    tables = tables_of(table_of([node(i, cores=4, threads=2) for i in range(3)]))
    job = make_job(num_tasks=7, **asked)
    allocation = SelectLinear().select(Ask(job, tables.partitions["main"], 0b111), tables)
    assert allocation is not None
    assert allocation.nodes.bit_count() == 1
