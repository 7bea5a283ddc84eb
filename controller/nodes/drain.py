"""A node is drained by the controller: its prolog, epilog or launch failed.

Place: nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.core import log, nodeset_indices
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import NodeFlag

if TYPE_CHECKING:
    from understudy.controller.core.core import Core


def drain(core: Core, names: str, reason: str, now: float) -> None:
    """Something is wrong with the nodes: what runs there may end, and nothing else has_begun."""
    table = core.tables.nodes
    try:
        nodes = core.names.to_bitmap(names)
    except ValueError as error:
        raise SlurmError(ErrorCode.INVALID_NODE, str(error)) from None
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        if not node.flags & NodeFlag.DRAIN:
            advance(node, NodeEvent.DRAINED, now)
            node.reason, node.reason_time, node.reason_user_id = (
                reason,
                int(now),
                min(core.settings.admin_ids, default=0),
            )
            table.set_availability(node)
            log.error("drain_nodes: node %s state set to DRAIN, reason: %s", node.name, reason)
    core.last_node_update = now
    core.journal.nodes(nodes)
