"""The states of a node: one table says what each event makes of its base state and flags, one
function moves a node, and nothing else assigns them but `restore`.

Place: tables, pure; `node.py` has the record, and who moves a node tells the table of nodes whether
it may take jobs now. Follows: sinfo(1) "NODE STATE CODES"; scontrol(1) update NodeName State=,
reboot; slurm.conf(5) on power saving.

The base is UNKNOWN, DOWN, IDLE or FUTURE. All else that is shown follows from elsewhere: ALLOCATED
and MIXED from what is free, COMPLETING from the jobs, MAINT, RESERVED and PLANNED from reservations
and plans.
"""

from __future__ import annotations

from enum import StrEnum
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from understudy.controller.tables.transitions import Change, InvalidTransition
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.tables.node import Node

_REMEMBERED: Final = 8  # events, for the node's story


class NodeEvent(StrEnum):
    """What can happen to a node."""

    # its daemon
    REGISTERED = "registered"
    REGISTERED_SHORT = "registered with less than is configured"
    HEARD_OF = "heard of"
    SILENT = "silent"
    LOST = "lost"  # SlurmdTimeout
    RETURNED = "returned to service"
    # what it is to be
    SET_DOWN = "set down"
    SET_IDLE = "set idle"
    SET_FUTURE = "set future"
    DELETED = "deleted"
    DRAINED = "drained"
    UNDRAINED = "undrained"
    FAILING = "failing"
    MENDED = "mended"
    RESUMED = "resumed"
    # reboots
    REBOOT_ASKED = "reboot asked"
    REBOOT_ASKED_ASAP = "reboot asked asap"
    REBOOT_CANCELLED = "reboot cancelled"
    REBOOT_GIVEN_UP = "reboot given up"  # for another fate
    REBOOT_ISSUED = "reboot issued"
    REBOOTED = "rebooted"
    REBOOTED_TO_SERVE = "rebooted to serve"  # as was asked for
    REBOOTED_TO_STAY = "rebooted to stay down"  # as was asked for
    REBOOT_TIMED_OUT = "reboot timed out"
    # power saving
    POWER_DOWN_ASKED = "power down asked"
    POWER_DOWN_ASKED_ASAP = "power down asked asap"
    POWER_DOWN_FORCED = "power down forced"
    POWER_DRAIN_OVER = "power drain over"
    POWERING_DOWN = "powering down"
    POWERED_DOWN = "powered down"
    LEFT_OFF = "left off"  # resumed while it was switched off
    POWER_UP_ASKED = "power up asked"
    POWERING_UP = "powering up"
    RESUME_TIMED_OUT = "resume timed out"
    BOOTED = "booted"
    BOOTED_LATE = "booted late"  # when nobody waited for it any more


_Changes = dict[tuple[NodeState, NodeEvent], Change[NodeState, NodeFlag]]
UNKNOWN, DOWN, IDLE, FUTURE = (
    NodeState.UNKNOWN,
    NodeState.DOWN,
    NodeState.IDLE,
    NodeState.FUTURE,
)
_THERE: Final = (UNKNOWN, DOWN, IDLE)
_EVERY: Final = (*_THERE, FUTURE)
_OFF: Final = NodeFlag.POWERED_DOWN | NodeFlag.POWERING_DOWN | NodeFlag.POWERING_UP
_REBOOT: Final = NodeFlag.REBOOT_REQUESTED | NodeFlag.REBOOT_ISSUED
_OUT: Final = NodeFlag.DRAIN | NodeFlag.FAIL | NodeFlag.POWER_DRAIN
_SILENT_OR_SHORT: Final = NodeFlag.NO_RESPOND | NodeFlag.INVALID_REG
_ASKED: Final = NodeFlag.POWER_DOWN | NodeFlag.POWER_UP
_ALL: Final = reduce(or_, NodeFlag)


def _in(
    event: NodeEvent,
    bases: tuple[NodeState, ...] = _EVERY,
    to: NodeState | None = None,
    *,
    gains: NodeFlag | None = None,
    loses: NodeFlag | None = None,
    needs: NodeFlag | None = None,
    bars: NodeFlag | None = None,
) -> _Changes:
    """The event in each of the base states; `to`: None if that stays."""
    return {
        (base, event): Change(base if to is None else to, gains, loses, needs, bars)
        for base in bases
    }


TRANSITIONS: Final[Mapping[tuple[NodeState, NodeEvent], Change[NodeState, NodeFlag]]] = {
    **_in(NodeEvent.REGISTERED, loses=_SILENT_OR_SHORT, bars=_OFF),
    **_in(NodeEvent.REGISTERED, (UNKNOWN,), IDLE, loses=_SILENT_OR_SHORT, bars=_OFF),
    **_in(
        NodeEvent.REGISTERED_SHORT,
        gains=NodeFlag.DRAIN | NodeFlag.INVALID_REG,
        loses=NodeFlag.NO_RESPOND,
        bars=_OFF,
    ),
    **_in(NodeEvent.HEARD_OF, loses=NodeFlag.NO_RESPOND),
    **_in(NodeEvent.SILENT, gains=NodeFlag.NO_RESPOND),
    **_in(NodeEvent.LOST, (IDLE,), DOWN, bars=_OFF),
    **_in(NodeEvent.RETURNED, (DOWN, IDLE), IDLE),
    **_in(NodeEvent.SET_DOWN, to=DOWN),
    **_in(NodeEvent.SET_IDLE, _THERE, IDLE, loses=_OUT),
    **_in(NodeEvent.SET_FUTURE, to=FUTURE),
    **_in(NodeEvent.DELETED, to=FUTURE, loses=_ALL),
    **_in(NodeEvent.DRAINED, gains=NodeFlag.DRAIN, loses=NodeFlag.FAIL),
    **_in(NodeEvent.UNDRAINED, loses=NodeFlag.DRAIN),
    **_in(NodeEvent.FAILING, gains=NodeFlag.FAIL, loses=NodeFlag.DRAIN),
    **_in(NodeEvent.MENDED, loses=NodeFlag.FAIL),
    **_in(NodeEvent.RESUMED, (UNKNOWN,), loses=_OUT),
    **_in(NodeEvent.RESUMED, (DOWN, IDLE, FUTURE), IDLE, loses=_OUT),
    **_in(
        NodeEvent.REBOOT_ASKED,
        _THERE,
        gains=NodeFlag.REBOOT_REQUESTED,
        bars=_OFF | _REBOOT,
    ),
    **_in(
        NodeEvent.REBOOT_ASKED_ASAP,
        _THERE,
        gains=NodeFlag.REBOOT_REQUESTED | NodeFlag.DRAIN,
        bars=_OFF | _REBOOT,
    ),
    **_in(
        NodeEvent.REBOOT_CANCELLED,
        _THERE,
        loses=NodeFlag.REBOOT_REQUESTED | NodeFlag.DRAIN,
        needs=NodeFlag.REBOOT_REQUESTED,
    ),
    **_in(NodeEvent.REBOOT_GIVEN_UP, loses=_REBOOT),
    **_in(
        NodeEvent.REBOOT_ISSUED,
        _THERE,
        DOWN,
        gains=NodeFlag.REBOOT_ISSUED,
        loses=NodeFlag.REBOOT_REQUESTED,
        needs=NodeFlag.REBOOT_REQUESTED,
    ),
    **_in(
        NodeEvent.REBOOTED,
        _THERE,
        IDLE,
        loses=NodeFlag.REBOOT_ISSUED,
        needs=NodeFlag.REBOOT_ISSUED,
    ),
    **_in(
        NodeEvent.REBOOTED_TO_SERVE,
        _THERE,
        IDLE,
        loses=NodeFlag.REBOOT_ISSUED | NodeFlag.DRAIN,
        needs=NodeFlag.REBOOT_ISSUED,
    ),
    **{
        at: change
        for event in (NodeEvent.REBOOTED_TO_STAY, NodeEvent.REBOOT_TIMED_OUT)
        for at, change in _in(
            event,
            _THERE,
            loses=NodeFlag.REBOOT_ISSUED | NodeFlag.DRAIN,
            needs=NodeFlag.REBOOT_ISSUED,
        ).items()
    },
    **_in(
        NodeEvent.POWER_DOWN_ASKED,
        gains=NodeFlag.POWER_DOWN,
        loses=NodeFlag.POWERED_DOWN | NodeFlag.POWER_UP,
        bars=NodeFlag.POWERING_DOWN,
    ),
    **_in(NodeEvent.POWER_DOWN_ASKED_ASAP, gains=NodeFlag.DRAIN | NodeFlag.POWER_DRAIN),
    **_in(NodeEvent.POWER_DOWN_FORCED, to=IDLE),
    **_in(
        NodeEvent.POWER_DRAIN_OVER,
        loses=NodeFlag.DRAIN | NodeFlag.POWER_DRAIN,
        needs=NodeFlag.POWER_DRAIN,
    ),
    **_in(
        NodeEvent.POWERING_DOWN,
        gains=NodeFlag.POWERING_DOWN,
        loses=_ASKED | NodeFlag.POWERED_DOWN | NodeFlag.NO_RESPOND,
        bars=NodeFlag.POWERING_UP,
    ),
    **_in(
        NodeEvent.POWERED_DOWN,
        gains=NodeFlag.POWERED_DOWN,
        loses=NodeFlag.POWERING_DOWN | NodeFlag.NO_RESPOND,
        needs=NodeFlag.POWERING_DOWN,
    ),
    **_in(
        NodeEvent.LEFT_OFF,
        gains=NodeFlag.POWERED_DOWN,
        loses=NodeFlag.POWERING_DOWN,
        needs=NodeFlag.POWERING_DOWN,
    ),
    **_in(
        NodeEvent.POWER_UP_ASKED,
        gains=NodeFlag.POWERED_DOWN | NodeFlag.POWER_UP,
        needs=NodeFlag.POWERED_DOWN | NodeFlag.POWERING_UP,
        bars=NodeFlag.POWERING_DOWN,
    ),
    **_in(
        NodeEvent.POWERING_UP,
        gains=NodeFlag.POWERING_UP | NodeFlag.NO_RESPOND,
        loses=NodeFlag.POWERED_DOWN | NodeFlag.POWER_UP,
        needs=NodeFlag.POWERED_DOWN,
    ),
    **{
        at: change
        for bases, to in ((_THERE, DOWN), ((FUTURE,), FUTURE))
        for at, change in (
            _in(
                NodeEvent.RESUME_TIMED_OUT,
                bases,
                to,
                gains=NodeFlag.POWERED_DOWN,
                loses=NodeFlag.POWERING_UP | _ASKED | NodeFlag.DRAIN,
                needs=NodeFlag.POWERING_UP,
            )
            | _in(NodeEvent.BOOTED_LATE, bases, to, loses=_OFF | NodeFlag.NO_RESPOND)
        ).items()
    },
    **_in(NodeEvent.BOOTED, loses=_OFF | NodeFlag.NO_RESPOND),
    **_in(NodeEvent.BOOTED, (UNKNOWN,), IDLE, loses=_OFF | NodeFlag.NO_RESPOND),
}


def advance(node: Node, event: NodeEvent, now: float) -> None:
    """Move the node.

    Raises:
        InvalidTransition: with the node's story; the node is unchanged.
    """
    before = node.state, node.flags
    change = TRANSITIONS.get((node.state, event))
    flags = None if change is None else change.after(node.flags)
    if change is None or flags is None:
        raise InvalidTransition(f"{event} while {node.story}")
    node.state = change.state
    node.flags = flags
    if before != (node.state, node.flags):
        node.log.append((now, event))
        del node.log[:-_REMEMBERED]


def restore(node: Node, state: NodeState, flags: NodeFlag) -> None:
    """The node is as it was saved."""
    node.state, node.flags = state, flags
