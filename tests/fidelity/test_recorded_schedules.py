"""What real Slurm 22.05.8 did with small workloads is what a replay of them does, as nearly as
another run of Slurm would.

A folder of tests/recorded/schedules has the form that docs/scenarios.md describes; run1.jsonl to
run3.jsonl are the recordings, as `score.py` reads them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fidelity.score import load, score

RECORDED = Path(__file__).parents[1] / "recorded" / "schedules"

# A little below what they reach: whoever makes one better raises its threshold.
THRESHOLDS = {
    "ep-backfill-default": 0.98,
    "ep-fifo-builtin": 0.99,
    "ep-gres-gpu": 0.98,
    "ep-licenses-control": 0.96,
    "ep-linear-whole": 1.0,
    "ep-multifactor": 0.99,
    "ep-partition-tiers": 1.0,
    "ep-topology-tree": 1.0,
    "node-events": 0.95,
    "preempt-cancel": 1.01,
    "qos-limits": 1.0,
    "reservations": 0.95,
    "suspend-gang-tiers": 0.98,
}


def replayed(folder: Path, out: Path) -> Path:
    """Where the result is."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SLURM")
    } | {"TMPDIR": str(out.parent)}
    understudy = str(Path(sys.executable).parent / "understudy")
    done = subprocess.run(
        [understudy, "replay", str(folder), "--out", str(out), "--one-process"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # some are refused, some wait for ever
    assert done.returncode in (0, 3, 4), done.stdout + done.stderr
    return out / "result.jsonl"


def test_each_recorded_workload_has_a_threshold() -> None:
    assert sorted(path.name for path in RECORDED.iterdir()) == sorted(THRESHOLDS)


@pytest.mark.parametrize("name", sorted(THRESHOLDS))
def test_schedules_are_as_near_to_slurms_as_they_were(name: str, tmp_path: Path) -> None:
    recordings = [load(path) for path in sorted((RECORDED / name).glob("run*.jsonl"))]
    assert len(recordings) == 3
    assert score(recordings, load(replayed(RECORDED / name, tmp_path / "out"))) >= THRESHOLDS[name]


@pytest.mark.parametrize("name", sorted(THRESHOLDS))
def test_who_starts_a_minute_late_falls_below_the_threshold(name: str) -> None:
    recordings = [load(path) for path in sorted((RECORDED / name).glob("run*.jsonl"))]
    late = {
        job: line | {"start": line["start"] and line["start"] + 60}
        for job, line in recordings[0].items()
    }
    assert score(recordings, recordings[0]) > 0.99
    assert score(recordings, late) < THRESHOLDS[name]
