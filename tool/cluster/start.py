"""One start of all daemons of a cluster, until commands find it and its nodes are idle.

Place: beside launch.py, of whose steps this is the order; used by `understudy up` and by the API.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from understudy.commands.shared import locate
from understudy.tool.cluster import launch
from understudy.tool.cluster.run_dir import LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from understudy.model.cluster import Cluster


def start(
    run_dir: Path, prepare: Callable[[], Cluster], registry: str | None = None
) -> tuple[Cluster, launch.Started]:
    """Start the daemons in a run directory in which none run, and which the caller holds
    (`exclusive`); they are ended if anything fails.

    Args:
        run_dir: of the cluster.
        prepare: makes it ready, and describes the cluster.
        registry: where the cluster is registered; None: as the last one that this user started.

    Raises:
        ConfigError, LaunchError, OSError: it does not come up.
    """
    cluster = prepare()
    started = launch.start_daemons(cluster, run_dir)
    try:
        launch.wait_listening(started)
        launch.wait_registered(cluster, started)
        locate.register(launch.location_of(cluster, run_dir), registry)
    except BaseException:
        launch.stop(run_dir, started)
        raise
    return cluster, started


def parse_time(text: str) -> tuple[str, float]:
    """The kind of time and its rate.

    Raises:
        LaunchError: neither real, virtual nor scaled:N with N above 0.
    """
    kind, colon, rate = text.partition(":")
    if kind in ("real", "virtual") and not colon:
        return kind, 1.0
    with contextlib.suppress(ValueError):
        if kind == "scaled" and 0 < float(rate) < float("inf"):
            return kind, float(rate)
    raise LaunchError(
        f"--time {text}: expected real, virtual, or scaled:N with N times real time, as scaled:60"
    )
