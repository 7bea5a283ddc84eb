"""Simulations by hand: python tests/simulation/run.py [--seeds 100] [--first 1], or one with all
that happens: --seed 17 --trace.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.clusters import SimulationFailed, simulate


def main() -> int:
    """Run the seeds; 1 if one of them fails."""
    parser = argparse.ArgumentParser(
        description="Whole clusters in virtual time, under random troubles."
    )
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    parser.add_argument(
        "--twice", action="store_true", help="each seed twice: both must go the same way"
    )
    parser.add_argument("--verbose", action="store_true", help="a line on each seed")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first failure")
    arguments = parser.parse_args()
    seeds = (
        [arguments.seed]
        if arguments.seed is not None
        else range(arguments.first, arguments.first + arguments.seeds)
    )
    failed = []
    began = time.monotonic()
    for seed in seeds:
        started = time.monotonic()
        try:
            outcome = simulate(seed, print if arguments.trace else None)
            if arguments.twice and simulate(seed).log != outcome.log:
                raise SimulationFailed(f"seed {seed}: two runs differ")
        except SimulationFailed as failure:
            failed.append(seed)
            print(failure)
            if not arguments.go_on:
                break
            continue
        if arguments.seed is not None:
            print(outcome)
        elif arguments.verbose:
            ends = ", ".join(f"{count} {name}" for name, count in outcome.ends.items())
            print(
                f"seed {seed}: {time.monotonic() - started:.1f} s, {outcome.days:.1f} days, "
                f"{outcome.events} events, {ends}",
                flush=True,
            )
    print(f"{len(seeds)} seeds in {time.monotonic() - began:.1f} s, failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
