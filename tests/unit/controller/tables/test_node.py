"""Allocations, and the table of nodes that they are taken from.

Covers: controller/tables/allocation, controller/tables/partition.
"""

import pytest
from scheduling_harness import node, table, table_of

from understudy.controller.scheduling.select.features import check_form, feature_sets
from understudy.controller.tables.allocation import Allocation, NodeShare, ShareGroup
from understudy.controller.tables.partition import Partition
from understudy.model.errors import SlurmError
from understudy.model.states import NodeState


def test_shares_that_are_alike_are_one_group():
    allocation = Allocation.of_shares(
        [NodeShare(0, 4, 15, 0, 2), NodeShare(2, 2, 3, 0, 1), NodeShare(1, 4, 15, 0, 2)]
    )
    assert [group.nodes for group in allocation.groups] == [0b011, 0b100]
    assert (allocation.cpus, allocation.tasks, allocation.node_count, allocation.first_node) == (
        10,
        5,
        3,
        0,
    )
    assert [share.node for share in allocation.shares] == [0, 1, 2]
    assert allocation.per_node_text() == "4(x2),2"
    assert allocation.cpus_on(0b101) == 6
    assert allocation.share_on(2) == NodeShare(2, 2, 3, 0, 1)
    assert allocation.share_on(3) is None


def test_an_allocation_survives_packing():
    allocation = Allocation.of_groups(
        (ShareGroup(1 << 9_999 | 3, 2, 1 << 200, 7, 2), ShareGroup(4, 1, 1, 0)), whole=True
    )
    assert Allocation.unpack(allocation.pack()) == allocation


def test_a_node_given_in_part_is_neither_idle_nor_full():
    made = table(2, cores=4)
    made.allocate(Allocation.of_groups((ShareGroup(0b11, 3, 0b0111, 100),)))
    assert (made.idle_nodes, made.full_nodes) == (0, 0)
    made.allocate(Allocation.of_groups((ShareGroup(0b10, 1, 0b1000, 100),)))
    assert (made.full_nodes, made.free_memory.tolist()) == (0b10, [900, 800])


def test_resources_come_back_node_by_node():
    made = table(3, cores=2)
    allocation = Allocation.of_groups((ShareGroup(0b111, 2, 0b11, 10),), whole=True)
    made.allocate(allocation)
    made.release(allocation, 0b101)
    assert (made.idle_nodes, made.full_nodes, made.exclusive_nodes) == (0b101, 0b010, 0b010)
    assert made.used_cores == [0, 0b11, 0]


def test_giving_a_cpu_twice_is_noticed():
    made = table(1, cores=2)
    made.allocate(Allocation.of_groups((ShareGroup(1, 1, 0b01, 0),)))
    with pytest.raises(AssertionError, match="cores of n0"):
        made.allocate(Allocation.of_groups((ShareGroup(1, 1, 0b01, 0),)))
    with pytest.raises(AssertionError, match="over-committed"):
        made.allocate(Allocation.of_groups((ShareGroup(1, 2, 0b110, 0),)))


def test_nodes_are_of_one_kind_or_of_several():
    made = table_of([node(0), node(1, cores=2), node(2)])
    assert [kind.nodes for kind in made.kinds] == [0b101, 0b010]
    assert made.kind_of(0b100) is made.kinds[0]
    assert made.kind_of(0b110) is None
    made.nodes[1].weight = 9
    made.reconfigured()
    assert made.kinds[1].weight == made.weight[1] == 9


@pytest.mark.parametrize(
    ("expression", "sets"),
    [
        ("a", (1,)),
        ("a|b", (3,)),
        ("a&b|c", (4,)),
        ("a&(b|ab)", (0,)),
        ("[a|b]", (1, 2)),
        ("[a|b]|c", (5, 6)),
        ("a&", (1,)),
        ("b|", (2,)),
        ("none", (0,)),
        ("", (15,)),
    ],
)
def test_feature_expressions_are_read_from_left_to_right(expression, sets):
    assert feature_sets(expression, lambda name: {"a": 1, "b": 2, "c": 4}.get(name, 0), 15) == sets


@pytest.mark.parametrize("expression", ["a&&", "&a", "(a", "a)", "[a|b", "a*2", "[a&b]", "a b"])
def test_what_is_no_feature_expression_is_refused(expression):
    with pytest.raises(SlurmError, match="Invalid feature"):
        feature_sets(expression, lambda _: 1, 15)


def test_what_jobs_hold_is_in_the_vectors_when_somebody_looks():
    made = table(4, cores=2)
    first = Allocation.of_groups((ShareGroup(0b0011, 2, 0b11, 10),))
    second = Allocation.of_groups((ShareGroup(0b1100, 1, 0b01, 20),))
    third = Allocation.of_groups((ShareGroup(0b0100, 1, 0b10, 30),))
    for allocation in (first, second, third):  # the third joins the second
        made.allocate(allocation)
    assert (made.idle_nodes, made.full_nodes) == (0, 0b0111)
    assert (made.free_cpus.tolist(), made.used_cores, made.job_count.tolist()) == (
        [0, 0, 0, 1],
        [3, 3, 3, 1],
        [1, 1, 2, 1],
    )
    made.release(first, 0b0001)
    made.release(second, second.nodes)
    assert (made.idle_nodes, made.full_nodes, made.free_memory.tolist()) == (
        0b1001,
        0b0010,
        [1000, 990, 970, 1000],
    )


def test_a_job_that_came_and_went_unseen_leaves_no_trace():
    made = table(3, cores=2)
    allocation = Allocation.of_groups((ShareGroup(0b111, 2, 0b11, 10),), whole=True)
    made.allocate(allocation)
    assert (made.idle_nodes, made.full_nodes, made.exclusive_nodes) == (0, 0b111, 0b111)
    made.release(allocation, 0b111)
    assert (made.idle_nodes, made.full_nodes, made.exclusive_nodes) == (0b111, 0, 0)
    assert made.free_cpus.tolist() == [2, 2, 2]


def test_cores_of_large_nodes_are_kept_beyond_machine_integers():
    made = table(2, cores=200)
    made.allocate(Allocation.of_groups((ShareGroup(0b01, 1, 1 << 199, 0),)))
    made.allocate(Allocation.of_groups((ShareGroup(0b11, 1, 1, 0),)))
    assert made.used_cores == [1 << 199 | 1, 1]


def test_the_last_departure_of_a_node_counts():
    made = table(3)
    made.note_departure(0b011, 10)
    made.note_departure(0b001, 20)
    assert made.last_busy.tolist() == [20, 10, 0]
    for second in range(30, 10_000):
        made.note_departure(0b100, second)
    assert made.last_busy.tolist() == [20, 10, 9999]


@pytest.mark.parametrize(
    ("state", "schedules", "takes_in"),
    [("UP", True, True), ("DOWN", False, True), ("DRAIN", True, False), ("INACTIVE", False, False)],
)
def test_a_partitions_state_says_what_may_start_and_what_may_join(state, schedules, takes_in):
    partition = Partition("main", state=state)
    assert (partition.can_schedule, partition.can_submit) == (schedules, takes_in)


_TAKEN = [
    "a",
    "a*2",
    "a&b",
    "a,b",
    "a|",
    "a&",
    "(a)",
    "(a&b)|c",
    "(a|b)*2",
    "[a]",
    "[a|b]",
    "[a|b]&c",
    "c&[a|b]",
    "[a*1]",
    "[a*1&b*2]",
    "[(a&b)|c]",
    "a*1|b*1",
    "[a|b]|c",
]
_REFUSED = [
    "a b",
    " a",
    "a ",
    "(a",
    "a)",
    "[a",
    "a]",
    "()",
    "((a))",
    "a**2",
    "a*0",
    "a*x",
    "a*-1",
    "*2",
    "|a",
    "a||b",
    "&",
    "(a)(b)",
    "[a][b]",
]
_REFUSED += ["[a&b]", "[a*2|b]", "[a*1|b*1]", "[a|b]*2", "a*"]


@pytest.mark.parametrize("text", _TAKEN)
def test_expressions_of_features_that_slurm_takes(text: str) -> None:
    check_form(text)


@pytest.mark.parametrize("text", _REFUSED)
def test_expressions_of_features_that_slurm_refuses(text: str) -> None:
    with pytest.raises(SlurmError):
        check_form(text)


def test_of_many_nodes_it_is_seen_at_once_which_take_jobs():
    made, told = table(70, cores=4), []
    made.watcher = lambda each: told.append(each.index)
    made.up_nodes = 1 << 3 | 1 << 5 | 1 << 69
    for at in (5, 69):
        made.nodes[at].state = NodeState.DOWN
    made.set_availabilities([made.nodes[at] for at in (5, 6, 69)])
    assert made.up_nodes == 1 << 3 | 1 << 6
    assert told == [5, 6, 69]
