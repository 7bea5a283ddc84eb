"""A process of a Dask cluster that does not outlive who started it: `python -m ... scheduler
OPTIONS` or `worker OPTIONS`, with the options of `dask scheduler` and `dask worker`.

Place: started by `local_cluster`.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from understudy.tool.replay.apart import end_with_starter

if TYPE_CHECKING:
    from pathlib import Path


# A worker waits for one replay, and there is nothing to see in it. As Dask has them these take a
# scheduler and two workers without work 0.87 s of CPU in 20 s, and so 0.20.
_CONFIGURATION: Final = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "10s",
}


def command(kind: str, options: list[str]) -> list[str]:
    """The words that start one."""
    return [sys.executable, "-m", "understudy.tool.sweep.member", kind, *options]


def main() -> None:
    """Of the process."""
    # who has been killed cannot wait for us to say farewell
    end_with_starter(signal.SIGKILL)
    kind, *options = sys.argv[1:]
    _commands()[kind](args=options, prog_name=f"dask {kind}")


def _commands() -> dict[str, Any]:
    import dask

    dask.config.set(_CONFIGURATION)  # before anything of it is made
    from distributed.cli.dask_scheduler import main as scheduler
    from distributed.cli.dask_worker import main as worker

    return {"scheduler": scheduler, "worker": worker}


def tls_options(folder: Path) -> list[str]:
    """Of members that speak to those alone who can read that folder."""
    names = (("ca-file", "cert.pem"), ("cert", "cert.pem"), ("key", "key.pem"))
    return [word for name, file in names for word in (f"--tls-{name}", str(folder / file))]


if __name__ == "__main__":
    main()
