"""The reference implementation of plan-based scheduling against timelines worked out by hand."""

from random import Random

import pytest
from planned import Hold, Work, best_score, place, plan, plan_based, score, search

# id, submit, run, requested time, processors, burst buffer
FOUR = [
    Work(1, 0, 10, 10, 2, 2),
    Work(2, 1, 10, 10, 3, 6),
    Work(3, 2, 20, 20, 1, 6),
    Work(4, 3, 5, 5, 1, 1),
]


def test_small_waits_are_all_that_counts_in_plan_1_and_long_ones_count_more_in_plan_2():
    assert plan_based(FOUR, (4, 10), power=1) == {1: 0, 2: 22, 3: 2, 4: 3}
    assert plan_based(FOUR, (4, 10), power=2) == {1: 0, 2: 10, 3: 20, 4: 3}


def test_a_job_may_be_planned_before_one_that_precedes_it():
    running = [Hold(0, 10, 2, 0)]
    order = [Work(1, 0, 5, 5, 4), Work(2, 0, 10, 10, 2)]
    assert plan(running, (4, 0), order, 0) == {1: 10, 2: 0}


def test_intervals_are_half_open():
    assert place([Hold(0, 10, 4, 0)], (4, 0), Work(1, 0, 5, 5, 4), 3).start == 10


def test_annealing_never_finds_better_than_the_best_of_all_orders_and_often_finds_that():
    rng = Random(7)
    found_best = 0
    for case in range(20):
        jobs = [
            Work(i, i, d := rng.randint(1, 20), d, rng.randint(1, 8), rng.randint(0, 8))
            for i in range(6)
        ]
        starts = search([], (8, 8), jobs, 6, 2, Random(case))
        best = best_score([], (8, 8), jobs, 6, 2)
        assert score(jobs, starts, 2) >= best
        found_best += score(jobs, starts, 2) == best
    assert found_best >= 15


@pytest.mark.parametrize("power", [1, 2, 3])
def test_nobody_is_over_committed_and_everybody_starts(power):
    rng = Random(power)
    jobs = [
        Work(i, rng.randint(0, 200), r := rng.randint(1, 40), r + 5, rng.randint(1, 8), i % 9)
        for i in range(60)
    ]
    starts = plan_based(jobs, (8, 8), power)
    assert set(starts) == {job.id for job in jobs}
    for instant in set(starts.values()):
        there = [job for job in jobs if starts[job.id] <= instant < starts[job.id] + job.run]
        assert sum(job.procs for job in there) <= 8
        assert sum(job.other for job in there) <= 8
        assert all(starts[job.id] >= job.submit for job in jobs)
