"""`understudy compare` of runs."""

import json

import pytest
from outcomes_harness import written
from typer.testing import CliRunner

from understudy.experiments.records import JobRecord
from understudy.tool.understudy.app import app_with


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, wait in (("a.csv", 5), ("b.csv", 65)):
        found = [
            JobRecord(n, n, n + wait, n + 99, "COMPLETED", 1, "n1", 60, f"j{n}", user="[bold]u")
            for n in (1, 2)
        ]
        written(tmp_path / name, found)
    return tmp_path


def compare(*words):
    return CliRunner().invoke(app_with("compare"), ["compare", *words])


def test_it_says_what_the_difference_is(folder):
    ran = compare("a.csv", "b.csv")
    assert ran.exit_code == 0, ran.output
    assert "2 wait longer in B, 0 shorter, 0 as long" in ran.output
    assert "job j1 of [bold]u, 1 CPU" in ran.output
    assert [path.name for path in folder.iterdir() if path.suffix != ".csv"] == []


def test_it_says_where_jobs_are_matched_by_their_places(folder):
    said = "Jobs are matched by their places: no id is in all runs"
    assert said not in compare("a.csv", "b.csv").output
    written(folder / "c.csv", [JobRecord(1, 0, 5, 9, "COMPLETED", 1, "n1", 60, "other")])
    assert said in compare("a.csv", "c.csv").output


def test_files_are_written_where_out_says(folder):
    ran = compare("a.csv", "b.csv", "--out", "new/out", "--first", "0")
    assert ran.exit_code == 0, ran.output
    assert (folder / "new" / "out" / "compare.html").exists()
    assert "job j1" not in ran.output


def test_json_is_all_that_is_printed_if_asked_for(folder):
    ran = compare("a.csv", "b.csv", "--json")
    assert json.loads(ran.output)["against"][0]["wait"]["difference"]["mean"] == 60.0
    assert folder.exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.csv"], 2, "expected 2 to 26 runs, not 1; comparisons of policies end with .toml"),
        (["a.csv", "none"], 1, "error: none: No such file or directory"),
        (["a.csv", "."], 1, "error: .: no run: it has neither jobs.csv nor past.csv"),
        (["a.csv", "b.csv", "--full"], 2, "--full is for comparisons of policies"),
        (["a.csv", "two.toml"], 2, "runs cannot be compared with .toml files"),
        (["two.toml", "--json"], 2, "--json is for runs"),
        (["a.csv", "b.csv", "--out", "a.csv"], 1, "error: a.csv: File exists"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(folder, words, code, said):
    ran = compare(*words)
    assert ran.exit_code == code
    assert said in " ".join(ran.output.replace("│", " ").split())
    assert folder.exists()
