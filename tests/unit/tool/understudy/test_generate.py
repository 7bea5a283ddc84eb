"""`understudy generate buffers`."""

import pytest
from typer.testing import CliRunner

from understudy.experiments.swf import read_swf, write_swf
from understudy.experiments.trace import TraceJob
from understudy.tool.understudy.generate import app


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.swf"
    jobs = [TraceJob(i, 10 * i, 50, 1 + 40 * (i == 3), 60, 50) for i in range(1, 4)]
    write_swf(path, jobs, {"UnixStartTime": "1000"})
    return path


def run(*words):
    return CliRunner().invoke(app, ["buffers", *map(str, words)])


def test_a_trace_with_buffers_is_written_and_can_be_read(source, tmp_path):
    out = tmp_path / "out.swf.gz"
    result = run("theta", source, "--set", "S4", "--seed", "2", "--scale", "0.5", "--out", out)
    assert result.exit_code == 0, result.output
    made = read_swf(out)
    assert made.unix_start_time == 1000
    assert (made.max_nodes, made.max_procs) == (4_360, 4_360)
    assert made.pools == (("bb", 625_000_000),)
    assert [job.submit for job in made.jobs] == [0, 5, 10]
    assert all(len(job.units(1)) == 1 for job in made.jobs)


def test_the_same_words_write_the_same_bytes(source, tmp_path):
    for name in ("a", "b"):
        assert run("kth", source, "--out", tmp_path / f"{name}.swf.gz").exit_code == 0
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()


def test_who_does_not_fit_is_counted(source, tmp_path):
    result = run("kth", source, "--out", tmp_path / "out.swf")
    assert "3 jobs, 0 that are too large left out" in result.output


def test_a_trace_that_is_not_there_is_said(tmp_path):
    result = run("kth", tmp_path / "none.swf", "--out", tmp_path / "out.swf")
    assert result.exit_code == 1
    assert "none.swf: No such file or directory" in result.output


def test_the_sets_of_theta_are_others(source, tmp_path):
    for name in ("S1", "S4"):
        assert run("theta", source, "--set", name, "--out", tmp_path / f"{name}.swf").exit_code == 0
    one, other = (read_swf(tmp_path / f"{name}.swf") for name in ("S1", "S4"))
    assert [job.extra for job in one.jobs] != [job.extra for job in other.jobs]
    assert "theta S1, seed 1" in one.header["Note"]


def test_a_scale_of_nothing_is_refused(source, tmp_path):
    result = run("kth", source, "--scale", "0", "--out", tmp_path / "out.swf")
    assert result.exit_code == 2
