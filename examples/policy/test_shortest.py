"""The policy in a cluster: a replay of four jobs on one processor. Install it first."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

UNDERSTUDY = Path(sys.executable).parent / "understudy"
# job number, submission, wait (as are most columns: -1, unknown), run time, processors ... asked
# for, time asked for, memory, state, user, group, program, queue, partition, who is waited for
LINE = "{0} {1} -1 {2} 1 -1 -1 1 {2} -1 1 1 1 -1 1 -1 -1 -1\n"
# (submission, run time); the last two are the same in whole minutes, as Slurm's limits are
JOBS = ((0, 100), (1, 90), (2, 60), (3, 30))


def starts(folder: Path, parameters: str = "") -> list[int]:
    """When each of the jobs starts."""
    trace = folder / "four.swf"
    trace.write_text("".join(LINE.format(number, *job) for number, job in enumerate(JOBS, 1)))
    subprocess.run(
        [
            *(UNDERSTUDY, "replay", trace, "--nodes", "1", "--cpus", "1", "--one-process"),
            *("--scheduler", "shortest", "--parameters", parameters, "--out", folder / "out"),
        ],
        check=True,
    )
    with (folder / "out" / "jobs.csv").open() as lines:
        return [int(row["start"]) for row in csv.DictReader(lines)]


def test_the_shortest_of_those_that_wait_is_next(tmp_path: Path) -> None:
    assert starts(tmp_path) == [0, 190, 130, 100]


def test_a_job_that_has_lost_its_patience_comes_before_them(tmp_path: Path) -> None:
    assert starts(tmp_path, "shortest_patience=120") == [0, 130, 220, 100]
