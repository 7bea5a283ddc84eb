"""The forwarding tree, step by step. See tests/property/test_tree_delivery.py for whole trees with
dead nodes anywhere.
"""

import pytest

from understudy.model.cluster import NodeDaemon
from understudy.model.hostlist import expand
from understudy.protocol.messages import Failure, NodeReplies, NodeReply, Ok, Ping
from understudy.protocol.tree import (
    ForwardTree,
    Routes,
    Send,
    Target,
    budget_s,
    levels,
    patience_s,
    split,
)


def hops(count: int) -> list[Target]:
    return [Target(f"d{i}", (f"n{i}",)) for i in range(count)]


def all_well(send: Send) -> NodeReplies:
    return NodeReplies([NodeReply(send.message.nodes, 0, "")])


def outcomes(tree: ForwardTree) -> dict[str, int]:
    assert tree.result is not None
    return {node: reply.code for reply in tree.result.replies for node in expand(reply.nodes)}


@pytest.mark.parametrize(
    ("count", "width"),
    [(1, 32), (31, 32), (32, 32), (33, 32), (16384, 32), (7, 1), (7, 2), (16384, 2)],
)
def test_parts_are_equal_in_order_and_at_most_as_many_as_the_tree_is_wide(count, width):
    targets = hops(count)
    parts = split(targets, width)
    assert [target for part in parts for target in part] == targets
    assert len(parts) == min(count, width)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_sixteen_thousand_nodes_are_three_levels_below_the_sender():
    assert levels(16384 // 32, 32) == 3
    assert levels(1, 32) == 1
    assert levels(0, 32) == 0
    assert levels(5, 1) == 5


def test_timeouts_grow_with_depth_and_leave_time_to_replace_a_hanging_head():
    assert patience_s(1, 32, 10.0) < patience_s(33, 32, 10.0) < patience_s(512, 32, 10.0)
    for size in (2, 33, 512):
        child = -(-(size - 1) // 32)
        assert patience_s(child, 32, 10.0) < budget_s(size, 32, 10.0) < patience_s(size, 32, 10.0)


def test_a_tree_without_targets_is_complete_at_once():
    tree = ForwardTree(Ping(), [], 32, 10.0)
    assert tree.start() == []
    assert tree.result == NodeReplies([])


def test_one_daemon_that_stands_for_all_nodes_gets_one_message():
    nodes = tuple(f"n{i}" for i in range(16384))
    tree = ForwardTree(Ping(), [Target("noded0", nodes)], 32, 10.0)
    [send] = tree.start()
    assert (send.peer, send.message.nodes, send.message.width) == ("noded0", "n[0-16383]", 32)
    tree.answered(send.hop, all_well(send))
    assert tree.result == NodeReplies([NodeReply("n[0-16383]", 0, "")])


def test_heads_are_the_first_of_their_parts_and_get_the_whole_part():
    sends = ForwardTree(Ping(), hops(10), 3, 10.0).start()
    assert [(send.peer, send.message.nodes) for send in sends] == [
        ("d0", "n[0-2]"),
        ("d3", "n[3-5]"),
        ("d6", "n[6-9]"),
    ]


def test_a_head_that_does_not_answer_is_reported_and_replaced_by_the_next_of_its_part():
    tree = ForwardTree(Ping(), hops(6), 2, 10.0)
    first, second = tree.start()
    [again] = tree.answered(first.hop, Failure(5004, "late"))
    assert (again.peer, again.message.nodes) == ("d1", "n[1-2]")
    tree.answered(again.hop, all_well(again))
    assert tree.result is None
    tree.answered(second.hop, all_well(second))
    assert outcomes(tree) == {"n0": 5004, "n1": 0, "n2": 0, "n3": 0, "n4": 0, "n5": 0}


def test_when_all_are_dead_each_node_is_reported():
    tree = ForwardTree(Ping(), hops(40), 3, 10.0)
    sends = tree.start()
    while sends:
        sends += tree.answered(sends.pop(0).hop, Failure(1005, "refused"))
    assert tree.result == NodeReplies([NodeReply("n[0-39]", 1005, "refused")])


def test_nodes_that_a_head_leaves_out_are_reported_and_strangers_are_ignored():
    tree = ForwardTree(Ping(), hops(4), 1, 10.0)
    [send] = tree.start()
    tree.answered(
        send.hop,
        NodeReplies(
            [
                NodeReply("n[1-2]", 0, ""),
                NodeReply("n1,x7", 2017, "no such job"),
                NodeReply("n[", 0, ""),
            ]
        ),
    )
    assert outcomes(tree) == {"n0": 1006, "n1": 0, "n2": 0, "n3": 1006}


def test_an_answer_of_the_wrong_type_counts_as_a_failure():
    tree = ForwardTree(Ping(), hops(1), 1, 10.0)
    [send] = tree.start()
    tree.answered(send.hop, Ok())
    assert outcomes(tree) == {"n0": 1006}


def test_late_answers_change_nothing():
    tree = ForwardTree(Ping(), hops(2), 2, 10.0)
    first, second = tree.start()
    tree.answered(first.hop, all_well(first))
    tree.expire()
    result = tree.result
    assert tree.answered(second.hop, all_well(second)) == []
    assert tree.answered(first.hop, Failure(1006, "")) == []
    assert tree.result is result
    assert outcomes(tree) == {"n0": 0, "n1": 5004}


def test_the_result_does_not_depend_on_the_order_of_answers():
    results = []
    for order in ((0, 1, 2), (2, 0, 1)):
        tree = ForwardTree(Ping(), hops(9), 3, 10.0)
        sends = tree.start()
        for i in order:
            tree.answered(sends[i].hop, NodeReplies([NodeReply(sends[i].message.nodes, i % 2, "")]))
        results.append(tree.result)
    assert results[0] == results[1]


def test_nodes_are_grouped_by_the_daemon_that_stands_for_them():
    routes = Routes.of([NodeDaemon("noded0", "", "n[0-3]"), NodeDaemon("noded1", "", "n[4-7]")])
    assert routes.targets(["n5", "n0", "x1", "n4", "n0"]) == (
        [Target("noded1", ("n5", "n4")), Target("noded0", ("n0",))],
        ["x1"],
    )
