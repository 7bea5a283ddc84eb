"""`understudy generate`."""

import pytest
from typer.testing import CliRunner

from understudy.experiments.swf import read_swf, write_swf
from understudy.experiments.trace import TraceJob
from understudy.experiments.transform import offered_load
from understudy.tool.understudy.app import app_with
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


def test_models_have_users_accounts_load_and_limits(tmp_path):
    for model, most in (("lublin", 0.03), ("synthetic", 0.03)):
        out = tmp_path / f"{model}.swf"
        words = ["generate", model, "--jobs", "300", "--nodes", "20", "--cpus", "4", "--days", "3"]
        words += ["--load", "0.8", "--users", "9", "--accounts", "3", "--qos", "2", "--seed", "5"]
        result = CliRunner().invoke(app_with("generate"), [*words, "--out", str(out)])
        assert result.exit_code == 0, result.output
        trace = read_swf(out)
        assert len(trace.jobs) == 300
        assert (trace.max_nodes, trace.max_procs) == (20, 80)
        assert len({job.user for job in trace.jobs}) > 3
        assert {job.group for job in trace.jobs} <= {1, 2, 3}
        assert {job.queue for job in trace.jobs} == {1, 2}
        assert abs(offered_load(trace.jobs, 80) - 0.8) < 0.8 * most + 0.05
        assert any(job.req > job.run for job in trace.jobs)
        again = CliRunner().invoke(app_with("generate"), [*words, "--perfect", "--out", str(out)])
        assert again.exit_code == 0
        assert all(job.req == job.run for job in read_swf(out).jobs)


def test_a_load_that_no_jobs_make_is_one_line(tmp_path):
    words = ["generate", "lublin", "--jobs", "1", "--nodes", "4096", "--load", "5"]
    result = CliRunner().invoke(app_with("generate"), [*words, "--out", str(tmp_path / "o.swf")])
    assert result.exit_code == 1
    assert result.output.count("\n") == 1
    assert "more jobs or fewer days are needed, or a lower load" in result.output
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_generated_is_said_and_writes_nothing(tmp_path):
    out = tmp_path / "o.swf"
    for model in ("lublin", "synthetic"):
        for words in (["--days", "nan"], ["--days", "0"], ["--load", "-1"], ["--load", "inf"]):
            result = CliRunner().invoke(app, [model, *words, "--out", str(out)])
            assert result.exit_code == 2
            assert "not above 0" in result.output
        for words, said in (
            (["--out", "/"], "--out /: Is a directory"),
            (["--accounts", "3", "--out", str(out)], "say how many users there are"),
            (["--qos", "3", "--out", str(out)], "say how many users there are"),
            (["--out", str(tmp_path / "none" / "o.swf")], "o.swf: No such file or directory"),
        ):
            result = CliRunner().invoke(app, [model, *words])
            assert (result.exit_code, result.output.count("\n")) == (1, 1)
            assert said in result.output
    assert not list(tmp_path.iterdir())


def test_buffers_that_cannot_be_written_name_the_file_to_write(source, tmp_path):
    out = tmp_path / "none" / "o.swf"
    assert f"--out {out}: No such file or directory" in run("kth", source, "--out", out).output
