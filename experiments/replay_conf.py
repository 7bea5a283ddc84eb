"""The slurm.conf of a replay: a machine of equal nodes, one partition without limits.

Place: text in, text out; `understudy replay` writes it into the run directory when the user names
no configuration of his own. Follows: slurm.conf(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.hostlist import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_SCHEDULER: Final = "backfill"
_SPARE_JOBS: Final = 1_000  # beside those of the trace


def replay_conf(
    nodes: int,
    cpus: int,
    scheduler: str,
    *,
    jobs: int = 100_000,
    parameters: str = "",
    select_parameters: str = "CR_CPU",
    memory_mb: int = 0,
    cluster: str = "replay",
    licenses: Sequence[tuple[str, int]] = (),
) -> str:
    """A configuration for `jobs` jobs on `nodes` nodes of `cpus` CPUs under sched/`scheduler`.

    `parameters` becomes SchedulerParameters. Node daemons are not expected to show signs of life
    (SlurmdTimeout=0): in virtual time they cannot be late. `licenses`: names and counts.
    """
    if nodes < 1 or cpus < 1:
        raise ValueError(f"a machine needs at least one node and one CPU: {nodes=} {cpus=}")
    if any(
        character in text
        for text in (scheduler, parameters, select_parameters, cluster)
        for character in "\n\r\\#"
    ):
        raise ValueError("a parameter of slurm.conf is one line without comment")
    names = numbered("n", nodes)
    lines = [
        f"ClusterName={cluster}",
        "SlurmctldHost=localhost",
        f"SchedulerType=sched/{scheduler.removeprefix('sched/')}",
        *([f"SchedulerParameters={parameters}"] if parameters else []),
        "SelectType=select/cons_tres",
        f"SelectTypeParameters={select_parameters}",
        "PriorityType=priority/basic",
        "SlurmdTimeout=0",
        "InactiveLimit=0",
        f"MaxJobCount={jobs + _SPARE_JOBS}",
        "FirstJobId=1",
        f"MaxJobId={max(jobs + _SPARE_JOBS, 999_999)}",
        *([f"Licenses={','.join(f'{name}:{count}' for name, count in licenses)}"] * bool(licenses)),
        (
            f"NodeName={names} CPUs={cpus}{f' RealMemory={memory_mb}' if memory_mb else ''} "
            "State=UNKNOWN"
        ),
        f"PartitionName=debug Nodes={names} Default=YES MaxTime=INFINITE State=UP",
    ]
    return "\n".join(lines) + "\n"
