"""scontrol update nodename=...

Place: requests. Follows: scontrol(1) "NODES - SPECIFICATIONS FOR UPDATE COMMAND":
administrators only; a reason is needed to take a node out.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from understudy.controller.core.core import log, nodeset_indices
from understudy.controller.nodes.events import ask_at_next_ping, ask_at_next_tick, nodes_down
from understudy.controller.nodes.reboot import IN_PROGRESS, cancel_reboot, give_up_reboot
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.node import OFF
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.model import hostlist
from understudy.model.cpu_binding import cpu_binding
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gres import read_configured
from understudy.model.states import NodeFlag, NodeState
from understudy.protocol.messages import Message, Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.node import Node
    from understudy.protocol.messages import UpdateNodes

NOBODY: Final = 65_534  # who drains a node for POWER_DOWN_ASAP
NEEDS_REASON: Final = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
_KEYS: Final = frozenset(
    {
        "state",
        "reason",
        "weight",
        "features",
        "availablefeatures",
        "activefeatures",
        "comment",
        "extra",
        "gres",
        "cpubind",
        "nodeaddr",
        "nodehostname",
    }
)
_FEATURES: Final = frozenset({"features", "availablefeatures", "activefeatures"})
# what Slurm takes for nodes by their names alone
_BY_NAME: Final = frozenset({"weight", "gres", "features", "availablefeatures"})
_NOT_OF_ALL: Final = (22, "Invalid argument")
_NEED_REASON: Final = frozenset({"DOWN", "DRAIN", "FAIL"})


def update_nodes(core: Core, message: UpdateNodes, sender: Sender) -> Message:
    """Change what is said of nodes. If the state is wrong for some of them, the others are changed
    all the same.
    """
    core.require_admin(sender)
    are_all = message.nodes.upper() == "ALL"
    nodes, are_known = (core.names.all, True) if are_all else _known_nodes(core, message.nodes)
    if not nodes:
        raise SlurmError(ErrorCode.INVALID_NODE)
    changes = {key.lower(): value for key, value in message.changes.items()}
    for key in changes:
        if key not in _KEYS:
            raise SlurmError(-1, f"Update of this parameter is not supported: {key}")
    state = changes.get("state", "").upper()
    if state in _NEED_REASON and not changes.get("reason"):
        raise SlurmError(-1, NEEDS_REASON)
    if "weight" in changes and not changes["weight"].isdecimal():
        raise SlurmError(-1, f"Invalid weight value: {changes['weight']}")
    _set_addresses(core, message.nodes, changes)
    now = core.time.now()
    table = core.tables.nodes
    failed: SlurmError | None = None
    down = 0
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        _describe(node, changes)
        before, refused = node.reason, None
        if state:
            try:
                _set_state(core, node, state, now)
            except SlurmError as error:
                failed = refused = error
            if refused is None and node.state is NodeState.DOWN:
                down |= 1 << index
        has_reason = node.reason or not before  # else the state has taken it away
        if (
            changes.get("reason")
            and has_reason
            and (node.state is NodeState.DOWN or node.flags & (NodeFlag.DRAIN | NodeFlag.FAIL))
        ):
            node.reason, node.reason_time = changes["reason"], int(now)
            node.reason_user_id = sender.user_id
            log.info("update_node: node %s reason set to: %s", node.name, node.reason)
        if refused is not None:
            continue
        if state:
            log.info("update_node: node %s state set to %s", node.name, _NOW.get(state, state))
        table.set_availability(node)
    if are_known:
        failed = _set_by_name(core, nodes, changes, failed, are_all=are_all)
    else:
        failed = SlurmError(ErrorCode.INVALID_NODE)
    core.journal.nodes(nodes)
    core.last_node_update = now
    if state == "DOWN":
        nodes_down(core, down, now)
        ask_at_next_ping(core, down)
    elif state in ("RESUME", "UNDRAIN"):
        ask_at_next_tick(core, nodes)
    core.changed(Note.CHANGE, now)
    if failed is not None:
        raise failed
    return Ok()


def _known_nodes(core: Core, text: str) -> tuple[int, bool]:
    """The nodes, in the order of their names, up to the first that there is not; and whether there
    is none such.
    """
    try:
        return core.names.to_bitmap(text), True
    except hostlist.UnknownHostError:
        names = hostlist.expand(hostlist.compress(hostlist.expand(text), sort=True))
        known = list(takewhile(core.names.index_of.__contains__, names))
        return core.names.to_bitmap(",".join(known)) if known else 0, False
    except ValueError:
        return 0, False


def _set_by_name(
    core: Core, nodes: int, changes: dict[str, str], failed: SlurmError | None, *, are_all: bool
) -> SlurmError | None:
    """What Slurm sets behind all else: the first refusal keeps what is behind it as it was, and
    features that there are not all of it. By `ALL` it finds no node to set its own table, so it
    refuses features and generic resources that it has set, and sets no weight.
    """
    table = core.tables.nodes
    if changes.keys() & _FEATURES:
        try:
            _check_features(core, nodes, changes)
        except SlurmError as error:
            return error
        for index in nodeset_indices(nodes):
            table.former_features.update(table.nodes[index].active_features)
            _set_features(table.nodes[index], changes)
    if "gres" in changes:
        _set_gres(core, nodes, changes["gres"])
    if are_all and changes.keys() & _BY_NAME:
        failed = failed or SlurmError(*_NOT_OF_ALL)
    elif "weight" in changes and failed is None:
        for index in nodeset_indices(nodes):
            node = table.nodes[index]
            node.weight = int(changes["weight"])
            log.info("_update_node_weight: nodes %s weight set to: %d", node.name, node.weight)
    if changes.keys() & {"weight", *_FEATURES}:
        table.reconfigured()
        core.forget_feasibility()
    return failed


def _set_features(node: Node, changes: dict[str, str]) -> None:
    """New available features are all active, unless it is said which are."""
    given = changes.get("availablefeatures", changes.get("features"))
    if given is not None:
        node.features = node.active_features = _words(given)
    if "activefeatures" in changes:
        node.active_features = _words(changes["activefeatures"])


def _set_addresses(core: Core, names: str, changes: dict[str, str]) -> None:
    """Where nodes are to be reached: a list of as many as there are nodes."""
    for key, field in (("nodeaddr", "address"), ("nodehostname", "hostname")):
        if key not in changes:
            continue
        try:
            given, nodes = hostlist.expand(changes[key]), hostlist.expand(names)
        except ValueError:
            raise SlurmError(ErrorCode.INVALID_NODE) from None
        if len(given) != len(nodes) or names.upper() == "ALL":
            raise SlurmError(ErrorCode.INVALID_NODE)
        for name, value in zip(nodes, given, strict=True):
            setattr(core.tables.nodes.nodes[core.tables.nodes.index_of[name]], field, value)


def _check_features(core: Core, nodes: int, changes: dict[str, str]) -> None:
    """Active features are among the available ones; what is not given stays as it is."""
    given = changes.get("availablefeatures", changes.get("features"))
    for index in nodeset_indices(nodes):
        node = core.tables.nodes.nodes[index]
        active = (
            _words(changes["activefeatures"])
            if "activefeatures" in changes
            else node.active_features
        )
        if not set(active) - {""} <= set(node.features if given is None else _words(given)):
            raise SlurmError(ErrorCode.FEATURES_NOT_AVAILABLE)


def _describe(node: Node, changes: dict[str, str]) -> None:
    node.comment = changes.get("comment", node.comment)
    node.extra = changes.get("extra", node.extra)
    if "cpubind" in changes:
        try:
            node.cpu_bind = cpu_binding(changes["cpubind"], node.cpu_bind)
        except ValueError:
            raise SlurmError(-1, f"Invalid input cpubind={changes['cpubind']}") from None


_GRES_WORD: Final = re.compile(r"[^,(]+(?:\([^)]*\))?")


def _set_gres(core: Core, nodes: int, text: str) -> None:
    """Other generic resources from now on; what jobs hold stays theirs. Of kinds that GresTypes
    does not name the text alone is kept, and only where it names none.
    """
    table = core.tables.nodes
    gres = table.gres
    if gres is None:
        for index in nodeset_indices(nodes):
            table.nodes[index].gres = text
        return
    text = ",".join(
        word for word in _GRES_WORD.findall(text) if word.partition(":")[0] in gres.names
    )
    if gres.configured is None:
        raise SlurmError(ErrorCode.INVALID_GRES)
    try:
        words = read_configured(text)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_GRES) from None
    for index in nodeset_indices(nodes):
        if not gres.configured.has_devices_for(table.nodes[index].name, words):
            raise SlurmError(ErrorCode.INVALID_GRES)
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        node.gres = text
        gres.set_layout(index, gres.configured.of(node.name, text))
    table.reconfigured()
    core.forget_feasibility()


_EVENTS: Final = {
    "DOWN": NodeEvent.SET_DOWN,
    "DRAIN": NodeEvent.DRAINED,
    "FAIL": NodeEvent.FAILING,
    "NORESP": NodeEvent.SILENT,
}
# refused of nodes whose daemons tell of less than is configured
_OF_WHOLE_NODES: Final = frozenset(("RESUME", "UNDRAIN", "IDLE", "FUTURE"))
# what Slurm's log calls the state after it was set
_NOW: Final = {"DRAIN": "DRAINED", "RESUME": "IDLE", "UNDRAIN": "IDLE"}


def _words(text: str) -> tuple[str, ...]:
    """As they are written, with empty ones."""
    return tuple(text.split(",")) if text else ()


def _set_state(core: Core, node: Node, state: str, now: float) -> None:
    if node.flags & NodeFlag.INVALID_REG and state in _OF_WHOLE_NODES:
        raise SlurmError(ErrorCode.INVALID_NODE_STATE)
    if state in _EVENTS:
        advance(node, _EVENTS[state], now)
    elif state == "UNDRAIN":
        advance(node, NodeEvent.UNDRAINED, now)
        if not _is_busy(core, node):
            advance(node, NodeEvent.MENDED, now)
        if node.state is not NodeState.DOWN and not node.flags & NodeFlag.FAIL:
            _clear_reason(node)
        _doubt(core, node, now)
        _note_return(core, node)
    elif state in ("RESUME", "IDLE"):
        is_out = node.state in (NodeState.DOWN, NodeState.FUTURE) or node.flags & (
            NodeFlag.DRAIN | NodeFlag.FAIL | NodeFlag.POWERING_DOWN
        )
        if (
            not is_out
            if state == "RESUME"
            else _is_busy(core, node) or node.state is NodeState.FUTURE
        ):
            raise SlurmError(ErrorCode.INVALID_NODE_STATE)
        if state == "RESUME" and (
            node.state in (NodeState.DOWN, NodeState.FUTURE) or node.flags & NodeFlag.DRAIN
        ):
            _doubt(core, node, now)
        before = node.state
        advance(node, NodeEvent.RESUMED if state == "RESUME" else NodeEvent.SET_IDLE, now)
        if node.flags & IN_PROGRESS:
            give_up_reboot(core, node, now)
        if core.power is not None and node.flags & NodeFlag.POWERING_DOWN:
            core.power.stay_off(node)
        if node.state is not before and not _is_there(core, node):
            advance(node, NodeEvent.SILENT, now)
        _clear_reason(node)
        _note_return(core, node)
    elif state in ("POWER_UP", "POWER_DOWN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE"):
        _switch(core, node, state, now)
    elif state == "CANCEL_REBOOT":
        cancel_reboot(core, node, now)
    elif state == "FUTURE":
        if not core.tables.nodes.idle_nodes >> node.index & 1:
            raise SlurmError(ErrorCode.INVALID_NODE_STATE)
        give_up_reboot(core, node, now)
        advance(node, NodeEvent.SET_FUTURE, now)
        _clear_reason(node)
    else:
        raise SlurmError(ErrorCode.INVALID_NODE_STATE)


def _is_busy(core: Core, node: Node) -> bool:
    return not core.tables.nodes.idle_nodes >> node.index & 1


def _is_there(core: Core, node: Node) -> bool:
    record = core.daemon_of_node[node.index]
    return bool(node.flags & OFF) or (record is not None and record.is_registered)


def _doubt(core: Core, node: Node, now: float) -> None:
    """Take the node for silent until its daemon has answered. That one node is back says nothing
    about a front end.
    """
    if not core.settings.front_end and not node.flags & (
        NodeFlag.POWERING_DOWN | NodeFlag.POWERING_UP
    ):
        advance(node, NodeEvent.SILENT, now)
        if node.flags & NodeFlag.POWERED_DOWN:  # nobody answers there, so it stays unknown
            node.boot_time = None


def _note_return(core: Core, node: Node) -> None:
    """The node is put back into service: it is idle from now on, not since its last job."""
    bit = 1 << node.index
    if not node.flags & OFF and core.tables.nodes.idle_nodes & bit:
        core.tables.nodes.note_departure(bit, int(core.time.now()))


def _switch(core: Core, node: Node, state: str, now: float) -> None:
    power = core.power
    if power is None:
        raise SlurmError(ErrorCode.INVALID_NODE_STATE)
    if state == "POWER_UP":
        power.power_up(node)
        return
    if state == "POWER_DOWN_ASAP" and not node.flags & NodeFlag.DRAIN:
        advance(node, NodeEvent.POWER_DOWN_ASKED_ASAP, now)
        node.reason, node.reason_time, node.reason_user_id = state, int(now), NOBODY
    elif state == "POWER_DOWN_FORCE":
        nodes_down(core, 1 << node.index, now)
        advance(node, NodeEvent.POWER_DOWN_FORCED, now)
    if node.flags & NodeFlag.REBOOT_ISSUED:
        give_up_reboot(core, node, now)
        advance(node, NodeEvent.UNDRAINED, now)
        advance(node, NodeEvent.RETURNED, now)
        _clear_reason(node)
    power.power_down(node)


def _clear_reason(node: Node) -> None:
    node.reason, node.reason_time, node.reason_user_id = "", None, 0
