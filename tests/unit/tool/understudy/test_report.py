"""`understudy report` on folders of runs."""

import pytest
from typer.testing import CliRunner

from understudy.experiments.metrics import summarize
from understudy.experiments.records import JobRecord
from understudy.experiments.run_folder import write_run_folder
from understudy.tool.understudy.app import app_with

RECORDS = [JobRecord(1, 0, 0, 100, "COMPLETED", 2, "n[1-2]", 120)]


@pytest.fixture
def folders(tmp_path):
    for name in ("a", "b", "c/a"):
        write_run_folder(
            tmp_path / name,
            RECORDS,
            summarize(RECORDS, 4, 1.5),
            cpus=4,
            config={},
            slurm_conf="NodeName=n[1-4]\n",
        )
    return tmp_path


def run(*words):
    return CliRunner().invoke(app_with("report"), ["report", *map(str, words)])


def test_the_report_of_a_folder_is_made_once_more(folders):
    page = folders / "a" / "report.html"
    page.unlink()
    result = run(folders / "a")
    assert (result.exit_code, result.output) == (0, f"{page}\n")
    assert "<title>a</title>" in page.read_text()


def test_a_second_run_is_shown_beside_the_first(folders):
    out = folders / "both.html"
    assert run(folders / "a", folders / "b", "--out", out).exit_code == 0
    assert "<title>a beside b</title>" in out.read_text()
    before = (folders / "a" / "report.html").read_text()
    assert run(folders / "a", folders / "b").exit_code == 0
    assert (folders / "a" / "beside.html").read_text() == out.read_text()
    assert (folders / "a" / "report.html").read_text() == before


def test_runs_of_one_name_are_told_apart_by_their_paths(folders):
    out = folders / "both.html"
    assert run(folders / "a", folders / "c" / "a", "--out", out).exit_code == 0
    assert f"<title>{folders}/a beside {folders}/c/a</title>" in out.read_text()


def test_what_cannot_be_read_or_written_is_said_in_a_line(folders):
    (folders / "b" / "jobs.csv").write_text("")
    jobs = folders / "c" / "a" / "jobs.csv"
    jobs.write_text(jobs.read_text().replace("n[1-2]", "n[1-"))
    for words, said in (
        ([folders / "none"], f"{folders}/none/jobs.csv: No such file or directory"),
        ([folders / "b"], f"{folders}/b/jobs.csv: empty"),
        (
            [folders / "c" / "a"],
            f"{folders}/c/a/jobs.csv line 2: nodes: Invalid hostlist: n[1-: unb",
        ),
        ([folders / "a", "--out", folders / "no" / "x"], f"{folders}/no/x: No such file or dir"),
        ([folders / "a", "--out", folders / "b"], f"{folders}/b: Is a directory"),
        ([folders / "a", "--out", "/"], "/: Is a directory"),
    ):
        result = run(*words)
        assert result.exit_code == 1
        (line,) = result.output.splitlines()
        assert line.startswith("understudy report: error: ")
        assert said in line


def test_a_job_that_starts_before_it_is_submitted_is_drawn(folders):
    jobs = folders / "a" / "jobs.csv"
    jobs.write_text(jobs.read_text().replace("1,0,0,100,", "1,7,0,100,"))
    assert run(folders / "a").exit_code == 0
