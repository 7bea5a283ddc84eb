"""Whether a cluster whose nodes are hops of their own can be started here, as asked for.

Place: under tool/cluster/launch.py. Starts nothing.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from understudy.model.cluster import FLAT, SPARE_DESCRIPTORS
from understudy.tool.cluster.run_dir import LaunchError

if TYPE_CHECKING:
    from understudy.model.cluster import Hops


def check_hops(hops: Hops, nodes: list[str], processes: int, *, time: str, executor: str) -> None:
    """See what cannot be.

    Raises:
        LaunchError: hops through sockets with virtual time or real jobs, without node daemons, or
            with more descriptors than a process may have.
    """
    if time == "virtual":
        raise LaunchError(
            "--hops sockets needs --time real or scaled:N: in virtual time a message takes the "
            "latency that the clock grants, whatever a socket takes"
        )
    if executor != "emulated":
        raise LaunchError("--hops sockets is for emulated jobs: --executor real has no part in it")
    if not processes:
        raise LaunchError("--hops sockets needs node daemons that are started with the cluster")
    if strange := [name for name in nodes if name in {f"noded{i}" for i in range(processes)}]:
        raise LaunchError(f"--hops sockets: node {strange[0]} goes by the name of a node daemon")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    share = -(-len(nodes) // processes)
    needed = 2 * share + SPARE_DESCRIPTORS
    if needed > limit:
        least = -(-2 * len(nodes) // max(limit - SPARE_DESCRIPTORS, 1))
        raise LaunchError(
            f"--hops sockets: {share} nodes in a process need {needed} descriptors, and it may "
            f"have {limit} (ulimit -Hn): use --hop-processes {least}"
        )
    if hops.width == FLAT and len(nodes) + SPARE_DESCRIPTORS > limit:
        raise LaunchError(
            f"--hop-width flat: the controller needs {len(nodes) + SPARE_DESCRIPTORS} descriptors, "
            f"and it may have {limit} (ulimit -Hn): use a tree"
        )
