"""slurmd: be the node daemon of one node, of several (`-N c[1-4]`), or of all that slurm.conf has
on this host. Follows slurmd(8) of 22.05.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.tool.cluster import daemons

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.model.conf import SlurmConfig

KIND = daemons.Kind(
    "slurmd",
    (
        ("b", "", "accepted: nodes do not boot with their daemon"),
        ("c", "", "forget what an earlier daemon of these nodes left in its spool folder"),
        ("C", "", "print this host as a line of slurm.conf"),
        ("d", "FILE", "accepted: there is no program for steps to be named"),
        ("D", "", "stay in the foreground, and log to the terminal, too"),
        ("f", "FILE", "the slurm.conf"),
        ("h", "", "print this text"),
        ("L", "FILE", "log there"),
        ("M", "", "accepted: memory is not locked"),
        ("n", "VALUE", "be as nice as that"),
        ("N", "NODES", "the nodes, as a host list expression"),
        ("s", "", "accepted: the working directory is the run directory"),
        ("v", "", "log more"),
        ("V", "", "print the version"),
    ),
    "SlurmdPidFile",
    "SlurmdLogFile",
)


def prepare(start: daemons.Start, config: SlurmConfig) -> tuple[str, Path, Callable[[], int]]:
    """Its name, the run directory, and its main."""
    nodes = own_nodes(start.values.get("N", ""), config)
    run_dir = daemons.run_dir_of(start.conf, config.cluster_name, os.environ)
    with daemons.held(run_dir):
        cluster = daemons.describe(start.conf, run_dir, os.environ)
        name = daemons.join(cluster, run_dir, nodes)
        daemons.announce(name, run_dir)
        if start.clear:
            shutil.rmtree(run_dir / "spool" / name, ignore_errors=True)

    def main() -> int:
        from understudy.noded.main import main as noded

        return noded(["--run-dir", str(run_dir), "--name", name, *["--verbose"] * start.verbose])

    return name, run_dir, main


def own_nodes(asked: str, config: SlurmConfig) -> list[str]:
    """The nodes that are named, or else those on this host.

    Raises:
        LaunchError: slurm.conf does not have them.
    """
    from understudy.model.hostlist import expand
    from understudy.tool.cluster.run_dir import LaunchError

    host = os.uname().nodename.partition(".")[0]
    if asked:
        nodes = expand(asked)
        for node in nodes:
            if node not in config.index_of:
                raise LaunchError(f'_find_node_record: lookup failure for node "{node}"')
        return nodes
    nodes = [
        node.name
        for node in config.nodes
        if node.state != "FUTURE" and host in (node.name, node.hostname)
    ]
    if not nodes:
        raise LaunchError("Unable to determine this slurmd's NodeName")
    return nodes


def hardware() -> str:
    """What -C prints: this host, and for how long it has been up."""
    cpus = os.cpu_count() or 1
    sockets, cores = 1, cpus
    packages: dict[str, set[str]] = {}
    package = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "physical id":
            package = value.strip()
        elif key.strip() == "core id":
            packages.setdefault(package, set()).add(value.strip())
    if packages:
        sockets, cores = len(packages), max(len(each) for each in packages.values())
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    up = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    days, rest = divmod(up, 86400)
    threads = max(cpus // (sockets * cores), 1)
    return (
        f"NodeName={os.uname().nodename.partition('.')[0]} CPUs={cpus} Boards=1 "
        f"SocketsPerBoard={sockets} CoresPerSocket={cores} "
        f"ThreadsPerCore={threads} RealMemory={memory_mb}\n"
        f"UpTime={days}-{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    )


def main() -> int:
    """The command."""
    if "-C" in sys.argv[1:]:
        print(hardware())
        return 0
    return daemons.run(KIND, sys.argv[1:], prepare)


if __name__ == "__main__":
    sys.exit(main())
