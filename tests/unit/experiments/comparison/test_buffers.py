"""Burst buffers drawn for jobs. Their sums for the real traces are in the tests of workloads."""

import pytest

from understudy.experiments.comparison.buffers import (
    KTH_CAPACITY_MB,
    SCENARIOS,
    kth_buffers,
    theta_buffers,
)
from understudy.experiments.trace import TraceJob


def jobs(*widths, limit=3600):
    return [TraceJob(number, 0, 10, procs, limit, 10) for number, procs in enumerate(widths, 1)]


def test_all_processors_have_the_same_and_none_more_than_the_storage_nodes_hold():
    widths = [1, 2, 4, 8, 16, 32, 64, 96] * 200
    drawn = kth_buffers(jobs(*widths), 1)
    for procs, amount in zip(widths, drawn, strict=True):
        assert 100 * procs <= amount <= KTH_CAPACITY_MB
        # as many processors as there are on a storage node of 40 GB, 12 times
        assert procs <= 12 * (40_000 // (amount / procs - 0.5 / procs))


def test_short_jobs_have_little_and_draw_nothing():
    short = jobs(3, limit=120)
    assert kth_buffers(short, 1) == [30]
    assert kth_buffers([*short, *jobs(5)], 1)[1:] == kth_buffers(jobs(5), 1)


def test_the_mean_is_that_of_the_model():
    # mean of the log-normal 4,804,884 KiB = 4,920 MB; the bounds make it a little less
    drawn = kth_buffers(jobs(*[1] * 20_000), 7)
    assert 4_200 < sum(drawn) / len(drawn) < 4_920


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_has_its_share_and_range(scenario):
    share, least, most = SCENARIOS[scenario]
    drawn = theta_buffers(jobs(*[1] * 4_000), 3, scenario)
    some = [each for each in drawn if each]
    assert share - 0.03 < len(some) / 4_000 < share + 0.03
    assert least * 10**6 <= min(some) < max(some) <= most * 10**6
    middle = sorted(some)[len(some) // 2] / 10**6
    assert 0.85 < middle / (least * most) ** 0.5 < 1.15  # log-uniform


def test_a_seed_gives_the_same_each_time_and_another_something_else():
    some = jobs(*range(1, 50))
    assert kth_buffers(some, 1) == kth_buffers(some, 1) != kth_buffers(some, 2)
    assert theta_buffers(some, 1, "S1") != theta_buffers(some, 2, "S1")
