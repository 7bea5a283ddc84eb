import pytest
from scheduling_harness import node, table, table_of

from understudy.controller.job import Allocation, NodeShare, ShareGroup
from understudy.controller.scheduling.features import feature_sets
from understudy.model.errors import SlurmError


def test_shares_that_are_alike_are_one_group():
    allocation = Allocation.of_shares([NodeShare(0, 4, 15, 0, 2), NodeShare(2, 2, 3, 0, 1), NodeShare(1, 4, 15, 0, 2)])
    assert [group.nodes for group in allocation.groups] == [0b011, 0b100]
    assert (allocation.cpus, allocation.tasks, allocation.node_count, allocation.first_node) == (10, 5, 3, 0)
    assert [share.node for share in allocation.shares] == [0, 1, 2]
    assert allocation.per_node_text() == "4(x2),2"
    assert allocation.cpus_on(0b101) == 6
    assert allocation.share_on(2) == NodeShare(2, 2, 3, 0, 1)
    assert allocation.share_on(3) is None


def test_an_allocation_survives_packing():
    allocation = Allocation.of_groups((ShareGroup(1 << 9_999 | 3, 2, 1 << 200, 7, 2), ShareGroup(4, 1, 1, 0)), whole=True)
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
    [("a", (1,)), ("a|b", (3,)), ("a&b|c", (4,)), ("a&(b|ab)", (0,)), ("[a|b]", (1, 2)), ("[a|b]|c", (5, 6)), ("none", (0,)), ("", (15,))],
)
def test_feature_expressions_are_read_from_left_to_right(expression, sets):
    assert feature_sets(expression, lambda name: {"a": 1, "b": 2, "c": 4}.get(name, 0), 15) == sets


@pytest.mark.parametrize("expression", ["a&", "&a", "(a", "a)", "[a|b", "a*2", "[a&b]", "a b"])
def test_what_is_no_feature_expression_is_refused(expression):
    with pytest.raises(SlurmError, match="Invalid feature"):
        feature_sets(expression, lambda _: 1, 15)
