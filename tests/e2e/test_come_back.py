"""Daemons that die and come back: by `understudy up`, by hand, and by a supervisor.

Covers: tool/cluster/come_back.
"""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import read_pid_file

BIN = Path(sys.executable).parent
CONF = """
ClusterName=back
SlurmctldHost=localhost
NodeName=n[1-8] CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Site:
    def __init__(self, folder: Path) -> None:
        self.run_dir = folder / "run"
        self.environment = {**os.environ, "UNDERSTUDY_REGISTRY": str(folder / "registry")}
        self.environment.pop("SLURM_CONF", None)
        (folder / "slurm.conf").write_text(CONF)
        self.conf = str(folder / "slurm.conf")

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            env=self.environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def tool(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self("understudy", verb, *words, "--run-dir", str(self.run_dir))

    def pid(self, name: str) -> int:
        process = read_pid_file(self.run_dir / f"{name}.pid")
        assert process is not None
        return process.pid

    def kill(self, name: str) -> int:
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    def await_other(self, name: str, pid: int) -> None:
        deadline = time.monotonic() + 30
        while True:
            process = read_pid_file(self.run_dir / f"{name}.pid")
            if process is not None and process.is_running and process.pid != pid:
                return
            assert time.monotonic() < deadline, f"{name} does not come back"
            time.sleep(0.05)


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.tool("down")


def test_up_and_the_hand_start_just_the_daemon_that_died(site):
    up = site.tool("up", "--conf", site.conf, "--port", "0")
    assert up.returncode == 0, up.stderr
    kept = {name: site.pid(name) for name in ("agent", "noded0")}
    site.kill("controller")
    status = site.tool("status")
    assert status.returncode == 1
    assert "Missing: controller. `understudy up --run-dir" in status.stdout
    again = site.tool("up")
    assert (again.returncode, again.stdout) == (0, f"Started again: controller ({site.run_dir})\n")
    assert "8 idle" in site.tool("status").stdout
    assert {name: site.pid(name) for name in kept} == kept
    already = site.tool("up")
    assert already.returncode == 1
    assert "is already running" in already.stderr

    killed = site.kill("noded0")
    command = [str(BIN / "understudy"), "daemon", "noded0", "--run-dir", str(site.run_dir)]
    with subprocess.Popen(command, env=site.environment, stderr=subprocess.DEVNULL) as by_hand:
        site.await_other("noded0", killed)
        assert site.tool("status").returncode == 0
        by_hand.terminate()


@pytest.mark.parametrize(("file", "table"), [("state", "jobs"), ("accounting", "queue")])
def test_a_controller_whose_disk_is_full_says_so_and_ends_with_a_failure(site, file, table):
    with open(site.conf, "a", encoding="utf-8") as conf:
        conf.write("AccountingStorageType=accounting_storage/slurmdbd\n")
    up = site.tool("up", "--conf", site.conf, "--port", "0")
    assert up.returncode == 0, up.stderr
    killed = site.kill("controller")
    command = [str(BIN / "understudy"), "daemon", "controller", "--run-dir", str(site.run_dir)]
    said = site.run_dir / "said"
    with (
        said.open("w") as output,
        subprocess.Popen(command, env=site.environment, stderr=output) as by_hand,
    ):
        site.await_other("controller", killed)
        path = site.run_dir / "state" / f"{file}.sqlite"
        with contextlib.closing(sqlite3.connect(path, timeout=10)) as database, database:
            database.execute(
                f"CREATE TRIGGER no BEFORE INSERT ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        submit = [str(BIN / "sbatch"), "--wrap", "true"]
        with subprocess.Popen(submit, env=site.environment, stderr=subprocess.DEVNULL) as sbatch:
            try:
                assert by_hand.wait(30) == 1
            finally:
                sbatch.kill()
                by_hand.kill()
    log = said.read_text() + (site.run_dir / "logs" / "controller.log").read_text()
    assert f"cannot save the state, ending: {path}: database or disk is full" in log
    assert "Traceback" not in log


def test_a_supervisor_starts_what_dies_until_the_cluster_is_ended(site):
    up = site.tool("up", "--conf", site.conf, "--port", "0", "--supervise")
    assert up.returncode == 0, up.stderr
    for name in ("controller", "noded0", "agent"):
        site.await_other(name, site.kill(name))
    submitted = site("sbatch", "--wait", "--wrap", "true")
    assert submitted.returncode == 0, submitted.stderr
    supervisor = read_pid_file(site.run_dir / "supervisor.pid")
    down = site.tool("down")
    assert down.returncode == 0, down.stderr
    assert "supervisor" in down.stdout
    assert not supervisor.is_running
    assert not list(site.run_dir.glob("*.pid"))
    log = (site.run_dir / "logs" / "supervisor.log").read_text()
    assert "controller has ended; it is started again in 0.5 s" in log
    assert "controller runs again, pid" in log
