"""The queue for accounting is a new leader's, whatever the former one does.

Covers: controller/edge/state_files.
"""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from understudy.controller.edge.state_files import KeptQueue
from understudy.controller.saved.lease import Lease

STANDS_STILL = """
import sqlite3, sys
from pathlib import Path
from understudy.controller.accounting.queue import QueueFile
from understudy.controller.saved.database import open_database
from understudy.controller.saved.lease import Lease
state = Path(sys.argv[1])
lease = Lease(state / "state.sqlite", "controller", 1.0)
assert lease.take(lease.read())
QueueFile(open_database(state / "accounting.sqlite", "controller", busy_s=1.0), lease.fence)
database = sqlite3.connect(state / "accounting.sqlite", isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_who_led_before_and_stands_still_writing_to_the_queue_does_not_keep_it(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("understudy.controller.edge.state_files._BUSY_S", 0.2)
    state = tmp_path / "state"
    state.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", STANDS_STILL, str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as stuck:
        assert stuck.stdout.readline() == b"locked\n"
        os.kill(stuck.pid, signal.SIGSTOP)
        lease = Lease(state / "state.sqlite", "backup1", 1.0)
        assert lease.take(lease.read(), by_force=True)
        cluster = SimpleNamespace(state_url="", state_dir=str(state), controller_unix="unix:/c")
        daemon = SimpleNamespace(name="backup1", cluster=cluster, run_dir=tmp_path)
        KeptQueue(daemon, lease, pytest.fail).close()
        assert stuck.wait() == -signal.SIGKILL
    lease.close()
