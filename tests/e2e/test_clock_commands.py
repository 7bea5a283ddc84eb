"""Clusters whose time is virtual or scaled, and what `understudy clock` does to it, with real
processes.

Covers: clock/rates, clock/rate_link, clock/scaled_loop, tool/cluster/clock_client,
tool/understudy/clock.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import recorded

BIN = Path(sys.executable).parent
CONF = """
ClusterName=clocks
SlurmctldHost=localhost
SchedulerType=sched/{scheduler}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-2] CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
COLUMN = "%.18i %.2t %M %r"


class Cluster:
    """A cluster in a directory of its own, and its user's commands."""

    def __init__(self, folder: Path, kind: str, scheduler: str, more: str) -> None:
        self.run_dir = folder / "run"
        self.environment = {
            **os.environ,
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "TMPDIR": str(folder),
        }
        self.environment.pop("SLURM_CONF", None)
        (folder / "slurm.conf").write_text(CONF.format(scheduler=scheduler) + more)
        up = [
            "up",
            "--conf",
            str(folder / "slurm.conf"),
            "--run-dir",
            str(self.run_dir),
            "--port",
            "0",
            "--time",
            kind,
        ]
        self("understudy", *up)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / command[0], *command[1:]],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def __call__(self, *command: str) -> str:
        """What a command that succeeds prints."""
        done = self.run(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def clock(self, *arguments: str) -> str:
        return self("understudy", "clock", *arguments)

    def sbatch(self, *arguments: str) -> str:
        return self("sbatch", "--parsable", *arguments).strip()

    def job(self, job_id: str) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S+)", self("scontrol", "show", "job", job_id)))

    def await_state(self, job_id: str, state: str) -> dict[str, str]:
        return self.until(lambda: self.job(job_id), lambda job: job["JobState"] == state)

    def await_clock(self, words: str) -> str:
        return self.until(lambda: self.clock("status"), lambda status: words in status)

    def until(self, look, is_right, patience_s: float = 60.0):
        deadline = time.monotonic() + patience_s
        while not is_right(seen := look()):
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)
        return seen


@pytest.fixture
def start(tmp_path):
    clusters = []

    def start(kind, scheduler="easy", more=""):
        clusters.append(Cluster(tmp_path, kind, scheduler, more))
        return clusters[0]

    yield start
    for cluster in clusters:
        cluster.run("understudy", "down", "--run-dir", str(cluster.run_dir))
        for process in recorded(cluster.run_dir):
            process.signal(signal.SIGKILL)


def seconds(job: dict[str, str]) -> float:
    return (
        datetime.fromisoformat(job["EndTime"]) - datetime.fromisoformat(job["StartTime"])
    ).total_seconds()


def test_in_virtual_time_a_job_of_days_is_over_at_once_and_stays_to_be_seen(start):
    cluster = start("virtual", "backfill")
    job = cluster.await_state(cluster.sbatch("--time=7-0", "--wrap", "sleep 2d; exit 3"), "FAILED")
    assert seconds(job) == pytest.approx(2 * 86_400, abs=2)
    assert job["ExitCode"] == "3:0"
    status = cluster.await_clock("idle (nobody has anything to do)")
    assert "2 d 00:0" in status, "the job's limit of a week drives time no further"


def test_while_virtual_time_stands_still_all_commands_work_on_one_instant(start):
    cluster = start("virtual")
    cluster.clock("pause")
    assert "paused (by request)" in cluster.clock("status")
    low, high, doomed = (
        cluster.sbatch("--exclusive", "--nodes=2", "--wrap", f"sleep {60 * n}", "--time=60")
        for n in (1, 2, 3)
    )
    before = [cluster("squeue", "-o", COLUMN), cluster("sinfo")]
    time.sleep(1.1)
    assert [cluster("squeue", "-o", COLUMN), cluster("sinfo")] == before
    assert [line.split()[1] for line in before[0].splitlines()[1:]] == ["PD", "PD", "PD"]
    cluster("scontrol", "update", f"jobid={high}", "priority=1000")
    cluster("scancel", doomed)
    assert cluster.job(doomed)["JobState"] == "CANCELLED"
    cluster("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
    assert "drain" in cluster("sinfo")
    cluster("scontrol", "update", "nodename=n2", "state=resume")
    cluster.clock("resume")
    first, second = cluster.await_state(high, "COMPLETED"), cluster.await_state(low, "COMPLETED")
    assert (seconds(first), seconds(second)) == (120, 60)
    assert first["EndTime"] <= second["StartTime"]


def test_virtual_time_goes_to_an_instant_by_steps_and_at_a_rate(start):
    cluster = start("virtual")
    cluster.clock("pause")
    job_id = cluster.sbatch("--time=120", "--wrap", "sleep 3600")
    cluster.clock("run-until", "30m")
    status = cluster.await_clock("paused (breakpoint)")
    assert "0 d 00:30:00" in status or "0 d 00:29:59" in status
    assert re.search(r" R +29:5\d", cluster("squeue", "-o", COLUMN))
    cluster.clock("step", "10m")
    cluster.until(
        lambda: cluster("squeue", "-o", COLUMN),
        lambda queue: re.search(r" R +39:5\d", queue) is not None,
    )
    cluster.await_clock("paused")
    cluster.clock("rate", "600")  # the last 20 minutes in two seconds
    assert "600 times real time" in cluster.clock("status")
    began = time.monotonic()
    cluster.clock("resume")
    assert seconds(cluster.await_state(job_id, "COMPLETED")) == 3600
    assert time.monotonic() - began > 1.0
    cluster.clock("rate", "0")
    cluster.clock("break", "every", "1h")
    cluster.sbatch("--time=600", "--wrap", "sleep 3h")
    assert re.search(r"0 d 0[12]:00:00|0 d 0[01]:59:59", cluster.await_clock("paused (breakpoint)"))
    cluster.clock("break", "off")
    cluster.clock("resume")
    cluster.await_clock("idle")
    cluster.clock("run-until", "100h")  # nothing happens by then
    assert "4 d 04:00:00 after the start" in cluster.await_clock("paused (breakpoint)")
    submitted = cluster.job(cluster.sbatch("--hold", "--wrap", "true"))["SubmitTime"]
    epoch = json.loads((cluster.run_dir / "cluster.json").read_text())["epoch"]
    assert datetime.fromisoformat(submitted).timestamp() == epoch + 100 * 3600


def test_wrong_requests_to_the_clock_are_refused_and_change_nothing(start):
    cluster = start("virtual")
    cluster.await_state(cluster.sbatch("--wrap", "sleep 1h"), "COMPLETED")
    now = re.findall(r"now .*", cluster.await_clock("idle"))
    for words, complaint in {
        ("run-until", "10m"): "past",
        ("break", "yesterday"): "neither",
        ("break", "every", "soon"): "break",
        ("step", "-3"): "",
        ("step", "often"): "neither",
        ("rate", "fast"): "factor",
        ("rate", "--", "-5"): "backwards",
        ("hurry",): "hurry",
    }.items():
        done = cluster.run("understudy", "clock", *words)
        assert done.returncode != 0, words
        assert complaint in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert re.findall(r"now .*", cluster.clock("status")) == now


def test_scaled_time_runs_stops_and_changes_its_rate(start):
    # the default is over in a fifth of a second at the higher rate
    cluster = start("scaled:60", more="MinJobAge=864000\n")
    began = time.monotonic()
    job = cluster.await_state(cluster.sbatch("--time=10", "--wrap", "sleep 120"), "COMPLETED")
    assert 1.5 < time.monotonic() - began < 60
    assert 120 <= seconds(job) <= 120 + 600
    job_id = cluster.sbatch("--time=400", "--wrap", "sleep 3h")
    cluster.await_state(job_id, "RUNNING")
    assert "scaled time, paused" in cluster.clock("pause")
    first = cluster("squeue", "-o", COLUMN)
    time.sleep(1.1)
    assert cluster("squeue", "-o", COLUMN) == first
    cluster.clock("rate", "1800")
    cluster.clock("resume")
    began = time.monotonic()
    cluster.await_state(job_id, "COMPLETED")
    assert time.monotonic() - began < 60, "at 60 times real time it would be three minutes"
    assert cluster.run("understudy", "clock", "step").returncode == 1, (
        "only virtual time has windows"
    )


def killed(cluster: Cluster, name: str):
    (process,) = (each for each in recorded(cluster.run_dir) if each.name == name)
    process.signal(signal.SIGKILL)
    cluster.until(lambda: process.is_running, lambda is_running: not is_running)
    return process


def instant(cluster: Cluster, job_id: str, key: str) -> datetime:
    return datetime.fromisoformat(cluster.job(job_id)[key])


def test_scaled_time_goes_on_without_its_service_which_goes_on_where_it_would_be(start):
    cluster = start("scaled:60", more="MinJobAge=864000\n")
    cluster.clock("rate", "600")
    first = cluster.sbatch("--time=400", "--wrap", "sleep 600")
    cluster.await_state(first, "COMPLETED")
    killed(cluster, "clock")
    meanwhile = cluster.sbatch("--time=400", "--wrap", "sleep 1200")
    cluster.await_state(meanwhile, "COMPLETED")
    up = ("understudy", "up", "--run-dir", str(cluster.run_dir))
    assert "Started again: clock" in cluster(*up)
    assert "600 times real time" in cluster.clock("status")
    # who starts now is told what time it is by a service that has started again
    killed(cluster, "controller")
    assert "Started again: controller" in cluster(*up)
    later = cluster.sbatch("--time=400", "--wrap", "sleep 60")
    assert instant(cluster, later, "SubmitTime") >= instant(cluster, meanwhile, "EndTime")
    booted = re.search(r"BOOT_TIME += (\S+)", cluster("scontrol", "show", "config"))
    assert datetime.fromisoformat(booted[1]) >= instant(cluster, meanwhile, "EndTime")
    # and the others have found it again
    assert "at its last rate" in (cluster.run_dir / "logs" / "noded0.log").read_text()
    cluster.await_clock("participants controller, noded0")
    cluster.sbatch("--time=400", "--wrap", "sleep 3h")
    cluster.clock("pause")
    first = cluster("squeue", "-o", COLUMN)
    time.sleep(0.2)
    assert cluster("squeue", "-o", COLUMN) == first


def test_real_time_has_no_clock_to_change(start):
    cluster = start("real")
    done = cluster.run("understudy", "clock", "pause")
    assert done.returncode == 1
    assert "real time" in done.stderr


def test_who_is_silent_for_a_moment_of_scaled_time_is_not_taken_for_dead(start):
    cluster = start(
        "scaled:1000",
        more="SlurmdTimeout=30\nAccountingStorageType=accounting_storage/slurmdbd\n"
        "MinJobAge=8640000\n",
    )
    others = [
        process for process in recorded(cluster.run_dir) if process.name in ("accounting", "noded0")
    ]
    assert len(others) == 2
    for process in others:
        process.signal(signal.SIGSTOP)
    job_id = cluster.sbatch("--wrap", "sleep 60")
    time.sleep(1.5)  # 25 minutes of the cluster's
    assert cluster("sinfo", "-h", "-o", "%D %T").split()[1] in ("idle", "mixed")
    for process in others:
        process.signal(signal.SIGCONT)
    cluster.await_state(job_id, "COMPLETED")
    cluster.until(
        lambda: cluster("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "state"),
        lambda states: states.strip() == "COMPLETED",
    )
    log = (cluster.run_dir / "logs" / "controller.log").read_text()
    assert not re.search("does not respond|has not responded|has not taken|no word on", log), log
