"""The cases of strangers.py, led by which code they reach: all that is random in one is drawn from
bytes, and atheris (libFuzzer) makes up such bytes as go where none before went.

    python tests/fuzz/guided.py --kind conf --seconds 60
    python tests/fuzz/guided.py --kind conf crash-da39a3ee...      a finding again

What it has found so far is kept in build/fuzz/KIND, and a finding in the file that it names.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "harness")]

with atheris.instrument_imports(include=["understudy"]):
    from fuzz.files import FILES
    from fuzz.frames import FRAMES

LONGEST = 2000  # bytes, of which a case may draw
LONGEST_S = 20  # of a case


class Drawn(random.Random):
    """Chance that comes from bytes, and is all zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data, self._at = data, 0

    def getrandbits(self, count: int) -> int:
        size = (count + 7) >> 3
        part = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(part, "little") & (1 << count) - 1

    def random(self) -> float:
        return self.getrandbits(53) / (1 << 53)


def main() -> None:
    """The script; it ends the process."""
    parser = argparse.ArgumentParser(description="Fuzz one kind, led by coverage.")
    parser.add_argument("--kind", choices=[*FRAMES, *FILES], required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("finding", nargs="?")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    case = (FRAMES | FILES)[asked.kind]
    kept = Path("build/fuzz") / asked.kind
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="understudy-fuzz-") as folder:
        limits = (f"-max_total_time={asked.seconds}", f"-timeout={LONGEST_S}")
        where = (f"-artifact_prefix={kept}/", f"-max_len={LONGEST}", "-len_control=0")
        words = [sys.argv[0], *limits, *where, asked.finding or str(kept)]
        atheris.Setup(words, lambda data: case(Drawn(data), Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
