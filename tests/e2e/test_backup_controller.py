"""A short form of tests/crash/take_over.py: the leading controller is killed, stands still, is cut
off from the network and cannot write, and its backup takes over each time.

Covers: controller/edge/leadership.
"""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "crash" / "take_over.py"


def test_a_backup_takes_over_in_time_and_no_job_is_lost_or_there_twice():
    command = [sys.executable, str(SCRIPT), "--count", "4", "--clients", "2", "--seed", "11"]
    command += ["--grace", "60"]  # on whatever machine; by hand it is 5 s
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^(\w+): 1 takeovers", done.stdout, re.MULTILINE) == [
        "kill",
        "stop",
        "cut",
        "full",
    ]
    said = re.search(r"(\d+) acknowledged", done.stdout)
    assert said is not None, done.stdout
    assert int(said[1]) > 5
