"""scontrol reboot and cancel_reboot.

Place: requests; `nodes/reboot.py` does it. Follows: scontrol(1) "reboot".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.core import nodeset_indices
from understudy.controller.core.lookups import node_bitmap
from understudy.controller.nodes.reboot import AFTER, IN_PROGRESS, reboot_idle
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.node import OFF
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import NodeState
from understudy.protocol.messages import Message, Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import RebootNodes


def reboot_nodes(core: Core, message: RebootNodes, sender: Sender) -> Message:
    """Have nodes boot when they are idle. Those that are about to are left alone."""
    if not core.is_admin(sender.user_id):
        raise SlurmError(ErrorCode.PERMISSION_DENIED, "Permission denied")
    table = core.tables.nodes
    nodes = (
        (1 << len(table.nodes)) - 1
        if message.nodes.upper() == "ALL"
        else node_bitmap(core, message.nodes)
    )
    after = AFTER.get(message.next_state.upper())
    if after is None:
        raise SlurmError(ErrorCode.INVALID_NODE_STATE)
    now = core.time.now()
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        if node.flags & (IN_PROGRESS | OFF) or node.state is NodeState.FUTURE:
            continue
        asked = NodeEvent.REBOOT_ASKED_ASAP if message.asap else NodeEvent.REBOOT_ASKED
        advance(node, asked, now)
        node.next_state = after
        reason = message.reason
        if message.asap:
            node.next_state = after or NodeState.IDLE
        if reason or not node.reason:
            reason = reason or ("Reboot ASAP" if message.asap else "reboot requested")
            node.reason, node.reason_time, node.reason_user_id = reason, int(now), sender.user_id
        table.set_availability(node)
        core.reboots |= 1 << index
    core.journal.nodes(nodes)
    core.last_node_update = now
    reboot_idle(core, now)
    core.changed(Note.CHANGE, now)
    return Ok()
