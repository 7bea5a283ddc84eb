"""Registration, silence and failure of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controller_harness import START, USER, FakeSender, Harness

from understudy.controller.core.fan_out import FanOut
from understudy.controller.nodes.events import look_at_devices, start_pinging
from understudy.controller.requests import node_news
from understudy.controller.tables.gres import GresTable
from understudy.controller.tables.settings import Settings
from understudy.model.states import JobState, NodeFlag, NodeState
from understudy.protocol.messages import (
    ControlJobs,
    Failure,
    FindJobs,
    LaunchBatch,
    NodeReplies,
    NodeReply,
    Ok,
    Ping,
    Registered,
    RegisterNodes,
    TerminateJob,
    UpdateJobs,
)

if TYPE_CHECKING:
    from understudy.controller.core.core import Core

DAEMON = FakeSender("noded0", 0, 0, is_daemon=True)
GONE = Failure(1005, "no connection")


def test_nodes_are_unknown_until_they_register() -> None:
    h = Harness(register=False)
    job = h.submit()
    assert job.is_pending
    assert h.query("nodes", "state", "daemon", "boot_time", name=["n1"]) == [[0, "", None]]
    assert h.register("noded0") == Registered([])
    assert job.is_running
    assert h.query("nodes", "state", "daemon", "boot_time", name=["n2"]) == [
        [2, "noded0", int(START) - 100]
    ]


def test_only_daemons_register_and_only_nodes_that_exist() -> None:
    h = Harness(register=False)
    message = RegisterNodes("noded0", "unix:/x", "n[1-4]", 1.0, 1.0)
    assert isinstance(h.ask(message, USER), Failure)
    assert h.ask(RegisterNodes("noded0", "unix:/x", "n[5-9]", 1.0, 1.0), DAEMON).code == 2018
    assert h.core.tables.nodes.up_nodes == 0


@pytest.mark.parametrize(
    ("returns", "reason", "state"),
    [
        (0, "Not responding", NodeState.DOWN),
        (1, "Not responding", NodeState.IDLE),
        (1, "broken", NodeState.DOWN),
        (2, "broken", NodeState.IDLE),
    ],
)
def test_return_to_service_decides_whether_a_down_node_comes_back(
    returns: int, reason: str, state: NodeState
) -> None:
    h = Harness(settings=Settings(return_to_service=returns))
    h.update_nodes("n1", state="down", reason=reason)
    h.register("noded0")
    assert h.core.tables.nodes.nodes[0].state is state


def test_a_node_moves_to_the_daemon_that_registered_it_last() -> None:
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    h.ask(
        RegisterNodes("noded1", "unix:/b", "n[2-4]", 1.0, 1.0),
        FakeSender("noded1", 0, 0, is_daemon=True),
    )
    assert (h.core.daemons["noded0"].nodes, h.core.daemons["noded1"].nodes) == (0b0001, 0b1110)
    h.submit(required_nodes="n2")
    assert h.sent(LaunchBatch)[0].peer == "noded1"


def test_a_job_is_lost_when_its_daemon_is_restarted_without_it() -> None:
    h = Harness()
    job = h.submit(requeue=False)
    h.acknowledge()
    h.run(10)
    h.register("noded0", [], started=START + 5)
    assert job.state is JobState.RUNNING
    h.find()
    assert (job.state, job.reason) == (JobState.NODE_FAIL, "NodeDown")


def test_jobs_are_looked_through_only_when_a_node_has_booted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def look(_core: Core, _nodes: int, message: RegisterNodes) -> list[Any]:
        looked.append(int(message.boot_time))
        return []

    monkeypatch.setattr(node_news, "_jobs_from_before", look)
    h = Harness()
    assert len(looked) == 1
    h.submit()
    h.register("noded0", [])
    assert len(looked) == 1
    h.core.tables.nodes.nodes[0].boot_time = 17
    h.register("noded0", [])
    assert len(looked) == 2


def test_a_daemon_that_registers_again_keeps_its_jobs() -> None:
    h = Harness()
    job = h.submit()
    h.acknowledge()
    h.register("noded0", [(job.job_id, 0)])
    assert not h.sent(FindJobs)
    h.register("noded0", [])
    h.find(job)
    assert job.is_running, "its end is on the way"


def test_a_job_whose_launch_arrived_after_the_registration_was_written_is_not_lost() -> None:
    h = Harness()
    job = h.submit()
    h.acknowledge()
    h.register("noded0", [], started=START + 5)
    h.find(job)
    assert job.is_running


def test_a_job_that_ends_or_is_requeued_while_its_daemon_is_asked_for_it_is_not_lost_again() -> (
    None
):
    h = Harness()
    ended, requeued = h.submit(), h.submit()
    h.acknowledge()
    h.register("noded0", [])
    assert len(h.sent(FindJobs)) == 1
    h.finish(ended)
    h.ask(ControlJobs("requeue", [str(requeued.job_id)]))
    h.find()
    assert ended.state is JobState.COMPLETED
    assert requeued.restarts == 0
    h.acknowledge()
    h.epilog(requeued)
    h.run(200)
    assert (requeued.state, requeued.restarts) == (JobState.RUNNING, 1)


def test_an_earlier_run_of_a_job_is_ended_where_it_is_still_found() -> None:
    h = Harness()
    job = h.submit()
    h.acknowledge()
    h.ask(ControlJobs("requeue", [str(job.job_id)]))
    h.acknowledge()
    h.epilog(job)
    h.run(200)
    assert (job.state, job.restarts) == (JobState.RUNNING, 1)
    assert h.register("noded0", [(job.job_id, 0), (job.job_id, 1)]) == Registered([(job.job_id, 0)])


def test_a_silent_daemon_is_pinged_marked_and_set_down() -> None:
    h = Harness(settings=Settings(slurmd_timeout_s=300, min_job_age_s=0))
    job = h.submit(requeue=False)
    h.acknowledge()
    start_pinging(h.core)
    h.run(100)
    (ping,) = h.sent(Ping)
    h.wire.sent.clear()
    ping.answer(Ok())
    h.run(100)
    h.lose()
    assert h.core.tables.nodes.nodes[0].flags == NodeFlag.NO_RESPOND
    assert h.core.tables.nodes.up_nodes == 0
    assert job.is_running
    h.run(150)
    h.lose()
    assert job.is_running
    h.run(150)
    h.lose()
    assert (h.core.tables.nodes.nodes[0].state, h.core.tables.nodes.nodes[0].reason) == (
        NodeState.DOWN,
        "Not responding",
    )
    assert job.state is JobState.NODE_FAIL
    assert not job.is_completing


def test_a_daemon_that_answers_again_is_used_again() -> None:
    h = Harness(settings=Settings(slurmd_timeout_s=300, min_job_age_s=0))
    start_pinging(h.core)
    h.run(100)
    h.lose()
    job = h.submit()
    assert job.is_pending
    h.run(100)
    h.acknowledge()
    assert job.is_running


def test_where_each_node_is_a_hop_one_that_is_silent_is_marked_and_set_down_alone() -> None:
    h = Harness(settings=Settings(slurmd_timeout_s=300, return_to_service=2))
    h.core.agents.fan_out = FanOut(h.wire, h.time, width=0)
    nodes = h.core.tables.nodes.nodes
    start_pinging(h.core)

    def ping(*silent: str) -> None:
        """A round of pings: who is silent misses both."""
        h.run(100)
        for waited_s in (2, 0):
            waiting, h.wire.sent = h.wire.sent, []
            for sent in waiting:
                code = 5004 if sent.peer in silent else 0
                sent.answer(NodeReplies([NodeReply(sent.peer, code, "")]))
            h.run(waited_s)

    ping()
    assert not any(node.flags for node in nodes)
    ping("n2")
    assert [node.name for node in nodes if node.flags & NodeFlag.NO_RESPOND] == ["n2"]
    assert h.core.tables.nodes.up_nodes == 0b1101
    ping()
    assert not any(node.flags for node in nodes)
    for _ in range(2):
        ping("n2")
    assert nodes[1].state is NodeState.IDLE
    ping("n2")
    assert [node.name for node in nodes if node.state is NodeState.DOWN] == ["n2"]
    ping()
    assert (nodes[1].state, nodes[1].flags) == (NodeState.IDLE, NodeFlag(0))
    for _ in range(5):
        ping("n1", "n2", "n3", "n4")
    assert all(node.state is NodeState.DOWN for node in nodes)


def test_nobody_is_pinged_under_virtual_time_or_without_a_timeout() -> None:
    for h in (Harness(is_virtual=True), Harness(settings=Settings(slurmd_timeout_s=0))):
        waiting = h.time.waiting
        start_pinging(h.core)
        assert h.time.waiting == waiting


def test_a_node_that_is_set_down_while_its_daemon_is_well_hears_that_its_job_is_over() -> None:
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    job = h.submit(min_nodes=4)
    h.acknowledge()
    h.update_nodes("n[1-4]", state="down", reason="broken")
    assert job.is_pending
    assert not job.is_completing
    assert [(sent.peer, sent.message) for sent in h.sent(TerminateJob)] == [
        ("noded0", TerminateJob(job.job_id, 0, "n[1-2]")),
        ("noded1", TerminateJob(job.job_id, 0, "n[3-4]")),
    ]


def test_a_node_set_down_while_its_job_ends_hears_of_that_when_it_can_be_reached() -> None:
    h = Harness()
    job = h.submit()
    h.acknowledge()
    h.cancel(job)
    h.lose()
    h.update_nodes("n1", state="down", reason="broken")
    assert not job.is_completing
    h.run(60)
    assert h.sent(TerminateJob, job)


@pytest.mark.parametrize(
    ("returns", "front_end", "state", "reason"),
    [
        (1, False, NodeState.DOWN, "broken"),
        (2, True, NodeState.DOWN, "broken"),
        (2, False, NodeState.IDLE, ""),
    ],
)
def test_a_node_set_down_under_a_job_is_back_when_its_daemon_has_taken_the_order_to_end_it(
    returns: int, front_end: bool, state: NodeState, reason: str
) -> None:
    h = Harness(settings=Settings(return_to_service=returns, front_end=front_end))
    h.submit(required_nodes="n1", requeue=False)
    h.acknowledge()
    h.update_nodes("n[1-2]", state="down", reason="broken")
    nodes = h.core.tables.nodes.nodes
    assert nodes[0].state is NodeState.DOWN
    h.acknowledge()
    assert (nodes[0].state, nodes[0].reason) == (state, reason)
    assert nodes[1].state is NodeState.DOWN


def test_a_node_that_was_drained_and_set_down_comes_back_drained() -> None:
    h = Harness(settings=Settings(return_to_service=2))
    h.submit(required_nodes="n1", requeue=False)
    h.update_nodes("n1", state="drain", reason="disk")
    h.update_nodes("n1", state="down", reason="broken")
    h.acknowledge()
    node = h.core.tables.nodes.nodes[0]
    assert (node.state, node.flags, node.reason) == (NodeState.IDLE, NodeFlag.DRAIN, "broken")


@pytest.mark.parametrize("is_virtual", [True, False])
def test_a_node_set_down_without_a_job_is_back_with_the_next_ping(is_virtual: bool) -> None:
    h = Harness(settings=Settings(return_to_service=2, slurmd_timeout_s=30), is_virtual=is_virtual)
    start_pinging(h.core)
    h.run(12)
    h.acknowledge()
    h.update_nodes("n1", state="down", reason="broken")
    h.run(7)
    h.acknowledge()
    assert h.core.tables.nodes.nodes[0].state is NodeState.DOWN
    h.run(1)
    h.acknowledge()
    assert h.core.tables.nodes.nodes[0].state is NodeState.IDLE


def test_a_node_is_put_back_into_service_when_its_daemon_has_answered_the_loop() -> None:
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    h.update_nodes("n[1,3]", state="drain", reason="disk")
    h.update_nodes("n[1,3]", state="resume")
    nodes = h.core.tables.nodes.nodes
    assert [nodes[index].flags for index in (0, 2)] == [NodeFlag.NO_RESPOND] * 2
    h.run(0.5)
    assert not h.sent(Ping)
    h.run(0.5)
    pings = h.sent(Ping)
    assert [ping.peer for ping in pings] == ["noded0", "noded1"]
    pings[0].answer(Ok())
    pings[1].answer(GONE)
    assert [nodes[index].flags for index in (0, 2)] == [NodeFlag.NONE, NodeFlag.NO_RESPOND]
    assert h.core.tables.nodes.up_nodes == 0b1011


def test_a_front_end_is_not_asked_about_a_node_that_is_put_back_into_service() -> None:
    h = Harness(settings=Settings(front_end=True))
    h.update_nodes("n1", state="drain", reason="disk")
    h.update_nodes("n1", state="resume")
    assert h.core.tables.nodes.up_nodes == 0b1111


def test_a_job_that_runs_elsewhere_by_now_is_unknown_to_the_daemon_that_lost_it() -> None:
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    job = h.submit(required_nodes="n3")
    h.acknowledge()
    assert h.register("noded1", [(job.job_id, 0)]) == Registered([])
    assert h.register("noded0", [(job.job_id, 0)]) == Registered([(job.job_id, 0)])


@pytest.mark.parametrize("front_end", [True, False])
def test_a_job_with_no_kill_goes_on_without_a_node_that_fails_and_the_node_is_free(
    front_end: bool,
) -> None:
    h = Harness(settings=Settings(front_end=front_end))
    job = h.submit(no_kill=True, min_nodes=3, num_tasks=6, requeue=False)
    h.acknowledge()
    before = job.allocation
    h.update_nodes("n2", state="down", reason="broken")
    assert job.is_running
    assert (job.node_list, job.allocation.nodes) == ("n[1,3]", 0b0101)
    assert job.allocation.cpus == before.cpus - before.cpus_on(0b0010)
    h.update_nodes("n2", state="resume")
    h.run(5)
    assert h.core.tables.nodes.idle_nodes & 0b0010
    h.update_nodes("n1", state="down", reason="broken")  # where its script runs
    assert job.node_list == "n3"
    assert job.state is (JobState.RUNNING if front_end else JobState.FAILED)
    assert job.reason == ("None" if front_end else "JobLaunchFailure")
    if not front_end:
        return
    h.update_nodes("n3", state="down", reason="broken")
    assert job.state is JobState.NODE_FAIL
    assert not h.core.tables.nodes.completing_nodes & ~0b0100


def test_daemons_whose_nodes_a_job_gives_back_end_what_it_has_there() -> None:
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    job = h.submit(min_nodes=4, num_tasks=4)
    h.acknowledge()
    h.ask(UpdateJobs([str(job.job_id)], {"numnodes": "3"}), USER)
    assert not h.sent(TerminateJob)  # noded1 has a node of it that it keeps
    h.ask(UpdateJobs([str(job.job_id)], {"numnodes": "2"}), USER)
    assert [(sent.peer, sent.message.nodes) for sent in h.sent(TerminateJob)] == [("noded1", "n3")]


class Lacking:
    """Of n1 something is missing."""

    def __init__(self) -> None:
        self.what = {"n1": "gres/gpu count reported lower than configured (1 < 2)"}

    def lack(self, name: str, _text: str) -> str:
        return self.what.get(name, "")


def lacking() -> tuple[Harness, Lacking]:
    h = Harness(register=False, settings=Settings(return_to_service=2))
    nodes, gres = h.core.tables.nodes, GresTable(("gpu",), [()] * 4)
    gres.configured = devices = Lacking()  # type: ignore[assignment]
    nodes.gres = gres
    for node in nodes.nodes:
        node.gres = "gpu:2"
    h.register("noded0")
    return h, devices


def test_a_node_that_registers_with_less_than_is_configured_gets_no_jobs() -> None:
    h, devices = lacking()
    first, second = h.core.tables.nodes.nodes[:2]
    short = NodeFlag.DRAIN | NodeFlag.INVALID_REG
    assert (first.state, first.flags, first.reason) == (
        NodeState.UNKNOWN,
        short,
        devices.what["n1"],
    )
    assert (second.state, second.flags) == (NodeState.IDLE, NodeFlag.NONE)
    assert not h.core.tables.nodes.up_nodes & 1
    for state in ("resume", "undrain", "idle", "future"):
        assert h.update_nodes("n1", state=state).code == 2028
    h.update_nodes("n1", state="down", reason="broken")
    h.register("noded0")
    assert (first.state, first.flags, first.reason) == (NodeState.DOWN, short, "broken")


def test_a_node_that_is_whole_again_stays_drained_until_it_is_resumed() -> None:
    h, devices = lacking()
    node = h.core.tables.nodes.nodes[0]
    look_at_devices(h.core, h.time.now())
    assert node.flags & NodeFlag.INVALID_REG
    devices.what.clear()
    look_at_devices(h.core, h.time.now())
    assert (node.state, node.flags) == (NodeState.IDLE, NodeFlag.DRAIN)
    h.update_nodes("n1", state="resume")
    assert not node.flags & NodeFlag.DRAIN
