"""A short form of tests/crash/kill_controller.py: the controller is killed while clients submit,
and nothing acknowledged is lost or there twice.
"""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "crash" / "kill_controller.py"


def test_no_acknowledged_job_is_lost_or_there_twice_however_the_controller_is_killed():
    command = [
        sys.executable,
        str(SCRIPT),
        "--kills",
        "8",
        "--clients",
        "4",
        "--seed",
        "11",
        "--node-daemon-kills",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"(\d+) kills of the controller, .* (\d+) acknowledged", done.stdout)
    assert said is not None, done.stdout
    assert int(said[1]) == 8
    assert int(said[2]) > 8
