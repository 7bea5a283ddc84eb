"""The process of a cluster whose daemons share one (`understudy up --one-process`): controller,
accounting and node daemons in one loop, with messages through memory, and a door at which the
process is asked to fork.

    python -m understudy.tool.replay.live_daemons --run-dir DIR

Place: started by tool/cluster/launch.py in place of the controller, under its name; above that
folder, because futures (live.py) are. Clock and agent have processes of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from understudy.auth.keys import Keys
from understudy.clock.daemon import Daemon, load_cluster, run_daemon
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.model.cluster import CONTROLLER
from understudy.protocol.messenger import MemoryNetwork, Messenger
from understudy.tool.replay.live import Door, Living


async def start(daemon: Daemon) -> None:
    """Start all daemons; `daemon` is the controller's."""
    from understudy.accounting.main import start as start_accounting
    from understudy.controller.edge.main import start as start_controller
    from understudy.noded.main import start as start_noded

    loop, cluster, network = asyncio.get_running_loop(), daemon.cluster, MemoryNetwork()
    assert isinstance(loop, VirtualEventLoop)
    daemon.messenger.share(network)
    daemons = [daemon]

    def beside(name: str, address: str) -> Daemon:
        messenger = Messenger(
            name,
            loop,
            Keys(name, Path(cluster.key_folder)),
            user_id=os.getuid(),
            group_id=os.getgid(),
            latency_s=cluster.latency_s,
            link_latency=cluster.link_latency,
            network=network,
        )
        messenger.listen([address])
        other = Daemon(name, cluster, daemon.run_dir, messenger, daemon.time)

        def failed() -> None:
            assert other.failure is not None
            daemon.fail(other.failure)

        other.on_failure = failed
        daemon.at_exit.append(other.close)
        daemons.append(other)
        return other

    if cluster.keeps_accounting:
        await start_accounting(beside("accounting", cluster.accounting_unix))
    controller = await start_controller(daemon)
    for noded in cluster.nodeds:
        await start_noded(beside(noded.name, noded.address))
    assert daemon.logs is not None
    door = Door(Living(loop, network, daemon.logs, daemons, controller))
    daemon.at_exit.append(door.close)


def main() -> int:
    """Run until told to end. The exit code."""
    parser = argparse.ArgumentParser(description="All daemons of an emulated cluster.")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--listener", type=int, help="a socket that listens at the TCP address")
    given = parser.parse_args()
    cluster = load_cluster(given.run_dir)
    listening = cluster.listening(CONTROLLER)
    if given.listener is not None:
        listening = [address for address in listening if address == cluster.controller_unix]
    return run_daemon(given.run_dir, CONTROLLER, listening, start, listener=given.listener)


if __name__ == "__main__":
    sys.exit(main())
