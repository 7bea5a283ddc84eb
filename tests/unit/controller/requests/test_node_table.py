"""scontrol create and delete node."""

from __future__ import annotations

import pytest
from controller_harness import ROOT, START, USER, Harness
from fake_controller import FakeClient, run_command

from understudy.commands.scontrol.scontrol import scontrol
from understudy.commands.shared.client import RefusedError
from understudy.model.states import NodeFlag, NodeState
from understudy.protocol.messages import (
    ChangeNodeTable,
    Failure,
    Ok,
    RebootNodes,
    UpdateReservation,
)


def code(h: Harness, action: str, nodes: str, state: str = "future", sender: object = ROOT) -> int:
    answer = h.ask(ChangeNodeTable(action, nodes, state), sender)
    return answer.code if isinstance(answer, Failure) else 0


def test_a_deleted_node_is_in_no_partition_and_takes_no_jobs() -> None:
    h = Harness()
    assert code(h, "delete", "n[1-3]") == 0
    assert h.query("partitions", "nodes", name=["main"]) == [["n4"]]
    assert [NodeState(state) for (state,) in h.query("nodes", "state")][:3] == [
        NodeState.FUTURE
    ] * 3
    assert h.submit(num_tasks=1).node_list == "n4"


@pytest.mark.parametrize(
    ("nodes", "refusal"),
    [("n1", 2016), ("n4", 2016), ("n77", 2018), ("", 2018), ("n2", 0), ("ALL", 2016)],
)
def test_nodes_with_jobs_or_reservations_are_kept(nodes: str, refusal: int) -> None:
    h = Harness()
    h.submit(required_nodes="n1", num_tasks=1)
    changes = {
        "starttime": str(int(START) + 100_000),
        "duration": "5",
        "users": "ann",
        "nodes": "n4",
    }
    h.ask(UpdateReservation("create", "r", changes), ROOT)
    assert code(h, "delete", nodes) == refusal


def test_a_node_that_is_deleted_does_not_boot_though_that_was_asked_for() -> None:
    h = Harness()
    h.submit(required_nodes="n2", num_tasks=1)
    h.ask(RebootNodes("n2"), ROOT)
    h.update_nodes("n2", state="DOWN", reason="x")
    assert code(h, "delete", "n2") == 0
    h.run(10)
    node = h.core.tables.nodes.nodes[1]
    assert (node.state, node.flags, h.core.reboots) == (NodeState.FUTURE, NodeFlag.NONE, 0)


def test_only_administrators_change_the_node_table() -> None:
    h = Harness()
    assert code(h, "delete", "n1", sender=USER) == code(h, "create", "x1", sender=USER) == 2010


def test_without_room_new_nodes_are_taken_in_without_effect_and_with_some_refused() -> None:
    h = Harness()
    assert h.ask(ChangeNodeTable("create", "x[1-2]", "cloud"), ROOT) == Ok()
    assert len(h.query("nodes", "name")) == 4
    assert code(h, "create", "x1", "idle") == 2028
    h.core.show_configuration = lambda: [("MaxNodeCount", "9")]
    assert code(h, "create", "x1") == 2036
    assert code(h, "create", "n1") == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("create nodename=x9", ("scontrol: error: Only State=FUTURE and State=CLOUD allowed for "
                                "nodes created by scontrol\n"
         "Error creating the node(s): Invalid node state specified")),
        ("create nodename=x9 state=future nosuch=1",
        ("scontrol: error: Failed to parse nodeline 'nodename=x9 state=future nosuch=1'\n"
         "Error creating the node(s): Unspecified error")),
        ("create nodename=x9 state=future cpus=x",
        ("scontrol: error: Failed to parse nodeline 'nodename=x9 state=future cpus=x'\n"
         "Error creating the node(s): Unspecified error")),
        ("create node x9", ("scontrol: error: Failed to parse nodeline 'node x9'\n"
                            "Error creating the node(s): Unspecified error")),
    ],
)  # fmt: skip
def test_lines_that_are_none_are_not_sent(line: str, said: str) -> None:
    client = FakeClient()
    result = run_command(scontrol, *line.split(), client=client)
    assert (result.code, result.err) == (1, said + "\n")
    assert not client.asked


def test_what_is_asked_and_how_a_refusal_is_said() -> None:
    client = FakeClient()
    assert (
        run_command(
            scontrol, "create", "nodename=x[1-2]", "cpus=4", "state=cloud", client=client
        ).code
        == 0
    )
    client.answers["ChangeNodeTable"] = RefusedError(2016, "Requested nodes are busy")
    result = run_command(scontrol, "delete", "node", "n3,n1", client=client)
    assert (
        result.err == "scontrol: error: failed to delete nodes n[1,3]\n"
        "delete_node node: Requested nodes are busy\n"
    )
    assert client.asked == [
        ("ChangeNodeTable", {"action": "create", "nodes": "x[1-2]", "state": "cloud"}),
        ("ChangeNodeTable", {"action": "delete", "nodes": "n3,n1", "state": ""}),
    ]
