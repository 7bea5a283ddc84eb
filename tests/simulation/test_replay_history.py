"""Histories that real Slurm 22.05.8 wrote, imported and replayed under the same configuration: each
job starts, and what it asked for arrives.

Covers: tool/replay/in_time.
"""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from understudy.experiments.past import Count
from understudy.experiments.sacct_rows import read_rows
from understudy.experiments.sacct_words import megabytes, tres
from understudy.tool.replay.imports import ImportRequest, import_history
from understudy.tool.replay.scenarios import replay_scenario
from understudy.tool.replay.traces import ReplayRequest

HISTORIES = Path(__file__).parents[1] / "recorded" / "histories"
FIRST = SimpleNamespace(
    folder=HISTORIES,
    accounts=("past.cfg", "qos.txt", "resv.txt"),
    code=0,
    refused=0,
    states={},
    other_limit={"42"},  # --time-min: it began with a shorter limit
    other_cpus=set(),
)
# With nodes that failed, jobs refused at their submission, and some that run, stand still or wait
# for ever when the history ends.
OTHER = SimpleNamespace(
    folder=HISTORIES / "other",
    accounts=("other.cfg", "qos.txt", "resv.txt"),
    code=4,  # some wait for ever
    refused=2,
    states={
        **dict.fromkeys(("104", "115"), "FAILED"),
        **dict.fromkeys(("118", "204", "205"), "COMPLETED"),
    },
    other_limit=set(),
    # --spread-job on the nodes that were free; NumCPUs was changed while it waited
    other_cpus={"76", "93"},
)


@pytest.fixture(scope="module", params=[FIRST, OTHER], ids=["first", "other"])
def history(request, tmp_path_factory):
    """The history, its records (the last of each job), and what the replay made of each."""
    about, folder = request.param, tmp_path_factory.mktemp("history")
    for name in ("slurm.conf", "gres.conf"):
        (folder / name).write_text((about.folder / name).read_text())
    accounts = tuple(about.folder / name for name in about.accounts)
    said: list[str] = []
    import_history(
        ImportRequest(
            (about.folder / "all.txt",),
            folder / "scenario",
            accounts=accounts,
            say=said.append,
            strict=True,
        )
    )
    replayed = replay_scenario(
        ReplayRequest(
            folder / "scenario", folder / "out", conf=folder / "slurm.conf", one_process=True
        )
    )
    lines = [
        json.loads(line) for line in (folder / "out" / "result.jsonl").read_text().splitlines()[1:]
    ]
    with (folder / "out" / "jobs.csv").open() as file:
        table = {line["id"]: line for line in csv.DictReader(file)}
    with (about.folder / "all.txt").open() as file:
        past = {
            record.job.partition("+")[0]: record
            for record in read_rows(file, Count("all.txt", strict=True))
            if "+" not in record.job.removesuffix("+0")
        }
    return SimpleNamespace(
        **vars(about),
        said=said,
        past=past,
        results={line["job"]: line for line in lines},
        table=table,
        replayed=replayed,
        out=folder / "out",
    )


def ran(history):
    return {
        job: record for job, record in history.past.items() if record.has_run and record.node_list
    }


def test_each_job_that_ran_starts(history):
    started = {job for job, result in history.results.items() if result["start"] is not None}
    assert not set(ran(history)) - started
    assert history.replayed == history.code


def test_each_job_ends_as_it_did(history):
    for job, record in history.past.items():
        assert history.results[job]["state"] == history.states.get(job, record.state), job


def test_what_slurm_refused_is_left_out_and_counted(history):
    summary = json.loads((history.out / "summary.json").read_text())
    assert summary["refused"] == 0
    assert summary["jobs"] == len(history.table)
    left_out = [line for line in history.said if "left out: refused" in line]
    assert [int(line.split()[0]) for line in left_out] == [history.refused] * bool(history.refused)


def test_each_job_has_the_processors_the_memory_and_the_limit_that_it_had(history):
    for job, record in ran(history).items():
        if job not in history.other_limit:
            assert history.results[job]["limit"] == (
                None if record.limit_min == -1 else record.limit_min * 60
            ), job
        if job not in history.other_cpus:
            assert history.results[job]["cpus"] == record.cpus, job
            if job in history.table:
                memory = megabytes(tres(record.alloc_tres)["mem"])
                assert int(history.table[job]["memory_mb"]) == memory[0], job


def test_each_job_runs_as_long_as_it_did(history):
    for job, record in ran(history).items():
        if record.state == "COMPLETED":
            assert (
                abs(history.results[job]["end"] - history.results[job]["start"] - record.ran_s) <= 1
            ), job
