"""Traces made of traces, by hand; tests/property/test_transformations.py has what holds of all."""

import math

import pytest

from understudy.experiments import transform
from understudy.experiments.swf import parse_swf, write_swf
from understudy.experiments.trace import Trace, TraceError, TraceJob

HEADER = {"MaxNodes": "10", "MaxProcs": "10", "UnixStartTime": "1000", "Installation": "here"}


def trace(*rows, header=HEADER):
    """Of (submit, run, procs, req, user)."""
    jobs = [
        TraceJob(n, submit, min(run, req), procs, req, run, 10 + n, user=user, group=user)
        for n, (submit, run, procs, req, user) in enumerate(rows, 1)
    ]
    return Trace(jobs=jobs, header=dict(header))


THREE = trace((0, 100, 10, 200, 1), (50, 20, 5, 40, 2), (100, 60, 10, 50, 1))


def test_half_the_times_between_submissions_is_twice_the_load():
    closer = transform.interarrival(THREE, 0.5)
    assert [job.submit for job in closer.jobs] == [0, 25, 50]
    assert transform.offered_load(closer.jobs, 10) == 2 * transform.offered_load(THREE.jobs, 10)


def test_longer_runs_have_longer_limits_and_one_that_was_ended_by_its_limit_still_is():
    longer = transform.run_times(THREE, 1.5)
    assert [(job.run, job.req, job.raw_run) for job in longer.jobs] == [
        (150, 300, 150),
        (30, 60, 30),
        (75, 75, 90),
    ]


@pytest.mark.parametrize("by", transform.LOAD_BY)
def test_a_load_that_is_asked_for_is_there(by):
    many = trace(*((at * 10, 100 + at % 7, 1 + at % 3, 300, at % 5) for at in range(500)))
    now = transform.offered_load(many.jobs, 10)
    made = transform.to_load(many, 10, now / 2, by, 3)
    assert transform.offered_load(made.jobs, 10) == pytest.approx(now / 2, rel=0.02)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: transform.interarrival(THREE, 0), "above 0"),
        (lambda: transform.thin(THREE, 1.5, 1), "at most 1"),
        (lambda: transform.to_load(THREE, 10, 99, "thinning", 1), "interarrival instead"),
        (lambda: transform.to_load(THREE, 10, 1, "magic", 1), "not by 'magic'"),
        (lambda: transform.to_load(trace((0, 1, 1, 1, 1)), 10, 1, "thinning", 1), "at once"),
        (lambda: transform.clip(THREE, 1_000), "no job is submitted"),
        (lambda: transform.leave_out(THREE, [7]), "no job is of user 7"),
        (lambda: transform.leave_out(THREE, [1, 2]), "no job is left"),
        (lambda: transform.merge([]), "nothing to merge"),
        (lambda: transform.merge([THREE, trace((0, 1, 1, 1, 1), header={})], by_date=True), "2"),
        (lambda: transform.anonymise(trace((0, 1, 1, 1, 2**30)), b"k"), "larger than"),
    ],
)
def test_what_cannot_be_is_said(make, said):
    with pytest.raises(TraceError, match=said):
        make()


def test_a_part_begins_when_its_first_job_does():
    part = transform.clip(THREE, 50, 100)
    assert [(job.id, job.submit, job.original_id) for job in part.jobs] == [(1, 0, 12)]
    assert part.unix_start_time == 1050
    assert [job.original_id for job in transform.clip(THREE, jobs=2).jobs] == [11, 12]


def test_a_shift_moves_the_calendar_alone():
    moved = transform.shift(THREE, 3600)
    assert moved.jobs == THREE.jobs
    assert moved.unix_start_time == 4600
    assert transform.shift(Trace(jobs=THREE.jobs), -5).unix_start_time == 946_684_795


def test_perfect_limits_end_nobody():
    assert [(job.run, job.req, job.raw_run) for job in transform.perfect(THREE).jobs] == [
        (100, 100, 100),
        (20, 20, 20),
        (50, 50, 50),
    ]


def test_merged_traces_keep_jobs_and_users_apart():
    small = trace((10, 5, 1, 9, 1), header={"MaxProcs": "4", "UnixStartTime": "1040"})
    both = transform.merge([small, THREE])
    assert both.max_procs == 10
    assert len({job.original_id for job in both.jobs}) == 4
    assert [job.user for job in both.jobs] == [3, 1, 4, 3]
    dated = transform.merge([small, THREE], by_date=True)
    assert dated.unix_start_time == 1000
    assert [(job.submit, job.user) for job in dated.jobs] == [(0, 3), (50, 1), (50, 4), (100, 3)]


def test_what_says_who_and_where_is_gone_from_the_header():
    assert transform.anonymise(THREE, b"key").header == {
        "MaxNodes": "10",
        "MaxProcs": "10",
        "UnixStartTime": "1000",
    }
    other = transform.anonymise(THREE, b"another").jobs
    assert [job.user for job in other] != [
        job.user for job in transform.anonymise(THREE, b"key").jobs
    ]


def test_jobs_that_are_written_are_called_as_before(tmp_path):
    part = transform.clip(THREE, 50)
    write_swf(tmp_path / "part.swf", transform.written(part), part.header)
    again = parse_swf((tmp_path / "part.swf").read_text().split("\n"))
    assert again.jobs == part.jobs
    assert again.header == part.header
    twice = Trace(jobs=[*part.jobs, *part.jobs])
    assert transform.written(twice) == twice.jobs


def test_jobs_at_once_offer_no_load():
    assert math.isinf(transform.offered_load(trace((0, 1, 1, 1, 1)).jobs, 10))
    assert math.isinf(transform.offered_load([], 10))
