"""Compare a run with a file of answers, job by job.

Place: reads records; used by `understudy replay --answers FILE`. An answers file has a header line
`id,submit,start,end,procs,req` and one line for each job, in seconds from the trace's zero, plain
or compressed with gzip.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from understudy.experiments.records import JobRecord

FIELDS: Final = ("id", "submit", "start", "end", "procs", "req")


class AnswersError(ValueError):
    """A file of answers that cannot be read. Says where."""


class Answer(NamedTuple):
    submit: int
    start: int
    end: int
    procs: int
    req: int


class Difference(NamedTuple):
    """A job whose start is not the expected one. None: it never started, or the answers do not have
    it.
    """

    job: int
    expected: int | None
    actual: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a run and the answers agree. Every job of the answers counts, and every job of the run
    that started without being in them.
    """

    jobs: int
    equal_starts: int
    equal_ends: int
    # the first, in order of the expected (else actual) start; not all
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        return self.equal_starts == self.jobs

    def text(self) -> str:
        """One line, and one more for each difference that is kept."""
        lines = [f"{self.equal_starts:,} of {self.jobs:,} start times equal the answers"]
        lines += [
            f"  job {d.job}: expected {_instant(d.expected)}, was {_instant(d.actual)}"
            for d in self.differences
        ]
        return "\n".join(lines)


def read_answers(path: str | Path) -> dict[int, Answer]:
    """Answers by job number.

    Raises:
        OSError: the file cannot be opened.
        AnswersError: it is damaged or no answers file.
    """
    content = Path(path).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise AnswersError(f"{path}: damaged gzip file: {error}") from error
    rows = csv.reader(io.StringIO(content.decode("utf-8", "replace")))
    head = tuple(next(rows, []))
    if head != FIELDS:
        raise AnswersError(
            f"{path} line 1: expected the header {','.join(FIELDS)}, found {','.join(head)[:80]!r}"
        )
    answers: dict[int, Answer] = {}
    for number, row in enumerate(rows, 2):
        try:
            job, submit, start, end, procs, req = map(int, row)
        except ValueError:
            raise AnswersError(
                f"{path} line {number}: expected six whole numbers, found {','.join(row)[:80]!r}"
            ) from None
        answers[job] = Answer(submit, start, end, procs, req)
    return answers


def compare(
    records: Iterable[JobRecord], answers: Mapping[int, Answer], *, keep: int = 10
) -> Comparison:
    """Count equal start times; keep the first differences in time, as later ones mostly follow from
    them.
    """
    found = {record.job: record for record in records}
    differences = []
    equal_ends = 0
    for job, answer in answers.items():
        record = found.get(job)
        if record is None or record.start != answer.start:
            differences.append(Difference(job, answer.start, record.start if record else None))
        if record is not None and record.end == answer.end:
            equal_ends += 1
    missing = [
        Difference(job, None, record.start)
        for job, record in found.items()
        if job not in answers and record.start is not None
    ]
    equal_starts = len(answers) - len(differences)
    differences = sorted(
        differences + missing,
        key=lambda d: (d.expected if d.expected is not None else d.actual or 0, d.job),
    )
    return Comparison(
        len(answers) + len(missing), equal_starts, equal_ends, tuple(differences[:keep])
    )


def _instant(seconds: int | None) -> str:
    return "not at all" if seconds is None else f"{seconds:,} s"
