"""Cases of futures: how long it takes until they have begun."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING

from benchmarks.sides import BenchError

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.measure import Run

NODES, JOBS, FUTURES = 1_024, 5_000, 20
_AT_S = 3_600


def scenario(folder: Path) -> None:
    """Jobs of one to eight nodes for ten hours, all submitted within the hour before the instant;
    the run is over a minute behind it.
    """
    rng = random.Random("futures")
    folder.mkdir()
    (folder / "slurm.conf").write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
        f"NodeName=n[1-{NODES}] CPUs=4\nPartitionName=all Nodes=ALL Default=YES\n"
    )
    lines = [
        {
            "id": f"j{number}",
            "at": number * 3_000 / JOBS,
            "user": "ada",
            "run": 36_000,
            "options": [f"--nodes={rng.randint(1, 8)}", "--exclusive", "--time=720"],
        }
        for number in range(JOBS)
    ]
    (folder / "workload.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "about.json").write_text(json.dumps({"horizon": _AT_S + 60, "front_end": False}))


def futures_20(run: Run) -> None:
    """Each drains 16 other nodes."""
    folder = run.folder / "scenario"
    scenario(folder)
    alternatives = run.folder / "futures.toml"
    alternatives.write_text(
        "".join(
            f"[[future]]\ndo = 'scontrol update NodeName=n[{first}-{first + 15}] State=DRAIN "
            "Reason=x'\n"
            for first in range(1, 16 * FUTURES, 16)
        )
    )
    words = ("--at", str(_AT_S), "--file", str(alternatives), "--out", str(run.folder / "out"))
    try:
        said = run.tree.understudy(run.folder, "branch", str(folder), *words)
    except BenchError as error:  # jobs still run at the horizon, and the exit code says so
        said = str(error)
    found = re.search(rf"all {FUTURES} futures had begun within ([\d.]+) s", said)
    if found is None:
        raise BenchError(f"not all futures have begun: {said[-500:]}")
    run.figure("until all have begun", float(found[1]), "s")
