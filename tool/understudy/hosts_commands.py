"""`understudy prepare` and `understudy daemon`: a cluster whose daemons run on hosts, or in
containers, of their own.

Place: sub-commands of `understudy`; the words around understudy.tool.cluster.hosts, which does the
work.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from understudy.tool.understudy.cluster import Executor, fail

Site = Annotated[
    Path,
    typer.Option(
        "--site",
        help="What the hosts share: the cluster's description, its slurm.conf and public keys.",
    ),
]
RunDir = Annotated[
    Path, typer.Option("--run-dir", help="Each host's own files: logs, pids, state.")
]
Backups = Annotated[
    list[str] | None,
    typer.Option(
        "--backup", metavar="HOST[:PORT]", help="A backup controller's, in the order of turns."
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        help="A folder that the hosts of all controllers share, for their state: on a file "
        "system whose locks work. Only with it a backup can take over.",
    ),
]
_RUN_DIR = Path("/var/lib/understudy")


def prepare(
    conf: Annotated[Path, typer.Option("--conf", help="The slurm.conf.")],
    site: Site,
    noded: Annotated[
        list[str],
        typer.Option(
            "--noded",
            metavar="HOST[:PORT]",
            help="A node daemon's; they share the nodes in this order.",
        ),
    ],
    controller: Annotated[
        str, typer.Option("--controller", metavar="HOST[:PORT]", help="The controller's.")
    ],
    backup: Backups = None,
    state_dir: StateDir = None,
    accounting: Annotated[
        str, typer.Option("--accounting", metavar="HOST[:PORT]", help="The accounting daemon's.")
    ] = "",
    clock: Annotated[
        str,
        typer.Option(
            "--clock", metavar="HOST[:PORT]", help="The clock service's, unless time is real."
        ),
    ] = "",
    time: Annotated[
        str,
        typer.Option(
            "--time", metavar="real|scaled:N|virtual", help="How time goes by in the cluster."
        ),
    ] = "real",
    executor: Annotated[
        Executor,
        typer.Option("--executor", help="Whether jobs are emulated, or their scripts run."),
    ] = Executor.EMULATED,
    run_dir: RunDir = _RUN_DIR,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys",
            help="Put each daemon's private key into a folder of its name in here, for its host "
            "alone, and not into the site folder.",
        ),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            metavar="[HOST:]PORT",
            help="Tell Prometheus figures at /metrics of each daemon's host; from elsewhere only "
            "where HOST is an address of its network, as 0.0.0.0.",
        ),
    ] = "",
) -> None:
    """Describe a cluster of several hosts; each then runs `understudy daemon NAME`."""
    from understudy.model.errors import ConfigError
    from understudy.tool.cluster import hosts
    from understudy.tool.cluster.run_dir import LaunchError
    from understudy.tool.cluster.start import parse_time

    try:
        mode, rate = parse_time(time)
        cluster = hosts.prepare(
            site, conf, controller=controller, noded=noded, accounting=accounting, clock=clock,
            time=mode, rate=rate, executor=str(executor),
            run_dir=run_dir, metrics=metrics, keys=keys, backups=backup or (), state_dir=state_dir,
        )  # fmt: skip
    except (LaunchError, ConfigError, OSError) as error:
        fail("prepare", str(error))
    typer.echo(f"Cluster {cluster.name} is described in {site}")


def daemon(
    name: Annotated[
        str,
        typer.Argument(
            help="clock, controller, backup1 ..., accounting, noded0, noded1 ..., or agent where "
            "people type commands."
        ),
    ],
    site: Annotated[
        Path | None,
        typer.Option(
            "--site",
            help="What the hosts share: the cluster's description, its slurm.conf and public "
            "keys. Without it the cluster is that of the run directory.",
        ),
    ] = None,
    run_dir: RunDir = _RUN_DIR,
    keys: Annotated[
        Path | None,
        typer.Option("--keys", help="The folder with the daemon's private key, if not the site's."),
    ] = None,
) -> None:
    """Be one daemon of a cluster, of several hosts or of `understudy up`, until told to end."""
    from understudy.tool.cluster import hosts
    from understudy.tool.cluster.run_dir import LaunchError

    try:
        command = (
            hosts.begin(name, site, run_dir, keys) if site else hosts.begin_again(name, run_dir)
        )
    except (LaunchError, OSError, ValueError, TypeError) as error:
        fail("daemon", str(error))
    os.execv(command[0], command)  # noqa: S606
