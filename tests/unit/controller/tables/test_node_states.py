"""The states of nodes."""

from __future__ import annotations

import pytest
from controller_harness import Harness

from understudy.controller.tables.node_states import TRANSITIONS, NodeEvent, advance
from understudy.controller.tables.transitions import InvalidTransition
from understudy.model.states import NodeFlag, NodeState

OFF = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)
# as slurm.conf may have them
FIRST = (
    (NodeState.UNKNOWN, NodeFlag.NONE),
    (NodeState.UNKNOWN, NodeFlag.DRAIN),
    (NodeState.UNKNOWN, NodeFlag.FAIL),
    (NodeState.UNKNOWN, NodeFlag.CLOUD),
    (NodeState.DOWN, NodeFlag.NONE),
    (NodeState.FUTURE, NodeFlag.NONE),
    (NodeState.IDLE, NodeFlag.CLOUD | NodeFlag.POWERED_DOWN),
)


def reachable() -> set[tuple[NodeState, NodeFlag]]:
    """All that a node can become."""
    found, ahead = set(FIRST), list(FIRST)
    while ahead:
        state, flags = ahead.pop()
        for (before, _), change in TRANSITIONS.items():
            if before is state and change.may_happen(flags):
                after = (change.state, change.flags_after(flags))
                if after not in found:
                    found.add(after)
                    ahead.append(after)
    return found


REACHABLE = reachable()


def test_every_event_is_in_the_table() -> None:
    assert {event for _, event in TRANSITIONS} == set(NodeEvent)


def test_a_reboot_is_asked_for_or_issued_but_not_both() -> None:
    both = NodeFlag.REBOOT_REQUESTED | NodeFlag.REBOOT_ISSUED
    assert not [flags for _, flags in REACHABLE if flags & both == both]


def test_a_node_is_not_switched_off_and_on_at_once() -> None:
    down = NodeFlag.POWERING_DOWN
    assert not [flags for _, flags in REACHABLE if flags & down and flags & NodeFlag.POWERING_UP]
    assert not [flags for _, flags in REACHABLE if flags & down and flags & NodeFlag.POWER_UP]


def test_what_only_shows_is_not_kept() -> None:
    shown = NodeFlag.COMPLETING | NodeFlag.MAINT | NodeFlag.RESERVED | NodeFlag.PLANNED
    assert {state for state, _ in REACHABLE} == {
        NodeState.UNKNOWN,
        NodeState.DOWN,
        NodeState.IDLE,
        NodeState.FUTURE,
    }
    assert not [flags for _, flags in REACHABLE if flags & shown]


def test_what_cannot_happen_is_refused_with_the_story_and_changes_nothing() -> None:
    node = Harness().core.tables.nodes.nodes[0]
    advance(node, NodeEvent.DRAINED, 7.0)
    with pytest.raises(InvalidTransition, match=r"rebooted while node n1 IDLE\|DRAIN: .*7\.000 dr"):
        advance(node, NodeEvent.REBOOTED, 8.0)
    assert (node.state, node.flags) == (NodeState.IDLE, NodeFlag.DRAIN)


def test_the_story_tells_what_made_a_difference() -> None:
    node = Harness().core.tables.nodes.nodes[0]
    node.log.clear()
    for event in (NodeEvent.HEARD_OF, NodeEvent.SILENT, NodeEvent.SILENT, NodeEvent.HEARD_OF):
        advance(node, event, 7.0)
    assert [what for _, what in node.log] == [NodeEvent.SILENT, NodeEvent.HEARD_OF]
