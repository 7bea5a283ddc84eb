"""A cluster whose daemons run on hosts of their own: what they share, and how each begins.

Place: beside launch.py, which starts all on one host; used by `understudy prepare` and `understudy
daemon`. Prints nothing.

The site folder is what the hosts share, read-only but for who prepares it: `cluster.json`,
`slurm.conf` with its companions, public keys. Each host copies it into a run directory of its own,
which has the layout that understudy.model.cluster describes, and speaks to the others by TCP alone.
Keys are not copied, so that a change of them is seen: the run directory has links to the site's
public ones and to the daemon's own, which may be in a folder that its host alone can read.
"""

from __future__ import annotations

import itertools
import os
import stat
import tempfile
import time as clock_time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.auth.keys import PUBLIC
from understudy.model.cluster import Backup, Cluster, backup_name
from understudy.model.conf_copy import COMPANIONS
from understudy.tool.cluster.launch import (
    daemon_command,
    daemon_names,
    describe,
    first_time,
    helpers_of,
    location_of,
    participants_of,
    read_site,
)
from understudy.tool.cluster.metrics_ports import on_many_hosts
from understudy.tool.cluster.processes import read_pid_file
from understudy.tool.cluster.run_dir import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.tool.cluster.launch import Site

CLOCK_PORT: Final = 6816
NODE_PORT: Final = 6818  # slurm.conf(5), SlurmdPort
_POLL_S: Final = 0.1  # ours: between two looks for the file


def prepare(
    site_dir: Path,
    conf: Path,
    *,
    controller: str,
    noded: Sequence[str],
    accounting: str = "",
    clock: str = "",
    time: str = "real",
    rate: float = 1.0,
    executor: str = "emulated",
    run_dir: Path,
    metrics: str = "",
    keys: Path | None = None,
    backups: Sequence[str] = (),
    state_dir: Path | None = None,
) -> Cluster:
    """Write the site folder. Hosts are `NAME` or `NAME:PORT`; `run_dir` is where each host will
    have its own files. `metrics`: `[HOST:]PORT` on each host, for Prometheus. `keys`: where the
    private key of each daemon goes, to `keys/NAME/NAME`; None: beside the public ones. `backups`:
    those of backup controllers, which share the state in `state_dir` with the first.

    Raises:
        ConfigError, OSError: the configuration cannot be used or read.
        LaunchError: what was asked for cannot be.
    """
    site = read_site(conf)
    if not noded or len(noded) > len(site.nodes):
        raise LaunchError(
            f"{len(noded)} node daemons cannot share {len(site.nodes)} nodes: each needs "
            "at least one"
        )
    if time != "real" and not clock:
        raise LaunchError(f"{time} time needs a clock service: name its host")
    if executor == "real" and time != "real":
        raise LaunchError(f"real jobs take real time, not {time} time")
    if site.accounting_port is not None and not accounting:
        raise LaunchError(f"{conf} asks for an accounting daemon: name its host")
    if backups and state_dir is None and not os.environ.get("UNDERSTUDY_STATE_URL"):
        raise LaunchError(
            "controllers must share their state: name the folder with --state-dir, or a server "
            "with UNDERSTUDY_STATE_URL"
        )
    if backups and time == "virtual":
        raise LaunchError("virtual time ends with its controller: no backup can take over")
    site_dir.mkdir(parents=True, exist_ok=True)
    has_accounting = site.accounting_port is not None
    return describe(
        site_dir,
        conf,
        site,
        [_address(host, NODE_PORT) for host in noded],
        time=time,
        conf=str(run_dir / "slurm.conf"),
        rate=rate,
        epoch=first_time(site_dir, time),
        executor=executor,
        controller=_address(controller, site.port),
        agent=f"unix:{run_dir}/agent.sock",
        clock=_address(clock, CLOCK_PORT) if time != "real" else "",
        accounting=_address(accounting, site.accounting_port or 0) if has_accounting else "",
        key_folder=str(run_dir / "keys"),
        keys=keys,
        metrics=on_many_hosts(metrics, participants_of(site, len(noded)), helpers_of(time)),
        controller_host=site.controllers[0],
        backups=_backups(site, backups),
        state_dir=str(state_dir) if state_dir is not None else "",
    )


def _backups(site: Site, hosts: Sequence[str]) -> list[Backup]:
    """The backup controllers on these hosts, by the names that slurm.conf has for them."""
    stated = itertools.zip_longest(hosts, site.controllers[1 : 1 + len(hosts)])
    return [
        Backup(backup_name(number), name or host, _address(host, site.port))
        for number, (host, name) in enumerate(stated, 1)
    ]


def _address(host: str, port: int) -> str:
    name, colon, given = host.rpartition(":")
    return f"tcp:{host}" if colon and given.isdigit() and name else f"tcp:{host}:{port}"


def begin(
    name: str,
    site_dir: Path,
    run_dir: Path,
    keys: Path | None = None,
    patience_s: float = 60.0,
) -> list[str]:
    """Make this host's run directory from the site folder; the command line of the daemon, to be
    run there. `keys`: the folder with the daemon's private key; None: the site's.

    Raises:
        LaunchError: there is no such daemon, or no site folder within that time.
    """
    from understudy.commands.shared import locate

    deadline = clock_time.monotonic() + patience_s
    while not (site_dir / "cluster.json").is_file():
        if clock_time.monotonic() >= deadline:
            raise LaunchError(
                f"there is no {site_dir / 'cluster.json'}: has `understudy prepare` been run?"
            )
        clock_time.sleep(_POLL_S)
    cluster = Cluster.load(site_dir)
    if name not in daemon_names(cluster):
        raise LaunchError(
            f"cluster {cluster.name} has no daemon {name}; it has "
            f"{', '.join(daemon_names(cluster))}"
        )
    if Path(cluster.key_folder).parent != run_dir:
        raise LaunchError(
            "the cluster was prepared for run directories "
            f"{Path(cluster.key_folder).parent}, not {run_dir}"
        )
    public = site_dir / "keys" / PUBLIC
    private = (keys or site_dir / "keys") / name
    if not private.is_file():
        raise LaunchError(f"there is no {private}, the key of {name}")
    for folder in ("logs", "state", "spool"):
        (run_dir / folder).mkdir(
            parents=True, exist_ok=True, mode=0o700 if folder == "state" else 0o755
        )
    for file in ("cluster.json", "slurm.conf", *COMPANIONS):
        if (site_dir / file).is_file():
            _copy(site_dir / file, run_dir)
    (run_dir / "keys").mkdir(mode=0o755, exist_ok=True)
    _link(run_dir / "keys" / PUBLIC, public)
    _link(run_dir / "keys" / name, private)
    if name == "agent":  # where people type commands
        locate.register(location_of(cluster, run_dir))
    return daemon_command(name, run_dir)


def begin_again(name: str, run_dir: Path) -> list[str]:
    """The command line of a daemon of the run directory's cluster, which is none of site folders.

    Raises:
        LaunchError: there is no such cluster or daemon, or it runs.
    """
    if not (run_dir / "cluster.json").is_file():
        raise LaunchError(f"{run_dir} is no cluster's run directory, and there is no --site")
    cluster = Cluster.load(run_dir)
    names = daemon_names(cluster)
    if name not in names:
        raise LaunchError(f"cluster {cluster.name} has no daemon {name}; it has {', '.join(names)}")
    process = read_pid_file(run_dir / f"{name}.pid")
    if process is not None and process.is_running:
        raise LaunchError(f"{name} runs already, pid {process.pid}")
    return daemon_command(name, run_dir.resolve())


def _link(path: Path, target: Path) -> None:
    """At once, as in `_copy`."""
    name = path.with_name(f".{path.name}-{os.getpid()}")
    name.unlink(missing_ok=True)
    name.symlink_to(target.absolute())
    os.replace(name, path)


def _copy(file: Path, run_dir: Path) -> None:
    """Put a file there at once: other daemons that start beside this one read and write it, too."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=run_dir)
    with os.fdopen(descriptor, "wb") as target:
        os.fchmod(descriptor, stat.S_IMODE(file.stat().st_mode))
        target.write(file.read_bytes())
    os.replace(name, run_dir / file.name)
