"""Figures by sizes of jobs."""

from understudy.experiments.metrics import Columns
from understudy.experiments.records import JobRecord
from understudy.experiments.series import size_classes


def columns(*jobs):
    return Columns.of(
        [
            JobRecord(n, submit, start, end, "COMPLETED", cpus, "", 60)
            for n, (submit, start, end, cpus) in enumerate(jobs, 1)
        ]
    )


def test_a_run_without_jobs_has_no_classes():
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
