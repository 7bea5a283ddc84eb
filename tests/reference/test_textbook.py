"""The reference implementation against answers that others agree on, and against cases worked out
by hand.
"""

import csv
import gzip
from pathlib import Path

import pytest
from textbook import Task, easy, fcfs

from understudy.experiments.swf import read_swf

ORACLES = Path(__file__).parents[2].parent / "shared" / "oracles"


@pytest.mark.parametrize(("name", "policy"), [("easy", easy), ("fcfs", fcfs)])
def test_every_job_of_kth_sp2_starts_and_ends_when_the_agreed_answers_say(name, policy):
    if not ORACLES.is_dir():
        pytest.skip(f"third-party answers are not part of the repository; looked in {ORACLES}")
    tasks = [
        Task(job.id, job.submit, job.run, job.procs, job.req)
        for job in read_swf(ORACLES / "kth-sp2-normalised.swf.gz").jobs
    ]
    run = {task.id: task.run for task in tasks}
    with gzip.open(ORACLES / f"kth-sp2-{name}.csv.gz", "rt") as answers:
        expected = {
            int(row["id"]): (int(row["start"]), int(row["end"])) for row in csv.DictReader(answers)
        }
    starts = policy(tasks, 100)
    assert len(expected) == 28_481
    assert {job: (start, start + run[job]) for job, start in starts.items()} == expected


def test_fcfs_never_passes_the_head_of_the_queue():
    tasks = [Task(1, 0, 100, 6, 100), Task(2, 1, 10, 8, 10), Task(3, 2, 10, 1, 10)]
    assert fcfs(tasks, 10) == {1: 0, 2: 100, 3: 100}


def test_easy_starts_a_job_that_ends_exactly_at_the_shadow_time():
    tasks = [
        Task(1, 0, 100, 6, 100),
        Task(2, 1, 10, 8, 10),
        Task(3, 2, 98, 4, 98),
        Task(4, 3, 98, 4, 98),
    ]
    assert easy(tasks, 10) == {1: 0, 2: 100, 3: 2, 4: 110}


def test_easy_uses_up_the_extra_processors_only_with_jobs_that_outlast_the_shadow_time():
    # The head needs 8 of 10 at 100: 2 are extra. Job 3 takes one of them for long, job 4 is short,
    # job 5 takes the other, nothing is left for job 6.
    tasks = [
        Task(1, 0, 100, 6, 100),
        Task(2, 1, 10, 8, 10),
        Task(3, 2, 500, 1, 500),
        Task(4, 3, 50, 1, 50),
        Task(5, 4, 500, 1, 500),
        Task(6, 5, 500, 1, 500),
    ]
    assert easy(tasks, 10) == {1: 0, 2: 100, 3: 2, 4: 3, 5: 4, 6: 110}


def test_easy_releases_all_estimates_of_one_instant_together():
    # Both running jobs are estimated to end at 100, so the head's need of 3 leaves 7 extra, not 2:
    # job 4 may outlast the shadow time.
    tasks = [
        Task(1, 0, 100, 5, 100),
        Task(2, 0, 100, 4, 100),
        Task(3, 1, 10, 5, 10),
        Task(4, 2, 300, 1, 300),
    ]
    assert easy(tasks, 10)[4] == 2


def test_a_job_that_ends_early_brings_the_head_forward_at_the_same_instant():
    tasks = [Task(1, 0, 40, 10, 100), Task(2, 1, 10, 10, 10), Task(3, 40, 5, 10, 5)]
    assert easy(tasks, 10) == {1: 0, 2: 40, 3: 50}


def test_jobs_larger_than_the_machine_are_not_in_the_answer():
    assert easy([Task(1, 0, 5, 11, 5), Task(2, 0, 5, 10, 5)], 10) == {2: 0}
