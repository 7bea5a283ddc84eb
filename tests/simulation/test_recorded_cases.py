"""Small scenarios through whole clusters; where real Slurm 22.05.8 was recorded with one, jobs
start then and there, too.

A folder of tests/recorded/preemption, limits, features, topology or reservations has the form that
docs/scenarios.md describes; `slurm-22.05.8.jsonl` is the recording.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDERS = sorted(
    path.parent
    for kind in ("preemption", "limits", "features", "topology", "reservations")
    for path in (Path(__file__).parent.parent / "recorded" / kind).glob("*/workload.jsonl")
)
NEAR_S = 3  # of real time: when the scheduler looks depends on when commands arrive
OVER = {"COMPLETED", "CANCELLED", "TIMEOUT", "PREEMPTED", "FAILED", "REJECTED"}
FOR_EVER = ("JobHeldAdmin", "JobHeldUser", "PartitionNodeLimit", "Assoc")


def lines(path: Path) -> dict[str, dict[str, Any]]:
    return {
        line["job"]: line
        for line in map(json.loads, path.read_text().splitlines())
        if "job" in line
    }


def replayed(folder: Path, out: Path) -> dict[str, dict[str, Any]]:
    command = [
        str(Path(sys.executable).parent / "understudy"),
        "replay",
        str(folder),
        "--out",
        str(out),
        "--one-process",
    ]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SLURM")
    } | {"TMPDIR": str(out.parent)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    # some are refused, some wait for ever
    assert done.returncode in (0, 3, 4), done.stdout + done.stderr
    return lines(out / "result.jsonl")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_jobs_start_where_and_when_slurm_starts_them_and_none_is_lost(
    folder: Path, tmp_path: Path
) -> None:
    found = replayed(folder, tmp_path / "out")
    recording = folder / "slurm-22.05.8.jsonl"
    waits = {job for job, line in found.items() if line.get("reason", "").startswith(FOR_EVER)}
    if not recording.exists():
        assert {line["state"] for job, line in found.items() if job not in waits} <= OVER
    else:
        recorded = lines(recording)
        for job, line in recorded.items():
            mine = found[job]
            assert (mine["state"], mine["nodes"], mine["restarts"]) == (
                line["state"],
                line["nodes"],
                line["restarts"],
            ), job
            for moment in ("start", "end"):
                assert (mine[moment] is None) is (line[moment] is None), job
                assert line[moment] is None or abs(mine[moment] - line[moment]) <= NEAR_S, (
                    job,
                    moment,
                )
