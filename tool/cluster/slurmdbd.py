"""slurmdbd: be the accounting daemon of the cluster that a slurm.conf describes. Follows
slurmdbd(8) of 22.05.

There is no slurmdbd.conf to tell where a database is, as that could be the site's own: it is
UNDERSTUDY_ACCOUNTING_URL, else in the run directory.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from understudy.tool.cluster import daemons

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from understudy.model.conf import SlurmConfig

KIND = daemons.Kind(
    "slurmdbd",
    (
        ("D", "", "stay in the foreground, and log to the terminal, too"),
        ("f", "FILE", "the slurm.conf of the cluster; else SLURM_CONF"),
        ("h", "", "print this text"),
        ("L", "FILE", "log there"),
        ("n", "VALUE", "be as nice as that"),
        ("s", "", "accepted: the working directory is the run directory"),
        ("u", "", "accepted: the database is brought up to date anyway"),
        ("v", "", "log more"),
        ("V", "", "print the version"),
    ),
    "",
    "",
)


def prepare(start: daemons.Start, config: SlurmConfig) -> tuple[str, Path, Callable[[], int]]:
    """Its name, the run directory, and its main."""
    from understudy.tool.cluster.run_dir import LaunchError

    run_dir = daemons.run_dir_of(start.conf, config.cluster_name, os.environ)
    with daemons.held(run_dir):
        cluster = daemons.describe(start.conf, run_dir, os.environ)
        if not cluster.keeps_accounting:
            raise LaunchError(
                f"{start.conf} does not ask for it: AccountingStorageType is not "
                "accounting_storage/slurmdbd"
            )
        daemons.announce("accounting", run_dir)

    def main() -> int:
        from understudy.accounting.main import main as accounting

        with daemons.commands_served(cluster, run_dir):
            return accounting(["--run-dir", str(run_dir), *["--verbose"] * start.verbose])

    return "accounting", run_dir, main


def main() -> int:
    """The command."""
    return daemons.run(KIND, sys.argv[1:], prepare)


if __name__ == "__main__":
    sys.exit(main())
