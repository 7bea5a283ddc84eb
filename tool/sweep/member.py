"""A process of a Dask cluster that does not outlive who started it: `python -m ... scheduler
OPTIONS` or `worker OPTIONS`, with the options of `dask scheduler` and `dask worker`.

Place: started by `local_cluster`.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

from understudy.tool.replay.apart import end_with_starter

if TYPE_CHECKING:
    from pathlib import Path


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
    from distributed.cli.dask_scheduler import main as scheduler
    from distributed.cli.dask_worker import main as worker

    return {"scheduler": scheduler, "worker": worker}


def tls_options(folder: Path) -> list[str]:
    """Of members that speak to those alone who can read that folder."""
    names = (("ca-file", "cert.pem"), ("cert", "cert.pem"), ("key", "key.pem"))
    return [word for name, file in names for word in (f"--tls-{name}", str(folder / file))]


if __name__ == "__main__":
    main()
