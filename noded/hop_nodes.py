"""The nodes of one process where each is a hop of its own (`--hops sockets`): a front end a node,
with its own jobs, executor and name, and connections of its own to the nodes to which it hands a
message on.

Place: the node daemon's edge, in place of its one front end. They share the process's address (a
connection's hello names the node that is meant), its registration and its reports: for the
controller they are one daemon with many nodes, as in memory. It decides nothing about jobs. Jobs
are emulated. See `../docs/fan-out.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.model.hostlist import expand
from understudy.noded.core import OK, NodeCore, OwnNodes
from understudy.noded.daemon import FrontEnd
from understudy.noded.emulated import EmulatedExecutor
from understudy.noded.emulated_steps import EmulatedSteps
from understudy.noded.leader import NOT_LEADING
from understudy.noded.merged_reports import MergedReports
from understudy.noded.registration import Registration
from understudy.noded.reports import CONTROLLER
from understudy.protocol.messages import (
    AttachTasks,
    Failure,
    FindJobs,
    Forward,
    JobsFound,
    Lead,
    Message,
    Ping,
    Reconfigure,
    RegisterNodes,
    Shutdown,
    SignalTasks,
    StatTasks,
)
from understudy.protocol.tree import UNKNOWN_NODE, Routes

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from understudy.auth.credential import Verifier
    from understudy.clock.timekeeper import Timekeeper
    from understudy.model.cluster import NodeDaemon
    from understudy.noded.faults import FaultTable
    from understudy.noded.leader import FollowedLeader
    from understudy.protocol.hops import HopLinks
    from understudy.protocol.messenger import Messenger
    from understudy.protocol.mishaps import Mishaps
    from understudy.protocol.requests import Request

_PAST_RUNS: Final = 100  # ours: of each node; for all of them it is a megabyte a run
_MOMENT_S: Final = 0.02  # ours: what all nodes are told within it, the process does once


class _NodeWire:
    """What a node's front end sends with: to the controller over the process's connection, to other
    nodes in its own name.
    """

    __slots__ = ("_links", "_messenger", "_node")

    def __init__(self, node: str, messenger: Messenger, links: HopLinks) -> None:
        self._node, self._messenger, self._links = node, messenger, links

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        if peer == CONTROLLER:
            self._messenger.send(peer, message, on_reply, timeout_s)
        else:
            self._links.send(self._node, peer, message, on_reply, timeout_s)


class HopNodes:
    """The nodes of one process. `nodes`: their front ends by name."""

    def __init__(
        self,
        daemon: NodeDaemon,
        messenger: Messenger,
        links: HopLinks,
        time: Timekeeper,
        log: logging.Logger,
        *,
        boot_time: float,
        mishaps: Mishaps,
        faults: FaultTable,
        default_run_s: float = 1.0,
        overhead_s: float = 0.0,
        kill_s: float = 0.0,
        epilog_s: float = 0.0,
        step_verifier: Verifier | None = None,
        stop: Callable[[], None] = lambda: None,
        leader: FollowedLeader,
    ) -> None:
        self._leader = leader
        self.name, self.address, self._expression = daemon.name, daemon.address, daemon.nodes
        self._messenger, self._time, self._log, self._stop = messenger, time, log, stop
        self._boot_time, self._start_time = boot_time, time.now()
        self.registration = Registration(messenger, time, log, self._describe, self._registered)
        self.reports = MergedReports(messenger, time, faults, log, on_back=self.registration.begin)
        self.reconfigure: Callable[[], None] = lambda: None  # read slurm.conf again
        self._is_told_to_reconfigure = False
        routes = _EachNode(links)
        self.nodes: dict[str, FrontEnd] = {}
        for node in expand(daemon.nodes):
            wire: Any = _NodeWire(node, messenger, links)
            front_end = self.nodes[node] = FrontEnd(
                node,
                daemon.address,
                NodeCore(OwnNodes(node, is_all=False), faults, past_runs=_PAST_RUNS),
                wire,
                time,
                None,
                routes,
                log,
                boot_time=self._boot_time,
                step_verifier=step_verifier,
                stop=stop,
                shared=(self.registration, self.reports),
            )
            front_end.mishaps, front_end.reconfigure = mishaps, self._reconfigure_soon
            front_end.executor = EmulatedExecutor(
                time,
                default_run_s,
                front_end.script_ended,
                overhead_s=overhead_s,
                kill_s=kill_s,
                epilog_s=epilog_s,
            )
            front_end.step_runner = EmulatedSteps(time, default_run_s, front_end.step_ended, log)

    def start(self) -> None:
        """Begin."""
        self._messenger.set_handler(self.handle)
        self._messenger.on_peer_lost = self._lost
        self.registration.begin()

    def close(self) -> None:
        """End what still runs."""
        for front_end in self.nodes.values():
            front_end.executor.close()
            front_end.step_runner.close()

    # --- the process's own ------------------------------------------------------------------------

    def _describe(self) -> RegisterNodes:
        cores = [front_end.core for front_end in self.nodes.values()]
        running = {run for core in cores for run in core.running_jobs}
        return RegisterNodes(
            self.name,
            self.address,
            self._expression,
            self._boot_time,
            self._start_time,
            sorted(running),
            sorted({run for core in cores for run in core.jobs_of_steps} - running),
        )

    def _registered(self, unknown: list[tuple[int, int]]) -> None:
        self.reports.controller_is_back()
        if unknown:
            self._log.warning("the controller does not know jobs %s: ending them", unknown)
            for front_end in self.nodes.values():
                front_end.do(front_end.core.end_unknown(unknown))

    def _lost(self, peer: str) -> None:
        if peer == CONTROLLER:
            self.registration.begin()

    def _reconfigure_soon(self) -> None:
        """Each node is told, the process reads the file once."""
        if not self._is_told_to_reconfigure:
            self._is_told_to_reconfigure = True
            self._time.call_after_wait(_MOMENT_S, self._reconfigure)

    def _reconfigure(self) -> None:
        self._is_told_to_reconfigure = False
        self.reconfigure()
        self.registration.begin()

    # --- being asked ------------------------------------------------------------------------------

    def handle(self, request: Request) -> Message | None:
        """Have the node that is meant answer; the process itself where none is."""
        message, node = request.message, request.addressee
        if self._leader.refuses(request):
            return NOT_LEADING
        if not node and request.sender.is_daemon:
            match message:
                case Ping():
                    return OK
                case Lead():
                    answer = self._leader.follow(message, request.sender.name)
                    self.registration.begin()
                    return answer
                case Shutdown():
                    self._stop()
                    return OK
                case Reconfigure():
                    self._reconfigure_soon()
                    return OK
                case FindJobs():
                    return JobsFound([run for run in message.jobs if self._has(run)])
                case _:
                    pass
        front_end = self.nodes.get(node) if node else self._meant(message)
        if front_end is None:
            return Failure(UNKNOWN_NODE, "Invalid node name specified")
        return front_end.handle(request)

    def _has(self, run: tuple[int, int]) -> bool:
        return self.reports.has_end_of(run) or any(
            run in front_end.core.jobs for front_end in self.nodes.values()
        )

    def _meant(self, message: Message) -> FrontEnd | None:
        """Who answers a command, which names no node in its hello: the first of a message's nodes,
        or the first that has the step.
        """
        match message:
            case Forward():
                try:
                    names = expand(message.nodes)
                except ValueError:
                    return None
                return self.nodes.get(names[0]) if names else None
            case AttachTasks() | SignalTasks() | StatTasks():
                step = message.job_id, message.restart, message.step_id
                return next(
                    (
                        front_end
                        for front_end in self.nodes.values()
                        if step in front_end.core.steps or step[:2] in front_end.core.jobs
                    ),
                    next(iter(self.nodes.values())),
                )
            case _:
                return next(iter(self.nodes.values()))


class _EachNode(Routes):
    """Every node stands for itself."""

    def __init__(self, links: HopLinks) -> None:
        super().__init__({node: node for node in links.nodes})
