"""What the user asked a replay for, and the virtual cluster that it has, be it of a trace or of a
scenario.

Place: under traces.py and scenarios.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from understudy.experiments.faults import read_words
from understudy.experiments.node_failures import FailuresError, Model
from understudy.tool.cluster import launch
from understudy.tool.cluster.cluster_run import (
    in_one_process,
    in_processes,
    keep_in_memory,
    kept_in_memory,
)
from understudy.tool.replay.results import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from understudy.experiments.faults import Fault
    from understudy.model.cluster import Cluster
    from understudy.model.conf import SlurmConfig
    from understudy.tool.cluster.cluster_run import Participant
    from understudy.tool.faults.run import Faults
    from understudy.tool.replay.conf import RunConf
    from understudy.tool.replay.forks import Forks

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
    failures: str = ""  # of nodes: a model
    faults: tuple[str, ...] = ()  # of --fault
    seed: int = 1  # of failures, and of what links do
    is_campaign: bool = False  # of faults, be they so few
    forks: Forks | None = None  # the run is forked on its way: `understudy branch`

    @property
    def folder(self) -> Path:
        """Where this process's results go; a fork has its own."""
        return self.out if self.forks is None else self.forks.out

    @property
    def is_faulty(self) -> bool:
        """Whether something is to go wrong, whatever the scenario says."""
        return bool(self.failures or self.faults or self.is_campaign)


def faults_of(
    request: ReplayRequest, config: SlurmConfig, planned: Sequence[Fault] = ()
) -> Faults | None:
    """What is to go wrong with the run: what is planned, what `--fault` says, and nodes by the
    model of `--failures`; None for nothing.

    Raises:
        UsageError: a fault or the model is none.
    """
    if not planned and not request.is_faulty:
        return None
    from understudy.tool.faults.run import Faults

    faults = Faults([*planned, *map(_fault, request.faults)], seed=request.seed)
    if request.failures:
        try:
            model = Model.read(request.failures)
        except FailuresError as error:
            raise UsageError(f"--failures {request.failures}: {error}") from None
        racks = {node: switch.nodes for switch in config.topology for node in switch.nodes}
        nodes = [node.name for node in config.nodes]
        faults.endless = model.failures(nodes, racks, request.seed)
    return faults


def _fault(text: str) -> Fault:
    try:
        return read_words(text)
    except ValueError as error:
        raise UsageError(f"--fault {text!r}: {error}") from None


def virtual_cluster(
    request: ReplayRequest,
    run_dir: Path,
    run_conf: RunConf,
    *,
    epoch: float,
    zero: float,
    users: Mapping[str, int],
    groups: Mapping[str, int],
    is_faulty: bool = False,
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
        is_faulty: things go wrong: each node has a daemon of its own, and state is on disk.
        settings: further fields of `Cluster`.

    Raises:
        ConfigError, LaunchError: as `launch.prepare`.
    """
    cluster = launch.prepare(
        run_dir,
        run_conf.path,
        time="virtual",
        epoch=epoch,
        zero=zero,
        noded=len(run_conf.config.nodes) if is_faulty else request.noded,
        tcp="never",
        log_level="error",  # a line on each job would cost more than 2 % of the run
        state="disk" if is_faulty else request.state,
        backups=is_faulty,
        participants=["replay"],
        latency_s=request.latency_s,
        limit_s=request.limit_s,
        users=users,
        groups=groups,
        is_unbounded=True,
        **settings,
    )
    if request.forks is not None:
        keep_in_memory(cluster)
    return cluster


def run_in(
    request: ReplayRequest,
    cluster: Cluster,
    run_dir: Path,
    run_conf: RunConf,
    faults: Faults | None,
    work: Callable[[Participant], Awaitable[_Result]],
) -> _Result:
    """Run the cluster as the user asked, in one process or in many; where things go wrong it is
    one.

    Raises:
        LaunchError, ClockLost: a daemon ended, or did not react.
    """
    if faults is not None:
        # with it come accounts and what keeps them, for which most replays have no use
        from understudy.tool.faults.run import in_faulty_process
    if request.forks is not None:
        with kept_in_memory(cluster):
            if faults is not None:
                return in_faulty_process(
                    cluster, run_dir, run_conf.config, faults, work, request.forks.watch
                )
            return in_one_process(cluster, run_dir, work, request.forks.watch)
    if faults is not None:
        return in_faulty_process(cluster, run_dir, run_conf.config, faults, work)
    if request.one_process:
        return in_one_process(cluster, run_dir, work)
    return in_processes(cluster, run_dir, work, pause_at=request.pause_at)
