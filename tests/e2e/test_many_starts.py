"""A short form of tests/crash/start_many.py: clusters and replays with accounting that start at the
same time do not get into each other's way.
"""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "crash" / "start_many.py"


def test_clusters_and_replays_with_accounting_start_side_by_side():
    command = [
        sys.executable,
        str(SCRIPT),
        "--count",
        "8",
        "--at-once",
        "8",
        "--kinds",
        "port,plain,replay,one-process",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none failed" in done.stdout
