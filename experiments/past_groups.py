"""Records of past jobs by submission: the tasks of an array, the components of a heterogeneous job,
and the runs of one that was requeued belong together.

Place: pure; past_scenario makes a submission of each group. An id that means another job later on
(ids begin anew, or the database was reset) is another group.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.experiments.sacct_words import tres

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from understudy.experiments.past import Count, PastJob

AGAIN: Final = frozenset(
    (
        "REQUEUED",
        "PREEMPTED",
        "NODE_FAIL",
        "BOOT_FAIL",
        "REQUEUE_HOLD",
        "SPECIAL_EXIT",
        "REQUEUE_FED",
        "LAUNCH_FAILED",
        "CANCELLED",
    )
)
RUNS: Final = frozenset(
    (
        "RUNNING",
        "SUSPENDED",
        "STOPPED",
        "SIGNALING",
        "COMPLETING",
        "CONFIGURING",
        "STAGE_OUT",
        "RESIZING",
    )
)
JOB_ID: Final = re.compile(r"(\d+)(?:_(\d+)|_\[(.*?)\]?|\+(\d+))?")
_LONG_BEFORE_S: Final = 86_400
_THIN: Final = 4  # so many times as many jobs were submitted in the same time later


@dataclass(slots=True)
class Group:
    """The records of one job id."""

    job: str
    records: list[PastJob]
    # of each task or component while they are put together
    last: dict[str, PastJob] = field(default_factory=dict)


def grouped(records: Iterable[PastJob], counts: Count) -> list[Group]:
    """Records by job. A job id that means another job later on (ids begin anew, or the database was
    reset) gets a name of its own.
    """
    by_id: dict[str, list[PastJob]] = defaultdict(list)
    for record in records:
        match = JOB_ID.fullmatch(record.job)
        if match is None:
            counts.bad_line(record.line, f"{record.job[:40]!r} is no job's id")
            continue
        _mend_end(record, counts)
        _fill_from_tres(record)
        by_id[match[1]].append(record)
    found = []
    for job, listed in by_id.items():
        groups: list[Group] = []
        for record in sorted(listed, key=submit_time) if len(listed) > 1 else listed:
            group = next((each for each in groups if _same_job(each, record)), None)
            if group is None:
                group = Group(job if not groups else f"{job}x{len(groups) + 1}", [])
                groups.append(group)
            group.records.append(record)
            group.last[record.job] = record
        found += groups
    return found


def _mend_end(record: PastJob, counts: Count) -> None:
    """An end that no column tells follows from Elapsed. One before the start (a clock was set back)
    tells no run: that is in Elapsed, or nowhere.
    """
    if (
        record.end is None
        and record.start is not None
        and record.elapsed is not None
        and record.state not in RUNS
        and record.has_run
    ):
        record.end = record.start + record.elapsed + record.suspended
    if (
        record.start is None
        or record.end is None
        or record.end >= record.start
        or not record.has_run
    ):
        return
    counts.notes["an end before the start, which is not used"] += 1
    record.elapsed = record.elapsed or None
    record.end = record.start + record.elapsed if record.elapsed else None


def _fill_from_tres(record: PastJob) -> None:
    """Processors and nodes where they have no columns of their own."""
    for column, names in (
        ("alloc_tres", ("cpus", "nodes")),
        ("req_tres", ("req_cpus", "min_nodes")),
    ):
        text = getattr(record, column)
        if text and None in (getattr(record, names[0]), getattr(record, names[1])):
            amounts = tres(text)
            for name, key in zip(names, ("cpu", "node"), strict=True):
                if getattr(record, name) is None and amounts.get(key, "").isdigit():
                    setattr(record, name, int(amounts[key]))


def window_advice(jobs: Iterable[Sequence[PastJob]]) -> str:
    """The advice to begin where the dump's window did, if it had one; "" else.

    A dump of a window has of what was submitted before it only what was not over by then: none of
    it ends before the window begins, and it is thin. A history that is whole may be without an end
    for as long, but what was submitted in that time is as dense as what follows.
    """
    submitted, started, first_end = [], [], float("inf")
    for records in jobs:
        submitted.append(submit_time(records[0]))
        for record in records:
            if record.has_run and record.start is not None:
                started.append(record.start)
            if record.end is not None:
                first_end = min(first_end, record.end)
    before = sum(1 for at in submitted if at < first_end)
    running = sum(1 for at in started if at < first_end)
    if not running or before == len(submitted):
        return ""
    lead, rest = first_end - min(submitted), max(submitted) - first_end
    if lead < _LONG_BEFORE_S or before * max(rest, 1) * _THIN > (len(submitted) - before) * lead:
        return ""
    # so that no job is left out
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(first_end - 1))
    return (
        f"{running:,} jobs began before {when}, before any ended and most were submitted: "
        f"--from {when} starts them as running"
    )


def submit_time(record: PastJob) -> int:
    found = record.submit if record.submit is not None else record.start
    return found or 0


def _same_job(group: Group, record: PastJob) -> bool:
    """Whether a record of the same id belongs to the job: a task or component of it, or a further
    run.
    """
    first = group.records[0]
    if (first.user, first.name or record.name) != (record.user, record.name or first.name):
        parts = "+" in record.job and "+" in first.job
        return parts and record.user == first.user
    if submit_time(first) == submit_time(record):
        return True
    last = group.last.get(record.job)
    if last is None:  # another task: of an array that was requeued, or of the same submission
        return "_" in record.job or "+" in record.job
    return last.state in AGAIN or last.end is None or submit_time(record) - last.end < 86_400


def job_number(job: str) -> tuple[int, int]:
    head, _, again = job.partition("x")
    return int(head), int(again or 0)
