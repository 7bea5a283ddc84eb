"""`why("runs/one", "17")`: the story of one job, told of each of its runs.

Place: the way in, for `understudy why` and for programs; reads a run by `read`. A job is named by
its id in the trace or scenario, else by its place; `3` names all tasks of the array 3, and all
components of the heterogeneous job 3.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.outcomes.fate import Fate, Others
from understudy.experiments.outcomes.read import read_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from understudy.experiments.outcomes.read import Run
    from understudy.experiments.records import JobRecord

PASSERS: Final = 10  # that are named
_PARTS: Final = re.compile(r"(.+?)[_+]\d+")


class UnknownJobError(ValueError):
    """The run has no such job. Says what it has."""


@dataclass(frozen=True, slots=True)
class JobStory:
    """One job, a task of an array or a component: `fates` are its runs, in order, of which all but
    the last were requeued.
    """

    job: str
    name: str
    user: str
    account: str
    partition: str
    qos: str
    cpus: int
    req_time: int  # limit in seconds; -1: none
    restarts: int
    preemptions: int
    fates: tuple[Fate, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Stories:
    """What was asked for. `zero`: second 0 in seconds since the epoch, where the run says so."""

    zero: float | None
    stories: tuple[JobStory, ...]  # several of an array or a heterogeneous job


def why(run: str | Path, job: str) -> Stories:
    """What became of the job in the run, and why.

    Raises:
        RunError, StoriesError: the run cannot be used. UnknownJobError: it has no such job.
        OSError: a file cannot be read.
    """
    read = read_run(run)
    found = _find(read.records, job)
    if not found:
        raise UnknownJobError(f"{run}: no job {job!r}{_hint(read)}")
    others = Others(read)
    return Stories(read.zero, tuple(_story(read, others, record) for record in found))


def _find(records: Sequence[JobRecord], job: str) -> list[JobRecord]:
    leader = job.removesuffix("+0")  # which has no number of its own in a run's files
    if leader != job and any(record.id.startswith(f"{leader}+") for record in records):
        return [record for record in records if record.id == leader]
    found = []
    for record in records:
        match = _PARTS.fullmatch(record.id)
        if record.id == job or (match is not None and match[1] == job):
            found.append(record)
    return found or [record for record in records if str(record.job) == job]


def _hint(run: Run) -> str:
    if not run.records:
        return "; it has none"
    names = [record.id or str(record.job) for record in run.records]
    return f"; it has {len(names):,}, from {names[0]} to {names[-1]}"


def _story(run: Run, others: Others, record: JobRecord) -> JobStory:
    attempts = [each for each in run.attempts if (each.id, each.job) == (record.id, record.job)]
    return JobStory(
        record.id or str(record.job),
        record.name,
        record.user,
        record.account,
        record.partition,
        record.qos,
        record.cpus,
        record.req_time,
        record.restarts,
        record.preemptions,
        tuple(others.fate(each, PASSERS) for each in [*attempts, record]),
    )
