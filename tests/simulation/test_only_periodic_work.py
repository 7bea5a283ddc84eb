"""Virtual time stands when nothing but periodic work is left, and goes on while that may let a job
start.
"""

import csv
import json

import pytest

from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.results import NEVER_STARTED, REFUSED, ReplayError
from understudy.tool.replay.scenarios import replay_scenario
from understudy.tool.replay.traces import replay

JOB = "{id} {submit} -1 {run} {cpus} -1 -1 {cpus} {limit} -1 1 1 1 -1 1 -1 -1 -1\n"
CONF = """ClusterName=c
SlurmctldHost=localhost
PriorityType=priority/multifactor
PriorityWeightAge=1000
EnforcePartLimits=NO
NodeName=n[1-4] CPUs=1
PartitionName=p Nodes=ALL Default=YES MaxTime=60
"""


def run(folder, conf, jobs, *, one_process=True, accounting=""):
    """Exit code, the rows of jobs.csv and the summary of a replay."""
    (folder / "slurm.conf").write_text(conf)
    (folder / "t.swf").write_text("".join(jobs))
    (folder / "a.txt").write_text(accounting)
    out = folder / f"out-{one_process}"
    request = ReplayRequest(
        trace=folder / "t.swf",
        out=out,
        conf=folder / "slurm.conf",
        one_process=one_process,
        accounting=folder / "a.txt" if accounting else None,
    )
    code = replay(request)
    return (
        code,
        list(csv.DictReader((out / "jobs.csv").read_text().splitlines())),
        json.loads((out / "summary.json").read_text()),
    )


def test_a_replay_with_jobs_that_can_never_start_ends_and_says_why_in_one_process_and_in_many(
    tmp_path, capsys
):
    jobs = [
        JOB.format(
            id=number, submit=50 * number, run=300, cpus=1, limit=7200 if number % 3 == 0 else 600
        )
        for number in range(1, 10)
    ]
    ends = []
    for one_process in (True, False):
        code, rows, summary = run(tmp_path, CONF, jobs, one_process=one_process)
        assert code == NEVER_STARTED
        assert {row["id"]: row["reason"] for row in rows if not row["start"]} == dict.fromkeys(
            "369", "PartitionTimeLimit"
        )
        assert (
            "3 of 9 jobs never started\n    3: PartitionTimeLimit, as job 3\n"
            in capsys.readouterr().err
        )
        ends.append((summary["simulated_seconds"], summary["schedule_sha256"], summary["ran"]))
    assert ends[0] == ends[1]


def test_jobs_that_the_controller_has_long_forgotten_are_recorded_whatever_tables_may_hold(
    tmp_path,
):
    jobs = [
        JOB.format(id=number, submit=100 * number, run=60, cpus=1, limit=600)
        for number in range(1, 41)
    ]
    code, rows, summary = run(
        tmp_path, CONF + "MinJobAge=2\nMaxJobCount=2\nFirstJobId=1\nMaxJobId=10\n", jobs
    )
    assert (code, len(rows), summary["ran"]) == (0, 40, 40)


def test_where_all_jobs_are_refused_there_are_no_figures(tmp_path, capsys):
    jobs = [JOB.format(id=number, submit=0, run=300, cpus=1, limit=7200) for number in range(1, 4)]
    code, rows, summary = run(tmp_path, CONF.replace("Limits=NO", "Limits=ALL"), jobs)
    said = capsys.readouterr()
    assert (code, summary["refused"], summary["ran"], summary["mean_wait"]) == (REFUSED, 3, 0, None)
    assert {row["state"] for row in rows} == {"REJECTED"}
    assert "3 of 3 jobs were refused\n    3: " in said.err
    assert "all jobs were refused" in said.err
    assert "mean_wait              -" in said.out


def test_a_job_that_waits_for_use_to_decay_starts_and_one_above_the_limit_ends_the_run(
    tmp_path,
):
    limits = (
        "add account a1 grptresmins=cpu=300\nadd account a2 grptresmins=cpu=0\n"
        "add user u1 account=a1\nadd user u2 account=a2"
    )
    conf = (
        CONF + "AccountingStorageEnforce=safe\nPriorityDecayHalfLife=01:00:00\n"
        "PriorityCalcPeriod=5\n"
    )
    owned = "{id} {submit} -1 {run} {cpus} -1 -1 {cpus} {limit} -1 1 {user} {user} -1 -1 -1 -1 -1\n"
    jobs = [
        owned.format(id=1, submit=0, run=3000, cpus=4, limit=3600, user=1),
        owned.format(id=2, submit=3600, run=60, cpus=4, limit=3600, user=1),
        owned.format(id=3, submit=3600, run=60, cpus=1, limit=600, user=2),
    ]
    code, rows, _ = run(tmp_path, conf, jobs, accounting=limits)
    started = {row["id"]: row["start"] for row in rows}
    assert code == NEVER_STARTED
    assert int(started["2"]) > 3600 + 1800, "its account had used up its minutes"
    assert started["3"] == ""
    assert {row["id"]: row["waited_for"] for row in rows}["2"] == "AssocGrpCPUMinutesLimit"


@pytest.mark.parametrize("one_process", [True, False])
def test_a_replay_ends_though_a_job_is_requeued_by_its_exit_code_for_ever(tmp_path, one_process):
    folder, out = tmp_path / "s", tmp_path / "out"
    folder.mkdir()
    (folder / "slurm.conf").write_text(CONF + "RequeueExit=3\n")
    work = [
        {"id": "again", "at": 1, "user": "root", "run": 5, "exit": 3, "options": ["-n1"]},
        {"id": "once", "at": 2, "user": "root", "run": 5, "options": ["-n1"]},
    ]
    (folder / "workload.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in work))
    with pytest.raises(ReplayError, match=r"job again has started again 1000 times.*exit code 3"):
        replay_scenario(ReplayRequest(folder, out, one_process=one_process))
    states = {
        row["id"]: row["state"]
        for row in csv.DictReader((out / "jobs.csv").read_text().splitlines())
    }
    assert states["once"] == "COMPLETED"
    assert "again" in states
