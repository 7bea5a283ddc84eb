"""Whole clusters with burst buffers under virtual time: the same schedule in one process and in
many, an end where a job can never have its buffer, and fuzzed ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from simulation.fuzz import run_schedule
from simulation.schedules import draw

if TYPE_CHECKING:
    from pathlib import Path

CONF = """ClusterName=c
SlurmctldHost=h
SchedulerType=sched/{}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
BurstBufferType=burst_buffer/lua
NodeName=n[1-4] CPUs=4 CoresPerSocket=4
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
BUFFERS = """Pools=fast:100GiB
Granularity=1GiB
StageInRate=100
StageOutRate=200
TeardownTime=5
"""


def folder(path: Path, scheduler: str) -> Path:
    """Ten jobs of 20 to 65 GiB, one of which asks for more than there is."""
    path.mkdir()
    (path / "slurm.conf").write_text(CONF.format(scheduler))
    (path / "burst_buffer.conf").write_text(BUFFERS)
    jobs = [
        {
            "id": f"j{number}",
            "at": 20 * number,
            "user": f"u{number % 3}",
            "run": 60,
            "options": [
                f"--ntasks={8 if number % 3 else 4}",
                "--time=5",
                f"--bb=#BB_LUA pool=fast capacity={900 if number == 5 else 20 + 5 * number}G",
            ],
        }
        for number in range(10)
    ]
    (path / "workload.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    (path / "about.json").write_text("{}")
    return path


def replay(
    source: Path, out: Path, *options: str, never: tuple[str, ...] = ("j5",)
) -> tuple[str, dict[str, dict[str, object]]]:
    """(the schedule's hash, jobs by name); `never`: those that wait for space for ever."""
    run = subprocess.run(
        [sys.executable, "-m", "understudy.tool.understudy.understudy", "replay", str(source),
         "--out", str(out), *options],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == (4 if never else 0), run.stdout + run.stderr
    for name in never:
        assert f"1: BurstBufferResources, as job {name}" in run.stdout + run.stderr
    rows = [json.loads(line) for line in (out / "result.jsonl").read_text().splitlines()[1:]]
    summary = json.loads((out / "summary.json").read_text())
    return summary["schedule_sha256"], {row["job"]: row for row in rows}


def test_a_replay_stages_ends_and_is_the_same_in_one_process_and_in_many(tmp_path: Path) -> None:
    source = folder(tmp_path / "in", "backfill")
    one, jobs = replay(source, tmp_path / "one", "--one-process")
    many, _ = replay(source, tmp_path / "many")
    assert one == many
    assert jobs["j5"]["state"] == "PENDING"
    first = jobs["j0"]
    assert first["start"] in range(204, 210)  # 20 GiB at 100 MiB a second
    assert all(job["state"] == "COMPLETED" for name, job in jobs.items() if name != "j5")


def test_where_nothing_is_staged_a_job_starts_as_soon_as_there_is_space(tmp_path: Path) -> None:
    _, jobs = replay(folder(tmp_path / "in", "easy"), tmp_path / "one", "--one-process")
    spans = [
        (int(str(job["start"])), int(str(job["end"])), 20 + 5 * int(name[1:]))
        for name, job in jobs.items()
        if job["start"] is not None
    ]
    assert len(spans) == 9
    assert jobs["j0"]["start"] == 0
    for start, _, _ in spans:
        held = sum(size for begin, end, size in spans if begin <= start < end)
        assert held <= 100


@pytest.mark.parametrize(
    ("scheduler", "starts"),
    [
        ("easy-bb", [0, 10, 20, 3]),
        ("easy-nobb", [0, 22, 2, 3]),
        ("filler", [0, 22, 2, 3]),
        ("fcfs", [0, 10, 20, 20]),
    ],
)
def test_the_timeline_that_was_worked_out_by_hand(
    tmp_path: Path, scheduler: str, starts: list[int]
) -> None:
    """Four processors and ten units of a pool; submit, run = limit, processors, units; minutes."""
    jobs = [(0, 10, 2, 2), (1, 10, 3, 6), (2, 20, 1, 6), (3, 5, 1, 1)]
    source = tmp_path / "in"
    source.mkdir()
    (source / "slurm.conf").write_text(
        CONF.format(scheduler).replace("CPUs=4 CoresPerSocket=4", "CPUs=1")
    )
    (source / "burst_buffer.conf").write_text("Pools=fast:10\n")
    lines = [
        {
            "id": f"j{number}",
            "at": 60 * submit,
            "user": "u",
            "run": 60 * run,
            "options": [
                f"--ntasks={processors}",
                f"--time={run}",
                f"--bb=#BB_LUA pool=fast capacity={units}",
            ],
        }
        for number, (submit, run, processors, units) in enumerate(jobs)
    ]
    (source / "workload.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (source / "about.json").write_text("{}")
    _, rows = replay(source, tmp_path / "out", "--one-process", never=())
    assert [row["start"] for row in rows.values()] == [60 * start for start in starts]


@pytest.mark.parametrize(
    "seed", list(islice((seed for seed in count(1) if draw(seed).burst_buffer), 3))
)
def test_fuzzed_schedules_with_burst_buffers_hold(seed: int) -> None:
    outcome = run_schedule(draw(seed))
    assert outcome.steps > 50
    assert outcome.ends["COMPLETED"]
