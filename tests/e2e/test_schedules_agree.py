"""The same trace through real processes, again, through one process and through four node daemons:
one schedule, and the textbook's.

Covers: tool/cluster/cluster_run.
"""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.reference import buffered, planned, textbook, windows

from understudy.controller.scheduling.textbook.bbsched import METHODS
from understudy.experiments.lublin import generate
from understudy.experiments.swf import read_swf, write_swf

BIN = Path(sys.executable).parent


@pytest.fixture
def environment(tmp_path):
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SLURM", "SQUEUE", "SINFO", "SBATCH"))
    }
    return clean | {"UNDERSTUDY_REGISTRY": str(tmp_path / "registry"), "TMPDIR": str(tmp_path)}


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "small.swf.gz"
    write_swf(path, generate(jobs=250, nodes=37 * 4, days=3, load=0.9, seed=5))
    return path


def understudy(environment, *words, timeout=120):
    return subprocess.run(
        [BIN / "understudy", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def replay(environment, trace, out, *options):
    done = understudy(
        environment,
        "replay",
        str(trace),
        "--nodes",
        "37",
        "--cpus",
        "4",
        "--out",
        str(out),
        *options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((out / "summary.json").read_text())["schedule_sha256"]


@pytest.mark.parametrize("policy", ["easy", "fcfs"])
def test_a_textbook_schedule_is_right_and_the_same_however_the_daemons_are_spread(
    environment, trace, tmp_path, policy
):
    hashes = {
        replay(environment, trace, tmp_path / "a", "--scheduler", policy),
        replay(environment, trace, tmp_path / "b", "--scheduler", policy, "--noded", "4"),
        replay(environment, trace, tmp_path / "c", "--scheduler", policy, "--one-process"),
    }
    assert len(hashes) == 1
    jobs = read_swf(trace).jobs
    expected = {
        job.id: start for job, start in zip(jobs, starts(policy, jobs, 37 * 4), strict=True)
    }
    with (tmp_path / "a" / "jobs.csv").open() as file:
        found = {int(row["job"]): int(row["start"]) for row in csv.DictReader(file)}
    assert found == expected


def starts(policy, jobs, processors):
    """The start of each job, in order, as the independent implementation has it."""
    work = [textbook.Task(job.id, job.submit, job.run, job.procs, job.req) for job in jobs]
    answers = getattr(textbook, policy)(work, processors)
    return [answers[job.id] for job in jobs]


BUFFERS = 5_000
WITH_BUFFERS = {
    "fcfs": buffered.fcfs,
    "easy": buffered.easy_bb,
    "easy-bb": buffered.easy_bb,
    "easy-nobb": buffered.easy_nobb,
    "sjf-bb": buffered.sjf_bb,
    "filler": buffered.filler,
    "conservative": None,
    "bbsched": windows.BBSched((37 * 4, BUFFERS), width=6, bound=9),
}


def with_buffers(trace, most=None):
    """The trace's first jobs, each with a buffer, in place of it."""
    jobs = [
        msgspec.structs.replace(job, extra=(str(job.id * 7_919 % (BUFFERS // 2) * (job.id % 3)),))
        for job in read_swf(trace).jobs[:most]
    ]
    write_swf(trace, jobs, {"BurstBuffer": str(BUFFERS)})
    return jobs


@pytest.mark.parametrize("policy", WITH_BUFFERS)
def test_a_schedule_with_buffers_is_right_in_many_processes_and_in_one(
    environment, trace, tmp_path, policy
):
    jobs = with_buffers(trace)
    words = ["--scheduler", policy]
    if policy == "bbsched":
        words += ["--parameters", "bbs_window=6,bbs_bound=9"]
    hashes = {
        replay(environment | {"PYTHONHASHSEED": "1"}, trace, tmp_path / "a", *words),
        replay(
            environment | {"PYTHONHASHSEED": "2"}, trace, tmp_path / "b", *words, "--one-process"
        ),
    }
    assert len(hashes) == 1
    asked = [
        buffered.Asked(job.id, job.submit, job.run, job.req, (job.procs, *job.units(1)))
        for job in jobs
    ]
    expected = (
        buffered.conservative(asked, (37 * 4, BUFFERS))
        if policy == "conservative"
        else buffered.simulate(asked, (37 * 4, BUFFERS), WITH_BUFFERS[policy])
    )
    with (tmp_path / "a" / "jobs.csv").open() as file:
        found = {int(row["job"]): int(row["start"]) for row in csv.DictReader(file)}
    assert found == expected


@pytest.mark.parametrize(
    "words", ["", "plan_alpha=1,plan_seed=7", "plan_search=random,plan_tries=3", "plan_keep"]
)
def test_a_plan_is_the_same_in_many_processes_and_in_one_and_the_papers_right(
    environment, trace, tmp_path, words
):
    jobs = with_buffers(trace, 90)
    options = ["--scheduler", "plan", "--parameters", words]
    hashes = {
        replay(environment | {"PYTHONHASHSEED": "1"}, trace, tmp_path / "a", *options),
        replay(
            environment | {"PYTHONHASHSEED": "2"}, trace, tmp_path / "b", *options, "--one-process"
        ),
    }
    assert len(hashes) == 1
    if "keep" in words or "random" in words:
        return
    work = [
        planned.Work(job.id, job.submit, job.run, job.req, job.procs, *job.units(1)) for job in jobs
    ]
    power, seed = (1, 7) if words else (2, 1)
    with (tmp_path / "a" / "jobs.csv").open() as file:
        found = {int(row["job"]): int(row["start"]) for row in csv.DictReader(file)}
    assert found == planned.plan_based(work, (37 * 4, BUFFERS), power, seed)


VARIANTS = [
    *(("bbsched", f"bbs_method={method}") for method in METHODS),
    ("bbsched", "bbs_exact=0,bbs_generations=40"),
    ("bbsched", "bbs_preset=paper,bbs_generations=40,bbs_order=wfp"),
    ("sjf-bb", "reservation_depth=3"),
    ("plan", "plan_search=zheng,plan_steps=5,plan_moves=20"),
    ("plan", "plan_search=none"),
    ("plan", "plan_objective=makespan,plan_window=8,plan_bound=3600"),
]


@pytest.mark.parametrize(("policy", "words"), VARIANTS)
def test_each_way_of_searching_is_the_same_twice_in_one_process_and_in_many(
    environment, trace, tmp_path, policy, words
):
    with_buffers(trace, 90)
    options = ["--scheduler", policy, "--parameters", words]
    hashes = {
        replay(environment | {"PYTHONHASHSEED": seed}, trace, tmp_path / seed, *options, *processes)
        for seed, processes in (("1", ["--one-process"]), ("2", ["--one-process"]), ("3", []))
    }
    assert len(hashes) == 1


def test_backfill_decides_the_same_in_one_process_and_in_many(environment, trace, tmp_path):
    assert replay(environment, trace, tmp_path / "a", "--scheduler", "backfill") == replay(
        environment, trace, tmp_path / "b", "--scheduler", "backfill", "--one-process"
    )


def test_a_replay_stops_at_a_breakpoint_can_be_looked_at_and_changed_and_goes_on(
    environment, trace, tmp_path
):
    out = tmp_path / "out"
    command = [
        BIN / "understudy",
        "replay",
        str(trace),
        "--nodes",
        "37",
        "--cpus",
        "4",
        "--scheduler",
        "easy",
        "--break",
        "1d",
        "--out",
        str(out),
    ]
    running = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        until = time.monotonic() + 30
        while "paused" not in (status := understudy(environment, "clock", "status").stdout):
            assert time.monotonic() < until, status
            assert running.poll() is None, running.communicate()[0]
            time.sleep(0.1)
        assert "1 d 00:00:0" in status or "0 d 23:59:59" in status

        def ask(*words):
            return subprocess.run(
                [BIN / words[0], *words[1:]],
                env=environment,
                capture_output=True,
                text=True,
                timeout=20,
                check=True,
            ).stdout

        assert ask("squeue") == ask("squeue"), "time stands still"
        assert "n[" in ask("sinfo", "-h", "-o", "%N")
        running_jobs = ask("squeue", "-h", "-t", "R", "-o", "%i").split()
        assert running_jobs
        ask("scontrol", "update", f"jobid={running_jobs[0]}", "priority=7")
        assert "Priority=7 " in ask("scontrol", "show", "job", running_jobs[0])
        assert understudy(environment, "clock", "break", "1h").returncode == 1, "that is past"
        assert understudy(environment, "clock", "resume").returncode == 0
        output = running.communicate(timeout=60)[0]
        assert running.returncode == 0, output
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait()
    assert json.loads((out / "summary.json").read_text())["jobs"] == 250
