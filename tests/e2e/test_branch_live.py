"""Futures of a cluster that is running: what is not changed becomes what the cluster becomes, and
the cluster does not notice.

Covers: tool/replay/live, tool/replay/live_daemons, tool/replay/branch_live.
"""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
CONF = """
ClusterName=futures
SlurmctldHost=localhost
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/slurmdbd
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed
NodeName=n[1-6] CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """A cluster in one process, and its user's commands. Its clock stands."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.run_dir = folder, folder / "run"
        self.environment = {
            **os.environ,
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "TMPDIR": str(folder),
            "TZ": "UTC",
        }
        self.environment.pop("SLURM_CONF", None)
        (folder / "slurm.conf").write_text(CONF.format(folder=folder))
        where = ["--conf", str(folder / "slurm.conf"), "--run-dir", str(self.run_dir)]
        self("understudy", "up", *where, "--port", "0", "--time", "virtual", *options)
        self("understudy", "clock", "pause")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / command[0], *command[1:]],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def __call__(self, *command: str) -> str:
        done = self.run(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def submit(self, rng: random.Random, count: int) -> None:
        for _ in range(count):
            more = rng.choice(
                ([], [], ["--array=1-3"], ["--requeue"], ["--begin=now+90"], ["--exclusive"])
            )
            options = [f"-n{rng.randint(1, 12)}", f"--time={rng.randint(1, 12)}", *more]
            self("sbatch", *options, "--wrap", f"sleep {rng.randint(1, 600)}")

    def go_on(self, until: float) -> None:
        self("understudy", "clock", "run-until", f"{until:.6f}")
        self.until(lambda: "paused" in self("understudy", "clock", "status"))

    def until(self, is_so, patience_s: float = 60.0) -> None:
        deadline = time.monotonic() + patience_s
        while not is_so():
            assert time.monotonic() < deadline, self("squeue")
            time.sleep(0.1)

    def zero(self) -> int:
        return int(json.loads((self.run_dir / "cluster.json").read_text())["epoch"])

    def history(self) -> dict[str, tuple[str, str, str, str]]:
        """What became of its jobs: start and end in seconds after the cluster's beginning."""
        rows = self("sacct", "-nPX", "--format=JobID,Start,End,State,NodeList", "-S", "2000-01-01")
        found = {}
        for line in rows.splitlines():
            job, start, end, state, nodes = line.split("|")
            found[job] = (self._second(start), self._second(end), state, nodes)
        return found

    def _second(self, text: str) -> str:
        if not text[0].isdecimal():
            return ""
        at = time.strptime(text, "%Y-%m-%dT%H:%M:%S")
        return str(int(time.mktime(at)) - self.zero())

    def branch(self, *words: str) -> str:
        return self("understudy", "branch", *words)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    made = Cluster(tmp_path, "--one-process")
    yield made
    made("understudy", "down")


def became(folder: Path) -> dict[str, tuple[str, str, str, str]]:
    with (folder / "jobs.csv").open() as file:
        return {
            row["id"]: (row["start"], row["end"], row["state"], row["nodes"])
            for row in csv.DictReader(file)
        }


SAME = '[[future]]\nname = "same"\n'
DRAIN = '[[future]]\nname = "drain"\ndo = "scontrol update NodeName=n[1-3] State=DRAIN Reason=x"\n'


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_not_changed_becomes_what_the_cluster_becomes(cluster, seed):
    rng = random.Random(seed)
    (cluster.folder / "futures.toml").write_text(SAME + DRAIN)
    cluster.submit(rng, 12)
    at, outs, open_at = 0.0, [], []
    for number in range(3):
        at += rng.uniform(1, 300)
        cluster.go_on(at)
        out = cluster.folder / f"out{number}"
        before = cluster("squeue", "-a"), cluster("sinfo")
        cluster.branch("--file", str(cluster.folder / "futures.toml"), "--out", str(out))
        assert (cluster("squeue", "-a"), cluster("sinfo")) == before
        outs.append(out)
        open_at.append({line.split()[0] for line in cluster("squeue", "-hra").splitlines()})
    cluster("understudy", "clock", "resume")
    cluster.until(lambda: not cluster("squeue", "-h"))
    history = cluster.history()
    for out, jobs in zip(outs, open_at, strict=True):
        expected = {job: history[job] for job in jobs}
        assert became(out / "original") == expected
        assert (out / "same" / "jobs.csv").read_bytes() == (
            out / "original" / "jobs.csv"
        ).read_bytes()
        assert became(out / "drain").keys() == expected.keys()
    assert any(became(out / "drain") != became(out / "original") for out in outs)
    completed = (cluster.folder / "completed").read_text().splitlines()
    assert len(completed) == len(history)  # futures write nothing there


def test_futures_begin_at_an_instant_that_is_still_to_come_and_end_at_another(cluster):
    cluster.submit(random.Random(3), 10)
    out = cluster.folder / "out"
    words = ["--at", "100", "--until", "700", "--out", str(out), "--run-dir", str(cluster.run_dir)]
    done = cluster.run(
        "understudy", "branch", *words, "--", "scontrol", "update", "JobId=9", "Nice=-1000"
    )
    assert done.stdout.startswith("at 100: 1 future begin\n"), done.stderr
    assert done.returncode == 4  # jobs have not ended at that time
    config = json.loads((out / "1" / "config.json").read_text())
    assert config["branched_at"] == "100"
    assert config["changes"] == ["scontrol update JobId=9 Nice=-1000"]
    ends = [int(end) for _, end, _, _ in became(out / "original").values() if end]
    assert max(ends) <= 700
    assert not cluster("squeue", "-h", "-t", "running")  # its own time stands as before


def test_futures_have_further_jobs_settings_and_failures(cluster):
    cluster.submit(random.Random(4), 4)
    (cluster.folder / "more.swf").write_text(
        "".join(f"{n} {60 * n} -1 50 8 -1 -1 8 100 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 6))
    )
    (cluster.folder / "futures.toml").write_text(
        '[[future]]\nname = "more"\ntrace = "more.swf"\n'
        '[[future]]\nname = "later"\n'
        'do = [{ command = "sbatch -n 24 -t 5", after = "1h", run = 33, user = "nobody" }]\n'
        '[[future]]\nname = "set"\nset = "SchedulerParameters+=bf_interval=5"\n'
        '[[future]]\nname = "broken"\nfailures = "exponential:mtbf=10m,repair=1m"\n'
        '[[future]]\nname = "busy"\nload = 2\n'
    )
    out = cluster.folder / "out"
    done = cluster.run(
        "understudy", "branch", "--file", str(cluster.folder / "futures.toml"), "--out", str(out)
    )
    assert done.returncode == 1
    assert "busy: load 2: nobody knows which jobs are to come to a running cluster" in done.stdout
    jobs = became(out / "original")
    assert len(became(out / "more")) == len(jobs) + 5
    (later,) = became(out / "later").keys() - jobs.keys()
    start, end, state, _ = became(out / "later")[later]
    assert (int(start) >= 3600, int(end) - int(start), state) == (True, 33, "COMPLETED")
    with (out / "later" / "jobs.csv").open() as file:
        (user,) = (row["user"] for row in csv.DictReader(file) if row["id"] == later)
    assert user == "nobody"
    assert "bf_interval=5" in (out / "set" / "slurm.conf").read_text()
    assert not (out / "busy").exists()
    # nothing of it has come to the cluster
    assert "bf_interval" not in cluster("scontrol", "show", "config")
    assert cluster("sinfo", "-ho", "%T") == "idle\n"


def test_an_interrupt_leaves_what_is_known_and_the_cluster_goes_on(cluster):
    cluster("sbatch", "--wrap", "sleep 10")
    out = cluster.folder / "out"
    (cluster.folder / "many.swf").write_text(
        "".join(f"{n} {n} -1 50 8 -1 -1 8 100 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 90_000))
    )
    (cluster.folder / "futures.toml").write_text('[[future]]\nname = "m"\ntrace = "many.swf"\n')
    words = ["branch", "--file", str(cluster.folder / "futures.toml"), "--out", str(out)]
    child = subprocess.Popen(
        [BIN / "understudy", *words], env=cluster.environment, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    cluster.until(lambda: (out / "m" / "jobs.csv").exists() and len(became(out / "m")) > 50)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "m: interrupted" in said
    assert len(became(out / "m")) > 50
    assert cluster("understudy", "clock", "resume")
    cluster.until(lambda: not cluster("squeue", "-h"))


def test_what_cannot_be_is_said_before_anything_is_done(cluster):
    drain = ["scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=x"]
    for options, message in (
        (["--at", "-3"], "--at '-3' is neither a time after the start"),
        (["--at", "2001-01-01"], "--at 2001-01-01: that is past: the cluster's time is "),
        (["--until", "0"], "--until 0: the futures begin later"),
        (["--at", "5", "--at", "5"], "--at 5: given twice"),
        (["--nodes", "3"], "--nodes: of a replay; a running cluster is as it is"),
    ):
        out = str(cluster.folder / "out")
        done = cluster.run("understudy", "branch", *options, "--out", out, "--", *drain)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_cluster_of_several_processes_cannot_be_copied(tmp_path):
    cluster = Cluster(tmp_path)
    try:
        done = cluster.run("understudy", "branch", "--", "scancel", "1")
        assert done.returncode == 2
        assert "start it with `understudy up --time virtual --one-process`" in done.stderr
    finally:
        cluster("understudy", "down")


def test_one_process_needs_virtual_time(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF.format(folder=tmp_path))
    done = subprocess.run(
        [BIN / "understudy", "up", "--conf", tmp_path / "slurm.conf", "--one-process"],
        env={**os.environ, "UNDERSTUDY_REGISTRY": str(tmp_path / "registry")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "--one-process: needs --time virtual" in done.stderr
