"""A cluster under virtual time for the length of one run: daemons are started, somebody works with
them as a participant, all is ended.

Place: used by `understudy replay` for traces and scenarios. `in_processes` has one process a
daemon, `in_one_process` has all in this one, with messages through memory; what the cluster does is
the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import sqlite3
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from understudy.auth.keys import Keys
from understudy.clock.daemon import Daemon, take_part
from understudy.clock.logs import Logs
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.commands.shared import locate
from understudy.controller.saved.database import in_memory
from understudy.protocol.messenger import MemoryNetwork, Messenger
from understudy.tool.cluster import launch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from understudy.controller.edge.main import Controller
    from understudy.model.cluster import Cluster

_Result = TypeVar("_Result")
_runs_in_memory = itertools.count()  # whose files are apart
NAME = "replay"
LOG = f"{NAME}.log"  # of all daemons that share a process


@dataclass(frozen=True, slots=True)
class Participant:
    """What the one who works with the cluster has. `on_stalled(react)`: have `react(reason)` called
    when nobody has anything left to do.
    """

    loop: VirtualEventLoop
    messenger: Messenger
    time: Timekeeper
    cluster: Cluster
    on_stalled: Callable[[Callable[[str], None]], None]
    resume: Callable[[], None] = lambda: None  # let time go on if it has been stopped


def in_processes(
    cluster: Cluster,
    run_dir: Path,
    work: Callable[[Participant], Awaitable[_Result]],
    *,
    pause_at: str = "",
) -> _Result:
    """Run with one process a daemon. The cluster is registered meanwhile, so commands in another
    terminal find it. `pause_at`: a breakpoint.
    """
    location = launch.location_of(cluster, run_dir)
    # the site's own file may be that of other clusters, too
    location.conf = str(run_dir / "slurm.conf")
    started = launch.start_daemons(cluster, run_dir)
    try:
        launch.wait_listening(started)
        locate.register(location)
        if pause_at:
            from understudy.tool.cluster.clock_client import ask, instant

            ask(location, "break", instant(pause_at, cluster.zero))
            print(
                f"Stops at {pause_at}; elsewhere then: export SLURM_CONF={location.conf}; "
                "understudy clock resume",
                flush=True,
            )
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cluster.cpu})
        loop = VirtualEventLoop()
        keys = Keys(NAME, Path(cluster.key_folder))
        messenger = _messenger(loop, cluster, NAME, keys=keys)
        messenger.add_peer("controller", cluster.controller_unix)
        if cluster.accounting_unix:
            messenger.add_peer("accounting", cluster.accounting_unix)
        link = take_part(loop, cluster, NAME, keys, messenger, watches=True)

        def resume() -> None:
            from understudy.tool.cluster.clock_client import ClockError, ask

            # then the clock is gone, and who waits for time is told so
            with contextlib.suppress(ClockError, OSError):
                ask(location, "resume", 0.0)

        time = Timekeeper(loop, cluster.epoch)
        participant = Participant(
            loop, messenger, time, cluster, lambda react: setattr(link, "on_stalled", react), resume
        )
        ending = Ending(loop, run_dir)
        link.on_lost = ending.end
        result = run_loop(loop, participant, ending.unless_lost(work))
        link.leave()
        return result
    finally:
        locate.unregister(location.name, location.run_dir)
        launch.stop(run_dir, started)


def keep_in_memory(cluster: Cluster) -> None:
    """Have what is on disk be in files that SQLite has in this process's memory: daemons may end
    and come back to it, and a fork has its own.
    """
    if cluster.state == "disk":
        number = next(_runs_in_memory)
        cluster.state_url = in_memory(f"state-{number}")
        cluster.accounting_url = f"sqlite:///{in_memory(f'accounting-{number}')}&uri=true"
    else:
        cluster.accounting_url = "sqlite://"


@contextlib.contextmanager
def kept_in_memory(cluster: Cluster) -> Iterator[None]:
    """As long as this lasts, such files are there, whoever has them open."""
    with contextlib.ExitStack() as kept:
        if cluster.state == "disk":
            for url in (cluster.state_url, cluster.accounting_url.removeprefix("sqlite:///")):
                kept.enter_context(contextlib.closing(sqlite3.connect(url, uri=True)))
        yield


@dataclass(slots=True)
class OneProcess:
    """A cluster whose daemons are all in this process, so that a fork of it is a copy of the
    cluster.
    """

    loop: VirtualEventLoop
    cluster: Cluster
    ending: Ending
    logs: Logs
    daemons: list[Daemon] = field(default_factory=list)
    controller: Controller | None = None  # as soon as it has been started
    # called in a fork with its run directory, before anything else, where daemons come and go
    on_move: Callable[[Path], None] = lambda _run_dir: None

    def move(self, run_dir: Path) -> None:
        """Use another run directory from now on, one of this process's own: a fork's files are not
        its parent's. The log goes on there.
        """
        self.loop.go_on_in_fork()
        self.ending.run_dir = run_dir
        self.logs.write_to((run_dir / "logs" / LOG).open("a"))
        self.on_move(run_dir)
        for daemon in self.daemons:
            daemon.run_dir = run_dir


def in_one_process(
    cluster: Cluster,
    run_dir: Path,
    work: Callable[[Participant], Awaitable[_Result]],
    watch: Callable[[OneProcess], None] = lambda _made: None,
) -> _Result:
    """Run with all daemons in this process, whose log goes to the run directory. `watch` is told
    what there is before anything happens.
    """
    from understudy.controller.edge.main import start as start_controller
    from understudy.noded.main import start as start_noded

    with (run_dir / "logs" / LOG).open("a") as log:
        loop = VirtualEventLoop()
        network = MemoryNetwork()
        time = Timekeeper(loop, cluster.epoch)
        logs = Logs(time.now, fixed=cluster.log_level, stream=log)

        ending = Ending(loop, run_dir)
        made = OneProcess(loop, cluster, ending, logs)
        watch(made)
        daemons = made.daemons

        def daemon_of(name: str) -> Daemon:
            daemon = Daemon(
                name, cluster, run_dir, _messenger(loop, cluster, name, network=network), time
            )
            daemon.on_failure = partial(ending.end, f"{name} failed")
            daemons.append(daemon)
            return daemon

        async def start_and_work(participant: Participant) -> _Result:
            if cluster.keeps_accounting:
                from understudy.accounting.main import start as start_accounting

                await start_accounting(daemon_of("accounting"))
            made.controller = await start_controller(daemon_of("controller"))
            for noded in cluster.nodeds:
                await start_noded(daemon_of(noded.name))
            try:
                return await work(participant)
            finally:
                for daemon in reversed(daemons):
                    await daemon.close()

        mine = _messenger(loop, cluster, NAME, network=network)
        participant = Participant(
            loop, mine, time, cluster, lambda react: setattr(loop, "on_stalled", react)
        )
        return run_loop(loop, participant, ending.unless_lost(start_and_work))


class Ending:
    """How a run ends early: when somebody fails, on whom it stands, what is done with the cluster
    is given up.
    """

    def __init__(self, loop: VirtualEventLoop, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._reason = ""
        self._task: asyncio.Task[Any] | None = None
        loop.set_exception_handler(self._failed)

    def end(self, reason: str) -> None:
        """End the run."""
        self._reason = self._reason or reason
        if self._task is not None:
            self._task.cancel()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody has caught, in a callback or a task."""
        loop.default_exception_handler(context)
        self.end(f"{context['message']}: {context.get('exception')!r}")

    def unless_lost(
        self, work: Callable[[Participant], Awaitable[_Result]]
    ) -> Callable[[Participant], Awaitable[_Result]]:
        """The work; it raises LaunchError when the run ends early, with what was logged last."""

        async def work_or_lose(participant: Participant) -> _Result:
            self._task = asyncio.current_task()
            try:
                return await work(participant)
            except asyncio.CancelledError:
                if not self._reason:
                    raise
                shown = _last_lines(self.run_dir, self._reason)
                raise launch.LaunchError(f"the run ended early: {self._reason}{shown}") from None
            finally:
                self._task = None

        return work_or_lose


def _last_lines(run_dir: Path, reason: str) -> str:
    """What those logged last of whom the reason speaks; all in one process have one log."""
    names = [
        name
        for name in reason.replace(",", " ").split()
        if (run_dir / "logs" / f"{name}.log").exists()
    ] or [NAME]
    shown = ""
    for name in names:
        path = run_dir / "logs" / f"{name}.log"
        if path.exists():
            shown += "".join(
                f"\n    {line}"
                for line in path.read_text(errors="replace").splitlines()[-launch.LOG_LINES_SHOWN :]
            )
    return shown


def run_loop(
    loop: VirtualEventLoop,
    participant: Participant,
    work: Callable[[Participant], Awaitable[_Result]],
) -> _Result:
    """Do the work on the loop."""
    found: list[_Result] = []

    async def main() -> None:
        gc.freeze()
        gc.set_threshold(100_000, 20, 100)
        # what a task returns is written out in full when the runner puts SIGINT's handler back
        found.append(await work(participant))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
        participant.messenger.close()
    return found[0]


def _messenger(
    loop: VirtualEventLoop,
    cluster: Cluster,
    name: str,
    *,
    keys: Keys | None = None,
    network: MemoryNetwork | None = None,
) -> Messenger:
    return Messenger(
        name,
        loop,
        keys,
        user_id=os.getuid(),
        group_id=os.getgid(),
        latency_s=cluster.latency_s,
        link_latency=cluster.link_latency,
        network=network,
    )
