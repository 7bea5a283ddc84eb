"""`understudy trace`."""

import stat

import pytest
from typer.testing import CliRunner

from understudy.experiments.swf import read_swf
from understudy.tool.understudy.app import app_with

LINES = [
    "; MaxNodes: 8",
    "; MaxProcs: 8",
    "; UnixStartTime: 1000",
    *(
        f"{n} {n * 60} -1 {100 + n} 2 -1 -1 2 {300 + n} -1 1 {n % 3} {n % 3} {n % 2} 1 1 -1 -1"
        for n in range(1, 41)
    ),
]


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "small.swf"
    found.write_text("\n".join(LINES) + "\n")
    return found


def run(*words):
    return CliRunner().invoke(app_with("trace"), ["trace", *map(str, words)])


def test_show_tells_the_load_and_draws_it(path, tmp_path):
    result = run("show", path, "--out", tmp_path / "load.svg")
    assert result.exit_code == 0, result.output
    assert "jobs                   40\n" in result.output
    assert "offered load           0.515\n" in result.output
    assert "8 nodes, 8 processors" in result.output
    assert (tmp_path / "load.svg").read_text().count("<path") == 2
    assert "offered load           0.25" in run("show", path, "--nodes", "16").output


def test_scaled_clipped_and_merged_traces_can_be_read_again(path, tmp_path):
    out = tmp_path / "out.swf.gz"
    assert run("scale", path, "--load", "1.03", "--out", out).exit_code == 0
    assert "offered load           1.03" in run("show", out).output
    assert run("scale", path, "--thin", "0.5", "--seed", "3", "--out", out).exit_code == 0
    assert len(read_swf(out).jobs) == 20
    assert run("scale", path, "--run-times", "2", "--out", out).exit_code == 0
    assert read_swf(out).jobs[0].run == 202
    assert run("scale", path, "--interarrival", "2", "--out", out).exit_code == 0
    assert read_swf(out).jobs[1].submit == 120
    assert run("clip", path, "--from", "5m", "--to", "10m", "--out", out).exit_code == 0
    assert [job.original_id for job in read_swf(out).jobs] == [6, 7, 8, 9, 10]
    assert run("merge", path, path, "--out", out).exit_code == 0
    assert len({job.user for job in read_swf(out).jobs}) == 6


def test_anonymised_traces_have_the_same_numbers_under_the_same_key(path, tmp_path):
    key, one, other = tmp_path / "key", tmp_path / "one.swf", tmp_path / "other.swf"
    for out in (one, other):
        assert run("anonymise", path, "--key", key, "--out", out).exit_code == 0
    assert one.read_bytes() == other.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    users = {job.user for job in read_swf(one).jobs}
    assert len(users) == 3
    assert users.isdisjoint({0, 1, 2})


def test_anonymised_traces_keep_units_of_further_columns_and_no_names(path, tmp_path):
    out = tmp_path / "out.swf"
    named = "\n".join(f"{line} 77 {{node1,node2}} q_ada" for line in LINES[3:])
    for header, kept in ((["; BurstBuffer: 500"], ("77",)), ([], ())):
        path.write_text("\n".join((*LINES[:3], *header, named)))
        assert run("anonymise", path, "--key", tmp_path / "key", "--out", out).exit_code == 0
        assert {job.extra for job in read_swf(out).jobs} == {kept}


def test_what_cannot_be_is_one_line_and_writes_nothing(path, tmp_path):
    out = tmp_path / "out.swf"
    (tmp_path / "short").write_text("abc")
    (tmp_path / "empty.swf").write_text("")
    (tmp_path / "bad.swf").write_text("1 2 3\n")
    (tmp_path / "unknown.swf").write_text("1 0" + 16 * " -1" + "\n")
    (tmp_path / "undated.swf").write_text("\n".join(LINES[-2:]))
    for words, said in (
        (("show", tmp_path / "none.swf"), "none.swf: No such file"),
        (("show", tmp_path / "empty.swf"), "no job that can be replayed"),
        (("show", tmp_path / "bad.swf"), "line 1: 3 columns"),
        (("show", tmp_path), "this is a folder"),
        (("scale", path, "--thin", "2", "--out", out), "at most 1"),
        (("scale", path, "--load", "9", "--by", "thinning", "--out", out), "interarrival instead"),
        (("clip", path, "--from", "9d", "--out", out), "no job is submitted"),
        (("clip", path, "--out", tmp_path / "none" / "out.swf"), "No such file"),
        (("anonymise", path, "--key", tmp_path / "short", "--out", out), "at least 16"),
        (("anonymise", path, "--key", tmp_path / "none" / "key", "--out", out), "No such file"),
        (("show", tmp_path / "none.swf.gz"), "none.swf.gz: No such file"),
        (("show", tmp_path / "unknown.swf"), "no job that can be replayed; 1 with no processors"),
        (("scale", path, "--interarrival", "1e300", "--out", out), "longer than a trace can say"),
        (("scale", path, "--run-times", "1e305", "--out", out), "longer than a trace can say"),
        (("clip", path, "--out", tmp_path), f"--out {tmp_path}: Is a directory"),
        (("clip", path, "--out", "/"), "--out /: Is a directory"),
        (("show", path, "--out", "."), "--out .: Is a directory"),
        (
            ("merge", path, tmp_path / "undated.swf", "--by-date", "--out", out),
            f"{path}, {tmp_path}/undated.swf: trace 2 does not say when it began",
        ),
    ):
        result = run(*words)
        assert result.exit_code == 1
        assert said in result.output
        assert result.output.count("\n") == 1
    assert run("scale", path, "--out", out).exit_code == 2
    assert run("clip", path, "--from", "soon", "--out", out).exit_code == 2
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))
