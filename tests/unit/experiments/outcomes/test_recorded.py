"""Recordings of real Slurm are read as runs are.

Covers: experiments/outcomes/recorded.
"""

import json
from pathlib import Path

import pytest

from understudy.experiments.outcomes.compare import compare
from understudy.experiments.outcomes.read import read_run
from understudy.experiments.run_tables import RunError

RECORDED = Path(__file__).parents[3] / "recorded" / "schedules"
FILES = sorted(RECORDED.glob("*/run1.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_recording_has_all_its_jobs_as_they_were_recorded(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = {each["job"]: each for each in lines if each.get("state", "ARRAY_MASTER")[:5] != "ARRAY"}
    run = read_run(path)
    assert run.kind == "recording"
    assert [record.id for record in run.records] == list(told)
    for record in run.records:
        each = told[record.id]
        start = each.get("start")
        assert (record.start, record.state) == (start, each["state"])
        assert record.end == (None if start is None else each["end"])
        assert record.nodes == ("" if start is None else each["nodes"])


HEADER = {"header": 1, "workload": "w", "program": "slurm 22.05.8", "t0": 1_600_000_000}
JOB = {
    "job": "j013",
    "user": "fu6",
    "state": "COMPLETED",
    "submit": 4,
    "eligible": 4,
    "start": 51,
    "end": 76,
    "nodes": "n[11-12]",
    "cpus": 8,
    "limit": "00:03:00",
    "attempts": [{"at": 51.3, "nodes": "n[11-12]", "by": "backfill"}],
    "pending": [
        *([4, "None", 9], [5, "PartitionDown", 9], [13, "Priority", 9], [15, "Priority", 8]),
        [49, "Resources", 8],
    ],
}


def test_a_recording_tells_for_what_jobs_waited_and_who_started_them(tmp_path):
    path = tmp_path / "run1.jsonl"
    path.write_text(f"{json.dumps(HEADER)}\n{json.dumps(JOB)}\n")
    run = read_run(path)
    (record,) = run.records
    assert run.story(record).reasons == [(5, "PartitionDown"), (13, "Priority"), (49, "Resources")]
    assert (record.waited_for, record.scheduled_by, record.backfilled) == (
        *("Priority", "Backfill"),
        True,
    )
    assert (record.req_time, record.user, record.node_count) == (180, "fu6", 2)
    assert run.zero == 1_600_000_000
    comparison = compare([path, path])
    assert comparison.runs[0].about == {"scenario": "w", "recorded_of": "slurm 22.05.8"}


def test_two_recordings_of_a_workload_are_compared_job_by_job():
    folder = RECORDED / "ep-multifactor"
    comparison = compare([folder / "run1.jsonl", folder / "run2.jsonl"])
    (against,) = comparison.against
    assert (against.matched, against.pairs) == (115, 115)


def test_a_replays_own_result_has_the_runs_that_were_requeued(tmp_path):
    path = tmp_path / "result.jsonl"
    attempt = {"start": 1, "end": 5, "state": "NODE_FAIL", "nodes": "n1"}
    told = {"job": "a", "state": "COMPLETED", "submit": 0.7, "start": 9.9, "end": 20}
    job = {**told, "nodes": ["n2", "n1"], "cpus": 4, "limit": 60, "attempts": [attempt]}
    refused = {"job": "b", "state": "REJECTED", "start": None, "end": None, "nodes": ""}
    path.write_text(f"{json.dumps(job)}\n{json.dumps({**refused, 'message': 'no'})}\n")
    run = read_run(path)
    first, second = run.records
    assert (first.submit, first.start, first.nodes, first.req_time) == (0, 9, "n[1-2]", 60)
    assert [(each.start, each.end, each.state) for each in run.attempts] == [(1, 5, "NODE_FAIL")]
    assert (second.state, second.start, second.reason) == ("REJECTED", None, "no")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no job of a recording"),
        ('{"header": 1}\n', "no job of a recording"),
        ('{"header": 1}\n{"job": "a"}\n', "line 2: it has no state"),
        ('{"job": "a", "state": "X", "start": "soon", "nodes": ""}', "line 1: .*start 'soon'"),
        ("{", "line 1: no job of a recording"),
        ("[1]", "line 1: no job of a recording: no object"),
        ('{"job": "a", "state": "X", "start": 1, "nodes": "n[1"}', "line 1: no job"),
    ],
)
def test_what_is_no_recording_is_said_with_its_line(text, said, tmp_path):
    path = tmp_path / "result.jsonl"
    path.write_text(text)
    with pytest.raises(RunError, match=said):
        read_run(path)


def test_a_folder_of_recordings_says_which_they_are():
    with pytest.raises(RunError, match=r"its recordings are run1\.jsonl, run2\.jsonl"):
        read_run(RECORDED / "ep-multifactor")
