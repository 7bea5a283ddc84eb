"""`make profile WHAT=CASE`: where a case spends its time, as a flame graph of every process.

py-spy looks at the stacks of the case's processes, daemons among them, and draws one picture in
which each process stands on its own foot; a click widens it. Only Python's frames are seen: what
the interpreter does in C counts for who called it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.sides import BUILD, ROOT

RATE = 100  # samples a second


def main() -> None:
    parser = argparse.ArgumentParser(prog="profile", description=__doc__)
    parser.add_argument("case", choices=CASES, metavar="CASE")
    parser.add_argument("--out", type=Path, help="(default: build/bench/profiles/CASE.svg)")
    options = parser.parse_args()
    out = options.out or BUILD / "profiles" / f"{options.case}.svg"
    out.parent.mkdir(parents=True, exist_ok=True)
    py_spy = Path(sys.executable).with_name("py-spy")
    spying = [str(py_spy), "record", "--subprocesses", "--nonblocking", "--rate", str(RATE)]
    measuring = [sys.executable, "-m", "benchmarks.measure", options.case, "here"]
    done = subprocess.run([*spying, "--output", str(out), "--", *measuring], cwd=ROOT, check=False)
    if done.returncode or not out.exists():
        raise SystemExit(
            "profile: py-spy could not look (it needs root, or kernel.yama.ptrace_scope=0)"
        )
    print(out)


if __name__ == "__main__":
    main()
