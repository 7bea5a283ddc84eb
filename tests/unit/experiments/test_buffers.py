"""Burst buffers drawn for traces that have none."""

import pytest
from scheduling_harness import SHARED

from understudy.experiments.buffers import THETA_SETS, closer, kth, theta
from understudy.experiments.swf import read_swf
from understudy.experiments.trace import TraceJob


def trace(name):
    path = SHARED / "traces" / name
    if not path.exists():
        pytest.skip(f"{name} is not beside this repository")
    return read_swf(path).jobs


def amounts(made):
    return [int(job.extra[0]) for job in made.jobs]


def job(number, procs=1, req=3600):
    return TraceJob(number, number, req, procs, req, req)


def test_buffers_of_kth_have_the_sums_that_everybody_has():
    made = kth(trace("KTH-SP2-1996.swf.gz"))
    assert (len(made.jobs), made.processors, made.capacity_mb) == (28_467, 96, 480_000)
    assert amounts(made)[:8] == [294478, 206579, 480000, 457143, 28277, 52083, 15202, 32801]
    assert sum(amounts(made)) == 839_186_556


@pytest.mark.parametrize(("name", "total"), [("S1", 841_250_923_916), ("S4", 1_793_713_473_063)])
def test_buffers_of_theta_have_the_sums_that_everybody_has(name, total):
    made = theta(trace("ALCF-Theta-2022.swf.gz"), 1, THETA_SETS[name])
    assert (made.processors, made.capacity_mb) == (4_360, 625_000_000)
    assert sum(amounts(made)) == total


def test_no_job_of_kth_needs_more_than_its_storage_nodes_have():
    made = kth([job(i, procs=1 + i % 96) for i in range(3_000)], seed=3)
    assert max(amounts(made)) <= made.capacity_mb
    assert all(int(each.extra[0]) >= 100 * each.procs for each in made.jobs)
    assert any(int(each.extra[0]) // each.procs == 40_000 // -(-each.procs // 12)
               for each in made.jobs)  # fmt: skip


def test_short_jobs_of_kth_need_next_to_nothing_and_draw_nothing():
    short, long = job(1, procs=3, req=120), job(2, procs=3)
    assert amounts(kth([short, long]))[0] == 30
    assert amounts(kth([short, long]))[1:] == amounts(kth([long]))


def test_who_is_larger_than_the_machine_is_left_out_and_the_others_are_numbered_anew():
    made = kth([job(1, procs=97), job(2), job(3)])
    assert [each.id for each in made.jobs] == [1, 2]
    assert amounts(made) == amounts(kth([job(2), job(3)]))


@pytest.mark.parametrize("name", ["S1", "S2", "S3", "S4"])
def test_sets_of_theta_ask_as_often_and_as_much_as_they_say(name):
    share = THETA_SETS[name]
    asked = [each for each in amounts(theta([job(i) for i in range(4_000)], 5, share)) if each]
    assert abs(len(asked) / 4_000 - share.of_jobs) < 0.03
    assert share.least_tb * 10**6 <= min(asked) < max(asked) <= share.most_tb * 10**6


def test_the_same_seed_draws_the_same_and_another_seed_others():
    jobs = [job(i) for i in range(50)]
    assert amounts(kth(jobs, 7)) == amounts(kth(jobs, 7)) != amounts(kth(jobs, 8))


def test_jobs_that_come_closer_keep_whole_seconds():
    assert [each.submit for each in closer([job(1), job(2), job(9)], 0.8)] == [0, 1, 7]
