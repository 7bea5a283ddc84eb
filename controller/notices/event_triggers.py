"""Triggers: programs that run when something happens to nodes or jobs.

Place: notices. Follows: strigger(1). Every CHECK_S seconds triggers are compared with
what has happened since the last check; one whose event has come is handed to the edge with what it
was about, at once or after its offset, and is gone unless it is permanent. As long as there are no
triggers nobody watches and nothing is checked.

Observed at 22.05.8: a failing node raises no event `fail`; events of a controller that has no
backup never come; a job's program with PERM runs at every check while the ended job is known; a
permanent trigger that has fired is listed first.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.core.core import nodeset_indices
from understudy.controller.tables.triggers import Trigger
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node
    from understudy.protocol.messages import ClearTriggers

CHECK_S: Final = 16.0  # observed at 22.05.8: 15 s, seen by a loop that sleeps a second
SAVED_AS: Final = "triggers"
NO_SUCH_TRIGGER: Final = 3
DENIED, NO_JOB, NO_NODE = 2002, 2017, 2018
EVERY: Final = "*"
_NODE_EVENTS: Final = ("down", "up", "drained")


def matches(trigger: Trigger, message: ClearTriggers) -> bool:
    if message.trigger_id and trigger.trigger_id != message.trigger_id:
        return False
    if message.job_id and (trigger.resource != "job" or trigger.resource_id != str(message.job_id)):
        return False
    return message.user_id < 0 or trigger.user_id == message.user_id


# --- what happens ---------------------------------------------------------------------------------


def watch(core: Core) -> None:
    """Watch nodes from now on, and check all triggers every while."""
    triggers = core.triggers
    if triggers.timer is not None:
        return
    triggers.seen = {node.index: (node.state, node.flags) for node in core.tables.nodes.nodes}
    triggers.drained = _drained(core)
    triggers.happened, triggers.others = {}, set()
    core.tables.nodes.watcher = lambda node: _node_changed(core, node)
    now = core.time.now()
    checks = int((now - core.start_time) // CHECK_S) + 1
    triggers.timer = core.periodically(core.start_time + checks * CHECK_S, _never, _check, core)


def _never() -> bool:
    """Time does not go on for triggers: their events come from others."""
    return False


def _node_changed(core: Core, node: Node) -> None:
    triggers = core.triggers
    before, flags = triggers.seen[node.index]
    if (node.state, node.flags) == (before, flags):
        return
    triggers.seen[node.index] = (node.state, node.flags)
    bit = 1 << node.index
    happened = triggers.happened
    if node.state is NodeState.DOWN and before is not NodeState.DOWN:
        happened["down"] = happened.get("down", 0) | bit
    elif before is NodeState.DOWN and node.state is not NodeState.DOWN:
        happened["up"] = happened.get("up", 0) | bit
    if (
        _is_draining(node.flags)
        and core.tables.nodes.idle_nodes & bit
        and not triggers.drained & bit
    ):
        happened["drained"] = happened.get("drained", 0) | bit
    triggers.others.add("reconfig")


def _is_draining(flags: NodeFlag) -> bool:
    return bool(flags & (NodeFlag.DRAIN | NodeFlag.FAIL))


def _drained(core: Core) -> int:
    """Nodes that are draining and on which nobody is."""
    draining = 0
    for node in core.tables.nodes.nodes:
        if node.flags and _is_draining(node.flags):
            draining |= 1 << node.index
    return draining & core.tables.nodes.idle_nodes


def _check(core: Core) -> None:
    """Compare triggers with what has happened, and run the programs that are due."""
    triggers, now = core.triggers, core.time.now()
    drained = _drained(core)
    if new := drained & ~triggers.drained:
        triggers.happened["drained"] = triggers.happened.get("drained", 0) | new
    triggers.drained = drained
    gone = [
        each for each in triggers.listed if each.fires_at is None and not _test(core, each, now)
    ]
    triggers.happened, triggers.others = {}, set()
    due = [each for each in triggers.listed if each.fires_at is not None and each.fires_at <= now]
    for trigger in due:
        core.run_program(trigger.user_id, trigger.group_id, trigger.program, trigger.argument)
        trigger.fires_at = None
    again = [each for each in reversed(due) if each.is_permanent]
    if due or gone:
        triggers.listed = again + [
            each for each in triggers.listed if each not in due and each not in gone
        ]
        core.journal.document(SAVED_AS)
    if triggers.listed:
        triggers.timer = core.periodically(now + CHECK_S, _never, _check, core)
    else:
        triggers.timer, core.tables.nodes.watcher = None, None


def _test(core: Core, trigger: Trigger, now: float) -> bool:
    """Set the time at which the trigger fires if its event has come. False: it never can any
    more.
    """
    if trigger.resource == "job":
        job = core.tables.jobs.get(int(trigger.resource_id))
        if job is None:
            return False
        if _job_event(core, trigger, job, now):
            _fire(trigger, now, trigger.resource_id)
    elif trigger.resource == "node":
        nodes = _nodes_of(core, trigger)
        found = 0
        for event in _NODE_EVENTS:
            if event in trigger.events:
                found |= core.triggers.happened.get(event, 0)
        idle = _idle_nodes(core, trigger.offset_s, now) if "idle" in trigger.events else 0
        if found & nodes:
            _fire(trigger, now, core.names.to_expression(found & nodes))
        elif idle & nodes:  # its offset is how long the nodes are to be idle
            trigger.fires_at, trigger.argument = now, core.names.to_expression(idle & nodes)
        elif "reconfig" in trigger.events and "reconfig" in core.triggers.others:
            _fire(trigger, now, "reconfig")
    else:
        event = next((each for each in trigger.events if each in core.triggers.others), "")
        if event:
            _fire(trigger, now, event)
    return True


def _fire(trigger: Trigger, now: float, argument: str) -> None:
    trigger.fires_at, trigger.argument = now + max(trigger.offset_s, 0), argument


def _nodes_of(core: Core, trigger: Trigger) -> int:
    if trigger.resource_id == EVERY:
        return core.names.all
    try:
        return core.names.to_bitmap(trigger.resource_id)
    except ValueError:  # saved by a controller that had other nodes
        return 0


def _job_event(core: Core, trigger: Trigger, job: Job, now: float) -> bool:
    events = trigger.events
    if "fini" in events and job.is_finished:
        return True
    if (
        "time" in events
        and job.is_active
        and job.end_time is not None
        and now >= job.end_time + min(trigger.offset_s, 0)
    ):
        return True
    nodes = job.allocation.nodes if job.allocation is not None else 0
    return any(
        event in events and core.triggers.happened.get(event, 0) & nodes for event in _NODE_EVENTS
    )


def _idle_nodes(core: Core, least_s: int, now: float) -> int:
    """Nodes on which nobody has been for so long, and that could take jobs."""
    table = core.tables.nodes
    nodes = table.idle_nodes & table.up_nodes & ~table.completing_nodes
    if least_s <= 0:
        return nodes
    last_busy = table.last_busy
    found = 0
    for index in nodeset_indices(nodes):
        began = max(int(last_busy[index]), table.nodes[index].slurmd_start_time or 0)
        if began + least_s <= now:
            found |= 1 << index
    return found


# --- the saved state ------------------------------------------------------------------------------


def encode(core: Core) -> bytes:
    """All triggers, for the store."""
    return msgspec.msgpack.encode(
        [core.triggers.next_id, [astuple(each) for each in core.triggers.listed]]
    )


def decode(core: Core, record: bytes) -> None:
    """Put back what was saved, and watch."""
    next_id, listed = msgspec.msgpack.decode(record)
    core.triggers.next_id = next_id
    core.triggers.listed = [
        Trigger(number, kind, what, tuple(events), *rest)
        for number, kind, what, events, *rest in listed
    ]
    if core.triggers.listed:
        watch(core)
