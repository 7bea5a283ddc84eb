"""A cluster with the real executor for end-to-end tests: `understudy up`, commands as a user types
them, `understudy down`.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from understudy.model.cluster import Cluster
from understudy.noded.journal import entries
from understudy.tool.cluster.processes import recorded

BIN = Path(sys.executable).parent
CONF = """
ClusterName=steps
SlurmctldHost=localhost
SlurmctldPort=6817
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
KillWait={kill_wait_s}
MinJobAge=300
SlurmdTimeout={slurmd_timeout_s}
ReturnToService=2
GresTypes=gpu
{more}
NodeName=n[1-4] CPUs=4 RealMemory=4000 Gres=gpu:4 State=UNKNOWN
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
"""


class RealCluster:
    """The cluster and a folder of its user's own. `run` types a command there."""

    def __init__(
        self,
        folder: Path,
        *,
        more: str = "",
        noded: int = 1,
        slurmd_timeout_s: int = 300,
        kill_wait_s: int = 1,
    ) -> None:
        self.folder, self.noded = folder, noded
        (folder / "slurm.conf").write_text(
            CONF.format(more=more, slurmd_timeout_s=slurmd_timeout_s, kill_wait_s=kill_wait_s)
        )
        self.home = folder / "home"
        self.home.mkdir()
        self.run_dir = folder / "run"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SRUN", "SALLOC", "SQUEUE", "SINFO"))
        }
        self.environment |= {
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "XDG_STATE_HOME": str(folder / "state"),
            "COLUMNS": "200",
        }
        self.environment["PATH"] = f"{BIN}:{self.environment['PATH']}"
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.others: list[subprocess.Popen[str]] = []

    def up(self) -> None:
        result = self.run(
            *(
                "understudy",
                "up",
                "--conf",
                self.folder / "slurm.conf",
                "--run-dir",
                self.run_dir,
                "--port",
                "0",
            ),
            *("--executor", "real", "--noded", self.noded),
        )
        assert result.returncode == 0, result.stderr
        self.environment["SLURM_CONF"] = str(self.run_dir / "slurm.conf")

    def run(
        self, *words: object, timeout_s: float = 180, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words], cwd=self.home, env=self.environment | environment,
            input=stdin, capture_output=True, text=True,
            timeout=timeout_s, check=False,
        )  # fmt: skip

    def start(self, *words: object, **environment: str) -> "subprocess.Popen[str]":
        """Type a command and do not wait for it."""
        process = subprocess.Popen(
            [str(word) for word in words], cwd=self.home, env=self.environment | environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.others.append(process)
        return process

    def script(self, text: str, *options: object) -> int:
        """Submit a batch script; the job's number."""
        result = subprocess.run(
            ["sbatch", "--parsable", *map(str, options)], cwd=self.home, env=self.environment,
            input="#!/bin/bash\n" + text, capture_output=True,
            text=True, timeout=180, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return int(result.stdout.partition(";")[0].partition("+")[0])

    def until(self, condition, timeout_s: float = 90.0):  # type: ignore[no-untyped-def]
        """Wait for what the condition gives; real processes take the time that they take."""
        deadline = time.monotonic() + timeout_s
        while not (found := condition()):
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.02)
        return found

    def state(self, job: object) -> str:
        text = self.run("scontrol", "-o", "show", "job", job).stdout
        return next(
            (word.partition("=")[2] for word in text.split() if word.startswith("JobState=")), ""
        )

    def ended(self, job: object, timeout_s: float = 90.0) -> str:
        """The state of a job that is over."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
        return self.until(lambda: (state := self.state(job)) in over and state, timeout_s)

    def text(self, name: str) -> str:
        path = self.home / name
        return path.read_text() if path.exists() else ""

    def daemon(self, name: str = "noded0"):  # type: ignore[no-untyped-def]
        return next(process for process in recorded(self.run_dir) if process.name == name)

    def kill_daemon(self, name: str = "noded0") -> None:
        process = self.daemon(name)
        process.signal(signal.SIGKILL)
        self.until(lambda: not process.is_running)

    def start_daemon(self, name: str = "noded0") -> None:
        before = self.daemon(name).pid
        with (self.run_dir / "logs" / f"{name}.log").open("ab") as log:
            daemon = subprocess.Popen(
                [sys.executable, "-m", "understudy.noded", "--run-dir", str(self.run_dir), "--name",
                name], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        self.daemons.append(daemon)
        self.until(lambda: self.daemon(name).pid != before)

    def spool(self) -> list[str]:
        """What the node daemons have in their spools, and in their journals."""
        spool = self.run_dir / "spool"
        files = sorted(
            str(Path(folder, name).relative_to(spool))
            for folder, _, names in os.walk(spool)  # which bears that folders go meanwhile
            for name in names
            if Path(folder).name != "journal"
        )
        return files + [
            repr(entry) for path in sorted(spool.glob("*/journal")) for entry in entries(path)
        ]

    def down(self) -> None:
        for process in self.others:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if Path(self.run_dir / "cluster.json").exists():
            Cluster.load(self.run_dir)
            self.run("understudy", "down", "--run-dir", self.run_dir)
            for process in recorded(self.run_dir):
                process.signal(signal.SIGKILL)
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
