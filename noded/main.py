"""The node daemon's main: configuration in, core, edge and executor out.

Place: the edge's edge; started by `understudy up` and by a replay in one process, which calls
`start` itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.auth.credential import Verifier
from understudy.auth.keys import Keys
from understudy.clock.daemon import load_cluster, run_daemon
from understudy.model.cluster import CONTROLLER, SLURM_VERSION, Cluster
from understudy.noded.core import NodeCore, OwnNodes
from understudy.noded.daemon import FrontEnd
from understudy.noded.emulated import EmulatedExecutor
from understudy.noded.emulated_steps import EmulatedSteps
from understudy.noded.faults import FaultTable
from understudy.noded.files import FileReceiver
from understudy.noded.journal import Journal
from understudy.noded.leader import FollowedLeader
from understudy.noded.settings import read_log_keys, read_settings
from understudy.protocol.tree import Routes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sized

    from understudy.clock.daemon import Daemon
    from understudy.model.cluster import Hops, NodeDaemon
    from understudy.model.metrics import Family
    from understudy.noded.hop_nodes import HopNodes
    from understudy.protocol.messenger import Messenger
    from understudy.protocol.tree import Target


_PORT: Final = 6817  # slurm.conf(5), SlurmctldPort: scripts are told of a port in any case


async def start(
    daemon: Daemon, *, faults: FaultTable | None = None, boot_time: float | None = None
) -> FrontEnd | HopNodes:
    """Build the node daemon `daemon.name` of the cluster and have it register. `boot_time`: of
    emulated nodes, in the cluster's time; None: with the cluster, whatever became of daemons.

    Raises:
        ValueError: the cluster has no such node daemon; real jobs in time that is not real.
    """
    cluster = daemon.cluster
    me = next((each for each in cluster.nodeds if each.name == daemon.name), None)
    if me is None:
        raise ValueError(f"cluster {cluster.name} has no node daemon {daemon.name}")
    is_real = cluster.executor == "real"
    if is_real and cluster.time != "real":
        raise ValueError(f"real jobs need real time, not {cluster.time} time")
    for other in cluster.nodeds:
        daemon.messenger.add_peer(other.name, other.address)
    daemon.messenger.add_peer(CONTROLLER, *cluster.controllers.values())
    if cluster.hops is not None:
        return _start_hops(daemon, me, cluster.hops, faults)
    own = OwnNodes(me.nodes, is_all=len(cluster.nodeds) == 1 and not cluster.is_open)
    core = NodeCore(
        own, faults, reports_killed=is_real, cleans_up_at_once=not is_real and not cluster.epilog_s
    )
    spool = daemon.run_dir / "spool" / me.name
    verifier = Verifier(Keys(me.name, Path(cluster.key_folder))) if cluster.key_folder else None
    front_end = FrontEnd(
        me.name,
        me.address,
        core,
        daemon.messenger,
        daemon.time,
        verifier if is_real else None,
        OpenRoutes(cluster, daemon.run_dir, daemon.messenger)
        if cluster.is_open
        else Routes.of(cluster.nodeds),
        daemon.log,
        boot_time=_boot_time(daemon, boot_time, is_real=is_real),
        step_verifier=verifier,
        files=FileReceiver() if is_real else None,
        journal=Journal(spool / "journal") if is_real else None,
        stop=daemon.stop,
        leader=FollowedLeader(cluster.controllers, daemon.messenger, daemon.log),
    )
    daemon.figures.append(lambda: figures(own.names, [core]))
    if is_real:
        _run_really(daemon, front_end, spool, own)
    else:
        _emulate(daemon, front_end)
    return front_end


def figures(nodes: Sized, cores: Iterable[NodeCore]) -> Iterator[Family]:
    """What Prometheus is told."""
    from understudy.model.metrics import gauge  # noqa: PLC0415  few ask for it

    jobs: set[tuple[int, int]] = set()
    steps: set[tuple[int, int, int]] = set()
    for core in cores:
        jobs.update(core.jobs)
        steps.update(step for of_job in core.steps.by_job.values() for step in of_job)
    yield gauge("understudy_noded_nodes", "Nodes for which it stands.", len(nodes))
    yield gauge("understudy_noded_jobs", "Jobs of which something is left there.", len(jobs))
    yield gauge("understudy_noded_steps", "Steps that run there.", len(steps))


def _run_really(daemon: Daemon, front_end: FrontEnd, spool: Path, own: OwnNodes) -> None:
    """Scripts and steps are processes; those of an earlier life of this daemon are taken over."""
    from understudy.noded.forker import Forker  # noqa: PLC0415  as below
    from understudy.noded.health import HealthCheck  # noqa: PLC0415
    from understudy.noded.real import RealExecutor  # noqa: PLC0415  emulated daemons need no subprocesses
    from understudy.noded.real_steps import RealSteps  # noqa: PLC0415

    cluster = daemon.cluster
    conf = daemon.run_dir / "slurm.conf"
    settings = read_settings(conf if conf.exists() else Path(cluster.conf))
    forker = Forker()
    real = RealExecutor(
        spool,
        front_end.script_ended,
        daemon.log,
        conf=str(conf),
        settings=settings,
        controller=cluster.controller.removeprefix("tcp:") or f"127.0.0.1:{_PORT}",
        forker=forker,
    )
    daemon.at_exit.append(real.close)
    health = HealthCheck(settings, real.programs, str(conf), daemon.log)
    health.check(own.names)
    steps = RealSteps(
        spool,
        front_end.step_ended,
        daemon.log,
        conf=str(conf),
        settings=settings,
        memory=real.memory,
        forker=forker,
    )
    daemon.at_exit.append(steps.close)

    def reconfigure() -> None:
        again = read_settings(conf)
        for part in (real, steps, health):
            part.reconfigure(again)

    front_end.health = health
    front_end.reconfigure = reconfigure
    front_end.step_runner = steps
    front_end.start(real, adopt=real.adopt, adopt_step=steps.adopt)


def _emulate(daemon: Daemon, front_end: FrontEnd) -> None:
    """Scripts and steps are timers."""
    cluster = daemon.cluster
    executor = EmulatedExecutor(
        daemon.time,
        cluster.default_run_s,
        front_end.script_ended,
        overhead_s=cluster.job_overhead_s,
        kill_s=cluster.kill_s,
        sleeps=cluster.sleeps_while_stopped,
        epilog_s=cluster.epilog_s,
        slowness=front_end.core.faults.slowness,
    )
    daemon.at_exit.append(executor.close)
    steps = EmulatedSteps(daemon.time, cluster.default_run_s, front_end.step_ended, daemon.log)
    daemon.at_exit.append(steps.close)
    front_end.step_runner = steps
    front_end.start(executor)


def _start_hops(daemon: Daemon, me: NodeDaemon, hops: Hops, faults: FaultTable | None) -> HopNodes:
    """Each node is a hop of its own."""
    from understudy.noded.hop_nodes import HopNodes  # noqa: PLC0415  only here
    from understudy.protocol.hops import hop_links, mishaps_of  # noqa: PLC0415

    cluster = daemon.cluster
    links = hop_links(daemon.time.loop, me.name, cluster, hops)
    daemon.at_exit.append(links.close)
    nodes = HopNodes(
        me,
        daemon.messenger,
        links,
        daemon.time,
        daemon.log,
        boot_time=_boot_time(daemon, None, is_real=False),
        mishaps=mishaps_of(hops),
        faults=faults if faults is not None else FaultTable(),
        default_run_s=cluster.default_run_s,
        overhead_s=cluster.job_overhead_s,
        kill_s=cluster.kill_s,
        epilog_s=cluster.epilog_s,
        step_verifier=Verifier(Keys(me.name, Path(cluster.key_folder))),
        stop=daemon.stop,
        leader=FollowedLeader(cluster.controllers, daemon.messenger, daemon.log),
    )
    daemon.at_exit.append(nodes.close)
    daemon.figures.append(lambda: figures(nodes.nodes, [e.core for e in nodes.nodes.values()]))
    nodes.start()
    return nodes


class OpenRoutes(Routes):
    """Of a cluster that node daemons may join: who is not known is looked for in cluster.json."""

    def __init__(self, cluster: Cluster, run_dir: Path, messenger: Messenger) -> None:
        super().__init__(Routes.of(cluster.nodeds).daemon_of)
        self._run_dir, self._messenger = run_dir, messenger

    def targets(self, nodes: Iterable[str]) -> tuple[list[Target], list[str]]:
        nodes = list(nodes)
        found = super().targets(nodes)
        if found[1]:
            cluster = Cluster.load(self._run_dir)
            for each in cluster.nodeds:
                self._messenger.add_peer(each.name, each.address)
            self.daemon_of = Routes.of(cluster.nodeds).daemon_of
            found = super().targets(nodes)
        return found


def main(arguments: list[str] | None = None) -> int:
    """Run one node daemon."""
    parser = argparse.ArgumentParser(
        prog="python -m understudy.noded", description="A node daemon of one cluster."
    )
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--name", default="noded0", help="which of the cluster's node daemons")
    parser.add_argument(
        "--listener", type=int, help="a socket that listens at the daemon's address already"
    )
    parser.add_argument("-v", "--verbose", action="count", default=0)
    options = parser.parse_args(arguments)
    cluster = load_cluster(options.run_dir)
    addresses = [each.address for each in cluster.nodeds if each.name == options.name]
    if not addresses:
        print(
            f"understudy-noded: cluster {cluster.name} has no node daemon {options.name}",
            file=sys.stderr,
        )
        return 1
    return run_daemon(
        options.run_dir,
        options.name,
        addresses if options.listener is None else [],
        _start,
        verbose=options.verbose,
        listener=options.listener,
    )


async def _start(daemon: Daemon) -> None:
    """With a log of its own."""
    conf = daemon.run_dir / "slurm.conf"

    def set_logs() -> None:
        assert daemon.logs is not None
        daemon.logs.configure(*read_log_keys(conf))

    set_logs()
    daemon.log.info("slurmd version %s started", SLURM_VERSION)
    front_end = await start(daemon)
    daemon.log.info(
        "slurmd started on %s",
        time.strftime("%a, %d %b %Y %H:%M:%S %z", time.localtime(daemon.time.now())),
    )
    reconfigure = front_end.reconfigure

    def reconfigure_all() -> None:
        set_logs()
        reconfigure()

    front_end.reconfigure = reconfigure_all
    daemon.at_exit.append(lambda: daemon.log.info("Slurmd shutdown completing"))


def _boot_time(daemon: Daemon, told: float | None, *, is_real: bool) -> float:
    if is_real:
        return time.time() - float(Path("/proc/uptime").read_text().split()[0])
    if told is not None:
        return told
    return daemon.cluster.epoch or daemon.time.now()
