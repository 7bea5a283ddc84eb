"""Messages down trees of sockets, measured: the node processes of a cluster without a controller,
in whose place this process sends.

Place: under `understudy fanout`. It sends as the controller does (`controller/core/fan_out.py`), so
what it spends is what the controller would spend on the message alone.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from understudy.auth.credential import Signer
from understudy.auth.keys import Keys, create_keys
from understudy.clock.timekeeper import Timekeeper
from understudy.controller.core.fan_out import FanOut
from understudy.experiments.fan_out_page import FanOutRow
from understudy.model.cluster import CONTROLLER, Cluster, Hops, NodeDaemon
from understudy.model.hostlist import expand
from understudy.protocol.hops import hop_links
from understudy.protocol.messages import Message, Ok, Ping, Registered, RegisterNodes
from understudy.protocol.messenger import Messenger
from understudy.protocol.tree import levels
from understudy.tool.cluster import launch
from understudy.tool.cluster.hop_limits import check_hops
from understudy.tool.cluster.if_killed import ended_if_killed
from understudy.tool.cluster.run_dir import LaunchError, exclusive, make_socket_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.protocol.requests import Request

_PATIENCE_S: Final = 60.0  # ours: until all processes are there
_ALONE: Final = 25  # ours: at most so many nodes get one alone: the median is what a hop takes


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured."""

    widths: Sequence[int]  # 0: flat
    processes: int
    repeat: int
    hops: Hops
    timeout_s: float


def measure(
    run_dir: Path, nodes: int, asked: Asked, tell: Callable[[FanOutRow], None]
) -> list[FanOutRow]:
    """Start the processes for so many nodes in the directory, send, and end them.

    Raises:
        LaunchError: they cannot be started.
    """
    cluster = _describe(run_dir, nodes, asked)
    with (
        _daemons(cluster, run_dir) as started,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(cluster, started, asked, tell))


def _describe(run_dir: Path, nodes: int, asked: Asked) -> Cluster:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    processes = min(asked.processes, nodes)
    check_hops(asked.hops, names, processes, time="real", executor="emulated")
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "logs").mkdir(exist_ok=True)
    sockets = make_socket_folder(run_dir)
    daemons = [f"noded{i}" for i in range(processes)]
    create_keys(run_dir / "keys", [CONTROLLER, *daemons])
    (run_dir / "slurm.conf").write_text("ClusterName=fanout\n")
    cluster = Cluster(
        "fanout",
        "",
        controller_unix=f"unix:{sockets}/controller.sock",
        key_folder=str(run_dir / "keys"),
        hops=asked.hops,
        nodeds=[
            NodeDaemon(
                daemons[i],
                "tcp:127.0.0.1:0" if asked.hops.tcp else f"unix:{sockets}/noded{i}.sock",
                share,
            )
            for i, share in enumerate(launch.shares(names, processes))
        ],
    )
    cluster.save(run_dir)
    return cluster


@contextmanager
def _daemons(cluster: Cluster, run_dir: Path) -> Iterator[launch.Started]:
    with exclusive(run_dir) as lock, ended_if_killed(run_dir, lock):
        started = launch.start_daemons(
            cluster, run_dir, names=[daemon.name for daemon in cluster.nodeds]
        )
        try:
            yield started
        finally:
            launch.stop(run_dir, started)


async def _measure(
    cluster: Cluster, started: launch.Started, asked: Asked, tell: Callable[[FanOutRow], None]
) -> list[FanOutRow]:
    loop = asyncio.get_running_loop()
    keys = Keys(CONTROLLER, Path(cluster.key_folder))
    messenger = Messenger(CONTROLLER, loop, keys)
    there: set[str] = set()
    all_there = asyncio.Event()

    def hear(request: Request) -> Message:
        if not isinstance(request.message, RegisterNodes):
            return Ok()
        there.add(request.message.daemon)
        if len(there) == len(cluster.nodeds):
            all_there.set()
        return Registered()

    messenger.set_handler(hear)
    messenger.listen([cluster.controller_unix])
    assert cluster.hops is not None
    links = messenger.hops = hop_links(loop, CONTROLLER, cluster, cluster.hops)
    try:
        await _wait_for(all_there, started)
        names = [node for daemon in cluster.nodeds for node in expand(daemon.nodes)]
        sender = _Sender(messenger, keys, Timekeeper(loop, None), started, asked)
        # each over another link, as these may differ
        some = names[:: -(-len(names) // _ALONE)]
        alone = [(await sender.send([node], 1)).seconds for node in some]
        rows = []
        for width in asked.widths:
            runs = [await sender.send(names, width) for _ in range(asked.repeat)]
            row = _row(runs, len(names), width, statistics.median(alone))
            rows.append(row)
            tell(row)
        return rows
    finally:
        links.close()
        messenger.close()


async def _wait_for(all_there: asyncio.Event, started: launch.Started) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not all_there.is_set():
        for name, child in started.children.items():
            if child.poll() is not None:
                log = (started.run_dir / "logs" / f"{name}.log").read_text().strip()
                raise LaunchError(f"{name} ended at its start: {log}")
        if time.monotonic() > until:
            raise LaunchError(f"the nodes have not registered after {_PATIENCE_S:.0f} s")
        try:
            await asyncio.wait_for(all_there.wait(), 0.1)
        except TimeoutError:
            continue


@dataclass(frozen=True, slots=True)
class _Run:
    """One message."""

    seconds: float
    sender_cpu_s: float
    cpu_s: float
    messages: int
    bytes_sent: int
    repeated: int


class _Sender:
    """Sends in the controller's place, and says what it took."""

    def __init__(
        self,
        messenger: Messenger,
        keys: Keys,
        keeper: Timekeeper,
        started: launch.Started,
        asked: Asked,
    ) -> None:
        self._messenger, self._time, self._started, self._asked = messenger, keeper, started, asked
        self._sign = partial(Signer(keys).order, keeper.now)

    async def send(self, nodes: Sequence[str], width: int) -> _Run:
        """A ping to these nodes, until all of them have answered."""
        links = self._messenger.hops
        assert links is not None
        fan_out = FanOut(
            self._messenger,
            self._time,
            width=width,
            timeout_s=self._asked.timeout_s,
            sign=self._sign,
        )
        done: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
        sent, of_bytes = links.sent, links.bytes_sent
        others, own, began = self._others_cpu_s(), time.process_time(), time.perf_counter()
        fan_out.send(nodes, Ping(), done=done.set_result)
        codes = await done
        seconds = time.perf_counter() - began
        own_s = time.process_time() - own
        assert set(codes.values()) == {0}, codes
        return _Run(
            seconds,
            own_s,
            own_s + self._others_cpu_s() - others,
            links.sent - sent,
            links.bytes_sent - of_bytes,
            fan_out.repeated,
        )

    def _others_cpu_s(self) -> float:
        ticks = 0
        for child in self._started.children.values():
            # proc(5): after the name, which may hold blanks, utime and stime are fields 12 and 13
            fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def _row(runs: Sequence[_Run], nodes: int, width: int, hop_s: float) -> FanOutRow:
    def median(of: Callable[[_Run], float]) -> float:
        return statistics.median(of(run) for run in runs)

    heads = min(width or nodes, nodes)
    return FanOutRow(
        nodes=nodes,
        width=width,
        levels=levels(-(-nodes // heads), width or nodes),
        seconds=median(lambda run: run.seconds),
        slowest_s=max(run.seconds for run in runs),
        hop_s=hop_s,
        sender_cpu_s=median(lambda run: run.sender_cpu_s),
        sender_messages=median(lambda run: run.messages),
        sender_bytes=median(lambda run: run.bytes_sent),
        cpu_s=median(lambda run: run.cpu_s),
        repeated=median(lambda run: run.repeated),
    )
