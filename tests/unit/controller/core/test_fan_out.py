"""Messages to nodes that are hops of their own, as the controller sends them."""

from __future__ import annotations

from tests.harness.controller_harness import FakeTime, FakeWire

from understudy.controller.core.agents import Agents
from understudy.controller.core.fan_out import FanOut
from understudy.model.hostlist import expand
from understudy.protocol.messages import (
    Failure,
    Forward,
    NodeReplies,
    NodeReply,
    Ok,
    Ping,
    TerminateJob,
)

NODES = [f"n{i}" for i in range(8)]
GONE = Failure(1006, "lost")


class Setup:
    def __init__(self, **options: int) -> None:
        self.time, self.wire, self.settled = FakeTime(0.0), FakeWire(), 0
        self.fan_out = FanOut(
            self.wire,
            self.time,
            after_event=self.settle,
            **{"width": 2, **options},  # type: ignore[arg-type]
        )

    def settle(self) -> None:
        self.settled += 1

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Whom the messages on the way are for, and which nodes they name."""
        return [
            (sent.peer, sent.message.nodes)
            for sent in self.wire.sent
            if isinstance(sent.message, Forward)
        ]

    def answer(self, code: int = 0) -> None:
        """The oldest message reaches all of its nodes, which answer with this code."""
        sent = self.wire.sent.pop(0)
        assert isinstance(sent.message, Forward)
        sent.answer(NodeReplies([NodeReply(sent.message.nodes, code, "")]))

    def lose(self) -> None:
        self.wire.sent.pop(0).answer(GONE)


def test_heads_get_the_message_with_their_parts_and_all_codes_come_back() -> None:
    s, found = Setup(), []
    s.fan_out.send(NODES, Ping(), done=found.append)
    assert s.parts == [("n0", "n[0-3]"), ("n4", "n[4-7]")]
    s.answer()
    assert found == []
    s.answer(2017)
    assert found == [{node: 0 if node < "n4" else 2017 for node in NODES}]
    assert s.settled == 2
    assert (s.fan_out.trees, s.fan_out.sent, s.time.waiting) == (1, 2, 0)


def test_without_a_width_all_nodes_are_told_by_the_sender() -> None:
    s = Setup(width=0)
    s.fan_out.send(NODES, Ping())
    assert s.parts == [(node, node) for node in NODES]


def test_nodes_that_are_not_reached_are_asked_again_and_no_others() -> None:
    s, found = Setup(), []
    s.fan_out.send(NODES, Ping(), done=found.append)
    s.lose()  # n0: n1 takes its place
    assert s.parts == [("n4", "n[4-7]"), ("n1", "n[1-3]")]
    s.answer()
    s.answer()
    assert (found, s.parts) == ([], [])
    s.time.run_until(1.0)
    assert s.parts == [("n0", "n0")]
    s.lose()
    s.time.run_until(2.9)
    assert s.parts == []
    s.time.run_until(3.0)  # twice as long
    s.answer()
    assert found == [dict.fromkeys(NODES, 0)]


def test_what_nobody_wants_any_more_is_not_sent_again() -> None:
    s, wanted = Setup(), [True]
    s.fan_out.send(["n0"], Ping(), wanted=lambda: wanted[0])
    s.lose()
    wanted.clear()
    wanted.append(False)
    s.time.run_until(100.0)
    assert (s.parts, s.time.waiting) == ([], 0)


def test_after_its_rounds_who_asked_hears_who_was_not_reached() -> None:
    s, found = Setup(), []
    s.fan_out.send(["n0", "n1"], Ping(), rounds=2, done=found.append)
    s.lose()
    s.answer()
    s.time.run_until(1.0)
    s.lose()
    assert found == [{"n0": 1006, "n1": 0}]
    assert s.time.waiting == 0


def test_no_more_trees_are_under_way_than_there_are_descriptors_for_and_one_always_may() -> None:
    s = Setup(at_most=4, width=1)
    for _ in range(2):
        s.fan_out.send(NODES, Ping())
    s.fan_out.send(["n1"], Ping())
    assert s.parts == [("n0", "n[0-7]")]
    s.answer()
    assert s.parts == [("n0", "n[0-7]")]
    s.answer()
    assert s.parts == [("n1", "n1")]


def test_a_late_answer_of_a_tree_that_is_over_changes_nothing() -> None:
    s, found = Setup(width=1), []
    s.fan_out.send(["n0"], Ping(), done=found.append)
    sent = s.wire.sent[0]
    s.answer()
    sent.answer(NodeReplies([NodeReply("n0", 5, "")]))
    assert found == [{"n0": 0}]


def test_nobody_to_send_to_is_no_tree() -> None:
    s = Setup()
    s.fan_out.send([], Ping())
    assert s.fan_out.trees == 0


def test_agents_send_to_nodes_by_the_fan_out_and_launches_to_the_node_itself() -> None:
    s = Setup()
    agents = Agents(s.wire, s.time)
    agents.add_daemon("noded0", "unix:/0")
    agents.fan_out = s.fan_out
    agents.send_to_many([("noded0", "n[0-7]")], lambda nodes: TerminateJob(1, 0, nodes))
    assert [node for _, nodes in s.parts for node in expand(nodes)] == NODES
    s.wire.sent.clear()
    agents.send("noded0", TerminateJob(2, 0), node="n5")
    agents.send("noded0", TerminateJob(3, 0))
    assert [sent.peer for sent in s.wire.sent] == ["n5", "noded0"]
    s.wire.sent[0].answer(Ok())
    assert agents.statistics()[2:] == (4, 0, 0, 1)


def test_a_node_that_does_not_answer_says_nothing_of_the_others_of_its_daemon() -> None:
    s, heard = Setup(), []
    agents = Agents(s.wire, s.time)
    agents.add_daemon("noded0", "unix:/0")
    agents.fan_out = s.fan_out
    agents.on_response = lambda name, _responds: heard.append(name)
    agents.send("noded0", TerminateJob(1, 0), node="n5")
    s.lose()
    agents.send("noded0", TerminateJob(2, 0), node="n6")
    assert [sent.peer for sent in s.wire.sent] == ["n6"]
    assert "noded0" not in heard
    s.time.run_until(1.0)
    assert [sent.peer for sent in s.wire.sent] == ["n6", "n5"]
