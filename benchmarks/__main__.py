"""`make bench`: cases by name, here and beside another commit and real Slurm, as JSON and a table.

Every measurement is a process of its own. Sides take turns, and every other round goes the other
way round. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, page, results
from benchmarks.cases import CASES
from benchmarks.sides import BUILD, ROOT, BenchError, Slurm, tree_of

LIMIT_S = 3600


def measure(case: str, side: str, *, instructions: bool) -> results.Record:
    """One measurement, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="understudy-bench-") as folder:
        counted = Path(folder) / "counted"
        words = [sys.executable, "-m", "benchmarks.measure", case, side]
        if instructions:
            count = ["perf", "stat", "-x,", "-e", "instructions:u", "-o", str(counted)]
            words = [*count, "--", *words]
        done = subprocess.run(
            words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=LIMIT_S
        )
        if done.returncode:
            raise SystemExit(f"{case}: the measurement itself failed")
        record = json.loads(done.stdout.splitlines()[-1])
        if instructions and (found := re.search(r"^(\d+),", counted.read_text(), re.MULTILINE)):
            record["instructions_g"] = int(found[1]) / 1e9
    return record


def bench(name: str, others: list[str], times: int, *, instructions: bool) -> dict[str, Any]:
    """All rounds of a case."""
    case = CASES[name]
    sides = ["here", *(other for other in others if other != Slurm.name or case.beside_slurm)]
    rounds: list[dict[str, results.Record]] = []
    for number in range(times):
        order = sides if number % 2 == 0 else sides[::-1]
        taken = {side: measure(name, side, instructions=instructions) for side in order}
        rounds.append({side: taken[side] for side in sides})
    return {
        "what": case.what,
        "target": case.target,
        "headline": case.headline,
        "sides": sides,
        "rounds": rounds,
        "load_after": machine.load(),
    }


def chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="which (default: all)")
    parser.add_argument("--against", metavar="COMMIT", help="another commit to run beside")
    parser.add_argument("--times", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--out", type=Path, help="the JSON (default: in build/bench/results)")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--list", action="store_true", help="say what cases there are")
    options = parser.parse_args()
    if unknown := set(options.cases) - CASES.keys():
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    if options.times < 1:
        parser.error(f"--times {options.times}: at least 1")
    return options


def main() -> None:
    options = chosen()
    if options.list:
        for name, case in CASES.items():
            print(f"{name:18} {case.what}" + (f" (to reach: {case.target})" if case.target else ""))
        return
    try:
        others = [tree_of(options.against).name] if options.against else []
    except BenchError as error:
        raise SystemExit(f"bench: {error}") from None
    others += [Slurm.name] if Slurm.is_here() else []
    instructions = machine.counts_instructions()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    began = dt.datetime.now(dt.UTC)
    result: dict[str, Any] = {
        "commit": commit,
        "date": f"{began:%Y-%m-%d}",
        "times": options.times,
        "machine": machine.facts(),
        "cases": {},
    }
    out = options.out or BUILD / "results" / f"{began:%Y%m%dT%H%M%S}-{commit}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.cases or CASES:
        case = CASES[name]
        target = f" (to reach: {case.headline} {case.target})" if case.target else ""
        print(f"{name}: {case.what}{target}", flush=True)
        result["cases"][name] = bench(name, others, options.times, instructions=instructions)
        print("\n".join(results.printed(result["cases"][name])), flush=True)
        out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{os.path.relpath(out)}")
    if options.page:
        page.write(options.page, result)


if __name__ == "__main__":
    main()
