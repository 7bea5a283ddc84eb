"""A controller's process that cannot begin says so in a line.

Covers: controller/edge/main.
"""

import contextlib
import os
import sqlite3
import subprocess
import sys

import pytest

from understudy.controller.accounting.queue import QueueFile
from understudy.controller.saved.database import open_database
from understudy.controller.saved.lease import Lease
from understudy.controller.saved.store import Store
from understudy.tool.cluster.launch import prepare

CONF = "ClusterName=c\nSlurmctldHost=here\nNodeName=n1 CPUs=1\nPartitionName=p Nodes=ALL\n"


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF)
    prepare(tmp_path / "run", tmp_path / "slurm.conf", tcp="never")
    return tmp_path / "run"


def run(run_dir):
    """A controller, until it ends."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "understudy.controller", "--run-dir", str(run_dir)],
        env={**os.environ, "UNDERSTUDY_REGISTRY": str(run_dir / "registry")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusal(run_dir):
    """The one line with which a controller ends at its start."""
    ended = run(run_dir)
    assert ended.returncode == 1
    lines = [line for line in ended.stderr.splitlines() if "understudy.controller:" in line]
    assert len(lines) == 1
    assert "Traceback" not in ended.stderr
    return lines[0]


def with_accounting(run_dir):
    with (run_dir / "slurm.conf").open("a") as file:
        file.write("AccountingStorageType=accounting_storage/slurmdbd\n")
    prepare(run_dir, run_dir / "slurm.conf", tcp="never")
    path = run_dir / "state" / "accounting.sqlite"
    QueueFile(open_database(path, "controller", busy_s=1.0), 1).close()


def with_(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for each in statements:
            database.execute(each)


def test_a_state_that_cannot_be_read_is_told_in_a_line(run_dir):
    (run_dir / "state" / "state.sqlite").write_bytes(b"no database" * 1000)
    assert "state.sqlite: file is not a database" in refusal(run_dir)


def test_a_state_that_cannot_be_written_is_told_in_a_line(run_dir):
    path = run_dir / "state" / "state.sqlite"
    refuse = "BEGIN SELECT RAISE(ABORT, 'attempt to write a readonly database'); END"
    Lease(path, "controller", None).close()
    with_(path, f"CREATE TRIGGER no BEFORE UPDATE ON lease {refuse}")
    assert "state.sqlite: attempt to write a readonly database" in refusal(run_dir)


@pytest.mark.parametrize("damage", ["fence = 'x'", "holder = x'00'", "beats = 1.5"])
def test_a_damaged_lease_is_told_with_its_file(run_dir, damage):
    path = run_dir / "state" / "state.sqlite"
    Lease(path, "controller", None).close()
    with_(path, f"UPDATE lease SET {damage}")
    assert "state/state.sqlite: damaged lease" in refusal(run_dir)


def test_another_clusters_state_is_told_with_its_file(run_dir):
    path = run_dir / "state" / "state.sqlite"
    lease = Lease(path, "controller", None)
    lease.belong_to("another")
    lease.close()
    assert 'state/state.sqlite: is the state of cluster "another"' in refusal(run_dir)


def test_a_damaged_record_is_told_with_its_file(run_dir):
    Store(run_dir / "state").close()
    path = run_dir / "state" / "state.sqlite"
    with_(path, "INSERT INTO jobs VALUES (7, x'c1')")
    assert "state/state.sqlite: damaged job record" in refusal(run_dir)
    with_(path, "DROP TABLE jobs", "CREATE TABLE jobs (job_id INTEGER)")
    assert refusal(run_dir).count("state.sqlite") == 1


def test_a_damaged_record_for_accounting_is_told_with_its_file(run_dir):
    with_accounting(run_dir)
    with_(run_dir / "state" / "accounting.sqlite", "INSERT INTO queue VALUES (1, x'c1')")
    assert "state/accounting.sqlite: damaged record" in refusal(run_dir)
