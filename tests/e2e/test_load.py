"""Each kind of load in a short form, with real processes, sockets and time.

Covers: tool/load/connections, tool/load/verify, tool/load/virtual, tool/load/worker,
tool/load/run.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import daemons_of
from understudy.tool.load.kinds import kinds

BIN = Path(sys.executable).parent
CONF = """
ClusterName=loaded
SlurmctldHost=localhost
SchedulerParameters=batch_sched_delay=0,default_queue_depth=1000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MaxArraySize=1001
NodeName=n[1-32] CPUs=4 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=n[1-32] Default=YES MaxTime=INFINITE State=UP
"""
SHORT = {  # requests a second
    "arrays": 400,
    "launches": 2,
}


class Cluster:
    def __init__(self, folder):
        self.run_dir = folder / "run"
        self.environment = {
            **os.environ, "UNDERSTUDY_REGISTRY": str(folder / "registry"), "COLUMNS": "200"
        }  # fmt: skip
        self.environment.pop("SLURM_CONF", None)
        (folder / "slurm.conf").write_text(CONF)
        done = self("understudy", "up", "--conf", folder / "slurm.conf", "--run-dir", self.run_dir,
                    "--port", "0")  # fmt: skip
        assert done.returncode == 0, done.stderr

    def __call__(self, command, *words):
        return subprocess.run(
            [BIN / command, *map(str, words)], env=self.environment, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip

    def load(self, out, *words):
        """The result of a load at the cluster."""
        done = self("understudy", "load", *words, "--cluster", self.run_dir, "--out", out)
        assert (out / "load.json").exists(), done.stdout + done.stderr
        return done, json.loads((out / "load.json").read_text())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("loaded"))
    yield found
    found("understudy", "down", "--run-dir", found.run_dir)
    assert daemons_of(found.run_dir) == []


@pytest.mark.parametrize("kind", kinds())
def test_a_load_of_each_kind_loses_nothing(cluster, tmp_path, kind):
    rate = SHORT.get(kind, 20)
    done, result = cluster.load(tmp_path, "--kind", kind, "--rate", rate, "--duration", 4)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (result["lost"], result["exit_code"]) == (0, 0)
    assert result["acknowledged"] > 0
    assert sum(each["answered"] for each in result["streams"].values()) > 0
    assert all(each["sent"] == each["answered"] for each in result["streams"].values())
    assert result["daemons"]["controller"]["mb_peak"] > 0
    assert "<svg" in (tmp_path / "load.html").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("--driver", "commands", "--connections", 4, "--rate", 3),
        ("--tcp", "--processes", 2, "--connections", 200, "--rate", 50),
    ],
)
def test_other_ways_to_the_cluster(cluster, tmp_path, words):
    done, result = cluster.load(tmp_path, "--kind", "submissions", "--duration", 3, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["acknowledged"] == result["streams"]["sbatch"]["sent"] > 0


def test_a_file_says_what_is_sent_and_what_goes_wrong_is_told(cluster, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'duration = 2\n[[stream]]\nname = "wrong"\ncommand = "scontrol show job 999999"\nrate = 5\n'
        '[[stream]]\nname = "refused"\ncommand = "sbatch --partition=none"\ncount = 2\n'
    )
    done, result = cluster.load(tmp_path / "out", plan)
    assert (done.returncode, result["exit_code"]) == (4, 4)
    assert result["streams"]["refused"]["errors"] == {"Invalid partition name specified": 2}


def test_a_job_that_is_forgotten_is_missed(cluster, tmp_path):
    from understudy.tool.load.target import running_cluster
    from understudy.tool.load.verify import missing

    target = running_cluster("understudy", cluster.run_dir)
    number = int(cluster("sbatch", "--parsable", "--wrap", "true").stdout)
    assert missing(target, [number, 999_999]) == {999_999}


def test_an_interrupted_load_tells_what_it_knows(cluster, tmp_path):
    words = [BIN / "understudy", "load", "--kind", "submissions", "--rate", 20, "--duration", 600,
             "--cluster", cluster.run_dir, "--out", tmp_path]  # fmt: skip
    with subprocess.Popen(
        list(map(str, words)), env=cluster.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            if "answered" in line and "answered      0/s" not in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 143
    result = json.loads((tmp_path / "load.json").read_text())
    assert result["interrupted"]
    assert result["acknowledged"] > 0
    assert result["lost"] == 0


def test_a_cluster_that_is_started_for_a_load_is_ended_with_it(tmp_path):
    environment = {**os.environ, "UNDERSTUDY_REGISTRY": str(tmp_path / "registry")}
    environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run(
        [BIN / "understudy", "load", "--kind", "queries", "--rate", "10", "--duration", "3",
         "--nodes", "16", "--accounting", "--time", "scaled:2", "--json"],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert (done.returncode, result["lost"], result["nodes"]) == (0, 0, 16), done.stderr
    assert result["acknowledged"] == 500
    assert {"accounting", "clock", "controller", "noded0"} <= result["daemons"].keys()
    assert list(tmp_path.glob("understudy-load*")) == []


VIRTUAL = """
duration = 60
nodes = 16
accounting = true
[[stream]]
name = "sbatch"
command = "sbatch --nodes={nodes} --time=60 --output=/dev/null"
rate = 3
nodes = [1, 2, 0]
[[stream]]
command = "squeue --job={job}"
rate = 3
expected = ["Invalid job id"]
[[stream]]
command = "scontrol hold {job}"
rate = 1
expected = ["Job", "job"]
then = "scontrol release {job}"
after = 2
[[stream]]
command = "scontrol update nodename={node} state=down reason=x"
rate = 0.2
then = "scontrol update nodename={node} state=resume"
after = 3
expected = ["Invalid node state"]
"""


def test_a_load_in_virtual_time_is_the_same_each_time(tmp_path):
    (tmp_path / "day.toml").write_text(VIRTUAL)
    found = []
    for number in range(2):
        out = tmp_path / str(number)
        done = subprocess.run(
            [BIN / "understudy", "load", tmp_path / "day.toml", "--time", "virtual", "--out", out],
            env={**os.environ, "UNDERSTUDY_REGISTRY": str(tmp_path / "registry")},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "\x1b" not in done.stdout
        found.append(json.loads((out / "load.json").read_text()))
    for result in found:
        assert result["lost"] == 0
        assert result["acknowledged"] > 100
        assert result["sent_late"]["max_ms"] <= 0.01
        assert all(each["sent"] == each["answered"] for each in result["streams"].values())
    counts = [
        {
            name: [each[key] for key in ("sent", "acknowledged", "refusals", "errors")]
            for name, each in result["streams"].items()
        }
        for result in found
    ]
    assert counts[0] == counts[1]
    last = [result["samples"][-1] for result in found]
    for key in ("pending", "running", "submitted", "started", "completed", "main_count"):
        assert last[0][key] == last[1][key]
