"""Figures over time, and by sizes of jobs."""

import numpy as np
import pytest

from understudy.experiments.metrics import Columns
from understudy.experiments.records import JobRecord
from understudy.experiments.series import size_classes, time_series


def columns(*jobs):
    return Columns.of(
        [
            JobRecord(n, submit, start, end, "COMPLETED", cpus, "", 60)
            for n, (submit, start, end, cpus) in enumerate(jobs, 1)
        ]
    )


def test_means_are_exact_where_jobs_begin_and_end_within_a_bucket():
    series = time_series(columns((0, 0, 15, 4), (0, 15, 20, 2)), buckets=2)
    assert series.edges.tolist() == [0, 10, 20]
    assert series.cpus_in_use.tolist() == [4.0, (5 * 4 + 5 * 2) / 10]
    assert series.waiting_jobs.tolist() == [1.0, 0.5]
    assert series.waiting_jobs_max.tolist() == [1, 1]


def test_a_queue_that_is_full_for_a_moment_shows_in_the_most():
    series = time_series(columns((0, 0, 100, 1), (40, 42, 50, 1), (41, 42, 50, 1)), buckets=2)
    assert series.waiting_jobs_max.tolist() == [2, 0]
    assert series.waiting_jobs.tolist() == pytest.approx([3 / 50, 0])


def test_a_run_without_jobs_is_one_empty_bucket():
    series = time_series(columns())
    assert (len(series.edges), series.cpus_in_use.tolist(), series.waiting_jobs_max.tolist()) == (
        2,
        [0.0],
        [0],
    )
    assert size_classes(columns()) == []


def test_size_classes_are_powers_of_two_and_empty_ones_are_left_out():
    classes = size_classes(
        columns(
            *[
                (0, wait, wait + 100, cpus)
                for cpus, wait in ((1, 0), (3, 10), (4, 30), (8, 5), (5, 5), (33, 0))
            ]
        )
    )
    assert [(c.label, c.jobs) for c in classes] == [("1", 1), ("3-4", 2), ("5-8", 2), ("33-64", 1)]
    assert (classes[1].wait.median, classes[1].wait.largest, classes[1].wait.mean) == (20, 30, 20)
    assert classes[1].cpu_seconds == 700
    assert classes[0].slowdown.median == 1.0


def test_a_year_of_jobs_has_no_more_buckets_than_a_day_of_them():
    rng = np.random.default_rng(1)
    start = np.sort(rng.integers(0, 31_536_000, 2_000))
    ran = Columns(start, start + 5, start + 50, np.ones(2_000, dtype=np.int64))
    assert len(time_series(ran, 400).cpus_in_use) == 400
