"""`make differential SECONDS=600`: sequences by seed on real Slurm and on ours, side by side, until
the time is over. What differs is confirmed, made shorter, named, and kept in build/differential.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from differential.grammar import drawn, each_option
from differential.keep import keep, record
from differential.ledger import CHANCE, CLOSED, OPEN, Ledger
from differential.pairs import try_pairs
from differential.real_slurm import end_on_sigterm, missing
from differential.sequence import Step, read_lines
from differential.shrink import shrunk
from differential.sides import ROOT, Pair

if TYPE_CHECKING:
    from differential.compare import Difference
    from differential.sequence import Sequence

MOST_RUNS = 12


def look_into(pair: Pair, ledger: Ledger, sequence: Sequence, difference: Difference) -> None:
    """Confirm a difference, make it shorter, and note its cause."""
    signature = difference.signature
    if ledger.again(signature):
        return
    last = difference

    def shows(steps: list[Step]) -> bool:
        nonlocal last
        for found in pair.play(steps):
            if found.signature == signature:
                last = found
                return True
        return False

    steps = sequence.steps[: difference.step + 1]
    at_once = [[steps[-1]], [each for each in steps[:-1] if each.saves] + [steps[-1]], steps]
    confirmed = next((each for each in at_once if shows(each)), None)
    if confirmed is not None:
        steps = shrunk(confirmed, shows, most_runs=MOST_RUNS)
    ledger.found(signature, sequence.seed, sequence.areas, steps, last)
    if confirmed is None:
        ledger.causes[signature]["status"] = CHANCE
    print(f"seed {sequence.seed}: {signature}", flush=True)


def search(pair: Pair, ledger: Ledger, end: float, seed: int, step: int, *, progress: bool) -> None:
    """One seed after the other, `step` apart."""
    while time.monotonic() < end:
        sequence = drawn(seed)
        sequence.seed = seed
        begin = time.monotonic()
        differences = pair.play(sequence.steps)
        if progress:
            taken = time.monotonic() - begin
            print(f"{seed}: {len(sequence.steps)} steps, {taken:.1f} s", flush=True)
        ledger.tried(sequence, differences)
        for difference in differences:
            look_into(pair, ledger, sequence, difference)
        ledger.save()
        seed += step


def try_each(pair: Pair, ledger: Ledger, end: float, name: str) -> None:
    """Each option of a command with each value."""
    next_seed = ledger.next_seed
    for number, sequence in enumerate(each_option(name)):
        if time.monotonic() > end:
            print(f"{name}: the time is over after {number} sequences")
            break
        differences = pair.play(sequence.steps)
        ledger.tried(sequence, differences)
        for difference in differences:
            if not ledger.again(difference.signature):
                alone = sequence.steps[difference.step : difference.step + 1]
                steps = [*sequence.steps[:1], *alone] if alone else sequence.steps
                ledger.found(difference.signature, sequence.seed, sequence.areas, steps, difference)
                print(f"{difference.run}: {difference.signature}", flush=True)
        ledger.next_seed = next_seed
        ledger.save()


def recheck(pair: Pair, ledger: Ledger, end: float) -> None:
    """Run the sequences of the open causes once more: which are closed?"""
    for signature, cause in list(ledger.causes.items()):
        if cause["status"] != OPEN or time.monotonic() > end:
            continue
        steps = [Step.unpacked(each) for each in cause["steps"]]
        differences = pair.play(steps)
        if not any(found.signature == signature for found in differences):
            cause["status"] = CLOSED
            print(f"closed: {signature}", flush=True)
        for found in differences:
            if found.signature not in ledger.causes:
                ledger.found(found.signature, cause["seed"], set(cause["areas"]), steps, found)
                print(f"instead: {found.signature}", flush=True)
        ledger.save()


def side_by_side(ledger: Ledger, options: argparse.Namespace, first: int) -> None:
    """Workers, each a process with a ledger of its own, which this one takes in at the end."""
    folders = [options.folder / f"worker-{number}" for number in range(options.workers)]
    workers = []
    for number, folder in enumerate(folders):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        own = Ledger(folder)
        own.causes = {name: each | {"times": 0} for name, each in ledger.causes.items()}
        own.save()
        words = [sys.executable, "-m", "differential", "--seconds", str(options.seconds)]
        words += ["--seed", str(first + number), "--step", str(options.workers)]
        words += ["--folder", str(folder), *["--progress"] * options.progress]
        with (folder / "printed").open("w") as printed:
            workers.append(subprocess.Popen(words, stdout=printed, stderr=subprocess.STDOUT))
    try:
        for worker in workers:
            worker.wait()
    finally:
        for worker in workers:
            worker.terminate()
        for worker, folder in zip(workers, folders, strict=True):
            worker.wait()
            ledger.take_in(Ledger(folder))
        ledger.save()


def report_pairs(pair: Pair, name: str, seed: int, most: int) -> None:
    """What differs, each cause once."""
    count, differences = try_pairs(pair, name, seed, most)
    causes: dict[str, list[Difference]] = {}
    for found in differences:
        causes.setdefault(found.signature, []).append(found)
    for each in sorted(causes.values(), key=len, reverse=True):
        print("\n".join([f"### {len(each)} x {each[0].run}", *each[0].lines()[:8], ""]), flush=True)
    print(f"{name}: {count} lines, {len(differences)} differ, by {len(causes)} causes", flush=True)


def try_lines(pair: Pair, path: Path) -> None:
    """The command lines of a file, and what differs."""
    steps = read_lines(path.read_text())
    found = pair.play(steps, goes_on=True)
    for each in found:
        print("\n".join([f"### {each.run}", *each.lines(), ""]), flush=True)
    print(f"{len(steps)} lines, {len(found)} differ")


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="begin here, not where the last run ended")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "differential")
    what = "so many pairs of clusters side by side, each with seeds of its own"
    parser.add_argument("--workers", type=int, default=1, metavar="N", help=what)
    parser.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--progress", action="store_true", help="a line for each sequence")
    what = "each option of a command with each value, or each key of job, partition, node"
    parser.add_argument("--each", metavar="NAME", help=what)
    what = "each option of a command with each other one, in both orders; the seed draws values"
    parser.add_argument("--pairs", metavar="NAME", help=what)
    what = "only so many of the pairs, by the seed"
    parser.add_argument("--most", type=int, default=0, metavar="N", help=what)
    what = "the command lines of this file; `!` before those that change something, `@bin` for who"
    parser.add_argument("--lines", type=Path, metavar="FILE", help=what)
    what = "record what Slurm says to the lines as this scenario of tests/conformance"
    parser.add_argument("--as", dest="name", metavar="NAME", help=what)
    parser.add_argument("--about", default="lines drawn around the recorded ones", metavar="TEXT")
    parser.add_argument("--recheck", action="store_true", help="run the open causes again")
    parser.add_argument("--list", choices=(OPEN, CLOSED, CHANCE), help="print causes, run nothing")
    what = "write a cause's sequence as a scenario of tests/conformance"
    parser.add_argument("--keep", nargs=2, metavar=("SIGNATURE", "NAME"), help=what)
    options = parser.parse_args()
    if options.list:
        print(Ledger(options.folder).listing(options.list))
        return 0
    if why := missing():
        print(f"nothing to compare with: {why}")
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.folder)
    end_on_sigterm()
    first = options.seed or ledger.next_seed
    if options.workers > 1:
        side_by_side(ledger, options, first)
        print(ledger.statistics())
        return 0
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="df") as folder:
        pair = Pair(Path(folder))
        try:
            with pair.up():
                if options.keep:
                    keep(pair, ledger, *options.keep)
                elif options.each:
                    for name in options.each.split(","):
                        try_each(pair, ledger, end, name)
                elif options.pairs:
                    for name in options.pairs.split(","):
                        report_pairs(pair, name, options.seed or 1, options.most)
                elif options.lines and options.name:
                    steps = read_lines(options.lines.read_text())
                    record(pair, steps, options.name.split("-")[1], options.about, options.name)
                elif options.lines:
                    try_lines(pair, options.lines)
                elif options.recheck:
                    recheck(pair, ledger, end)
                else:
                    search(pair, ledger, end, first, options.step, progress=options.progress)
        except KeyboardInterrupt:
            traceback.print_exc(limit=1)
    ledger.save()
    if not options.lines:
        print(ledger.statistics())
    return 0


if __name__ == "__main__":
    sys.exit(main())
