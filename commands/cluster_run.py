"""A cluster under virtual time for the length of one run: daemons are started, somebody works with them as a participant, all is ended.

Place: used by `understudy replay` for traces and scenarios. `in_processes` has one process a daemon, `in_one_process` has all in this one, with
messages through memory; what the cluster does is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time as real_time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from understudy.auth.keys import read_key
from understudy.clock.daemon import Daemon, set_up_logging, take_part
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.commands import launch, locate
from understudy.protocol.messenger import MemoryNetwork, Messenger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from understudy.model.cluster import Cluster

_Result = TypeVar("_Result")
NAME = "replay"


@dataclass(frozen=True, slots=True)
class Participant:
    """What the one who works with the cluster has. `on_stalled(react)`: have `react(reason)` called when nobody has anything left to do."""

    loop: VirtualEventLoop
    messenger: Messenger
    time: Timekeeper
    cluster: Cluster
    on_stalled: Callable[[Callable[[str], None]], None]


def in_processes(cluster: Cluster, run_dir: Path, work: Callable[[Participant], Awaitable[_Result]], *, pause_at: str = "") -> _Result:
    """Run with one process a daemon. The cluster is registered meanwhile, so commands in another terminal find it. `pause_at`: a breakpoint."""
    location = locate.Location(
        name=cluster.name,
        conf=str(run_dir / "slurm.conf"),
        run_dir=str(run_dir),
        controller=cluster.controller,
        controller_unix=cluster.controller_unix,
        agent=cluster.agent,
        clock=cluster.clock,
        key_file=cluster.key_file,
        started=real_time.time(),
        accounting=cluster.accounting,
        accounting_unix=cluster.accounting_unix,
    )
    started = launch.start_daemons(cluster, run_dir)
    try:
        launch.wait_listening(started)
        locate.register(location)
        if pause_at:
            from understudy.commands.understudy_clock import ask, instant

            ask(location, "break", instant(pause_at, cluster.zero))
            print(f"Stops at {pause_at}; elsewhere then: export SLURM_CONF={location.conf}; understudy clock resume", flush=True)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cluster.cpu})
        loop = VirtualEventLoop()
        key = read_key(Path(cluster.key_file))
        messenger = _messenger(NAME, loop, key, cluster)
        messenger.add_peer("controller", cluster.controller_unix)
        if cluster.accounting_unix:
            messenger.add_peer("accounting", cluster.accounting_unix)
        link = take_part(loop, cluster, NAME, key, messenger, watches=True)
        participant = Participant(loop, messenger, Timekeeper(loop, cluster.epoch), cluster, lambda react: setattr(link, "on_stalled", react))

        async def work_or_lose(participant: Participant) -> _Result:
            lost: list[str] = []
            task = asyncio.current_task()
            assert task is not None

            def end(reason: str) -> None:
                lost.append(reason)
                task.cancel()

            link.on_lost = end
            try:
                return await work(participant)
            except asyncio.CancelledError:
                if lost:
                    raise launch.LaunchError(f"the run ended early: {lost[0]}\nThe daemons' logs are in {run_dir / 'logs'}") from None
                raise

        result = _run(loop, participant, work_or_lose)
        link.leave()
        return result
    finally:
        locate.unregister(location.name, location.run_dir)
        launch.stop(run_dir, started)


def in_one_process(cluster: Cluster, run_dir: Path, work: Callable[[Participant], Awaitable[_Result]]) -> _Result:
    """Run with all daemons in this process, whose log goes to the run directory."""
    from understudy.controller.main import start as start_controller
    from understudy.noded.main import start as start_noded

    with (run_dir / "logs" / "replay.log").open("a") as log:
        set_up_logging(stream=log)
        loop = VirtualEventLoop()
        network = MemoryNetwork()
        key = read_key(Path(cluster.key_file))
        time = Timekeeper(loop, cluster.epoch)

        async def start_and_work(participant: Participant) -> _Result:
            daemons = []
            if cluster.accounting:
                from understudy.accounting.main import start as start_accounting

                daemons.append(Daemon("accounting", cluster, run_dir, _messenger("accounting", loop, key, cluster, network), time))
                await start_accounting(daemons[0])
            daemons.append(Daemon("controller", cluster, run_dir, _messenger("controller", loop, key, cluster, network), time))
            await start_controller(daemons[-1])
            for noded in cluster.nodeds:
                daemons.append(Daemon(noded.name, cluster, run_dir, _messenger(noded.name, loop, key, cluster, network), time))
                await start_noded(daemons[-1])
            try:
                return await work(participant)
            finally:
                for daemon in reversed(daemons):
                    await daemon.close()

        mine = _messenger(NAME, loop, key, cluster, network)
        participant = Participant(loop, mine, time, cluster, lambda react: setattr(loop, "on_stalled", react))
        return _run(loop, participant, start_and_work)


def _run(loop: VirtualEventLoop, participant: Participant, work: Callable[[Participant], Awaitable[_Result]]) -> _Result:
    async def main() -> _Result:
        gc.freeze()
        gc.set_threshold(100_000, 20, 100)
        return await work(participant)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        result = runner.run(main())
        participant.messenger.close()
    return result


def _messenger(name: str, loop: VirtualEventLoop, key: bytes, cluster: Cluster, network: MemoryNetwork | None = None) -> Messenger:
    return Messenger(
        name,
        loop,
        key,
        user_id=os.getuid(),
        group_id=os.getgid(),
        latency_s=cluster.latency_s,
        link_latency=cluster.link_latency,
        network=network,
    )
