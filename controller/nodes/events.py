"""What happens to nodes: registration, silence, failure.

Place: nodes. Follows: slurm.conf(5) SlurmdTimeout, ReturnToService; sinfo(1) on
node states. Under virtual time nobody is pinged from time to time: there the clock service watches
the daemons.

Whatever a node's daemon answers shows that the node is well: it loses NOT_RESPONDING, and comes
back from DOWN where ReturnToService says so. That a job's node was set down therefore lasts, with
ReturnToService=2, until the daemon has taken the order to end the job.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from understudy.controller.core.core import DaemonRecord, log, nodeset_indices
from understudy.controller.core.fan_out import UNREACHABLE
from understudy.controller.jobs.end import end_job, give_back
from understudy.controller.jobs.requeue import requeue_job
from understudy.controller.jobs.resize import leave
from understudy.controller.pending.eligibility import review_all
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job import LAUNCH_FAILURE
from understudy.controller.tables.job_states import JobEvent
from understudy.controller.tables.node import OFF
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.model import nodeset
from understudy.model.hostlist import compress, expand
from understudy.model.states import JobFlag, NodeFlag, NodeState
from understudy.protocol.messages import Failure, Message, Ping, RegisterNodes, TerminateJob

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node

NOT_RESPONDING: Final = "Not responding"
NODE_DOWN: Final = "NodeDown"
_PING_ROUNDS: Final = 2  # ours: who misses one ping where each node is a hop gets another
SIGKILL: Final = 9
SIGTERM: Final = 15


def bring_up(core: Core, nodes: int, message: RegisterNodes, now: float) -> int:
    """Set what the registration says of its nodes. The nodes (a bitmap) that may take jobs now and
    could not before.
    """
    table = core.tables.nodes
    before = table.up_nodes
    boot, start = int(message.boot_time), int(message.slurmd_start_time)
    listed, there = table.nodes, []
    for index in nodeset_indices(nodes):
        node = listed[index]
        node.last_response, node.daemon = now, message.daemon
        if node.flags and node.flags & OFF:
            continue  # its daemon is there, it is not
        node.boot_time, node.slurmd_start_time = boot, start
        if lack := _lack(core, node):
            _take_out(node, lack, now)
            there.append(node)
            continue
        advance(node, NodeEvent.REGISTERED, now)
        if _may_return(core, node):
            log.info("node %s returned to service", node.name)
            advance(node, NodeEvent.RETURNED, now)
            node.reason, node.reason_time = "", None
        there.append(node)
    table.set_availabilities(there)
    return table.up_nodes & ~before


def _lack(core: Core, node: Node) -> str:
    """What the node's daemon would find missing there."""
    gres = core.tables.nodes.gres
    if not node.gres or gres is None or gres.configured is None:
        return ""
    return gres.configured.lack(node.name, node.gres)


def _take_out(node: Node, lack: str, now: float) -> None:
    """The node registers with less than is configured: it gets no jobs until that is mended."""
    if not node.flags & NodeFlag.INVALID_REG:
        log.error("Setting node %s state to INVAL with reason:%s", node.name, lack)
        node.reason, node.reason_time, node.reason_user_id = lack, int(now), 0
    advance(node, NodeEvent.REGISTERED_SHORT, now)


def look_at_devices(core: Core, now: float) -> None:
    """Slurm's daemons register anew when they are reconfigured: what they lacked may be there."""
    changed = 0
    for node in core.tables.nodes.nodes:
        record = core.daemon_of_node[node.index]
        if record is None or not record.is_registered or node.flags & OFF:
            continue
        if lack := _lack(core, node):
            _take_out(node, lack, now)
        elif node.flags & NodeFlag.INVALID_REG:
            advance(node, NodeEvent.REGISTERED, now)
            if _may_return(core, node):
                advance(node, NodeEvent.RETURNED, now)
        else:
            continue
        core.tables.nodes.set_availability(node)
        changed |= 1 << node.index
    if changed:
        core.journal.nodes(changed)


def ask_whether_well(core: Core, nodes: int) -> None:
    """Hear from the daemons of the nodes (a bitmap) that they are well. A front end's word says
    nothing of nodes, so it is not asked.
    """
    if core.settings.front_end:
        return
    for record, part in core.parts(nodes):
        core.agents.ping(record.name, Ping(), partial(_heard, core, part))


def _heard(core: Core, nodes: int, answer: Message) -> None:
    if type(answer) is not Failure:
        _well(core, nodes, core.time.now())


def _well(core: Core, nodes: int, now: float) -> None:
    """The daemons of the nodes (a bitmap) have answered: what they were asked to do or, if not,
    whether they are there.
    """
    table = core.tables.nodes
    changed = 0
    for index in nodeset_indices(nodes & ~table.up_nodes):
        node = table.nodes[index]
        if node.flags & OFF:
            continue
        was = node.state, node.flags
        advance(node, NodeEvent.HEARD_OF, now)
        if _may_return(core, node):
            log.info("node_did_resp: node %s returned to service", node.name)
            advance(node, NodeEvent.RETURNED, now)
            if not node.flags & (NodeFlag.DRAIN | NodeFlag.FAIL):
                node.reason, node.reason_time = "", None
        if was != (node.state, node.flags):
            table.set_availability(node)
            changed |= 1 << index
    if changed:
        core.last_node_update = now
        core.journal.nodes(changed)
        core.changed(Note.CHANGE, now)


def _may_return(core: Core, node: Node) -> bool:
    """Whether a node comes back into service now that its daemon has been heard of."""
    returns = core.settings.return_to_service
    is_down = node.state is NodeState.DOWN and not node.flags & (
        NodeFlag.REBOOT_ISSUED | NodeFlag.INVALID_REG
    )
    return is_down and (returns == 2 or (returns == 1 and node.reason == NOT_RESPONDING))


def ask_at_next_tick(core: Core, nodes: int) -> None:
    """Nodes that are put back into service are believed to be there when they have said so, and the
    controller's loop asks them.
    """
    core.at(core.tables.rhythm.next_tick(core.time.now()), ask_whether_well, core, nodes)


def ask_at_next_ping(core: Core, nodes: int) -> None:
    """Nodes that are set down come back (ReturnToService=2) when they next say that they are there.
    In real time they are pinged anyway.
    """
    settings = core.settings
    if (
        core.time.is_virtual
        and nodes
        and settings.return_to_service == 2
        and settings.slurmd_timeout_s > 0
        and not settings.front_end
    ):
        since, interval = core.time.now() - core.start_time, _ping_interval(core)
        core.at(core.start_time + (since // interval + 1) * interval, ask_whether_well, core, nodes)


def forget_reasons(core: Core, job: Job, _now: float) -> None:
    """A job has got nodes. What was said of those that are off, or are to boot, is forgotten,
    unless they are to take no others.
    """
    assert job.allocation is not None
    table = core.tables.nodes
    boot = table.boot_nodes if job.flags and job.flags & JobFlag.CONFIGURING else 0
    nodes = job.allocation.nodes & (boot | core.reboots)
    if not nodes:
        return
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        if not node.flags & NodeFlag.DRAIN:
            node.reason, node.reason_time, node.reason_user_id = "", None, 0
    core.journal.nodes(nodes)


def nodes_down(core: Core, nodes: int, now: float) -> None:
    """The nodes (a bitmap) have failed, or were set down: end or requeue the jobs there, and wait
    for no epilog from them. If they are there after all they hear of it.
    """
    if not nodes & ~core.tables.nodes.idle_nodes:
        return
    for job in list(core.tables.running.values()):
        assert job.allocation is not None
        # a component may have gone with another one
        lost = job.allocation.nodes & nodes if job.is_active else 0
        if lost:
            lose_nodes(core, job, lost, now)
    for job in list(core.completing.values()):
        left = job.completing_nodes & nodes
        if left:
            _clean_up(core, job, left)
            give_back(core, job, left, now)


def lose_nodes(core: Core, job: Job, lost: int, now: float) -> None:
    """A running job has lost nodes (a bitmap): it goes on without, if it may (--no-kill)."""
    assert job.allocation is not None
    if job.spec.no_kill and lost != job.allocation.nodes:
        _go_on_without(core, job, lost, now)
    else:
        lose_node(core, job, lost, now)


def _go_on_without(core: Core, job: Job, lost: int, now: float) -> None:
    """The nodes are no longer the job's (--no-kill), but free for others once they are well. Its
    script ends where it ran on one of them.
    """
    allocation = job.allocation
    assert allocation is not None
    loses_script = (
        bool(lost >> allocation.first_node & 1)
        and not job.interactive
        and not core.settings.front_end
    )
    leave(core, job, lost, now)
    if loses_script:
        _clean_up(core, job, lost)
        job.exit_code, job.exit_signal = 0, SIGKILL
        end_job(core, job, JobEvent.EXITED_BADLY, now, reason=LAUNCH_FAILURE)


def lose_node(core: Core, job: Job, lost: int, now: float) -> None:
    """End or requeue a running job that has lost nodes (a bitmap). Nobody waits for them, but if
    they are there after all they hear of it.
    """
    _clean_up(core, job, lost)
    if job.requeue and not job.interactive:
        requeue_job(core, job, now, event=JobEvent.NODE_FAILED, lost_nodes=lost)
        return
    has_begun = not job.flags & JobFlag.CONFIGURING
    job.exit_code, job.exit_signal = 0, SIGTERM if has_begun else 0
    if not has_begun:
        job.notice = f"error: Node failure on {core.names.to_expression(lost)}"
    end_job(core, job, JobEvent.NODE_FAILED, now, reason=NODE_DOWN, lost_nodes=lost)
    give_back(core, job, lost & job.completing_nodes, now)


def _clean_up(core: Core, job: Job, nodes: int) -> None:
    for daemon, part in core.parts(nodes):
        core.agents.send_to_many(
            [(daemon.name, core.names.to_expression(part))],
            lambda expression: TerminateJob(job.job_id, job.restarts, expression),
        )
    ask_whether_well(core, nodes)


def heard_of(core: Core, daemon: str, responds: bool) -> None:
    """The agents have reached a daemon again, or not reached it."""
    record = core.daemons.get(daemon)
    if record is None or core.time.is_virtual:
        return
    if responds:
        record.last_response = core.time.now()
    if record.is_responding is not responds:
        _set_responding(core, record, responds=responds)


def start_pinging(core: Core) -> None:
    """Ask each node daemon from time to time whether it is there."""
    if core.settings.slurmd_timeout_s > 0 and not core.time.is_virtual:
        core.at(core.time.now() + _ping_interval(core), _ping_all, core)


def _ping_interval(core: Core) -> float:
    return max(1.0, core.settings.slurmd_timeout_s / 3)


def _ping_all(core: Core) -> None:
    now = core.time.now()
    for record in core.daemons.values():
        if not record.is_registered:
            continue
        # The one is a matter of the cluster's time, the other of real time: at a high rate
        # SlurmdTimeout may be over while an answer is on its way.
        if now - record.last_response > core.settings.slurmd_timeout_s and not record.is_responding:
            _set_down(core, record.nodes, now)
        if not record.is_pinged:
            record.is_pinged = True
            if core.agents.fan_out is None:
                core.agents.ping(record.name, Ping(), partial(_ponged, core, record))
            else:
                core.agents.fan_out.send(
                    expand(core.names.to_expression(record.nodes)),
                    Ping(),
                    rounds=_PING_ROUNDS,
                    done=partial(_each_ponged, core, record),
                )
    core.at(now + _ping_interval(core), _ping_all, core)


def _ponged(core: Core, record: DaemonRecord, answer: Message) -> None:
    record.is_pinged = False
    heard_of(core, record.name, responds=type(answer) is not Failure)
    if not core.settings.front_end:
        _heard(core, record.nodes, answer)


def _each_ponged(core: Core, record: DaemonRecord, codes: dict[str, int]) -> None:
    """What came of a ping to each node of a daemon, where each is a hop of its own."""
    record.is_pinged = False
    table, now = core.tables.nodes, core.time.now()
    silent = core.names.to_bitmap(
        compress([node for node, code in codes.items() if code in UNREACHABLE])
    )
    heard_of(core, record.name, responds=silent != record.nodes)
    well = record.nodes & ~silent
    for index in nodeset_indices(well):
        table.nodes[index].last_response = now
    were_silent = [
        index
        for index in nodeset_indices(record.nodes)
        if table.nodes[index].flags & NodeFlag.NO_RESPOND
    ]
    were = sum(1 << index for index in were_silent)
    if silent & ~were:
        _mark(core, silent & ~were, responds=False)
    if well & were:
        _mark(core, well & were, responds=True)
    if not core.settings.front_end:
        _well(core, well, now)
    limit = now - core.settings.slurmd_timeout_s
    overdue = sum(
        1 << index for index in nodeset_indices(silent) if table.nodes[index].last_response < limit
    )
    if overdue:
        _set_down(core, overdue, now)


def _set_responding(core: Core, record: DaemonRecord, *, responds: bool) -> None:
    record.is_responding = responds
    _mark(core, record.nodes, responds=responds)


def _mark(core: Core, bitmap: int, *, responds: bool) -> None:
    """The nodes answer from now on, or no longer."""
    table, now = core.tables.nodes, core.time.now()
    event = NodeEvent.HEARD_OF if responds else NodeEvent.SILENT
    for index in nodeset_indices(bitmap):
        advance(table.nodes[index], event, now)
        table.set_availability(table.nodes[index])
    core.last_node_update = now
    nodes = core.names.to_expression(bitmap)
    if responds:
        log.info(
            "Nodes %s now responding" if bitmap & (bitmap - 1) else "Node %s now responding",
            nodes,
        )
        core.changed(Note.CHANGE, now)
    else:
        log.error("Nodes %s not responding", nodes)


def _set_down(core: Core, nodes: int, now: float) -> None:
    table = core.tables.nodes
    lost = []
    for index in nodeset_indices(nodes):
        node = table.nodes[index]
        if node.state is NodeState.IDLE and not node.flags & OFF:
            advance(node, NodeEvent.LOST, now)
            node.reason, node.reason_time, node.reason_user_id = NOT_RESPONDING, int(now), 0
            lost.append(node)
    table.set_availabilities(lost)
    down = nodeset.from_positions(node.index for node in lost)
    if down:
        log.error("Nodes %s not responding, setting DOWN", core.names.to_expression(down))
        core.journal.nodes(down)
        core.last_node_update = now
        nodes_down(core, down, now)
        review_all(core, now)
