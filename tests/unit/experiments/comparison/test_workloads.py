"""The traces that cells replay."""

import hashlib
from pathlib import Path

import pytest

from understudy.experiments.comparison.cells import Drawn
from understudy.experiments.comparison.comparison import ComparisonError, Workload
from understudy.experiments.comparison.workloads import make
from understudy.experiments.swf import read_swf, write_swf
from understudy.experiments.trace import TraceJob

REAL = Path(__file__).parents[5] / "shared" / "traces"


@pytest.fixture
def traces(tmp_path):
    """A folder with a trace of 40 jobs, one every 25 s; the tenth is too wide for 8 processors."""
    some = [
        TraceJob(n, 25 * n, 50, 9 if n == 10 else 1 + n % 8, 3600, 50, user=n) for n in range(1, 41)
    ]
    write_swf(tmp_path / "forty.swf", some, {"MaxNodes": "16", "MaxProcs": "16"})
    return tmp_path


def workload(**more):
    return Workload("forty", "forty.swf", **more)


def made(traces, drawn):
    return make(drawn, traces, traces / "made")


def test_what_does_not_fit_is_left_out_and_the_rest_numbered_from_one(traces):
    found = made(traces, Drawn(workload(processors=8), 1, 0, 0))
    jobs = read_swf(found.path).jobs
    assert (found.jobs, found.left_out, found.processors, found.capacity) == (39, 1, 8, 0)
    assert [job.id for job in jobs] == list(range(1, 40))
    assert (jobs[0].submit, jobs[-1].submit) == (0, 975)
    assert found.sha256 == hashlib.sha256(found.path.read_bytes()).hexdigest()
    assert read_swf(found.path).machine().nodes == 8


def test_the_machine_is_the_headers_if_nothing_else_is_said(traces):
    found = made(traces, Drawn(workload(), 1, 0, 0))
    assert (found.processors, found.jobs) == (16, 40)


def test_times_are_scaled_and_cut_to_whole_seconds(traces):
    found = made(traces, Drawn(workload(scale=0.5), 1, 0, 4))
    assert [job.submit for job in read_swf(found.path).jobs] == [0, 12, 25, 37]


def test_parts_are_equal_periods_that_together_are_the_whole(traces):
    shared = workload(kind="kth-bb", parts_from=100, part_length=300)
    whole = read_swf(made(traces, Drawn(shared, 3, 0, 0)).path).jobs
    parts = [read_swf(made(traces, Drawn(shared, 3, part, 0)).path).jobs for part in (1, 2, 3)]
    assert [len(part) for part in parts] == [12, 12, 12]
    assert parts[1][0].submit == 0
    # a job asks for the same, whether it is replayed in the whole or in a part
    assert [job.extra for part in parts for job in part] == [job.extra for job in whole[4:]]


def test_the_header_says_the_capacity_of_the_buffer(traces):
    found = made(traces, Drawn(workload(kind="kth-bb"), 1, 0, 0))
    assert found.capacity == 480_000
    assert read_swf(found.path).header["BurstBuffer"] == "480000"


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (Drawn(workload(), 1, 1, 0), "no part_length"),
        (Drawn(workload(part_length=10, parts_from=9000), 1, 1, 0), "no job in part 1"),
        (Drawn(workload(kind="theta-bb", scenario="S9"), 1, 0, 0), "'S9' is none of S1, S2"),
        (Drawn(Workload("gone", "gone.swf"), 1, 0, 0), "gone.swf: No such file.*--traces"),
    ],
)
def test_what_cannot_be_made_is_named(traces, drawn, said):
    with pytest.raises(ComparisonError, match=said):
        made(traces, drawn)


def sum_of(drawn, tmp_path):
    if not (REAL / drawn.workload.trace).exists():
        pytest.skip(f"{drawn.workload.trace} is a third party's, and not at hand")
    jobs = read_swf(make(drawn, REAL, tmp_path).path).jobs
    return len(jobs), [int(job.extra[0]) for job in jobs]


def test_the_buffers_of_kth_are_those_that_everybody_draws(tmp_path):
    kth = Workload("kth", "KTH-SP2-1996.swf.gz", "kth-bb")
    count, drawn = sum_of(Drawn(kth, 1, 0, 0), tmp_path)
    assert count == 28_467
    assert drawn[:8] == [294478, 206579, 480000, 457143, 28277, 52083, 15202, 32801]
    assert sum(drawn) == 839_186_556


@pytest.mark.parametrize(("scenario", "total"), [("S1", 841250923916), ("S4", 1793713473063)])
def test_the_buffers_of_theta_are_those_that_everybody_draws(tmp_path, scenario, total):
    theta = Workload("theta", "ALCF-Theta-2022.swf.gz", "theta-bb", scenario=scenario)
    count, drawn = sum_of(Drawn(theta, 1, 0, 0), tmp_path)
    assert (count, sum(drawn)) == (23_911, total)
