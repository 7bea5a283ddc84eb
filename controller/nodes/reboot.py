"""scontrol reboot: nodes that are to boot again when nobody is on them.

Place: nodes. Follows: scontrol(1) reboot, cancel_reboot. No machine is booted:
whatever the executor, the nodes are away for a while and come back as if their daemon had
registered.

A node waits with REBOOT_REQUESTED until it is idle (and takes no new jobs meanwhile if asked for
ASAP), is DOWN with REBOOT_ISSUED while it boots, and then returns to service, or to the state that
was asked for. If it boots longer than ResumeTimeout it stays DOWN, which is found out when time
limits are checked. Nodes that power saving has switched off are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.alarms import next_check
from understudy.controller.core.core import log, nodeset_indices
from understudy.controller.pending.eligibility import review_all
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.node import Node

# observed at 22.05.8: the controller's loop sees within a second that a node is idle
TICK_S: Final = 1.0
ISSUED: Final = "reboot issued"
IN_PROGRESS: Final = NodeFlag.REBOOT_REQUESTED | NodeFlag.REBOOT_ISSUED
AFTER: Final = {"": NodeState.UNKNOWN, "RESUME": NodeState.IDLE, "DOWN": NodeState.DOWN}
_BOOTED: Final = {
    NodeState.UNKNOWN: NodeEvent.REBOOTED,
    NodeState.IDLE: NodeEvent.REBOOTED_TO_SERVE,
    NodeState.DOWN: NodeEvent.REBOOTED_TO_STAY,
}


def cancel_reboot(core: Core, node: Node, now: float) -> None:
    """Forget the request.

    Raises:
        SlurmError: there is none, or the node boots already.
    """
    if not node.flags & NodeFlag.REBOOT_REQUESTED:
        raise SlurmError(ErrorCode.INVALID_NODE_STATE)
    advance(node, NodeEvent.REBOOT_CANCELLED, now)
    _forget(core, node)
    _clear_reason(node)


def give_up_reboot(core: Core, node: Node, now: float) -> None:
    """The node has another fate: forget that it is to boot, or boots."""
    advance(node, NodeEvent.REBOOT_GIVEN_UP, now)
    _forget(core, node)


def _forget(core: Core, node: Node) -> None:
    node.next_state = NodeState.UNKNOWN
    core.reboots &= ~(1 << node.index)


def _clear_reason(node: Node) -> None:
    node.reason, node.reason_time, node.reason_user_id = "", None, 0


def reboot_idle(core: Core, now: float) -> None:
    """Nodes may have become idle: those of them that are to boot will."""
    if core.reboots & core.tables.nodes.idle_nodes:
        core.at(now + TICK_S, _issue, core)


def _issue(core: Core) -> None:
    table = core.tables.nodes
    ready = core.reboots & table.idle_nodes & ~table.completing_nodes
    if not ready:
        return
    core.reboots &= ~ready
    now = core.time.now()
    for index in nodeset_indices(ready):
        node = table.nodes[index]
        advance(node, NodeEvent.REBOOT_ISSUED, now)
        node.boot_request_time = int(now)
        _say(node, ISSUED, now)
        table.set_availability(node)
    _changed(core, ready, now)
    watch_boots(core, now)


def _say(node: Node, what: str, now: float) -> None:
    """Add to the node's reason; an earlier boot's is not carried on."""
    is_told = node.reason and not (what == ISSUED and ISSUED in node.reason)
    node.reason, node.reason_time = f"{node.reason} : {what}" if is_told else what, int(now)


def watch_boots(core: Core, now: float) -> None:
    """Set the timer for the end of a boot that has just begun."""
    settings = core.settings
    in_time = settings.boot_s < settings.resume_timeout_s
    core.at(
        now + settings.boot_s if in_time else next_check(core, now + settings.resume_timeout_s),
        _check,
        core,
    )


def _check(core: Core) -> None:
    """Nodes whose time to boot is over are back, or (ResumeTimeout) are not."""
    table, now = core.tables.nodes, core.time.now()
    done = 0
    for node in table.nodes:
        if node.flags & NodeFlag.REBOOT_ISSUED and now - node.boot_request_time >= min(
            core.settings.boot_s, core.settings.resume_timeout_s
        ):
            done |= 1 << node.index
            _booted(node, now, in_time=core.settings.resume_timeout_s > core.settings.boot_s)
            table.set_availability(node)
    if done:
        table.note_departure(done & table.up_nodes & table.idle_nodes, int(now))
        _changed(core, done, now)
        review_all(core, now)
        core.changed(Note.CHANGE, now)


def _booted(node: Node, now: float, *, in_time: bool) -> None:
    after, node.next_state = node.next_state, NodeState.UNKNOWN
    advance(node, _BOOTED[after] if in_time else NodeEvent.REBOOT_TIMED_OUT, now)
    if in_time:
        node.boot_time = node.slurmd_start_time = int(now)
    if not in_time or after is NodeState.DOWN:
        _say(node, "reboot complete" if in_time else "reboot timed out", now)
    elif not node.flags & (NodeFlag.DRAIN | NodeFlag.FAIL):
        _clear_reason(node)


def _changed(core: Core, nodes: int, now: float) -> None:
    core.journal.nodes(nodes)
    core.last_node_update = now
    log.info(
        "nodes %s: %s",
        core.names.to_expression(nodes),
        core.tables.nodes.nodes[(nodes & -nodes).bit_length() - 1].reason or "booted",
    )


def recover_reboots(core: Core, now: float) -> None:
    """The controller was away: go on with the boots that were asked for or had begun."""
    for node in core.tables.nodes.nodes:
        if not node.flags:
            continue
        if node.flags & NodeFlag.REBOOT_REQUESTED:
            core.reboots |= 1 << node.index
        elif node.flags & NodeFlag.REBOOT_ISSUED:
            watch_boots(core, max(float(node.boot_request_time), now - core.settings.boot_s))
    reboot_idle(core, now)
