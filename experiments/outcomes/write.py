"""What a comparison leaves: compare.html to look at, compare.csv with a line for each job, and
compare.json with all figures.

Place: the edge of a comparison: it writes files.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

from understudy.experiments.outcomes.page import page
from understudy.experiments.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from understudy.experiments.outcomes.compare import Comparison
    from understudy.experiments.records import JobRecord

_OF_JOB: Final = ("id", "job", "user", "account", "partition", "qos", "cpus")
_OF_RUN: Final = ("submit", "start", "end", "wait", "state", "waited_for", "scheduled_by")


def write_comparison(folder: Path, comparison: Comparison) -> Path:
    """Write the three files, each whole or not at all. Returns the page's path.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "compare.csv", _csv(comparison).encode())
    write_whole(folder / "compare.json", as_json(comparison).encode())
    write_whole(folder / "compare.html", page(comparison).encode())
    return folder / "compare.html"


def as_json(comparison: Comparison) -> str:
    """What compare.json has: all figures, and not the jobs."""
    return json.dumps(comparison.as_dict(), indent=1) + "\n"


def _csv(comparison: Comparison) -> str:
    """The columns of each run have its letter; `longer_B` is how many seconds longer the job waited
    in B than in A.
    """
    letters = [run.letter for run in comparison.runs]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            *_OF_JOB,
            *(f"{name}_{letter}" for letter in letters for name in _OF_RUN),
            *(f"longer_{letter}" for letter in letters[1:]),
        ]
    )
    writer.writerows(map(_row, comparison.jobs))
    return out.getvalue()


def _row(runs: tuple[JobRecord | None, ...]) -> list[object]:
    there = [record for record in runs if record is not None]
    known = next((record for record in there if record.id), there[0])
    return [*(getattr(known, name) for name in _OF_JOB), *_of_runs(runs), *_longer(runs)]


def _of_runs(runs: tuple[JobRecord | None, ...]) -> Iterator[object]:
    for record in runs:
        for name in _OF_RUN:
            yield None if record is None else getattr(record, name)


def _longer(runs: tuple[JobRecord | None, ...]) -> Iterator[int | None]:
    first = None if runs[0] is None else runs[0].wait
    for record in runs[1:]:
        wait = None if record is None else record.wait
        yield None if wait is None or first is None else wait - first
