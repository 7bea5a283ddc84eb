"""What the API tells of jobs and nodes, each as a value that does not change.

Place: of the API; the raw columns are those of understudy.model.records, states are the words that
`scontrol show` and `sinfo` show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

JOB_COLUMNS: Final = (
    *("job_id", "array_job_id", "array_task_id", "name", "user_name", "account", "partition"),
    *("state", "flags", "reason", "nodes", "node_count", "cpus", "submit_time", "start_time"),
    *("end_time", "time_limit_s", "exit_code", "exit_signal", "work_dir", "std_out", "std_err"),
)
NODE_COLUMNS: Final = (
    *("name", "state", "flags", "cpus", "alloc_cpus", "memory_mb", "alloc_memory_mb", "reason"),
    *("features", "gres", "partitions"),
)
# a job in none of them waits, runs or is stopped
_OVER: Final = JobState.COMPLETED


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the controller has it. Times are the cluster's, seconds since the epoch; None where
    there is none yet. `start_time` of a job that waits is the scheduler's expectation.
    """

    id: int
    name: str
    user: str
    account: str
    partition: str  # while it waits all that come into question, at commas
    state: str  # as `scontrol show job` has it: PENDING, RUNNING, COMPLETING, COMPLETED, FAILED ...
    reason: str  # why it waits, or how it ended: Resources, NonZeroExitCode ...; ""
    nodes: str  # a host list expression, as n[1-4]; "" while it waits
    node_count: int
    cpus: int
    submit_time: float
    start_time: float | None
    end_time: float | None  # while it runs, when its time limit is over
    time_limit_s: int | None  # None: unlimited
    exit_code: int
    exit_signal: int  # that ended the script; 0 if none
    array_id: int | None  # of the array that it is a task of
    array_task: int | None
    work_dir: str
    output: str  # the file of its standard output
    errors: str  # that of its standard error
    is_over: bool  # it ended, and its nodes are free

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Job:
        """From a row with JOB_COLUMNS."""
        from understudy.documents.states import job_state

        return cls(
            id=row["job_id"],
            name=row["name"],
            user=row["user_name"],
            account=row["account"],
            partition=row["partition"],
            state=job_state(row["state"], row["flags"]),
            reason="" if row["reason"] == "None" else row["reason"],
            nodes=row["nodes"],
            node_count=row["node_count"],
            cpus=row["cpus"],
            submit_time=float(row["submit_time"]),
            start_time=_time(row["start_time"]),
            end_time=_time(row["end_time"]),
            time_limit_s=row["time_limit_s"],
            exit_code=row["exit_code"],
            exit_signal=row["exit_signal"],
            array_id=row["array_job_id"] or None,
            array_task=row["array_task_id"],
            work_dir=row["work_dir"],
            output=row["std_out"],
            errors=row["std_err"],
            is_over=row["state"] >= _OVER and not row["flags"] & JobFlag.COMPLETING,
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the controller has it."""

    name: str
    state: str  # as `sinfo` shows it: idle, mixed, allocated, drained, down* ...
    cpus: int
    cpus_in_use: int
    memory_mb: int
    memory_in_use_mb: int
    reason: str  # why it is down or draining
    features: tuple[str, ...]
    gres: str  # as gpu:tesla:4
    partitions: tuple[str, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Node:
        """From a row with NODE_COLUMNS."""
        from understudy.documents.states import node_state

        return cls(
            name=row["name"],
            state=node_state(row["state"], row["flags"]),
            cpus=row["cpus"],
            cpus_in_use=row["alloc_cpus"],
            memory_mb=row["memory_mb"],
            memory_in_use_mb=row["alloc_memory_mb"],
            reason=row["reason"],
            features=tuple(row["features"]),
            gres=row["gres"],
            partitions=tuple(row["partitions"]),
        )


def _time(seconds: int | None) -> float | None:
    return None if seconds is None else float(seconds)
