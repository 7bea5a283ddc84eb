"""Futures of random clusters: a run is forked at a random instant, and what is not changed must
become, to the byte, what it becomes without any fork.

    python tests/simulation/branches.py --count 100 [--first 1]     many
    python tests/simulation/branches.py --seed 17 [--keep FOLDER]   one, with its folders

Each seed draws a cluster and its jobs (schedules.py), an instant that may lie within a message's
way, and a change. Four runs are compared: without a fork, before and after; the original beside
its futures; a future without a change. The one with a change is there to disturb them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.fuzz import node_names
from simulation.schedules import Schedule, draw

from understudy.experiments.futures import Deed, Future
from understudy.tool.replay.branch import BranchOutcome, BranchRequest, branch
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.scenarios import replay_scenario

JOBS = 40
# what must be the same to the byte; report.html and config.json say when and how they were made
FILES = ("jobs.csv", "result.jsonl", "attempts.csv", "slurm.conf", "jobs.parquet")


class BranchFailed(AssertionError):  # noqa: N818  says what happened
    """Something differs that must not: what, and with which seed."""


@dataclass(frozen=True)
class Outcome:
    """`differs`: whether the change made a difference; `refused`: why it could not be made."""

    at: float
    differs: bool
    refused: str = ""


def run_seed(seed: int, folder: Path, jobs: int = JOBS, *, faulty: bool = False) -> Outcome:
    """All runs of a seed; `faulty`: nodes, daemons, links and disks fail in them.

    Raises:
        BranchFailed: something differs that must not.
    """
    schedule = draw(seed, jobs)
    rng = random.Random(f"branch {seed}")
    at = rng.choice((rng.uniform(0, schedule.span_s), float(rng.randint(0, int(schedule.span_s)))))
    faults = _faults(schedule, rng) if faulty else ()
    scenario = folder / "scenario"
    schedule.write(scenario)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for name in ("before", "after"):
            if name == "after":
                outcome = _branch(scenario, folder / "out", at, _change(schedule, rng), faults)
            replay_scenario(ReplayRequest(scenario, folder / name, one_process=True, faults=faults))
    for each in (outcome.original, outcome.futures[0]):
        if each.error or not each.summary:
            raise BranchFailed(f"seed {seed}: {each.name}, forked at {at}: {each.error}")
    for one in ("after", "out/original", "out/same"):
        for name in FILES:
            _compare(seed, at, folder / "before" / name, folder / one / name)
    changed = outcome.futures[1]
    if changed.began_s is None and not changed.error:
        raise BranchFailed(f"seed {seed}: the changed future did not begin, and says nothing")
    ours, theirs = outcome.original.summary, changed.summary
    return Outcome(at, ours["schedule_sha256"] != theirs.get("schedule_sha256"), changed.error)


def _branch(
    scenario: Path, out: Path, at: float, change: Future, faults: tuple[str, ...]
) -> BranchOutcome:
    run = ReplayRequest(scenario, out, faults=faults)
    return branch(BranchRequest(run, (f"{at:.6f}",), (Future("same"), change), out))


def _faults(schedule: Schedule, rng: random.Random) -> tuple[str, ...]:
    """Some, at random times: state is read again, and links lose what they are given."""
    node = rng.choice(node_names(schedule))
    kinds = [
        "crash of=controller",
        f"crash of={node}",
        "disk_full",
        "link of=controller loss=0.1",
        "stall of=controller",
    ]
    if schedule.accounting:
        kinds += ["crash of=accounting", "disk_full of=accounting"]
    span = int(schedule.span_s)
    return tuple(
        f"{kind} at={rng.randint(0, span)} for={rng.choice((5, 70, 400))}"
        for kind in rng.sample(kinds, 3)
    )


def _change(schedule: Schedule, rng: random.Random) -> Future:
    """One of what administrators do."""
    nodes = node_names(schedule)
    some = ",".join(rng.sample(nodes, max(1, len(nodes) // 2)))
    node = f"NodeName={some}"
    words = rng.choice(
        (
            ("scontrol", "update", node, "State=DRAIN", "Reason=x"),
            ("scontrol", "update", node, "State=DOWN", "Reason=x"),
            ("scontrol", "reconfigure"),
            ("scancel", "--state=RUNNING", "--user=fu1"),
            ("sbatch", "--time=2", "--wrap=true"),
        )
    )
    later = rng.choice((0.0, 0.0, 33.3))
    return Future(
        "changed",
        (Deed(words, after_s=later),),
        settings=rng.choice(((), (), ("SchedulerParameters+=bf_interval=7",), ("KillWait=9",))),
        load=rng.choice((1.0, 1.0, 1.5, 3.0)),
        failures=rng.choice(("", "", "exponential:mtbf=1h,repair=60s")),
        seed=schedule.seed,
    )


def _compare(seed: int, at: float, one: Path, other: Path) -> None:
    if not one.exists() and not other.exists():
        return
    if not other.exists() or one.read_bytes() != other.read_bytes():
        raise BranchFailed(
            f"seed {seed}: {other.parent.name}/{one.name} is not what it is without a fork "
            f"(forked at {at})\nto see it again: python tests/simulation/branches.py --seed {seed} "
            "--keep FOLDER"
        )


def main() -> int:
    """Run the seeds; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description="Random clusters, forked at random instants.")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--faulty", action="store_true", help="with faults")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=JOBS, help="submissions of each")
    parser.add_argument("--keep", type=Path, help="where the folders of one seed stay")
    arguments = parser.parse_args()
    seeds = (
        [arguments.seed]
        if arguments.seed is not None
        else range(arguments.first, arguments.first + arguments.count)
    )
    failed, differ, refused = [], 0, 0
    began = time.monotonic()
    for seed in seeds:
        folder = arguments.keep or Path(tempfile.mkdtemp(prefix="understudy-branches-"))
        try:
            outcome = run_seed(seed, folder, arguments.jobs, faulty=arguments.faulty)
        except BranchFailed as failure:
            failed.append(seed)
            print(failure, flush=True)
        else:
            differ += outcome.differs
            refused += bool(outcome.refused)
            if arguments.seed is not None:
                print(outcome)
        finally:
            if arguments.keep is None:
                shutil.rmtree(folder)
    print(
        f"{len(seeds)} branches in {time.monotonic() - began:.0f} s: unchanged ones and originals "
        f"equal in {len(seeds) - len(failed)}; changes made a difference in {differ}, could not be "
        f"made in {refused}; failed: {failed or 'none'}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
