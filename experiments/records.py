"""What became of each job of a run: the rows of jobs.csv, and the hash by which two schedules are
the same or not.

Place: between a replay, which makes records, and metrics, run folders and reports, which read them.
Pure.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.model import nodeset
from understudy.model.task_numbers import parse_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.protocol.messages import JobRun

_ANY_TASK: Final = 1 << 32
# not a state of Slurm's: the submission was refused, the job never existed
REJECTED: Final = "REJECTED"


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """One job, by its last run, or an earlier run that was requeued. Times in seconds from the
    trace's zero; None where it never started or ended.
    """

    job: int  # its number in the trace's normal form
    submit: int
    start: int | None
    end: int | None
    state: str
    cpus: int
    nodes: str  # host list expression
    req_time: int  # limit in seconds; -1: none
    # what the trace, or the scenario, calls it; `3_7` is task 7 of the array 3, `5+1` the second
    # component of the heterogeneous job 5
    id: str = ""
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    eligible: int | None = None
    node_count: int = 0
    memory_mb: int = 0  # on all its nodes
    gres: str = ""  # what it held
    priority: int = 0  # when it started, or last
    waited_for: str = ""  # the reason that it waited for longest
    # why it has not run: what was said when it was refused, or what it waits for at the end
    reason: str = ""
    exit_code: str = ""  # code:signal
    restarts: int = 0
    preemptions: int = 0  # how often it made room for others, suspended or ended
    backfilled: bool = False
    scheduled_by: str = ""  # Main, Backfill; Submit: as it was submitted
    first_promise: int | None = None  # the start that it was promised when it first was
    last_promise: int | None = None
    promise_moves: int = 0  # how often it was promised another

    @property
    def wait(self) -> int | None:
        """From the last time that it was queued to its start."""
        return None if self.start is None else self.start - self.submit

    @property
    def run(self) -> int | None:
        return None if self.start is None or self.end is None else self.end - self.start


FIELDS: Final = (*JobRecord.__struct_fields__[:8], "wait", "run", *JobRecord.__struct_fields__[8:])


def expand_tasks(told: JobRun) -> list[str]:
    """The numbers of the array's tasks for which the record stands; [""] outside arrays."""
    if not told.array_tasks:
        return [""]
    return [str(task) for task in nodeset.indices(parse_tasks(told.array_tasks, _ANY_TASK))]


def record_of(
    told: JobRun, zero: int, job: int, task: str = "", *, name: str = "", user: str = ""
) -> JobRecord:
    """What the controller told of a run; `name`, `user`: what the trace calls the job, and its
    owner, where it knows better.
    """
    name = name or told.tag
    start, end = told.start, told.end
    started = start is not None
    reason = (
        ""
        if started
        else f"{told.reason}{f' ({told.reason_detail})' if told.reason_detail else ''}"
    )
    return JobRecord(
        job,
        told.submit - zero,
        None if start is None else start - zero,
        None if end is None or not started else end - zero,
        told.state,
        told.cpus,
        told.nodes,
        -1 if told.limit_s is None else told.limit_s,
        f"{name}_{task}" if task else f"{name}+{told.het_offset}" if told.het_offset else name,
        told.name,
        user or told.user,
        told.account,
        told.partition,
        told.qos,
        None if told.eligible is None else told.eligible - zero,
        told.node_count,
        told.memory_mb,
        told.gres,
        told.priority,
        told.waited_for,
        reason,
        "" if end is None else f"{told.exit_code}:{told.exit_signal}",
        told.restarts,
        told.preemptions,
        started and told.scheduler == "Backfill",
        told.scheduler if started else "",
        None if told.first_promise is None else told.first_promise - zero,
        None if told.last_promise is None else told.last_promise - zero,
        told.promise_moves,
    )


def canonical_lines(records: Iterable[JobRecord]) -> Iterable[str]:
    """`job,submit,start,end,state,cpus,nodes` in the order of job numbers; empty where None. Commas
    in node expressions stay as they are.
    """
    for r in sorted(records, key=lambda record: record.job):
        start = "" if r.start is None else r.start
        end = "" if r.end is None else r.end
        yield f"{r.job},{r.submit},{start},{end},{r.state},{r.cpus},{r.nodes}\n"


def schedule_sha256(records: Iterable[JobRecord]) -> str:
    """Equal for two runs if each job had the same times, state, CPUs and nodes in both."""
    return hashlib.sha256("".join(canonical_lines(records)).encode()).hexdigest()
