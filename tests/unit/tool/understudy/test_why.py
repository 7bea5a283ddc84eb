"""`understudy why`."""

import json

import pytest
from outcomes_harness import written
from typer.testing import CliRunner

from understudy.experiments.records import JobRecord
from understudy.tool.understudy.app import app_with


@pytest.fixture
def run(tmp_path):
    found = [
        JobRecord(n, n, n + 9, n + 99, "COMPLETED", 2, "n1", 3600, f"3_{n}", user="ada")
        for n in range(1, 6)
    ]
    found.append(JobRecord(6, 0, 9, 20, "COMPLETED", 2, "n1", -1, "7", name="sim", qos="high"))
    return written(tmp_path / "jobs.csv", found)


def why(*words):
    return CliRunner().invoke(app_with("why"), ["why", *map(str, words)])


def test_one_job_is_told_in_full(run):
    ran = why(run, "7")
    assert ran.exit_code == 0, ran.output
    assert ran.output.splitlines() == [
        "job 7: name sim, QOS high, 2 CPUs, no limit",
        "  submitted   00:00:00",
        "  started     00:00:09 on n1, after 9 s",
        "  ended       00:00:20 COMPLETED, after 11 s",
    ]


def test_of_a_large_array_each_task_has_a_line(run):
    ran = why(run, "3")
    assert "job 3: 5 tasks or components" in ran.output
    assert "  3_5          started 00:00:14, after 9 s: COMPLETED" in ran.output


def test_json_has_every_task(run):
    found = json.loads(why(run, "3", "--json").output)
    assert [story["job"] for story in found["stories"]] == ["3_1", "3_2", "3_3", "3_4", "3_5"]
    assert found["zero"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["jobs.csv", "nobody"], "jobs.csv: no job 'nobody'; it has 6, from 3_1 to 7"),
        (["none", "7"], "error: none: No such file or directory"),
    ],
)
def test_what_cannot_be_told_is_said_in_a_line(run, monkeypatch, words, said):
    monkeypatch.chdir(run.parent)
    ran = why(*words)
    assert (ran.exit_code, len(ran.output.splitlines())) == (1, 1)
    assert said in ran.output
