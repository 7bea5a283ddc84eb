"""What every daemon's main does: read cluster.json, make the loop for the cluster's kind of time,
listen, take part in time, run until told to end.

Place: the lowest layer that knows both messages and time, hence here. `run_daemon` is for one
daemon a process; a replay in one process builds `Daemon`s itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import itertools
import logging
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import uvloop

from understudy.auth.handshake import AuthError
from understudy.auth.keys import Keys, check_folder
from understudy.clock.logs import VERBOSE, Logs
from understudy.clock.participant import ClockLink, ClockLost
from understudy.clock.pauses import Pauses
from understudy.clock.rate_link import RateLink
from understudy.clock.scaled_loop import ScaledEventLoop
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.model.cluster import Cluster
from understudy.model.signals import heed_signals, ignore_signals
from understudy.protocol.messenger import Messenger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from understudy.model.metrics import Source

# ours, until the clock service listens: daemons start side by side, and on a busy host one of them
# comes late
_PATIENCE_S: Final = 60.0
_KEYS_S: Final = 5.0  # ours: until it is seen that keys have been changed
# ours: each object is looked at as often as with larger numbers, but few at a time, 5,000 within
# 2 ms and 15,000 within 6; everything at once only after some 30 million more
_COLLECT: Final = (5_000, 2, 2_000)


class Daemon:
    """What a daemon's `start` is given. `stopping` is set when it should save its state and end."""

    def __init__(
        self, name: str, cluster: Cluster, run_dir: Path, messenger: Messenger, time: Timekeeper
    ) -> None:
        self.name, self.cluster, self.run_dir, self.messenger, self.time = (
            name,
            cluster,
            run_dir,
            messenger,
            time,
        )
        self.log = logging.getLogger(f"understudy.{name}")
        self.stopping = asyncio.Event()
        # called in reverse order before the process ends
        self.at_exit: list[Callable[[], Awaitable[None] | None]] = []
        self.logs: Logs | None = None  # None: several daemons share the process, and its log
        self.failure: BaseException | None = None
        self.begins_again = False  # whether it is to be begun anew, in the same process, once ended
        self.is_first = True  # whether it was not begun before in this process
        self.on_failure: Callable[[], None] = self.stop
        self.pauses = Pauses()
        # what /metrics tells beside the process's own
        self.figures: list[Source] = [self.pauses.figures]

    def fail(self, error: BaseException) -> None:
        """Something that never should has failed, and has been logged. Real time goes on; a run
        under virtual time would show what is not so.
        """
        if self.time.is_virtual and self.failure is None:
            self.failure = error
            self.on_failure()

    def fail_with_callbacks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Under virtual time an exception that nobody catches, in any callback or task, is a
        failure of the daemon.
        """

        def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            loop.default_exception_handler(context)
            self.fail(context.get("exception") or RuntimeError(context["message"]))

        if self.time.is_virtual:
            loop.set_exception_handler(failed)

    def watch_pauses(self) -> None:
        """Look at how long the loop keeps others waiting; under virtual time nobody waits."""
        if not self.time.is_virtual:
            self.pauses.watch_collector()
            self.at_exit.append(self.pauses.close)
            self.pauses.watch_loop(self.time.call_after_wait)

    def stop(self) -> None:
        """End the daemon."""
        self.stopping.set()

    async def close(self) -> None:
        """Call what is to be called at the end, and close the connections."""
        for close in reversed(self.at_exit):
            result = close()
            if result is not None:
                await result
        self.messenger.close()


def load_cluster(run_dir: Path) -> Cluster:
    """The cluster of the run directory; the process ends with a line where there is none, or one of
    another version.
    """
    try:
        return Cluster.load(run_dir)
    except (OSError, ValueError, TypeError) as error:
        raise SystemExit(f"understudy: {error}") from None


def make_loop(cluster: Cluster) -> asyncio.AbstractEventLoop:
    """The event loop for the cluster's kind of time."""
    if cluster.time == "virtual":
        return VirtualEventLoop()
    return ScaledEventLoop() if cluster.time == "scaled" else uvloop.new_event_loop()


def set_up_logging(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Log to stderr, which `understudy up` sends to RUN_DIR/logs/NAME.log."""
    logging.basicConfig(
        stream=stream or sys.stderr,
        level=level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )


@dataclass(slots=True)
class Place:
    """Where this process is, if a command line of Slurm's started it: its name for lines on a
    terminal, who waits until it is ready, its log file.
    """

    program: str = ""
    ready: int = -1  # a descriptor
    log: str = ""


PLACE = Place()


def write_pid_file(run_dir: Path, name: str) -> Path:
    """RUN_DIR/NAME.pid with the pid and the process's start time (field 22 of /proc/PID/stat), by
    which a recycled pid is told from ours.
    """
    stat = Path("/proc/self/stat").read_text()
    started = stat.rpartition(")")[2].split()[19]
    path = run_dir / f"{name}.pid"
    temporary = run_dir / f"{name}.pid.new"
    temporary.write_text(f"{os.getpid()} {started}\n")
    temporary.replace(path)
    return path


def run_daemon(
    run_dir: Path,
    name: str,
    listen: Iterable[str],
    start: Callable[[Daemon], Awaitable[None]],
    *,
    verbose: int = 0,
    listener: int | None = None,
) -> int:
    """Run one daemon until SIGTERM, SIGINT or `Daemon.stop`; again if it asks for that. The exit
    code.

    `listen`: its addresses; `listener`: the descriptor of a socket that listens already.
    """
    cluster = load_cluster(run_dir)
    logs = Logs(
        time.time, verbose=verbose, fixed=cluster.log_level, program=PLACE.program, file=PLACE.log
    )
    log = logging.getLogger(f"understudy.{name}")
    if cluster.time == "virtual" and cluster.cpu >= 0:
        # a hint: without it, messages cost a wake-up across CPUs
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cluster.cpu})
    faulthandler.register(signal.SIGUSR1)  # where does it hang? kill -USR1 PID, and look at the log
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    where = list(listen)
    try:
        check_folder(run_dir)
        for begun in itertools.count():
            with asyncio.Runner(loop_factory=partial(make_loop, cluster)) as runner:
                loop = runner.get_loop()
                code = runner.run(
                    _run(loop, cluster, run_dir, name, where, start, listener, logs, begun)
                )
            if code is not None:
                return code
        raise AssertionError("unreachable")
    except ClockLost as error:
        log.info("%s: ending", error)
        return 1
    except (OSError, AuthError) as error:
        log.error("%s", error)  # noqa: TRY400  the text says all
        return 1


async def _run(
    loop: asyncio.AbstractEventLoop,
    cluster: Cluster,
    run_dir: Path,
    name: str,
    listen: list[str],
    start: Callable[[Daemon], Awaitable[None]],
    listener: int | None,
    logs: Logs,
    begun: int,
) -> int | None:
    """The exit code; None: it is to be begun anew. `begun`: how often it was before."""
    keys = Keys(name, Path(cluster.key_folder))
    keys.refresh()
    messenger = Messenger(
        name,
        loop,
        keys,
        user_id=os.getuid(),
        group_id=os.getgid(),
        latency_s=cluster.latency_s,
        link_latency=cluster.link_latency,
    )
    daemon = Daemon(
        name,
        cluster,
        run_dir,
        messenger,
        Timekeeper(loop, None if cluster.time == "real" else cluster.epoch),
    )
    daemon.logs, daemon.is_first = logs, not begun
    logs.set_time(daemon.time.now)
    messenger.listen(listen)
    daemon.fail_with_callbacks(loop)
    if listener is not None:
        messenger.accept_at(socket.socket(fileno=os.dup(listener)))

    def told_to_end() -> None:
        daemon.log.info("Terminate signal (SIGINT or SIGTERM) received")
        daemon.stop()

    heed_signals(loop, told_to_end)
    link: ClockLink | None = None
    if isinstance(loop, VirtualEventLoop):
        link = take_part(loop, cluster, name, keys, messenger)
    elif isinstance(loop, ScaledEventLoop):
        await _follow_rate(loop, daemon, keys)
    await start(daemon)
    daemon.watch_pauses()
    if link is None:
        _watch_keys(daemon, keys)
    serve_metrics(daemon, loop)
    pid_file = write_pid_file(run_dir, name)
    daemon.log.log(VERBOSE, "ready, pid %d", os.getpid())
    if PLACE.ready >= 0:
        logs.leave_stream()
        os.write(PLACE.ready, b"1")
        os.close(PLACE.ready)
        PLACE.ready = -1
    await daemon.stopping.wait()
    await daemon.close()
    if daemon.begins_again:
        return None
    ignore_signals()
    # else the clock service finds that it died, and says so to who runs the cluster
    if link is not None and daemon.failure is None:
        link.leave()
    pid_file.unlink(missing_ok=True)
    daemon.log.log(VERBOSE, "ended")
    return 0 if daemon.failure is None else 1


async def _follow_rate(loop: ScaledEventLoop, daemon: Daemon, keys: Keys) -> None:
    """Learn what time it is, and from then on at which rate it goes."""
    link = RateLink(loop, daemon.cluster.clock, daemon.name, keys, daemon.log)
    daemon.at_exit.append(link.close)
    await link.start(_PATIENCE_S)


def _watch_keys(daemon: Daemon, keys: Keys) -> None:
    """Close connections of whose keys have been changed."""
    changes = keys.changes

    def look() -> None:
        nonlocal changes
        try:
            keys.refresh()
        except AuthError as error:
            daemon.log.error("%s", error)  # noqa: TRY400  the text says all
        if keys.changes != changes:
            changes = keys.changes
            daemon.messenger.close_revoked()
        daemon.time.call_after_wait(_KEYS_S, look)

    daemon.time.call_after_wait(_KEYS_S, look)


def serve_metrics(daemon: Daemon, loop: asyncio.AbstractEventLoop) -> None:
    """Tell Prometheus, where the cluster gives this daemon an address for it.

    Raises:
        OSError: nobody can listen there.
    """
    if daemon.name not in daemon.cluster.metrics:
        return
    from understudy.clock.metrics import serve  # noqa: PLC0415  few ask for it

    metrics = serve(daemon.cluster, daemon.name, daemon.figures, loop)
    daemon.at_exit.append(metrics.close)
    daemon.log.info("figures for Prometheus at http://%s/metrics", metrics.address)


def take_part(
    loop: VirtualEventLoop,
    cluster: Cluster,
    name: str,
    keys: Keys,
    messenger: Messenger,
    *,
    watches: bool = False,
) -> ClockLink:
    """Join the clock service; waits, in real time, until it listens."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            link = ClockLink(
                loop,
                cluster.clock,
                name,
                keys,
                latency_us=round(cluster.latency_s * 1e6),
                watches=watches,
            )
            break
        except ClockLost:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
    link.waiting = lambda: messenger.is_waiting
    return link
