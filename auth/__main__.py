"""`python -m understudy.auth --run-dir DIR`: the credential agent of one cluster on this host."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from understudy.auth.agent import CredentialAgent
from understudy.auth.handshake import AuthError
from understudy.auth.keys import AGENT, Keys, check_folder
from understudy.model.cluster import Cluster
from understudy.model.signals import heed_signals, ignore_signals


async def serve(run_dir: Path) -> None:
    """Serve until SIGTERM or SIGINT."""
    cluster = Cluster.load(run_dir)
    check_folder(run_dir)
    keys = Keys(AGENT, Path(cluster.key_folder))
    keys.refresh()
    agent = CredentialAgent(keys)
    await agent.listen(Path(cluster.agent.removeprefix("unix:")))
    ending = asyncio.Event()
    heed_signals(asyncio.get_running_loop(), ending.set)
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    pid_file = run_dir / "agent.pid"
    pid_file.write_text(f"{os.getpid()} {started}\n")
    metrics = None
    if AGENT in cluster.metrics:
        from understudy.clock.metrics import serve as serve_metrics  # noqa: PLC0415  few ask for it

        loop = asyncio.get_running_loop()
        metrics = serve_metrics(cluster, AGENT, [agent.figures], loop)
    await ending.wait()
    ignore_signals()
    if metrics is not None:
        await metrics.close()
    agent.close()
    Path(cluster.agent.removeprefix("unix:")).unlink(missing_ok=True)
    pid_file.unlink(missing_ok=True)


def main() -> int:
    """Run the agent."""
    parser = argparse.ArgumentParser(prog="understudy-agent")
    parser.add_argument("--run-dir", type=Path, required=True)
    arguments = parser.parse_args()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        asyncio.run(serve(arguments.run_dir))
    except (OSError, AuthError, ValueError, TypeError) as error:
        logging.getLogger("understudy.agent").error("%s", error)  # noqa: TRY400  the text says all
        return 1
    return 0


sys.exit(main())
