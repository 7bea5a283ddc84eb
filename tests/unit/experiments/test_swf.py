"""Traces in the Standard Workload Format."""

import gzip
from pathlib import Path

import pytest

from understudy.experiments.swf import (
    NO_PROCESSORS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    parse_swf,
    read_swf,
    write_swf,
)
from understudy.experiments.trace import BadLine, TraceError, TraceJob

SHARED = Path(__file__).parents[3].parent / "shared"


def line(job=1, submit=0, run=10, allocated=4, requested=4, limit=60, more=""):
    return (
        f"{job} {submit} -1 {run} {allocated} -1 -1 {requested} {limit} 512 1 7 8 9 2 3 -1 "
        f"-1 {more}"
    )


def test_a_line_becomes_a_job_with_all_that_it_says():
    (job,) = parse_swf([line(job=77, submit=5, more="{a,b} queue")]).jobs
    assert job == TraceJob(
        1, 0, 10, 4, 60, 10, 77, 512, 1, 7, 8, 9, 2, 3, -1, -1, ("{a,b}", "queue")
    )


def test_requested_processors_win_over_allocated_ones():
    jobs = parse_swf([line(allocated=8, requested=4), line(allocated=8, requested=-1)]).jobs
    assert [job.procs for job in jobs] == [4, 8]


def test_a_run_is_cut_at_the_requested_time_and_the_raw_run_is_kept():
    (job,) = parse_swf([line(run=100, limit=60)]).jobs
    assert (job.run, job.req, job.raw_run) == (60, 60, 100)


def test_without_a_requested_time_the_run_time_is_the_limit():
    (job,) = parse_swf([line(run=100, limit=-1)]).jobs
    assert (job.run, job.req) == (100, 100)


def test_jobs_that_cannot_be_replayed_are_counted_by_reason():
    trace = parse_swf(
        [line(allocated=0, requested=-1), line(run=0), line(run=-1), line(submit=-1), line()]
    )
    assert len(trace.jobs) == 1
    assert trace.dropped == {NO_PROCESSORS: 1, NO_RUN_TIME: 2, NO_SUBMIT_TIME: 1}


def test_jobs_that_were_cancelled_before_they_ran_are_counted_as_such():
    cancelled = "1 0 -1 0 -1 -1 -1 -1 -1 512 5 7 8 9 2 3 -1 -1"
    assert parse_swf([cancelled, line()]).dropped == {"cancelled before it ran": 1}


def test_jobs_are_ordered_by_submit_and_id_renumbered_and_begin_at_zero():
    trace = parse_swf(
        [
            line(job=9, submit=300),
            line(job=3, submit=200),
            line(job=2, submit=300),
            line(job=1, submit=50, run=0),
        ]
    )
    assert [(job.id, job.original_id, job.submit) for job in trace.jobs] == [
        (1, 3, 0),
        (2, 2, 100),
        (3, 9, 100),
    ]
    assert trace.zero == 200


def test_fractions_are_rounded():
    (job,) = parse_swf([line(run="9.6", submit="3.0")]).jobs
    assert job.run == 10


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 2 3", "3 columns where 18 are expected"),
        (line(run="long"), "column 4 is not a number: 'long'"),
        (line(run="nan"), "column 4 is not a number: 'nan'"),
        (line(run="1e999"), "column 4 is not a number: '1e999'"),
        (line(run="9" * 5000), "column 4 is not a number: '" + "9" * 40 + "'"),
        (line(submit=10**13), "column 2 is out of range: 10000000000000"),
        ("\x00\x01 garbage", "2 columns where 18 are expected"),
    ],
)
def test_a_bad_line_is_named_and_the_others_are_read(text, why):
    trace = parse_swf(["; Version: 2", text, line()])
    assert trace.bad_lines == [BadLine(2, why)]
    assert trace.bad_line_count == 1
    assert len(trace.jobs) == 1


def test_only_the_first_bad_lines_are_kept_but_all_are_counted():
    trace = parse_swf(["x"] * 1000)
    assert (len(trace.bad_lines), trace.bad_line_count) == (100, 1000)


def test_strict_stops_at_the_first_bad_line():
    with pytest.raises(TraceError, match="log line 2: 1 columns where 18 are expected"):
        parse_swf([line(), "x"], strict=True, name="log")


def test_header_fields_are_read_wherever_they_stand():
    trace = parse_swf(
        [
            "; UnixStartTime: 843480031",
            ";MaxProcs:100",
            "; Queue: 0 a",
            line(),
            "; Queue: 1 b",
            "; MaxNodes: many",
            "; free text",
        ]
    )
    assert (trace.unix_start_time, trace.max_procs, trace.max_nodes) == (843480031, 100, None)
    assert trace.header["Queue"] == "0 a\n1 b"


def test_an_empty_trace_has_no_jobs():
    assert parse_swf([]).jobs == []


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_what_is_written_is_read_again(tmp_path, name):
    jobs = parse_swf([line(job=1, more="x y"), line(job=2, submit=10, run=100, limit=60)]).jobs
    write_swf(tmp_path / name, jobs, {"MaxProcs": "8", "Note": "one\ntwo"})
    trace = read_swf(tmp_path / name, strict=True)
    assert [(j.submit, j.run, j.raw_run, j.procs, j.req, j.extra) for j in trace.jobs] == [
        (j.submit, j.run, j.raw_run, j.procs, j.req, j.extra) for j in jobs
    ]
    assert trace.header == {"MaxProcs": "8", "Note": "one\ntwo"}


def test_the_same_jobs_give_the_same_bytes(tmp_path):
    jobs = parse_swf([line()]).jobs
    for name in ("a.swf.gz", "b.swf.gz"):
        write_swf(tmp_path / name, jobs)
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()


def test_gzip_is_recognised_by_content_and_damage_is_named(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(gzip.compress(line().encode()))
    assert len(read_swf(path).jobs) == 1
    path.write_bytes(gzip.compress(line().encode())[:-9])
    with pytest.raises(TraceError, match=r"log.txt: damaged gzip file"):
        read_swf(path)


@pytest.mark.parametrize(
    ("name", "jobs", "dropped"),
    [
        ("oracles/kth-sp2-normalised.swf.gz", 28_481, 0),
        ("traces/KTH-SP2-1996.swf.gz", 28_481, 0),
        ("traces/ALCF-Theta-2022.swf.gz", 23_911, 0),
        ("traces/LLNL-Atlas-2006-2.1-cln.swf.gz", 36_600, 7_178),
        ("traces/CEA-Curie-sample.swf.gz", 29_998, 0),
        ("traces/MetaCentrum-wagap-2013.swf.gz", 17_898, 2),
        ("traces/BBSched-theta-sample.swf.gz", 100, 0),
    ],
)
def test_real_logs_are_read_without_a_bad_line(name, jobs, dropped):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"third-party traces are not part of the repository; looked for {path}")
    trace = read_swf(path, strict=True)
    assert (len(trace.jobs), trace.dropped.total()) == (jobs, dropped)


def test_the_raw_kth_log_in_normal_form_is_the_normalised_one():
    raw, normalised = (
        SHARED / "traces/KTH-SP2-1996.swf.gz",
        SHARED / "oracles/kth-sp2-normalised.swf.gz",
    )
    if not raw.exists() or not normalised.exists():
        pytest.skip(f"third-party traces are not part of the repository; looked in {SHARED}")
    first, second = (
        [(j.id, j.submit, j.run, j.procs, j.req) for j in read_swf(path).jobs]
        for path in (raw, normalised)
    )
    assert first == second


POOLED = "; BurstBuffer: 10, 20\n"
LINE = "1 0 -1 5 2 -1 -1 2 5 -1 1 1 1 -1 1 -1 -1 -1"


def test_columns_behind_the_18th_are_units_of_what_the_header_counts():
    trace = parse_swf([POOLED, LINE + " 4 -1 9", LINE + " 3", LINE])
    assert trace.pools == (("bb1", 10), ("bb2", 20))
    assert [job.units(2) for job in trace.jobs] == [(4, 0), (3, 0), (0, 0)]


def test_one_pool_is_called_bb_and_without_a_header_there_is_none():
    assert parse_swf(["; BurstBuffer: 480000", LINE]).pools == (("bb", 480_000),)
    assert parse_swf([LINE + " 4"]).pools == ()


def test_units_that_are_no_numbers_are_a_bad_line_only_where_they_are_counted():
    trace = parse_swf([POOLED, LINE + " 4 much"])
    assert [(bad.number, bad.why) for bad in trace.bad_lines] == [
        (2, "column 20 is not a number of units: 'much'")
    ]
    assert len(parse_swf([LINE + " 4 much"]).jobs) == 1


@pytest.mark.parametrize("text", ["many", "10, -1", "1, ,2", "9999999999"])
def test_capacities_that_are_none_are_named(text):
    with pytest.raises(TraceError, match=r"header BurstBuffer: .*: not capacities"):
        parse_swf([f"; BurstBuffer: {text}", LINE])
