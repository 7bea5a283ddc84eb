"""Power saving: idle nodes are switched off, and on again for the jobs that get them.

Place: nodes. Follows: slurm.conf(5) SuspendTime and its kin, scontrol(1)
State=POWER_*. Slurm's power thread wakes every second, 1 s after the controller's start, and checks
at the nodes if something has happened to one of them, else every 10 s (power_save_interval). Here
these checks are timers for the first one at which there is something to do, so an idle cluster
stands still.

    on --- idle for SuspendTime, or asked for ---> POWERING_DOWN
    POWERING_DOWN --- SuspendTimeout ---> POWERED_DOWN
    POWERED_DOWN --- a job got it, or asked for ---> POWERING_UP
    POWERING_UP --- it has booted ---> on
    POWERING_UP --- ResumeTimeout ---> DOWN and POWERED_DOWN

Nodes that are off may be given to jobs, if possible after all others. Such a job is CONFIGURING
until the check of the 30 s grid of time limits at which all its nodes are there; only then its
script is launched, and its run time counts from there. No machine is switched: the nodes' daemon
stays, and a node is there after a while. Where jobs really run, the site's programs are called,
too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from understudy.controller.core.alarms import watch_configuration
from understudy.controller.core.core import log, nodeset_indices
from understudy.controller.jobs.launch import finish_configuring
from understudy.controller.nodes.events import nodes_down
from understudy.controller.pending.eligibility import review_all
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.het_job import components
from understudy.controller.tables.node import OFF
from understudy.controller.tables.node_states import NodeEvent, advance
from understudy.controller.tables.power_plan import Pace, PowerPlan
from understudy.model import nodeset
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import TimerHandle
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node

TIMED_OUT: Final = "ResumeTimeout reached"
REBOOTED: Final = "Node unexpectedly rebooted"
PHASE_S: Final = 1.0  # ours: the thread's first check, after the controller's start
TICK_S: Final = 1.0  # observed at 22.05.8: its thread naps for a second
_ASLEEP: Final = (
    NodeFlag.POWERED_DOWN,
    NodeFlag.POWERING_DOWN,
    NodeFlag.POWERING_UP,
    NodeFlag.POWER_UP,
    NodeFlag.POWER_DOWN,
)
_ROUNDING_S: Final = 1e-4  # ours: a time since the epoch is not exact


class Power:
    """What is off, on its way, or asked for, as bitmaps that follow the nodes' flags; and when to
    check again.
    """

    def __init__(self, core: Core, plan: PowerPlan) -> None:
        self.core, self.plan = core, plan
        self.mortal = plan.mortal
        core.tables.nodes.boot_allowance_s = max(plan.resume_timeout_s, default=0)
        self.with_flag: dict[NodeFlag, int] = dict.fromkeys(_ASLEEP, 0)
        self._since: dict[int, float] = {}  # by node: when it began to power down or up
        # by node: when it began to boot, of those that took too long and are still at it
        self._late: dict[int, float] = {}
        self._off_pace, self._on_pace = Pace(), Pace()
        self._timer: tuple[float, TimerHandle] | None = None
        self._last_check = -math.inf
        # the state of the node table that was considered last: when updated, and its generation
        self._seen = -math.inf, -1
        self._left = -1  # the generation that the last check left
        self._is_asked = False
        for node in core.tables.nodes.nodes:
            self.follow(node)

    def take_over(self, plan: PowerPlan) -> None:
        """The configuration has changed."""
        self.plan, self.mortal = plan, plan.mortal
        self.ask()

    # --- flags ------------------------------------------------------------------------------------

    def follow(self, node: Node) -> None:
        """The node's flags have changed."""
        bit, flags = 1 << node.index, node.flags
        for flag, nodes in self.with_flag.items():
            self.with_flag[flag] = nodes | bit if flags & flag else nodes & ~bit
        table = self.core.tables.nodes
        needs_boot = bool(flags & (NodeFlag.POWERED_DOWN | NodeFlag.POWERING_UP))
        if needs_boot is not bool(table.boot_nodes & bit):
            table.set_boot(bit, needs_boot=needs_boot)
        table.set_availability(node)

    def _advance(self, nodes: int, event: NodeEvent, now: float) -> None:
        """Move the nodes (a bitmap)."""
        table = self.core.tables.nodes
        for index in nodeset_indices(nodes):
            advance(table.nodes[index], event, now)
            self.follow(table.nodes[index])

    def ask(self) -> None:
        """Something is to be switched: check at the next second."""
        self._is_asked = True
        self._seen = -math.inf, -1

    # --- when -------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Set the timer for the next check at which there is something to do. To be called after
        everything that was handled.
        """
        core = self.core
        changed, generation = core.last_node_update, core.tables.nodes.generation
        if (changed, generation) == self._seen:
            return
        now = core.time.now()
        first = core.start_time + PHASE_S
        if self._is_asked or changed > self._last_check or generation != self._left:
            after = max(now if self._is_asked else changed, self._last_check + _ROUNDING_S)
            base = first + max(0, math.ceil((after - first) / TICK_S - _ROUNDING_S)) * TICK_S
        else:
            base = self._last_check + self.plan.interval_s
        self._seen = changed, generation
        due = self._due()
        if due == math.inf:
            self._set(None)
            return
        if due > base:
            base += (
                math.ceil((due - base) / self.plan.interval_s - _ROUNDING_S) * self.plan.interval_s
            )
        self._set(base)

    def _set(self, when: float | None) -> None:
        if self._timer is not None:
            if self._timer[0] == when:
                return
            self._timer[1].cancel()
            self._timer = None
        if when is not None:
            self._timer = (when, self.core.at(when, self._check))

    def _due(self) -> float:
        """When there is something to do, -inf for at once."""
        if self._to_resume or self._to_suspend_at_once:
            return -math.inf
        plan = self.plan
        times = [
            self._since[index] + plan.suspend_timeout_s[index]
            for index in nodeset_indices(self.with_flag[NodeFlag.POWERING_DOWN])
        ]
        times += [
            self._since[index] + plan.resume_timeout_s[index] + _ROUNDING_S
            for index in nodeset_indices(self.with_flag[NodeFlag.POWERING_UP])
        ]
        idle = self._idle
        if idle:
            last_busy = self.core.tables.nodes.last_busy
            times += [
                float(last_busy[index]) + plan.suspend_time_s[index] + 1
                for index in nodeset_indices(idle)
            ]
        return min(times, default=math.inf)

    # --- what -------------------------------------------------------------------------------------

    @property
    def _to_resume(self) -> int:
        """Nodes that are off and have jobs, or shall be on."""
        off = self.with_flag[NodeFlag.POWERED_DOWN]
        return (
            off & (~self.core.tables.nodes.idle_nodes | self.with_flag[NodeFlag.POWER_UP])
            if off
            else 0
        )

    @property
    def _to_suspend_at_once(self) -> int:
        asked = self.with_flag[NodeFlag.POWER_DOWN]
        table = self.core.tables.nodes
        return (
            asked
            & table.idle_nodes
            & ~table.completing_nodes
            & ~self.with_flag[NodeFlag.POWERING_UP]
            if asked
            else 0
        )

    @property
    def _idle(self) -> int:
        """Nodes that will be off when they have been idle for long enough."""
        table, has = self.core.tables.nodes, self.with_flag
        on = (
            self.mortal
            & table.idle_nodes
            & ~table.completing_nodes
            & ~(has[NodeFlag.POWERED_DOWN] | has[NodeFlag.POWERING_DOWN])
        )
        on &= ~(has[NodeFlag.POWERING_UP] | has[NodeFlag.POWER_DOWN] | has[NodeFlag.POWER_UP])
        if on:
            on &= ~self._with_suspended
        if not on:
            return 0
        plan = self.plan
        if plan.exempt_counts:
            on &= ~plan.kept_on(on & table.up_nodes)
        if plan.exempt_flags or plan.spares_down:
            on &= ~nodeset.from_positions(
                index for index in nodeset_indices(on) if plan.spares(table.nodes[index])
            )
        return on & ~nodeset.from_positions(
            index
            for index in nodeset_indices(on)
            if table.nodes[index].state not in (NodeState.IDLE, NodeState.DOWN)
        )

    @property
    def _with_suspended(self) -> int:
        """Nodes with jobs that stand still: they are idle, and stay on."""
        nodes = 0
        for job in self.core.tables.running.values():
            if job.state is JobState.SUSPENDED and job.allocation is not None:
                nodes |= job.allocation.nodes
        return nodes

    def _check(self) -> None:
        self._timer = None
        core, now = self.core, self.core.time.now()
        self._last_check, self._is_asked = now, False
        for pace in (self._off_pace, self._on_pace):
            pace.forget(now, self.plan.interval_s)
        changed = self._finish_suspending(now) | self._suspend(now) | self._resume(now)
        failed = self._fail(now)
        if changed | failed:
            core.journal.nodes(changed | failed)
            core.last_node_update = now
            core.changed(Note.CHANGE if failed else Note.POWERED, now)
        if failed:
            nodes_down(core, failed, now)
            core.tables.nodes.note_departure(failed, 0)
            review_all(core, now)
            self._run(self.plan.resume_fail_program, failed)
        self._seen, self._left = (-math.inf, -1), core.tables.nodes.generation

    def _finish_suspending(self, now: float) -> int:
        falling = self.with_flag[NodeFlag.POWERING_DOWN]
        plan = self.plan
        off = nodeset.from_positions(
            i
            for i in nodeset_indices(falling)
            if self._since[i] + plan.suspend_timeout_s[i] <= now + _ROUNDING_S
        )
        if off:
            self._advance(off, NodeEvent.POWERED_DOWN, now)
            self.core.tables.nodes.note_departure(off, 0)
        return off

    def _suspend(self, now: float) -> int:
        table, second = self.core.tables.nodes, int(now)
        at_once = self._to_suspend_at_once
        ready = list(nodeset_indices(at_once))
        if idle := self._idle:
            last_busy = table.last_busy
            ready += [
                i
                for i in nodeset_indices(idle)
                if last_busy[i] + self.plan.suspend_time_s[i] < second
            ]
        ready = _some(ready, self.plan.suspend_rate, self._off_pace)
        if not ready:
            return 0
        off = nodeset.from_positions(ready)
        for index in ready:
            node = table.nodes[index]
            self._since[index] = now
            self._late.pop(index, None)
            if node.flags & NodeFlag.POWER_DRAIN:
                advance(node, NodeEvent.POWER_DRAIN_OVER, now)
        self._advance(off, NodeEvent.POWERING_DOWN, now)
        log.info("power_save: suspending nodes %s", self.core.names.to_expression(off))
        self._run(self.plan.suspend_program, off)
        return off

    def _resume(self, now: float) -> int:
        ready = _some(list(nodeset_indices(self._to_resume)), self.plan.resume_rate, self._on_pace)
        if not ready:
            return 0
        rising = nodeset.from_positions(ready)
        self._advance(rising, NodeEvent.POWERING_UP, now)
        for index in ready:
            node = self.core.tables.nodes.nodes[index]
            node.reason, node.reason_time, node.reason_user_id = "", None, 0
            self._since[index] = node.boot_request_time = int(now)
            self._late.pop(index, None)
        self.core.at(now + self.core.settings.boot_s, self.boot)
        log.info("power_save: waking nodes %s", self.core.names.to_expression(rising))
        self._run(self.plan.resume_program, rising)
        return rising

    def _fail(self, now: float) -> int:
        table, plan = self.core.tables.nodes, self.plan
        failed = 0
        for index in nodeset_indices(self.with_flag[NodeFlag.POWERING_UP]):
            if self._since[index] + plan.resume_timeout_s[index] < now:
                failed |= 1 << index
                self._late[index] = self._since[index]
                node = table.nodes[index]
                node.reason, node.reason_time, node.reason_user_id = TIMED_OUT, int(now), 0
        self._advance(failed, NodeEvent.RESUME_TIMED_OUT, now)
        if failed:
            log.error(
                "nodes %s not resumed by ResumeTimeout, they are down",
                self.core.names.to_expression(failed),
            )
        return failed

    def boot(self) -> None:
        """Nodes whose time to boot is over are there, if their daemon is."""
        core = self.core
        table, now = core.tables.nodes, core.time.now()
        up = self._unexpected(now)
        for index in nodeset_indices(self.with_flag[NodeFlag.POWERING_UP]):
            if (
                not self._has_booted(index, self._since[index], now)
                or core.settings.boot_s > self.plan.resume_timeout_s[index]
            ):
                continue
            up |= 1 << index
            node = table.nodes[index]
            node.boot_time = node.slurmd_start_time = int(now)
            advance(node, NodeEvent.BOOTED, now)
            if node.state is NodeState.DOWN and core.settings.return_to_service == 2:
                advance(node, NodeEvent.RETURNED, now)
        if not up:
            return
        for index in nodeset_indices(up):
            self.follow(table.nodes[index])
        table.note_departure(up, int(now))
        core.journal.nodes(up)
        core.last_node_update = now
        log.info("nodes %s have booted", core.names.to_expression(up))
        for job in core.tables.running.values():
            if (
                job.flags & JobFlag.CONFIGURING
                and job.allocation is not None
                and job.allocation.nodes & up
            ):
                nodes_are_there(core, job)
        core.changed(Note.CHANGE, now)

    def _has_booted(self, index: int, since: float, now: float) -> bool:
        record = self.core.daemon_of_node[index]
        return (
            record is not None
            and record.is_registered
            and record.is_responding
            and now - since >= self.core.settings.boot_s - 1
        )

    def _unexpected(self, now: float) -> int:
        """Nodes (a bitmap) that nobody waits for any more, and that are there after all: they are
        down, or serve again if ReturnToService says so.
        """
        there = 0
        for index in [
            index for index, since in self._late.items() if self._has_booted(index, since, now)
        ]:
            del self._late[index]
            node = self.core.tables.nodes.nodes[index]
            there |= 1 << index
            node.boot_time = node.slurmd_start_time = int(now)
            if self.core.settings.return_to_service != 2:
                advance(node, NodeEvent.BOOTED_LATE, now)
                node.reason, node.reason_time, node.reason_user_id = REBOOTED, int(now), 0
            else:
                advance(node, NodeEvent.BOOTED, now)
                if node.state is NodeState.DOWN:
                    advance(node, NodeEvent.RETURNED, now)
                node.reason, node.reason_time = "", None
        return there

    def _run(self, program: str, nodes: int) -> None:
        core = self.core
        if program and not core.settings.emulates_jobs:
            user = min(core.settings.admin_ids, default=0)
            core.run_program(user, user, program, core.names.to_expression(nodes))

    # --- what administrators ask for --------------------------------------------------------------

    def power_up(self, node: Node) -> None:
        """State=POWER_UP: nothing to do for a node that is on, and forgotten for one that is just
        being switched off.
        """
        if node.flags & OFF and not node.flags & NodeFlag.POWERING_DOWN:
            self._advance(1 << node.index, NodeEvent.POWER_UP_ASKED, self.core.time.now())
            self.ask()

    def power_down(self, node: Node) -> None:
        """State=POWER_DOWN: as soon as it is idle."""
        if node.flags & NodeFlag.POWERING_DOWN:
            return
        self._advance(1 << node.index, NodeEvent.POWER_DOWN_ASKED, self.core.time.now())
        self.ask()

    def stay_off(self, node: Node) -> None:
        """State=RESUME of a node that is being switched off: it is off, and may be given to
        jobs.
        """
        self._advance(1 << node.index, NodeEvent.LEFT_OFF, self.core.time.now())

    # --- after a restart --------------------------------------------------------------------------

    def recover(self, now: float) -> None:
        """The controller was away: go on with what was on its way, by the times that are known."""
        for node in self.core.tables.nodes.nodes:
            self.follow(node)
            if node.flags & NodeFlag.POWERING_DOWN:
                self._since[node.index] = now
            elif node.flags & NodeFlag.POWERING_UP:
                self._since[node.index] = float(node.boot_request_time)
                self.core.at(
                    max(now, node.boot_request_time + self.core.settings.boot_s), self.boot
                )
        for job in self.core.tables.running.values():
            if job.flags & JobFlag.CONFIGURING:
                watch_configuration(self.core, job)


def _some(ready: list[int], rate: int, pace: Pace) -> list[int]:
    """As many of the nodes as the rate allows."""
    room = pace.room(rate)
    ready = ready if room >= len(ready) else ready[: int(room)]
    pace.count += len(ready)
    return ready


def nodes_are_there(core: Core, job: Job) -> None:
    """Some of a job's nodes are. A script waits for the next check of limits; who waits himself
    asks again and again, and goes on at once.
    """
    if any(message.until_ready for message, _ in core.awaited.get(job.job_id, ())):
        for each in components(job):
            finish_configuring(core, each, core.time.now())
    else:
        watch_configuration(core, job)


def set_plan(core: Core, plan: PowerPlan | None) -> None:
    """From now on nodes are switched by this plan; None: as they are, so they stay."""
    if plan is None:
        core.power = None
    elif core.power is None:
        core.power = Power(core, plan)
    else:
        core.power.take_over(plan)
