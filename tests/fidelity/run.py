"""`make fidelity`: every workload of ../shared/fidelity through a cluster under virtual time,
scored beside real Slurm's own spread.

The workloads and the comparer are not part of this repository; where ../shared is absent, it says
so and ends with 0.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KIT = ROOT.parent / "shared" / "fidelity"


def run(workload: Path, out: Path, *, one_process: bool) -> str:
    """Replay one workload; its last lines where it failed."""
    command = [
        str(Path(sys.executable).parent / "understudy"),
        "replay",
        str(workload),
        "--out",
        str(out),
    ]
    done = subprocess.run(
        [*command, *(["--one-process"] if one_process else [])],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    return (
        ""
        if done.returncode in (0, 3, 4)
        else "\n".join((done.stdout + done.stderr).strip().splitlines()[-3:])
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="fidelity")
    parser.add_argument("workloads", nargs="*", help="names (default: all)")
    parser.add_argument("--processes", action="store_true", help="one process a daemon")
    parser.add_argument("--out", type=Path, help="keep the results here")
    options = parser.parse_args()
    if not KIT.exists():
        print("no ../shared/fidelity here: nothing to compare with")
        return 0
    names = options.workloads or sorted(path.parent.name for path in KIT.glob("*/workload.jsonl"))
    with tempfile.TemporaryDirectory() as temporary:
        out = options.out or Path(temporary)
        out.mkdir(parents=True, exist_ok=True)
        for name in names:
            failure = run(KIT / name, out / name, one_process=not options.processes)
            if failure:
                print(f"{name}: {failure}")
                continue
            result = out / f"{name}.jsonl"
            result.write_text((out / name / "result.jsonl").read_text())
            compared = subprocess.run(
                [str(KIT / "compare"), str(KIT / name), str(result)],
                capture_output=True,
                text=True,
                check=False,
            )
            print(
                f"{name:24} {(compared.stdout or compared.stderr).strip().splitlines()[-1]}",
                flush=True,
            )
        return subprocess.run([str(KIT / "compare"), str(KIT), str(out)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
