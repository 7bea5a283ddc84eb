"""A cluster whose nodes are hops of their own (`--hops sockets`): the same jobs end in the same way
as with hops in memory, whatever befalls links and heads.

Covers: tool/fan_out/measure.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import read_pid_file

CONF = """
ClusterName=hops
SlurmctldHost=localhost
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MessageTimeout=10
KillWait=1
SlurmdTimeout=300
NodeName=n[1-40] CPUs=4 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=n[1-40] Default=YES MaxTime=INFINITE State=UP
"""
BIN = Path(sys.executable).parent


class Site:
    def __init__(self, folder):
        self.run_dir = folder / "run"
        self.conf = folder / "slurm.conf"
        self.conf.write_text(CONF)
        self.environment = {**os.environ, "UNDERSTUDY_REGISTRY": str(folder / "registry")}
        self.environment.pop("SLURM_CONF", None)

    def __call__(self, command, *arguments):
        return subprocess.run(
            [str(BIN / command), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def up(self, *arguments):
        return self(
            "understudy", "up", "--conf", str(self.conf), "--run-dir", str(self.run_dir),
            "--port", "0", "--clean", *arguments,
        )  # fmt: skip

    def down(self):
        return self("understudy", "down", "--run-dir", str(self.run_dir))

    def submit(self, *arguments):
        done = self("sbatch", "--parsable", "-o", "/dev/null", *arguments)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def jobs(self):
        """State, exit code and nodes of each job, when all are over."""
        for _ in range(600):
            rows = json.loads(self("squeue", "--json", "--states=all").stdout)["jobs"]
            if all(self.is_over(row) for row in rows):
                return {row["job_id"]: (row["job_state"], row["nodes"]) for row in rows}
            time.sleep(0.1)
        raise AssertionError(
            [(row["job_id"], row["job_state"], row["state_description"]) for row in rows]
        )

    @staticmethod
    def is_over(row):
        state = row["job_state"]
        return "COMPLETING" not in row.get("state_flags", ()) and state not in (
            "PENDING",
            "RUNNING",
            "COMPLETING",
        )

    def idle(self):
        return self("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip()


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.down()


def work(site):
    """A mixed handful, and what became of it."""
    site.submit("-N40", "--wrap", "sleep 0")
    cancelled = site.submit("-N20", "--wrap", "sleep 1000")
    site.submit("-N7", "--wrap", "exit 3")
    site.submit("-N40", "-n160", "--wrap", "sleep 1")
    for _ in range(600):
        if site("squeue", "-h", "-j", str(cancelled), "-o", "%t").stdout.strip() == "R":
            break
        time.sleep(0.05)
    assert site("scancel", str(cancelled)).returncode == 0
    found = site.jobs()
    for _ in range(600):  # nodes are given back with the last epilog
        if site.idle() == "40":
            break
        time.sleep(0.05)
    assert site.idle() == "40"
    return found


def test_jobs_end_as_with_hops_in_memory_and_so_do_steps(site):
    assert site.up().returncode == 0
    in_memory = work(site)
    steps = site("srun", "-N40", "hostname").stdout
    site.down()
    for options in (["--hop-width", "2", "--hop-processes", "3"], ["--hop-transport", "tcp"]):
        up = site.up("--hops", "sockets", *options)
        assert up.returncode == 0, up.stderr
        assert "hops through sockets" in up.stdout
        assert work(site) == in_memory
        assert sorted(site("srun", "-N40", "hostname").stdout) == sorted(steps)
        assert site("scontrol", "reconfigure").returncode == 0
        site.down()


def test_links_that_lose_and_heads_that_die_lose_no_job_and_no_node(site):
    # a head's death is noticed by its silence
    site.conf.write_text(CONF.replace("MessageTimeout=10", "MessageTimeout=1"))
    up = site.up(
        "--hops", "sockets", "--hop-width", "3", "--hop-processes", "2", "--link-loss", "0.05",
        "--head-deaths", "0.3", "--link-latency-ms", "2", "--hop-seed", "4",
    )  # fmt: skip
    assert up.returncode == 0, up.stderr
    states = [state for state, _ in work(site).values()]
    assert sorted(states) == ["CANCELLED", "COMPLETED", "COMPLETED", "FAILED"]


def test_a_process_of_nodes_that_dies_and_comes_back_gives_its_nodes_back(site):
    assert site.up("--hops", "sockets", "--hop-width", "2", "--hop-processes", "2").returncode == 0
    job = site.submit("-N40", "--wrap", "sleep 1000")
    for _ in range(600):
        if site("squeue", "-h", "-j", str(job), "-o", "%t").stdout.strip() == "R":
            break
        time.sleep(0.05)
    process = read_pid_file(site.run_dir / "noded1.pid")
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    assert site("scancel", str(job)).returncode == 0
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "understudy.noded", "--run-dir", str(site.run_dir),
         "--name", "noded1"],
        env=site.environment,
    )  # fmt: skip
    try:
        assert site.jobs()[job][0] == "CANCELLED"
        for _ in range(600):
            if site.idle() == "40":
                break
            time.sleep(0.05)
        assert site.idle() == "40"
    finally:
        child.terminate()
        child.wait()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--hops", "sockets", "--time", "virtual"], "needs --time real or scaled:N"),
        (["--hops", "sockets", "--executor", "real"], "is for emulated jobs"),
        (["--link-loss", "0.1"], "--link-loss goes with --hops sockets"),
    ],
)
def test_what_does_not_go_together_is_refused(site, options, text):
    done = site.up(*options)
    assert done.returncode == 1
    assert text in done.stderr
    assert not (site.run_dir / "controller.pid").exists()


def test_a_message_to_all_nodes_is_measured_over_width_and_number_of_nodes(site, tmp_path):
    done = site(
        "understudy", "fanout", "--nodes", "5,40", "--widths", "2,flat", "--hop-processes", "2",
        "--repeat", "2", "--head-deaths", "0.1", "--out", str(tmp_path / "page"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "page" / "fan-out.json").read_text())["rows"]
    assert [(row["nodes"], row["width"], row["levels"]) for row in rows] == [
        (5, 2, 2),
        (5, 0, 1),
        (40, 2, 5),
        (40, 0, 1),
    ]
    assert all(row["hop_s"] > 0 and 0 < row["seconds"] <= row["slowest_s"] for row in rows)
    assert [row["sender_messages"] for row in rows if not row["width"]] == [5, 40]
    assert "<svg" in (tmp_path / "page" / "fan-out.html").read_text()
    assert len(done.stdout.splitlines()) == 6
