"""The environment of a batch script.

Place: used by the real executor. Pure. Which variable tells what: `model/environment.py`.

Of three layers the first has the last word: what the node adds, what the controller says of the
allocation (`LaunchBatch.environment`), what the submitter had (`JobSpec.environment`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from understudy.model.environment import (
    HOST,
    LIMITS,
    RLIMIT,
    TMP,
    UNSET,
    read,
    told,
    working_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.protocol.messages import LaunchBatch


def batch_environment(
    launch: LaunchBatch,
    *,
    node: str,
    conf: str,
    controller: str = "",
    address: tuple[str, str] = ("", ""),
) -> dict[str, str]:
    """All variables but SLURM_TASK_PID, which is known when the script has its process, and those
    of a login. `controller`: HOST:PORT; `address`: the node's in the topology, and its pattern.
    """
    spec = launch.spec
    submitted = {
        name: value
        for name, value in without_limits(_submitted(launch)).items()
        if name not in {"SLURM_UMASK", "SLURM_RESTART_COUNT"}
    }
    of_job = read(launch.environment)
    cluster = of_job.get("SLURM_CLUSTER_NAME", "")
    defaults = {"nice_of_process": 0, "submit_dir": spec and spec.work_dir, "temporary_dir": TMP}
    facts = {
        "kind": "BATCH",
        "node": node,
        "conf": conf,
        "cpus_on_node": _cpus_on_node(of_job),
        "tasks_on_node": 0,
        "local_id": 0,
        "node_id": 0,
        "node_aliases": "(null)",
        "task_id": 0,
        "address": address[0] or node,
        "address_pattern": address[1] or "node",
        "working_cluster": working_cluster(cluster, controller) if controller else None,
    }
    return {**told(UNSET, defaults), **submitted, **of_job, **told(HOST, facts)}


def limits_of(launch: LaunchBatch, propagated: frozenset[str]) -> dict[str, int]:
    """The limits (names as those of setrlimit(2), without RLIMIT_) of the script's processes: those
    that its submitter asked to hand on, and those of his own that slurm.conf has handed on
    (`propagated`).
    """
    found = limits_in(_submitted(launch), propagated)
    if launch.memory_mb:
        found["RSS"] = launch.memory_mb << 20  # as Slurm does; Linux does not heed it
    return found


def limits_in(environment: Mapping[str, str], propagated: frozenset[str]) -> dict[str, int]:
    """What the submitter's environment says of limits."""
    found = {}
    for name, value in environment.items():
        limit, number = name.removeprefix(RLIMIT), value.removeprefix("U")
        if (
            limit in LIMITS
            and (value != number or limit in propagated)
            and number.removeprefix("-").isdecimal()
        ):
            found[limit] = int(number)
    return found


def without_limits(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that processes get."""
    return {name: value for name, value in environment.items() if not name.startswith(RLIMIT)}


def wants_login(launch: LaunchBatch) -> bool:
    """Whether the variables of the user's login are to come under the submitted ones."""
    return "SLURM_GET_USER_ENV" in _submitted(launch)


def _cpus_on_node(told: Mapping[str, str]) -> str:
    return told.get("SLURM_JOB_CPUS_PER_NODE", "1").partition("(")[0].partition(",")[0]


def umask_of(launch: LaunchBatch) -> int:
    """The submitter's umask, as sbatch hands it over; 022 where it did not."""
    try:
        return int(_submitted(launch).get("SLURM_UMASK", "022"), 8) & 0o777
    except ValueError:
        return 0o022


def _submitted(launch: LaunchBatch) -> Mapping[str, str]:
    return _parsed(tuple(launch.spec.environment) if launch.spec is not None else ())


@lru_cache(maxsize=2)  # a launch asks for its two several times
def _parsed(entries: tuple[str, ...]) -> Mapping[str, str]:
    return {
        name: value
        for name, equals, value in (entry.partition("=") for entry in entries)
        if equals and name
    }
