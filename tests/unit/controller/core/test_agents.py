"""Traffic to node daemons."""

from __future__ import annotations

import itertools

from controller_harness import FakeTime, FakeWire

from understudy.controller.core.agents import Agents
from understudy.model.hostlist import expand
from understudy.noded.leader import NOT_LEADING
from understudy.protocol.messages import (
    Failure,
    Forward,
    Message,
    NodeReplies,
    NodeReply,
    Ok,
    TerminateJob,
)

GONE = Failure(1005, "no connection")


class Setup:
    def __init__(self, *, is_virtual: bool = False, **options: int) -> None:
        self.time, self.wire = FakeTime(0.0, is_virtual=is_virtual), FakeWire()
        self.agents = Agents(self.wire, self.time, **options)  # type: ignore[arg-type]
        for number in range(3):
            self.agents.add_daemon(f"noded{number}", f"unix:/{number}")

    def send(self, *jobs: int, **options: object) -> None:
        for job in jobs:
            self.agents.send("noded0", TerminateJob(job, 0), **options)  # type: ignore[arg-type]

    def on_the_way(self) -> list[int]:
        return [sent.message.job_id for sent in self.wire.sent]  # type: ignore[attr-defined]

    def answer(self, answer: Message) -> None:
        self.wire.sent.pop(0).answer(answer)


def test_orders_leave_at_once_up_to_the_limit_and_then_in_order() -> None:
    s = Setup(per_daemon=2)
    s.send(1, 2, 3, 4)
    assert s.on_the_way() == [1, 2]
    s.answer(Ok())
    assert s.on_the_way() == [2, 3]
    assert s.agents.statistics()._replace(trees=0) == (2, 1, 3, 0, 0, 0)


def test_the_limit_for_all_daemons_holds_and_a_free_place_serves_another_daemon() -> None:
    s = Setup(in_all=1)
    s.send(1)
    s.agents.send("noded1", TerminateJob(2, 0))
    assert s.on_the_way() == [1]
    s.answer(Ok())
    assert s.on_the_way() == [2]


def test_a_daemon_that_does_not_respond_is_asked_again_later_in_the_same_order() -> None:
    s = Setup()
    s.send(1, 2, 3)
    s.answer(GONE)
    s.answer(GONE)
    s.answer(GONE)
    s.send(4)
    assert s.on_the_way() == []
    s.time.run_until(1.0)
    assert s.on_the_way() == [1], "one, to see whether it is back"
    s.answer(GONE)
    s.time.run_until(2.9)
    assert s.on_the_way() == []
    s.time.run_until(3.0)
    s.answer(Ok())
    assert s.on_the_way() == [2, 3, 4]


def test_the_pause_between_tries_grows_to_a_minute() -> None:
    s = Setup()
    s.send(1)
    tries = []
    while s.time.now() < 400:
        if s.wire.sent:
            tries.append(s.time.now())
            s.answer(GONE)
        s.time.run_until(s.time.now() + 1)
    assert [b - a for a, b in itertools.pairwise(tries)][:8] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_orders_without_a_purpose_are_dropped() -> None:
    s = Setup()
    s.send(1, wanted=lambda: False)
    s.send(2)
    s.answer(GONE)
    s.answer(GONE)
    s.time.run_until(1.0)
    assert s.on_the_way() == [2]
    assert s.agents.statistics().dropped == 1


def test_a_daemon_that_registers_gets_what_waits_for_it() -> None:
    s = Setup()
    s.send(1, 2)
    s.answer(GONE)
    s.answer(GONE)
    s.agents.daemon_is_back("noded0")
    assert s.on_the_way() == [1, 2]


def test_the_owner_hears_the_answer_and_whether_daemons_respond() -> None:
    s = Setup()
    heard: list[object] = []
    s.agents.on_response = lambda daemon, responds: heard.append((daemon, responds))
    s.send(1, done=heard.append)
    s.answer(GONE)
    s.time.run_until(1.0)
    s.answer(Failure(2017, "Invalid job id specified"))
    assert heard == [("noded0", False), ("noded0", True), Failure(2017, "Invalid job id specified")]


def test_a_daemon_that_does_not_follow_this_controller_yet_is_asked_again() -> None:
    s = Setup()
    s.send(1)
    s.answer(NOT_LEADING)
    assert s.on_the_way() == []
    s.time.run_until(1.0)
    assert s.on_the_way() == [1]


def test_the_watchdog_sends_again_what_got_neither_answer_nor_failure() -> None:
    s = Setup()
    s.send(1)
    lost = s.wire.sent.pop()
    s.time.run_until(200)
    assert s.on_the_way() == [1]
    lost.answer(Ok())
    s.answer(Ok())
    assert s.agents.statistics().in_flight == 0, "the first answer counts, whichever it is"
    s.time.run_until(1000)
    assert s.time.waiting == 0


def test_under_virtual_time_only_failures_are_heard() -> None:
    s = Setup(is_virtual=True)
    s.send(1, 2)
    assert all(sent.only_failures for sent in s.wire.sent)
    assert s.time.waiting == 0
    s.answer(GONE)
    s.answer(GONE)
    s.time.run_until(1.0)
    assert s.on_the_way() == [1, 2]


def test_few_daemons_get_a_message_each_and_many_get_it_down_the_tree() -> None:
    s = Setup(tree_width=2)
    parts = [("noded0", "n[1-2]"), ("noded1", "n[3-4]"), ("noded2", "n5")]
    s.agents.send_to_many(parts[:2], lambda nodes: TerminateJob(1, 0, nodes))
    assert [(sent.peer, sent.message.nodes) for sent in s.wire.sent] == parts[:2]  # type: ignore[attr-defined]
    s.wire.sent.clear()
    s.agents.send_to_many(parts, lambda nodes: TerminateJob(1, 0, nodes))
    assert len(s.wire.sent) == 2
    assert all(isinstance(sent.message, Forward) for sent in s.wire.sent)
    covered = [node for sent in s.wire.sent for node in expand(sent.message.nodes)]  # type: ignore[attr-defined]
    assert covered == ["n1", "n2", "n3", "n4", "n5"]


def test_nodes_that_the_tree_does_not_reach_are_asked_again_one_daemon_at_a_time() -> None:
    s = Setup(tree_width=1)
    s.agents.send_to_many(
        [("noded0", "n[1-2]"), ("noded1", "n3")], lambda nodes: TerminateJob(1, 0, nodes)
    )
    s.answer(NodeReplies([NodeReply("n[1-2]", 0, ""), NodeReply("n3", 1005, "no connection")]))
    (sent,) = s.wire.sent
    assert (sent.peer, sent.message) == ("noded1", TerminateJob(1, 0, "n3"))
