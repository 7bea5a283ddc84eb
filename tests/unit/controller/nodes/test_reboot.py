"""scontrol reboot: from the request to the node's return.

Covers: controller/requests/reboot.
"""

from __future__ import annotations

import pytest
from controller_harness import ROOT, START, USER, Harness

from understudy.controller.nodes.reboot import recover_reboots
from understudy.controller.saved.records import decode_node, encode_node
from understudy.controller.tables.settings import Settings
from understudy.model.states import NodeFlag, NodeState
from understudy.protocol.messages import Failure, Ok, RebootNodes


@pytest.fixture
def h() -> Harness:
    return Harness()


def node(h: Harness, index: int = 0) -> tuple[NodeState, NodeFlag, str]:
    found = h.core.tables.nodes.nodes[index]
    return found.state, found.flags, found.reason


def test_an_idle_node_boots_within_a_second_and_comes_back(h: Harness) -> None:
    assert h.ask(RebootNodes("n1"), ROOT) == Ok()
    assert node(h) == (NodeState.IDLE, NodeFlag.REBOOT_REQUESTED, "reboot requested")
    h.run(1)
    assert node(h) == (NodeState.DOWN, NodeFlag.REBOOT_ISSUED, "reboot requested : reboot issued")
    assert not h.core.tables.nodes.up_nodes & 1
    h.run(31)
    assert node(h) == (NodeState.IDLE, NodeFlag.NONE, "")
    assert h.core.tables.nodes.up_nodes & 1


def test_others_are_refused_as_scontrol_says_it(h: Harness) -> None:
    assert h.ask(RebootNodes("n1"), USER) == Failure(13, "Permission denied")


def test_a_busy_node_boots_when_its_job_has_left_and_takes_others_until_then(h: Harness) -> None:
    job = h.submit(required_nodes="n1")
    h.acknowledge()
    h.ask(RebootNodes("n1"), ROOT)
    h.run(60)
    assert node(h)[1] == NodeFlag.REBOOT_REQUESTED
    assert h.core.tables.nodes.up_nodes & 1
    h.complete(job)
    h.run(2)
    assert node(h)[1] == NodeFlag.REBOOT_ISSUED


def test_asap_keeps_new_jobs_away(h: Harness) -> None:
    job = h.submit(required_nodes="n1")
    h.acknowledge()
    h.ask(RebootNodes("n1", asap=True), ROOT)
    assert node(h) == (NodeState.IDLE, NodeFlag.DRAIN | NodeFlag.REBOOT_REQUESTED, "Reboot ASAP")
    assert h.query("nodes", "next_state", name=["n1"]) == [[int(NodeState.IDLE)]]
    assert h.submit(required_nodes="n1").is_pending
    h.cancel(job)
    h.acknowledge()
    h.epilog(job)
    h.run(40)
    assert node(h)[1:] == (NodeFlag.NONE, "")
    assert h.query("nodes", "next_state", name=["n1"]) == [[0]]


def test_the_state_after_the_boot_may_be_down(h: Harness) -> None:
    h.ask(RebootNodes("n1", next_state="DOWN", reason="bios"), ROOT)
    h.run(40)
    assert node(h) == (NodeState.DOWN, NodeFlag.NONE, "bios : reboot issued : reboot complete")


def test_a_node_that_is_not_back_in_time_stays_down() -> None:
    h = Harness(settings=Settings(resume_timeout_s=20))
    h.ask(RebootNodes("n1", asap=True, reason="x"), ROOT)
    h.run(22)
    assert node(h)[1] == NodeFlag.DRAIN | NodeFlag.REBOOT_ISSUED
    h.run(9)  # the look at the time limits
    assert node(h) == (NodeState.DOWN, NodeFlag.NONE, "x : reboot issued : reboot timed out")


def test_a_request_can_be_cancelled_until_the_node_boots(h: Harness) -> None:
    h.ask(RebootNodes("n1", asap=True), ROOT)
    assert h.update_nodes("n1", state="cancel_reboot") == Ok()
    assert node(h) == (NodeState.IDLE, NodeFlag.NONE, "")
    assert h.update_nodes("n1", state="cancel_reboot").code == 2028
    h.run(5)
    assert node(h)[0] is NodeState.IDLE


def test_a_node_that_is_to_be_in_future_does_not_boot(h: Harness) -> None:
    h.ask(RebootNodes("n1"), ROOT)
    h.update_nodes("n1", state="FUTURE")
    h.run(100)
    assert node(h)[:2] == (NodeState.FUTURE, NodeFlag.NONE)


def test_only_administrators_reboot_nodes_that_exist(h: Harness) -> None:
    assert isinstance(h.ask(RebootNodes("n1"), USER), Failure)
    assert h.ask(RebootNodes("n9"), ROOT).code == 2018
    assert h.ask(RebootNodes("n1", next_state="UP"), ROOT).code == 2028


def test_all_means_every_node(h: Harness) -> None:
    h.ask(RebootNodes("all"), ROOT)
    h.run(2)
    assert {node(h, index)[1] for index in range(4)} == {NodeFlag.REBOOT_ISSUED}


def test_a_boot_goes_on_when_the_controller_was_away(h: Harness) -> None:
    h.ask(RebootNodes("n[1-2]", next_state="DOWN"), ROOT)
    h.submit(required_nodes="n2")
    h.run(1)
    later = Harness()
    for before, after in zip(h.core.tables.nodes.nodes, later.core.tables.nodes.nodes, strict=True):
        decode_node(encode_node(before), after)
    recover_reboots(later.core, later.time.now())
    later.run(40)
    assert [node(later, index)[:2] for index in (0, 1)] == [(NodeState.DOWN, NodeFlag.NONE)] * 2


def test_a_node_that_an_administrator_has_drained_stays_so_over_a_boot(h: Harness) -> None:
    h.update_nodes("n[1-2]", state="drain", reason="mine")
    h.ask(RebootNodes("n1"), ROOT)
    h.ask(RebootNodes("n2", next_state="RESUME"), ROOT)
    h.run(40)
    assert node(h) == (NodeState.IDLE, NodeFlag.DRAIN, "mine : reboot issued")
    assert node(h, 1) == (NodeState.IDLE, NodeFlag.NONE, "")
    h.ask(RebootNodes("n1", asap=True, next_state="DOWN"), ROOT)
    assert node(h)[2] == "mine : reboot issued"
    h.run(2)
    assert node(h) == (NodeState.DOWN, NodeFlag.DRAIN | NodeFlag.REBOOT_ISSUED, "reboot issued")
    h.run(40)
    assert node(h) == (NodeState.DOWN, NodeFlag.NONE, "reboot issued : reboot complete")


def test_a_node_that_is_down_is_back_in_service_after_a_boot(h: Harness) -> None:
    h.update_nodes("n1", state="down", reason="gone")
    h.ask(RebootNodes("n1"), ROOT)
    assert node(h) == (NodeState.DOWN, NodeFlag.REBOOT_REQUESTED, "gone")
    h.run(2)
    assert node(h) == (NodeState.DOWN, NodeFlag.REBOOT_ISSUED, "gone : reboot issued")
    h.run(40)
    assert node(h) == (NodeState.IDLE, NodeFlag.NONE, "")


def test_cancelling_a_reboot_undrains_the_node_whoever_drained_it(h: Harness) -> None:
    h.submit(required_nodes="n1")
    h.ask(RebootNodes("n1"), ROOT)
    h.update_nodes("n1", state="drain", reason="mine")
    assert h.update_nodes("n1", state="cancel_reboot") == Ok()
    assert node(h) == (NodeState.IDLE, NodeFlag.NONE, "")


def test_resume_takes_a_node_out_of_its_boot(h: Harness) -> None:
    h.ask(RebootNodes("n1", asap=True, next_state="DOWN"), ROOT)
    h.run(2)
    assert h.update_nodes("n1", state="resume") == Ok()
    h.run(2)
    h.acknowledge()
    assert node(h) == (NodeState.IDLE, NodeFlag.NONE, "")
    h.run(60)
    assert node(h) == (NodeState.IDLE, NodeFlag.NONE, "")


def test_a_job_that_comes_before_the_boot_takes_the_reason_away(h: Harness) -> None:
    h.submit(required_nodes="n1", mem_per_cpu_mb=1)
    h.ask(RebootNodes("n1"), ROOT)
    assert node(h)[2] == "reboot requested"
    h.submit(required_nodes="n1", mem_per_cpu_mb=1)
    assert node(h) == (NodeState.IDLE, NodeFlag.REBOOT_REQUESTED, "")


def test_the_reason_is_of_the_time_of_the_last_step(h: Harness) -> None:
    h.submit(required_nodes="n1")
    h.ask(RebootNodes("n1", asap=True), ROOT)
    h.run(50)
    h.update_nodes("n1", state="down", reason="dd")
    h.acknowledge()
    h.run(2)
    assert node(h) == (
        NodeState.DOWN,
        NodeFlag.DRAIN | NodeFlag.REBOOT_ISSUED,
        "dd : reboot issued",
    )
    assert h.query("nodes", "reason_time", name=["n1"])[0][0] > START + 49
