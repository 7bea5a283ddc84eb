"""What the user asked a replay for, and the virtual cluster that it has, be it of a trace or of a
scenario.

Place: under traces.py and scenarios.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from understudy.tool.cluster import launch
from understudy.tool.cluster.cluster_run import in_one_process, in_processes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from understudy.model.cluster import Cluster
    from understudy.tool.cluster.cluster_run import Participant
    from understudy.tool.replay.conf import RunConf

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What the user asked for."""

    trace: Path
    out: Path
    nodes: int | None = None
    cpus: int | None = None  # of each node; None: what the header says
    scheduler: str = ""
    conf: Path | None = None
    answers: Path | None = None
    noded: int = 1
    one_process: bool = False
    strict: bool = False
    limit: int | None = None
    pause_at: str = ""
    plans_at: str = ""  # several, at commas
    parameters: str = ""
    state: str = "memory"
    latency_s: float = 0.001
    limit_s: float = 60.0  # of real time
    accounting: Path | None = None
    settings: tuple[str, ...] = ()  # of --set
    check: bool = False  # a preview, without a run
    partition: str = ""


def virtual_cluster(
    request: ReplayRequest,
    run_dir: Path,
    run_conf: RunConf,
    *,
    epoch: float,
    zero: float,
    users: Mapping[str, int],
    groups: Mapping[str, int],
    **settings: Any,
) -> Cluster:
    """Make the run directory ready for its daemons.

    Args:
        request: of the user.
        run_dir: of the replay.
        run_conf: the configuration.
        epoch: when time begins, seconds since the epoch.
        zero: the trace's or scenario's own zero, likewise.
        users: their numbers by name; no other user is known in the cluster.
        groups: likewise.
        settings: further fields of `Cluster`.

    Raises:
        ConfigError, LaunchError: as `launch.prepare`.
    """
    return launch.prepare(
        run_dir,
        run_conf.path,
        time="virtual",
        epoch=epoch,
        zero=zero,
        noded=request.noded,
        tcp="never",
        log_level="error",  # a line on each job would cost more than 2 % of the run
        state=request.state,
        participants=["replay"],
        latency_s=request.latency_s,
        limit_s=request.limit_s,
        users=users,
        groups=groups,
        is_unbounded=True,
        **settings,
    )


def run_in(
    request: ReplayRequest,
    cluster: Cluster,
    run_dir: Path,
    work: Callable[[Participant], Awaitable[_Result]],
) -> _Result:
    """Run the cluster as the user asked, in one process or in many.

    Raises:
        LaunchError, ClockLost: a daemon ended, or did not react.
    """
    if request.one_process:
        return in_one_process(cluster, run_dir, work)
    return in_processes(cluster, run_dir, work, pause_at=request.pause_at)
