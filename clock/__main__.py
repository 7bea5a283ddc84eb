"""`python -m understudy.clock --run-dir DIR`: the clock service of one cluster."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import sys
from pathlib import Path

import uvloop

from understudy.auth.handshake import AuthError
from understudy.auth.keys import Keys, check_folder
from understudy.clock import rate_file
from understudy.clock.daemon import load_cluster, set_up_logging, write_pid_file
from understudy.clock.service import ClockService
from understudy.model.cluster import Cluster
from understudy.model.signals import heed_signals, ignore_signals

CLOCK = "clock"


async def serve(run_dir: Path) -> None:
    """Serve until SIGTERM or SIGINT."""
    cluster = Cluster.load(run_dir)
    loop = asyncio.get_running_loop()
    check_folder(run_dir)
    keys = Keys(CLOCK, Path(cluster.key_folder))
    keys.refresh()
    service = ClockService(cluster, keys, loop, run_dir / rate_file.FILE_NAME)
    service.listen(cluster.clock)
    ending = asyncio.Event()
    heed_signals(loop, ending.set)
    pid_file = write_pid_file(run_dir, CLOCK)
    metrics = None
    if CLOCK in cluster.metrics:
        from understudy.clock.metrics import serve as serve_metrics  # noqa: PLC0415  few ask for it

        metrics = serve_metrics(cluster, CLOCK, [service.figures], loop)
    await ending.wait()
    ignore_signals()
    if metrics is not None:
        await metrics.close()
    logging.getLogger("understudy.clock").info("%d windows", service.windows.windows)
    service.close()
    pid_file.unlink(missing_ok=True)


def main() -> int:
    """Run the service."""
    parser = argparse.ArgumentParser(prog="understudy-clock")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    set_up_logging(logging.DEBUG if arguments.verbose else logging.INFO)
    cluster = load_cluster(arguments.run_dir)
    if cluster.time == "virtual" and cluster.cpu >= 0:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cluster.cpu})
    try:
        asyncio.Runner(loop_factory=uvloop.new_event_loop).run(serve(arguments.run_dir))
    except (OSError, AuthError) as error:
        logging.getLogger("understudy.clock").error("%s", error)  # noqa: TRY400  the text says all
        return 1
    return 0


sys.exit(main())
