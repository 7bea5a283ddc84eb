"""What became of each job of a run: the rows of jobs.csv, and the hash by which two schedules are the same or not.

Place: between a replay, which makes records, and metrics, run folders and reports, which read them. Pure.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

REJECTED: Final = "REJECTED"  # not a state of Slurm's: the submission was refused, the job never existed


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """One job. Times in seconds from the trace's zero; None where it never started or ended."""

    job: int  # its number in the trace's normal form
    submit: int
    start: int | None
    end: int | None
    state: str
    cpus: int
    nodes: str  # host list expression
    req_time: int  # limit in seconds; -1: none

    @property
    def has_run(self) -> bool:
        return self.start is not None and self.end is not None


FIELDS: Final = JobRecord.__struct_fields__


def canonical_lines(records: Iterable[JobRecord]) -> Iterable[str]:
    """`job,submit,start,end,state,cpus,nodes` in the order of job numbers; empty where None. Commas in node expressions stay as they are."""
    for r in sorted(records, key=lambda record: record.job):
        start = "" if r.start is None else r.start
        end = "" if r.end is None else r.end
        yield f"{r.job},{r.submit},{start},{end},{r.state},{r.cpus},{r.nodes}\n"


def schedule_sha256(records: Iterable[JobRecord]) -> str:
    """Equal for two runs if each job had the same times, state, CPUs and nodes in both."""
    return hashlib.sha256("".join(canonical_lines(records)).encode()).hexdigest()
