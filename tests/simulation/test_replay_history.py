"""A history that real Slurm 22.05.8 wrote, imported and replayed under the same configuration: each job starts, and what it asked for arrives."""

import json
from pathlib import Path

import pytest

from understudy.commands.import_run import ImportRequest, import_history
from understudy.commands.replay_request import ReplayRequest
from understudy.commands.scenario_run import replay_scenario
from understudy.experiments.past import Count
from understudy.experiments.sacct_rows import read_rows

HISTORIES = Path(__file__).parents[1] / "unit" / "histories"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    conf = folder / "slurm.conf"
    conf.write_text((HISTORIES / "slurm.conf").read_text())
    (folder / "gres.conf").write_text((HISTORIES / "gres.conf").read_text())
    accounts = tuple(HISTORIES / name for name in ("past.cfg", "qos.txt", "resv.txt"))
    import_history(ImportRequest((HISTORIES / "all.txt",), folder / "scenario", accounts=accounts, say=lambda _line: None, strict=True))
    assert replay_scenario(ReplayRequest(folder / "scenario", folder / "out", conf=conf, one_process=True)) == 0
    lines = [json.loads(line) for line in (folder / "out" / "result.jsonl").read_text().splitlines()[1:]]
    return {line["job"]: line for line in lines}


@pytest.fixture(scope="module")
def past():
    with (HISTORIES / "all.txt").open() as file:
        return {record.job.partition("+")[0]: record for record in read_rows(file, Count("all.txt", strict=True)) if "+1" not in record.job}


def test_each_job_that_ran_starts(results, past):
    assert {job for job, record in past.items() if record.has_run} == {job for job, result in results.items() if result["start"] is not None}


def test_each_job_ends_as_it_did(results, past):
    for job, record in past.items():
        assert results[job]["state"] == record.state, job


def test_each_job_has_the_processors_the_nodes_and_the_limit_that_it_had(results, past):
    for job, record in past.items():
        if record.has_run:
            limit = None if record.limit_min == -1 else record.limit_min * 60
            if job != "42":  # --time-min: it began with a shorter limit
                assert results[job]["limit"] == limit, job
            assert results[job]["cpus"] == record.cpus, job


def test_each_job_runs_as_long_as_it_did(results, past):
    for job, record in past.items():
        if record.has_run and record.state == "COMPLETED":
            assert abs(results[job]["end"] - results[job]["start"] - record.ran_s) <= 1, job
