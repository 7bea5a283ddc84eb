"""Figures of a run, worked out by hand."""

import csv
import gzip
from pathlib import Path

import msgspec
import numpy as np
import pytest

from understudy.experiments.metrics import percentiles, size_class, summarize
from understudy.experiments.records import REJECTED, JobRecord, canonical_lines, schedule_sha256

ORACLES = Path(__file__).parents[3].parent / "shared" / "oracles"


def record(number, submit, start, end, cpus=1, state="COMPLETED", nodes="n1"):
    return JobRecord(number, submit, start, end, state, cpus, nodes, 60)


@pytest.mark.parametrize(
    ("policy", "mean_wait", "median", "longest", "slowdown", "makespan", "utilization"),
    [
        ("fcfs", 353_776.41, 409_362, 946_685, 6_814.973, 29_379_608, 0.68524),
        ("easy", 6_834.59, 0, 262_194, 92.688, 29_363_626, 0.68561),
    ],
)
def test_the_agreed_schedules_have_the_agreed_figures(
    policy, mean_wait, median, longest, slowdown, makespan, utilization
):
    path = ORACLES / f"kth-sp2-{policy}.csv.gz"
    if not path.exists():
        pytest.skip(f"third-party answers are not part of the repository; looked for {path}")
    with gzip.open(path, "rt") as rows:
        records = [
            record(int(r["id"]), int(r["submit"]), int(r["start"]), int(r["end"]), int(r["procs"]))
            for r in csv.DictReader(rows)
        ]
    summary = summarize(records, 100, 10.0)
    assert summary.mean_wait == pytest.approx(mean_wait, abs=0.005)
    assert (summary.median_wait, summary.max_wait, summary.makespan) == (median, longest, makespan)
    assert summary.mean_bounded_slowdown == pytest.approx(slowdown, abs=0.0005)
    assert summary.utilization == pytest.approx(utilization, abs=0.000005)


def test_a_schedule_worked_out_by_hand():
    summary = summarize(
        [record(1, 0, 0, 100, 2), record(2, 10, 100, 105, 4), record(3, 10, 110, 130, 4)],
        4,
        2.0,
        140.0,
    )
    assert (summary.mean_wait, summary.median_wait, summary.max_wait) == (
        pytest.approx(190 / 3),
        90,
        100,
    )
    assert summary.mean_bounded_slowdown == pytest.approx((1 + 95 / 10 + 120 / 20) / 3)
    assert (summary.makespan, summary.utilization) == (
        130,
        pytest.approx((200 + 20 + 80) / (4 * 130)),
    )
    assert (summary.jobs, summary.speedup, summary.jobs_per_second) == (3, 70.0, 1.5)


def test_work_that_was_lost_is_that_of_runs_that_were_requeued_and_of_nodes_that_failed():
    last = [record(1, 0, 50, 90, 4), record(2, 0, 0, 30, 2, state="NODE_FAIL")]
    earlier = [record(1, 0, 0, 10, 4, state="NODE_FAIL"), record(1, 0, 20, 25, 4, state="REQUEUED")]
    summary = summarize(last, 4, 1.0, attempts=earlier)
    lost = (summary.requeued_runs, summary.node_failed_runs, summary.lost_cpu_seconds)
    assert lost == (2, 2, 4 * 10 + 4 * 5 + 2 * 30)


def test_promises_are_told_of_the_jobs_that_ran_and_had_one():
    told = {1: (50, 30, 2), 2: (20, 40, 1)}
    records = [
        replace(record(1, 0, 30, 60), told[1]),
        replace(record(2, 0, 25, 60), told[2]),
        replace(record(3, 0, None, None, state=REJECTED), (7, 7, 0)),
        record(4, 0, 0, 9),
    ]
    summary = summarize(records, 1, 1.0)
    assert (summary.promised, summary.promise_moves, summary.promise_shift) == (
        2,
        1.5,
        20,
    )
    assert (summary.first_promise_error, summary.last_promise_error) == (12.5, 7.5)
    assert summarize(records[3:], 1, 1.0).promise_moves is None


def replace(job, promises):
    first, last, moves = promises
    return msgspec.structs.replace(job, first_promise=first, last_promise=last, promise_moves=moves)


def test_jobs_that_never_ran_count_but_have_no_wait():
    summary = summarize(
        [
            record(1, 0, 5, 10),
            record(2, 0, None, None, state=REJECTED),
            record(3, 0, None, 7, state="CANCELLED"),
        ],
        1,
        1.0,
    )
    assert summary.mean_wait == 5
    assert summary.states == {"CANCELLED": 1, "COMPLETED": 1, "REJECTED": 1}
    assert summary.jobs == 3


def test_a_run_without_jobs_has_a_summary():
    summary = summarize([], 10, 0.0)
    assert (summary.jobs, summary.makespan, summary.utilization, summary.speedup) == (
        0,
        0,
        0.0,
        0.0,
    )


def test_the_summary_has_just_the_keys_that_readers_expect():
    assert {
        "jobs",
        "refused",
        "never_started",
        "cancelled_before_start",
        "unfinished",
        "ran",
        *(f"{what}_p{percent}" for what in ("wait", "slowdown") for percent in (50, 90, 95, 99)),
        "wall_seconds",
        "simulated_seconds",
        "speedup",
        "jobs_per_second",
        "schedule_sha256",
        "utilization",
        "mean_wait",
        "median_wait",
        "max_wait",
        "mean_bounded_slowdown",
        "makespan",
        "requeued_runs",
        "node_failed_runs",
        "lost_cpu_seconds",
        "promised",
        "promise_moves",
        "promise_shift",
        "first_promise_error",
        "last_promise_error",
    } == summarize([], 1, 1.0).as_dict().keys()


def test_canonical_lines_are_in_job_order_and_empty_where_nothing_happened():
    records = [
        record(2, 5, None, None, state=REJECTED, nodes=""),
        record(1, 0, 1, 2, nodes="n[1,3]"),
    ]
    assert list(canonical_lines(records)) == ["1,0,1,2,COMPLETED,1,n[1,3]\n", "2,5,,,REJECTED,1,\n"]


def test_the_hash_ignores_the_order_of_records_and_nothing_else_of_a_schedule():
    first, second = record(1, 0, 1, 2), record(2, 0, 2, 3)
    assert schedule_sha256([first, second]) == schedule_sha256([second, first])
    for changed in (
        record(2, 0, 2, 4),
        record(2, 0, 2, 3, nodes="n2"),
        record(2, 0, 2, 3, state="TIMEOUT"),
        record(2, 0, 2, 3, cpus=2),
    ):
        assert schedule_sha256([first, changed]) != schedule_sha256([first, second])


def test_percentiles_are_values_that_occur_and_none_where_there_are_none():
    assert percentiles(np.arange(1, 101)) == [50, 90, 95, 99]
    assert percentiles(np.array([7])) == [7, 7, 7, 7]
    assert percentiles(np.array([])) == [None] * 4


@pytest.mark.parametrize(
    ("cpus", "name"),
    [
        (1, "1"),
        (2, "2"),
        (3, "3-4"),
        (4, "3-4"),
        (5, "5-8"),
        (1024, "513-1024"),
        (1025, "1025-2048"),
    ],
)
def test_sizes_are_grouped_by_powers_of_two(cpus, name):
    assert size_class(cpus) == name


def test_jobs_without_a_run_are_counted_by_what_became_of_them_and_means_are_of_the_others():
    records = [
        record(1, 0, 5, 10),
        record(2, 0, None, None, state=REJECTED),
        record(3, 0, None, None, state="CANCELLED"),
        record(4, 0, None, None, state="PENDING"),
        record(5, 0, None, None, state="DEADLINE"),
        record(6, 0, 5, None, state="SUSPENDED"),
    ]
    summary = summarize(records, 1, 1.0)
    counts = (
        summary.refused,
        summary.never_started,
        summary.cancelled_before_start,
        summary.unfinished,
        summary.ran,
        summary.jobs,
    )
    assert counts == (1, 2, 1, 1, 1, 6)
    none = summarize(records[1:3], 1, 1.0)
    assert (none.mean_wait, none.wait_p99, none.mean_bounded_slowdown) == (None, None, None)
