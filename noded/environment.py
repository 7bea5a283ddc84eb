"""The environment of a batch script.

Place: used by the real executor. Pure. Follows: sbatch(1) "OUTPUT ENVIRONMENT VARIABLES", and the
environment that Slurm 22.05.8 was seen to give.

Of three layers the first has the last word: what the node adds, what the controller says of the
allocation (`LaunchBatch.environment`), what the submitter had (`JobSpec.environment`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from understudy.noded.settings import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.protocol.messages import LaunchBatch


_TMP = "/tmp"  # noqa: S108  what Slurm gives
_LIMIT = "SLURM_RLIMIT_"
# of 22.05, and the number of its select/cons_tres: both are told in SLURM_WORKING_CLUSTER
_PROTOCOL = 9728
_SELECT_PLUGIN = 109


def batch_environment(
    launch: LaunchBatch,
    *,
    node: str,
    cluster: str,
    conf: str,
    user: str,
    controller: str = "",
    address: tuple[str, str] = ("", ""),
) -> dict[str, str]:
    """All variables but SLURM_TASK_PID, which is known when the script has its process, and those
    of a login. `controller`: HOST:PORT; `address`: the node's in the topology, and its pattern.
    """
    spec = launch.spec
    submitted = _parsed(tuple(spec.environment) if spec is not None else ())
    told = _parsed(tuple(launch.environment))
    result = {**submitted, **_of_the_job(launch, user), **told}
    result |= {
        "ENVIRONMENT": "BATCH",
        "HOSTNAME": node,
        "SLURMD_NODENAME": node,
        "SLURM_CLUSTER_NAME": told.get("SLURM_CLUSTER_NAME", cluster),
        "SLURM_CONF": conf,
        "SLURM_CPUS_ON_NODE": _cpus_on_node(told),
        "SLURM_GTIDS": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_PROCID": "0",
        "SLURM_TOPOLOGY_ADDR": address[0] or node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": address[1] or "node",
    }
    if launch.restart:
        result["SLURM_RESTART_COUNT"] = str(launch.restart)
    else:
        result.pop("SLURM_RESTART_COUNT", None)
    work_dir = spec.work_dir if spec is not None else ""
    if controller:
        result["SLURM_WORKING_CLUSTER"] = (
            f"{result['SLURM_CLUSTER_NAME']}:{controller}:{_PROTOCOL}:{_SELECT_PLUGIN}"
        )
    defaults = {"SLURM_PRIO_PROCESS": "0", "SLURM_SUBMIT_DIR": work_dir, "TMPDIR": _TMP}
    for name, value in defaults.items():
        if value:
            result.setdefault(name, value)
    for name in [name for name in result if name == "SLURM_UMASK" or name.startswith(_LIMIT)]:
        del result[name]
    return result


def limits_of(launch: LaunchBatch, propagated: frozenset[str]) -> dict[str, int]:
    """The limits (names as those of setrlimit(2), without RLIMIT_) of the script's processes: those
    that its submitter asked to hand on, and those of his own that slurm.conf has handed on
    (`propagated`).
    """
    found = limits_in(
        _parsed(tuple(launch.spec.environment) if launch.spec is not None else ()), propagated
    )
    if launch.memory_mb:
        found["RSS"] = launch.memory_mb << 20  # as Slurm does; Linux does not heed it
    return found


def limits_in(environment: Mapping[str, str], propagated: frozenset[str]) -> dict[str, int]:
    """What the submitter's environment says of limits."""
    found = {}
    for name, value in environment.items():
        limit, number = name.removeprefix(_LIMIT), value.removeprefix("U")
        if (
            limit in LIMITS
            and (value != number or limit in propagated)
            and number.removeprefix("-").isdecimal()
        ):
            found[limit] = int(number)
    return found


def without_limits(environment: dict[str, str]) -> dict[str, str]:
    """The environment that processes get."""
    return {name: value for name, value in environment.items() if not name.startswith(_LIMIT)}


def wants_login(launch: LaunchBatch) -> bool:
    """Whether the variables of the user's login are to come under the submitted ones."""
    return "SLURM_GET_USER_ENV" in _parsed(
        tuple(launch.spec.environment) if launch.spec is not None else ()
    )


def _cpus_on_node(told: Mapping[str, str]) -> str:
    return told.get("SLURM_JOB_CPUS_PER_NODE", "1").partition("(")[0].partition(",")[0]


def umask_of(launch: LaunchBatch) -> int:
    """The submitter's umask, as sbatch hands it over; 022 where it did not."""
    submitted = _parsed(tuple(launch.spec.environment) if launch.spec is not None else ())
    try:
        return int(submitted.get("SLURM_UMASK", "022"), 8) & 0o777
    except ValueError:
        return 0o022


@lru_cache(maxsize=2)  # a launch asks for its two several times
def _parsed(entries: tuple[str, ...]) -> Mapping[str, str]:
    return {
        name: value
        for name, equals, value in (entry.partition("=") for entry in entries)
        if equals and name
    }


def _of_the_job(launch: LaunchBatch, user: str) -> dict[str, str]:
    """What follows from the launch alone; the controller's words on the allocation come over it."""
    spec = launch.spec
    job_id = str(launch.job_id)
    found = {
        "SLURM_JOBID": job_id,
        "SLURM_JOB_ID": job_id,
        "SLURM_JOB_GID": str(launch.group_id),
        "SLURM_JOB_NODELIST": launch.nodes,
        "SLURM_JOB_UID": str(launch.user_id),
        "SLURM_JOB_USER": user,
        "SLURM_NODELIST": launch.nodes,
    }
    if spec is not None:
        found["SLURM_JOB_NAME"] = spec.name
        if spec.ntasks_per_core:
            found["SLURM_NTASKS_PER_CORE"] = str(spec.ntasks_per_core)
        if spec.ntasks_per_socket:
            found["SLURM_NTASKS_PER_SOCKET"] = str(spec.ntasks_per_socket)
        if spec.threads_per_core:
            found["SLURM_THREADS_PER_CORE"] = str(spec.threads_per_core)
        if spec.overcommit:
            found["SLURM_OVERCOMMIT"] = "1"
        if spec.reservation:
            found["SLURM_JOB_RESERVATION"] = spec.reservation
        if spec.dependency:
            found["SLURM_JOB_DEPENDENCY"] = spec.dependency
    return found
