"""Schedules by seed: what real Slurm does with a drawn workload, recorded twice at once, and what
ours does with it.

    python -m differential.schedules [--seed N] [--count N] [--jobs N] [--seconds N] [--at-once N]

The workloads are those of `tests/simulation/schedules.py`: random nodes, partitions, policies,
preemption, limits, reservations, arrays, dependencies, and administrators. Only what both
recordings agree on is compared. Schedules are chaotic: the first job that differs is what to look
at, those behind it follow from it. Folders with scenario, recordings and result stay in `--out`,
and a folder that has recordings is not recorded again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulation.schedules import draw

from differential.real_slurm import make_users, missing

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "build" / "differential" / "schedules"
RECORDINGS = ("run1.jsonl", "run2.jsonl")
LATE_S = 2.0  # a recording on a busy machine, or of a command that hung, says nothing
AGREE_S = 2  # recordings agree on a start or an end that lies no further apart
NEAR_S = 3  # ours is as theirs up to here; the main scheduler looks every three seconds
STAYS = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL", "DEADLINE"}
# which the recording sets itself: jobs are to be seen to its end, and its MUNGE has a place
OURS = ("MinJobAge=", "AuthInfo=")
FAILED_WITH = (0, 3, 4)  # exit codes of a replay that came to its end


def jobs_of(path: Path) -> dict[str, dict[str, Any]]:
    """The jobs of a recording or a result by their names. One that never had nodes has not started,
    though Slurm shows the time at which it was refused or cancelled.
    """
    lines = map(json.loads, path.read_text().splitlines())
    return {
        line["job"]: line if line.get("nodes") else line | {"start": None, "end": None}
        for line in lines
        if "job" in line and line.get("state") != "ARRAY_MASTER"
    }


def late_s(path: Path) -> float:
    """By how much a recording's latest submission was late."""
    return float(json.loads(path.read_text().splitlines()[0])["late_max"])


def fate(job: dict[str, Any]) -> str:
    """How it went: its state, or that it was refused or had not ended."""
    state = str(job["state"]).partition(" ")[0]
    if state == "REJECTED" or (state == "FAILED" and job.get("reason") == "BadConstraints"):
        return "refused"
    return state if state in STAYS else "waited" if job.get("start") is None else "ran"


def _apart(one: dict[str, Any], other: dict[str, Any], key: str) -> float:
    """Seconds between the two; infinite if only one has any."""
    a, b = one.get(key), other.get(key)
    if a is None or b is None:
        return 0.0 if a is b else float("inf")
    return abs(int(a) - int(b))


def _nodes(job: dict[str, Any]) -> str:
    return job.get("nodes") or ""


def differences(
    first: dict[str, dict[str, Any]],
    second: dict[str, dict[str, Any]],
    ours: dict[str, dict[str, Any]],
) -> tuple[list[tuple[float, str, str]], int]:
    """((second, job, what differs) in the order of time, how many jobs both recordings agree on).

    A job counts where both recordings tell the same of it; its nodes where both have the same.
    """
    found, repeatable = [], 0
    for name, one in first.items():
        # a task that waits may have no record of its own yet
        other, mine = second.get(name), ours.get(name) or ours.get(name.rpartition("_")[0])
        if other is None or fate(one) != fate(other) or _apart(one, other, "start") > AGREE_S:
            continue
        repeatable += 1
        at = float(one.get("start") or one.get("submit") or 0)
        if mine is None and fate(one) == "refused":
            continue  # Slurm's record of it may have no other name than the job's
        if mine is None:
            found.append((at, name, "is not there"))
        elif fate(mine) != fate(one):
            found.append((at, name, f"{fate(one)}, ours {fate(mine)} {mine.get('reason', '')}"))
        elif _apart(one, mine, "start") > NEAR_S + _apart(one, other, "start"):
            found.append((at, name, f"starts at {one['start']}, ours at {mine['start']}"))
        elif _apart(one, other, "end") <= AGREE_S < NEAR_S < _apart(one, mine, "end"):
            found.append((at, name, f"ends at {one['end']}, ours at {mine['end']}"))
        elif _nodes(one) == _nodes(other) != _nodes(mine):
            found.append((at, name, f"is on {_nodes(one)}, ours on {_nodes(mine)}"))
    return sorted(found), repeatable


def _make(seed: int, jobs: int, out: Path) -> Path:
    folder = out / f"{seed}-{jobs}"
    if not (folder / "workload.jsonl").exists():
        drawn = draw(seed, jobs)
        conf = tuple(line for line in drawn.conf if not line.startswith(OURS))
        replace(drawn, conf=conf, front_end=False).write(folder)  # as it is recorded
    return folder


def _record(folder: Path, name: str, seconds: float) -> str:
    """What went wrong, or ""."""
    if (folder / name).exists():
        return ""
    command = [sys.executable, "-m", "differential.record", str(folder), str(folder / name)]
    done = subprocess.run(
        [*command, "--seconds", str(seconds)], capture_output=True, text=True, check=False
    )
    return "" if (folder / name).exists() else "".join(done.stderr.strip().splitlines()[-1:])


def _replay(folder: Path) -> str:
    """What went wrong with ours, or ""."""
    command = [str(Path(sys.executable).parent / "understudy"), "replay", str(folder)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    done = subprocess.run(
        [*command, "--one-process", "--out", str(folder / "ours")],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if done.returncode in FAILED_WITH:
        return ""
    return "".join(done.stderr.strip().splitlines()[-1:]) or f"exit code {done.returncode}"


def _cut(jobs: dict[str, dict[str, Any]], seconds: float) -> dict[str, dict[str, Any]]:
    """As a recording that ended then has them."""
    waits: dict[str, Any] = {"state": "PENDING", "start": None, "end": None, "nodes": ""}
    runs: dict[str, Any] = {"state": "RUNNING", "end": None}

    def now(job: dict[str, Any]) -> dict[str, Any]:
        start, end = job.get("start"), job.get("end")
        if start is not None and start >= seconds:
            return job | waits
        return job | runs if end is not None and end >= seconds else job

    return {name: now(job) for name, job in jobs.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential.schedules", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=300, help="recorded so long")
    parser.add_argument("--at-once", type=int, default=4, help="real clusters at a time")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if why := missing():
        print(f"nothing to compare with: {why}")
        return 0
    folders = [
        _make(seed, options.jobs, options.out)
        for seed in range(options.seed, options.seed + options.count)
    ]
    make_users()  # once: recordings that begin together would make them twice
    with ThreadPoolExecutor(options.at_once) as pool:
        runs = [(folder, name) for folder in folders for name in RECORDINGS]
        recorded = list(pool.map(lambda run: _record(*run, options.seconds), runs))
    counts: Counter[str] = Counter()
    for number, folder in enumerate(folders):
        failure = "".join(recorded[2 * number : 2 * number + 2]) or _replay(folder)
        if failure:
            counts["failed"] += 1
            print(f"{folder.name}: {failure}")
            continue
        late = max(late_s(folder / name) for name in RECORDINGS)
        if late > LATE_S:
            counts["late"] += 1
            print(f"{folder.name}: a recording was {late:.0f} s late")
            continue
        first, second = (jobs_of(folder / name) for name in RECORDINGS)
        ours = _cut(jobs_of(folder / "ours" / "result.jsonl"), options.seconds)
        found, repeatable = differences(first, second, ours)
        counts.update(schedules=1, jobs=len(first), repeatable=repeatable, different=len(found))
        counts["alike"] += not found
        print(
            f"{folder.name}: {len(first)} jobs, {repeatable} alike in both recordings,"
            f" {len(found)} of them not in ours"
        )
        for at, job, what in found[:3]:
            print(f"    {at:6.0f} s  {job} {what}")
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
