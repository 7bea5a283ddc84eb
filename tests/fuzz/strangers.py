"""What strangers can send, type or leave in files, mutated at random: no traceback, no hang, no
growth, and nothing believed that is not authentic.

    python tests/fuzz/strangers.py [--frames 20000] [--files 5000] [--first 1]     all kinds
    python tests/fuzz/strangers.py --kind swf --first 17 --count 1                 one case again

Everything happens in this process. A case is a kind and a number, from which all that is random in
it follows; a finding names both. `make fuzz` runs a million frames and a hundred thousand files and
command lines.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "harness")]

from fuzz.files import FILES
from fuzz.frames import FRAMES, nothing_is_left

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = "tests/fuzz/strangers.py"
LONGEST_S = 20.0  # of a case, on a busy machine
# a case of these is a whole daemon, and several messages for it
WEIGHTS = {"messages": 0.1, "nodes": 0.2, "accounts": 0.01}


class Finding(NamedTuple):
    """A case in which something went wrong."""

    kind: str
    number: int
    error: BaseException

    @property
    def where(self) -> str:
        """The line of code."""
        last = traceback.extract_tb(self.error.__traceback__)[-1]
        return f"{last.filename}:{last.lineno} {type(self.error).__name__}"

    def __str__(self) -> str:
        lines = traceback.format_exception(self.error)
        return (
            f"{self.kind} {self.number}: {lines[-1].strip()}\n"
            f"    python {SCRIPT} --kind {self.kind} --first {self.number} --count 1\n"
            + "".join(lines[-4:-1])
        )


class HangError(Exception):
    """The case takes too long."""


@contextlib.contextmanager
def bounded():
    """Raise in a case that takes too long."""

    def late(_number: int, _frame: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def run(kind: str, first: int, count: int, folder: Path) -> list[Finding]:
    """So many cases of a kind; what was found."""
    case: Callable[[random.Random, Path], None] = (FRAMES | FILES)[kind]
    found: list[Finding] = []
    known: dict[str, None] = {}  # where things went wrong already
    for number in range(first, first + count):
        try:
            with bounded():
                case(random.Random(f"{kind} {number}"), folder)
        except Exception as error:  # noqa: BLE001  that is what is looked for
            finding = Finding(kind, number, error)
            if finding.where not in known:
                known[finding.where] = None
                found.append(finding)
    if kind in FRAMES and (left := nothing_is_left()):
        found.append(Finding(kind, first, AssertionError(left)))
    return found


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser(description="Fuzz what strangers can send, type or leave.")
    parser.add_argument("--frames", type=int, default=20_000, help="how many frames and messages")
    parser.add_argument("--files", type=int, default=5_000, help="files and command lines")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--kind", choices=[*FRAMES, *FILES])
    parser.add_argument("--count", type=int, default=1000, help="with --kind")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    weights = {kind: WEIGHTS.get(kind, 1.0) for kind in FRAMES}
    shares = {
        kind: round(asked.frames * weight / sum(weights.values()))
        for kind, weight in weights.items()
    }
    shares |= {kind: asked.files // len(FILES) for kind in FILES}
    if asked.kind:
        shares = {asked.kind: asked.count}
    found: Counter[str] = Counter()
    for kind, count in shares.items():
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="understudy-fuzz-") as folder:
            findings = run(kind, asked.first, count, Path(folder))
        for finding in findings:
            print(finding, file=sys.stderr)
        found[kind] = len(findings)
        print(
            f"{kind:10} {count:8} cases, {time.monotonic() - began:6.1f} s, "
            f"{len(findings)} findings",
            flush=True,
        )
    return int(found.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
