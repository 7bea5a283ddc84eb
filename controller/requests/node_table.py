"""scontrol create and delete node.

Place: requests. Follows: scontrol(1) "NODES - SPECIFICATIONS FOR CREATE COMMAND";
slurm.conf(5) MaxNodeCount. The node table has the nodes of slurm.conf. Slurm takes in new ones up
to MaxNodeCount, and without a word none where there is no room, which is so unless slurm.conf
leaves some. A node that is deleted is in no partition, and FUTURE: nobody sees it, and nothing runs
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.core import nodeset_indices
from understudy.controller.core.lookups import node_bitmap
from understudy.controller.nodes.reboot import give_up_reboot
from understudy.controller.pending.eligibility import review_all
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.model import hostlist
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import Message, Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import ChangeNodeTable


def change_node_table(core: Core, message: ChangeNodeTable, sender: Sender) -> Message:
    """Create or delete nodes."""
    core.require_admin(sender)
    if message.action == "create":
        _create(core, message.nodes, message.state.upper())
    elif message.action == "delete":
        _delete(core, message.nodes)
    else:
        raise SlurmError(-1, f"unknown action {message.action}")
    return Ok()


def _create(core: Core, expression: str, state: str) -> None:
    """There is room for nodes if MaxNodeCount says so, and then they are refused, as the table does
    not grow.
    """
    if state not in {"FUTURE", "CLOUD"}:
        raise SlurmError(ErrorCode.INVALID_NODE_STATE)
    try:
        names = hostlist.expand(expression)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_NODE) from None
    table = core.tables.nodes
    unknown = [name for name in names if name not in table.index_of]
    most = dict(core.show_configuration()).get("MaxNodeCount", "")
    if unknown and most.isdecimal() and int(most) > len(table.nodes):
        raise SlurmError(ErrorCode.NOT_SUPPORTED)


def _delete(core: Core, expression: str) -> None:
    nodes = core.names.all if expression.upper() == "ALL" else node_bitmap(core, expression)
    if not nodes:
        raise SlurmError(ErrorCode.INVALID_NODE)
    table, now = core.tables.nodes, core.time.now()
    is_reserved = any(reservation.nodes & nodes for reservation in core.tables.reservations)
    if (
        nodes & ~table.idle_nodes
        or is_reserved
        or any(job.completing_nodes & nodes for job in core.completing.values())
    ):
        raise SlurmError(ErrorCode.NODES_BUSY)
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        give_up_reboot(core, node, now)
        advance(node, NodeEvent.DELETED, now)
        node.reason, node.reason_time, node.reason_user_id = "", None, 0
        if core.power is not None:
            core.power.follow(node)
        table.set_availability(node)
    for partition in core.tables.partitions.values():
        if partition.nodes & nodes:
            partition.nodes &= ~nodes
            partition.node_expression = core.names.to_expression(partition.nodes)
            core.journal.partition(partition.name)
    table.reconfigured()
    core.forget_feasibility()
    core.journal.nodes(nodes)
    core.last_node_update = core.last_partition_update = now
    review_all(core, now)
    core.changed(Note.CHANGE, now)
