"""The workload model of Lublin and Feitelson."""

import itertools
from collections import Counter
from statistics import mean

import pytest

from understudy.experiments.lublin import (
    BATCH,
    BATCH_SHARE,
    INTERACTIVE,
    LONGEST_RUN_S,
    ROUND_LIMITS_S,
    generate,
)
from understudy.experiments.transform import offered_load


@pytest.fixture(scope="module")
def jobs():
    return generate(jobs=5_000, nodes=256, days=60, load=0.6, seed=7)


def test_the_same_seed_gives_the_same_jobs_and_another_one_others(jobs):
    assert generate(jobs=5_000, nodes=256, days=60, load=0.6, seed=7) == jobs
    assert generate(jobs=5_000, nodes=256, days=60, load=0.6, seed=8) != jobs


def test_count_span_and_load_are_as_asked_for(jobs):
    assert len(jobs) == 5_000
    assert jobs[-1].submit == pytest.approx(60 * 86_400, rel=0.03)
    assert offered_load(jobs, 256) == pytest.approx(0.6, rel=0.03)


def test_jobs_are_in_normal_form(jobs):
    assert [job.id for job in jobs] == list(range(1, 5_001))
    assert jobs[0].submit == 0
    assert all(a.submit <= b.submit for a, b in itertools.pairwise(jobs))
    assert all(
        1 <= job.procs <= 256 and 1 <= job.run <= job.req and job.raw_run == job.run for job in jobs
    )


def test_limits_are_values_that_users_type(jobs):
    assert {job.req for job in jobs} <= set(ROUND_LIMITS_S)
    at_limit = sum(job.run == job.req for job in jobs)
    assert 0.05 < at_limit / len(jobs) < 0.25
    assert max(ROUND_LIMITS_S) == LONGEST_RUN_S


def test_serial_jobs_and_powers_of_two_have_their_published_shares(jobs):
    batch = [job.procs for job in jobs if job.queue == BATCH]
    assert len(batch) / len(jobs) == pytest.approx(BATCH_SHARE, abs=0.001)
    assert batch.count(1) / len(batch) == pytest.approx(0.2927, abs=0.03)
    assert sum(p > 1 and p & (p - 1) == 0 for p in batch) / len(batch) == pytest.approx(
        0.6686, abs=0.04
    )


def test_interactive_jobs_are_smaller_and_shorter(jobs):
    by_class = {
        queue: [job for job in jobs if job.queue == queue] for queue in (BATCH, INTERACTIVE)
    }
    assert mean(j.procs for j in by_class[INTERACTIVE]) < mean(j.procs for j in by_class[BATCH])
    assert mean(j.run for j in by_class[INTERACTIVE]) < mean(j.run for j in by_class[BATCH])


def test_larger_batch_jobs_run_longer(jobs):
    small = [job.run for job in jobs if job.queue == BATCH and job.procs <= 2]
    large = [job.run for job in jobs if job.queue == BATCH and job.procs >= 128]
    assert mean(large) > mean(small)


def test_more_jobs_arrive_in_the_afternoon_than_before_dawn(jobs):
    hours = Counter(job.submit // 3600 % 24 for job in jobs)
    assert sum(hours[h] for h in range(12, 18)) > 3 * sum(hours[h] for h in range(6))


@pytest.mark.parametrize("change", [{"jobs": 0}, {"nodes": 1}, {"days": 0}, {"load": -1}])
def test_numbers_without_sense_are_refused(change):
    with pytest.raises(ValueError, match="a workload needs"):
        generate(**{"jobs": 10, "nodes": 8, "days": 1, "load": 0.5, "seed": 1, **change})


def test_a_load_that_the_jobs_cannot_have_is_refused():
    with pytest.raises(ValueError, match="processor seconds"):
        generate(jobs=3, nodes=1024, days=365, load=0.9, seed=1)


@pytest.mark.parametrize("nodes", [2, 3, 16, 16_384])
def test_machines_of_any_size_get_jobs_that_fit(nodes):
    assert all(
        1 <= job.procs <= nodes for job in generate(jobs=500, nodes=nodes, days=5, load=0.3, seed=3)
    )
