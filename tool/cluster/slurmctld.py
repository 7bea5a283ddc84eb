"""slurmctld: be the controller of the cluster that a slurm.conf describes. Follows slurmctld(8) of
22.05.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from understudy.model.cluster import CONTROLLER
from understudy.tool.cluster import daemons
from understudy.tool.cluster.run_dir import running

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from understudy.model.cluster import Cluster
    from understudy.model.conf import SlurmConfig

KIND = daemons.Kind(
    "slurmctld",
    (
        ("c", "", "forget the jobs of an earlier controller"),
        ("D", "", "stay in the foreground, and log to the terminal, too"),
        ("f", "FILE", "the slurm.conf"),
        ("h", "", "print this text"),
        ("i", "", "accepted: errors in the saved state are an end"),
        ("L", "FILE", "log there"),
        ("n", "VALUE", "be as nice as that"),
        (
            "R",
            "",
            (
                "take up all of the saved state: partitions and features of nodes, too, which "
                "are slurm.conf's otherwise"
            ),
        ),
        ("r", "", "take up jobs and states of nodes, as without it"),
        ("s", "", "accepted: the working directory is the run directory"),
        ("v", "", "log more"),
        ("V", "", "print the version"),
    ),
    "SlurmctldPidFile",
    "SlurmctldLogFile",
)


def prepare(start: daemons.Start, config: SlurmConfig) -> tuple[str, Path, Callable[[], int]]:
    """Its name, the run directory, and its main."""
    run_dir = daemons.run_dir_of(start.conf, config.cluster_name, os.environ)
    with daemons.held(run_dir):
        cluster = daemons.describe(start.conf, run_dir, os.environ)
        name = own_name(cluster, {process.name for process in running(run_dir)})
        daemons.announce(name, run_dir)
        if start.clear:
            daemons.forget_state(run_dir)

    def main() -> int:
        from understudy.controller.edge.main import main as controller

        with daemons.commands_served(cluster, run_dir):
            return controller(
                [
                    "--run-dir",
                    str(run_dir),
                    "--name",
                    name,
                    *["--verbose"] * start.verbose,
                    *(["--recover"] if "R" in start.values else []),
                ]
            )

    return name, run_dir, main


def own_name(cluster: Cluster, alive: Collection[str]) -> str:
    """Which of the cluster's controllers this is: the first that does not run. As controllers of
    one host share its name, SlurmctldHost does not tell.
    """
    free = (name for name in cluster.controllers if name not in alive)
    return next(free, CONTROLLER)


def main() -> int:
    """The command."""
    return daemons.run(KIND, sys.argv[1:], prepare)


if __name__ == "__main__":
    sys.exit(main())
