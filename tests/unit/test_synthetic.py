import pytest

from understudy.experiments.synthetic import synthetic


def test_the_same_seed_gives_the_same_jobs():
    assert synthetic(seed=4) == synthetic(seed=4) != synthetic(seed=5)


def test_jobs_are_short_fit_half_the_machine_and_fill_two_days():
    jobs = synthetic()
    assert len(jobs) == 3_000
    assert all(30 <= job.run <= 3_600 and job.run <= job.req and job.req % 60 == 0 for job in jobs)
    assert all(1 <= job.procs <= 2_000 for job in jobs)
    assert 47 * 3600 < jobs[-1].submit <= 48 * 3600
    assert jobs[0].submit == 0


def test_numbers_without_sense_are_refused():
    with pytest.raises(ValueError, match="a workload needs"):
        synthetic(jobs=0)
