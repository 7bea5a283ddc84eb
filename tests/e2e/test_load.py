"""Each kind of load in a short form, with real processes, sockets and time.

Covers: tool/load/connections, tool/load/verify, tool/load/virtual, tool/load/worker,
tool/load/run.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
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
    "signals": 40,
    "launches": 2,
}
LONG = {"mass-completion": 15}  # seconds: the load ends at once what has not when it is over


class Seen:
    """What came of a load: its result, and what the cluster's commands print afterwards."""

    def __init__(self, result, cluster):
        self.result, self.cluster = result, cluster
        self.jobs = result["acknowledged"]

    def answered(self, *streams):
        """Requests of each of the streams were answered, not all of them by a refusal."""
        for name in streams:
            each = self.result["streams"][name]
            assert each["answered"] > sum(each["refusals"].values()), (name, each)

    def latest(self, column, *words):
        """A column of squeue of the load's jobs, which are the last ones."""
        done = self.cluster("squeue", "-t", "all", "-h", "-S", "i", "-o", column, *words)
        return done.stdout.split()[-self.jobs :]


def submitted(seen):
    seen.answered("sbatch")
    assert {"1", "2", "4"} <= set(seen.latest("%D"))


def came_in_bursts(seen):
    seen.answered("sbatch")
    assert seen.jobs % 20 == 0


def submitted_arrays(seen):
    seen.answered("sbatch --array")
    tasks = seen.cluster("squeue", "-t", "all", "-h", "-r", "-o", "%F").stdout.split()
    full = [array for array in set(tasks) if tasks.count(array) == 100]
    assert len(full) == seen.jobs


def asked(seen):
    seen.answered("squeue", "squeue --job", "scontrol show job", "sinfo", "sdiag")
    assert seen.jobs == 500


def had_a_day(seen):
    seen.answered("sbatch", "squeue", "sinfo")


def completed_together(seen):
    seen.answered("sbatch", "squeue")
    columns = "State,SubmitTime,StartTime,EndTime"
    rows = seen.cluster("squeue", "-t", "all", "-h", "-S", "i", "-O", columns).stdout.splitlines()
    found = []
    for state, *times in map(str.split, rows[-seen.jobs :]):
        if state == "COMPLETED":  # in time; on a busy machine some start late, and end late
            submitted, started, ended = map(datetime.fromisoformat, times)
            found.append(ended - (started - submitted))
    assert len(found) > seen.jobs / 2
    assert max(found) - min(found) <= timedelta(seconds=3)  # they came within six


def launched(seen):
    seen.answered("sbatch, all nodes", "srun, all nodes")
    assert set(seen.latest("%D")) == {"32"}


def signalled(seen):
    seen.answered("scancel --signal", "scontrol suspend")
    assert set(seen.latest("%T")) == {"CANCELLED"}  # none has ended meanwhile, nor is one suspended


def flapped(seen):
    seen.answered("scontrol update node", "sbatch", "sinfo")
    assert seen.cluster("sinfo", "-h", "-t", "down", "-o", "%D").stdout.strip() in ("", "0")


def reconfigured(seen):
    seen.answered("sbatch")
    assert seen.result["streams"]["scontrol reconfigure"]["answered"] == 2


def administered(seen):
    seen.answered("scontrol update partition", "scontrol update node", "scontrol update job",
                  "scontrol hold", "scontrol create reservation")  # fmt: skip
    assert "MaxTime=2-00:00:00" in seen.cluster("scontrol", "show", "partition", "debug").stdout
    assert "=load" not in seen.cluster("scontrol", "show", "reservation").stdout
    assert "JobHeldAdmin" not in seen.latest("%r")


# What each kind says that it does.
PROMISES = {
    "submissions": submitted,
    "bursts": came_in_bursts,
    "arrays": submitted_arrays,
    "queries": asked,
    "mixed-day": had_a_day,
    "mass-completion": completed_together,
    "launches": launched,
    "signals": signalled,
    "flapping": flapped,
    "reconfigure": reconfigured,
    "admin": administered,
}


class Cluster:
    def __init__(self, folder, conf=CONF, *words):
        self.run_dir = folder / "run"
        self.environment = {
            **os.environ, "UNDERSTUDY_REGISTRY": str(folder / "registry"), "COLUMNS": "200"
        }  # fmt: skip
        self.environment.pop("SLURM_CONF", None)
        (folder / "slurm.conf").write_text(conf)
        done = self("understudy", "up", "--conf", folder / "slurm.conf", "--run-dir", self.run_dir,
                    "--port", "0", *words)  # fmt: skip
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


def await_answers(process):
    """Read what a load prints until it says that some requests were answered."""
    for line in process.stdout:
        if "answered" in line and "answered      0/s" not in line:
            return


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("loaded"))
    yield found
    found("understudy", "down", "--run-dir", found.run_dir)
    assert daemons_of(found.run_dir) == []


@pytest.mark.parametrize("kind", kinds())
def test_a_load_of_each_kind_does_what_it_says_and_loses_nothing(cluster, tmp_path, kind):
    rate = SHORT.get(kind, 20)
    sizes = ("--rate", rate, "--duration", LONG.get(kind, 4), "--seed", 2)
    done, result = cluster.load(tmp_path, "--kind", kind, *sizes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (result["lost"], result["exit_code"]) == (0, 0)
    assert result["acknowledged"] > 0
    assert sum(each["answered"] for each in result["streams"].values()) > 0
    assert all(each["sent"] == each["answered"] for each in result["streams"].values())
    assert result["daemons"]["controller"]["mb_peak"] > 0
    assert "<svg" in (tmp_path / "load.html").read_text()
    PROMISES[kind](Seen(result, cluster))


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


def test_processes_tell_each_other_of_their_jobs(cluster, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "duration = 4\nprocesses = 2\n"
        '[[stream]]\nname = "one"\ncommand = "sbatch --output=/dev/null"\ncount = 1\nrun = 60\n'
        '[[stream]]\nname = "ask"\ncommand = "squeue --job={job}"\nrate = 20\nbegin = 2.5\n'
    )
    done, result = cluster.load(tmp_path / "out", plan)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["streams"]["ask"]["answered"] > 10
    assert not result["streams"]["ask"]["refusals"]  # "no job was known yet", by the other process


@pytest.fixture
def forgetful():
    """A cluster that others can reach, and that forgets jobs two seconds after their end."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        found = Cluster(Path(folder), CONF + "MinJobAge=2\n", "--time", "scaled:30")
        yield found
        found("understudy", "down", "--run-dir", found.run_dir)


def test_connections_can_be_other_users(forgetful, tmp_path):
    if os.geteuid():
        pytest.skip("only root may connect as others")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'duration = 60\nconnections = 4\nconnect_as = ["nobody", "daemon"]\n'
        '[[stream]]\ncommand = "sbatch --output=/dev/null --chdir=/"\nrate = 0.5\nrun = 6000\n'
    )
    done, result = forgetful.load(tmp_path / "out", plan, "--leave")
    assert done.returncode == 0, done.stdout + done.stderr
    users = forgetful("squeue", "-h", "-o", "%u").stdout.split()
    assert set(users) == {"nobody", "daemon"}
    assert len(users) == result["acknowledged"]
    plan.write_text(plan.read_text().replace("daemon", "no-such-user"))
    done = forgetful("understudy", "load", plan, "--cluster", forgetful.run_dir)
    assert (done.returncode, "there is no user no-such-user" in done.stderr) == (1, True)


def test_a_sending_process_that_is_killed_leaves_results(cluster, tmp_path):
    words = [BIN / "understudy", "load", "--kind", "submissions", "--rate", 40, "--duration", 4,
             "--processes", 2, "--cluster", cluster.run_dir, "--out", tmp_path]  # fmt: skip
    with subprocess.Popen(
        list(map(str, words)), env=cluster.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        await_answers(process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        rest = process.communicate(timeout=120)[0]
    assert process.returncode == 1
    assert "it ended with -9" in rest
    result = json.loads((tmp_path / "load.json").read_text())
    assert (len(result["broken"]), result["lost"]) == (1, 0)
    assert result["acknowledged"] > 0


def test_jobs_that_the_controller_forgets_during_a_load_are_not_lost(forgetful, tmp_path):
    plan = tmp_path / "plan.toml"
    for duration in (200, 1000, 4000):  # a machine may be slow to run the jobs
        plan.write_text(
            f'duration = {duration}\n[[stream]]\ncommand = "sbatch --output=/dev/null"\n'
            'rate = 0.5\nuntil = 60\nrun = 1\n[[stream]]\ncommand = "squeue"\nrate = 0.1\n'
        )
        done, result = forgetful.load(tmp_path / f"out{duration}", plan)
        assert done.returncode == 0, done.stdout + done.stderr
        assert result["lost"] == 0
        if result["forgotten"]:
            break
    assert result["forgotten"]
    assert "were seen to end, and forgotten" in done.stdout


def test_a_job_that_is_forgotten_is_missed(cluster, tmp_path):
    from understudy.tool.load.target import running_cluster
    from understudy.tool.load.verify import missing

    target = running_cluster("understudy", cluster.run_dir)
    number = int(cluster("sbatch", "--parsable", "--wrap", "true").stdout)
    assert missing(target, [number, 999_999]) == ({999_999}, set())


def test_an_interrupted_load_tells_what_it_knows(cluster, tmp_path):
    words = [BIN / "understudy", "load", "--kind", "submissions", "--rate", 20, "--duration", 600,
             "--cluster", cluster.run_dir, "--out", tmp_path]  # fmt: skip
    with subprocess.Popen(
        list(map(str, words)), env=cluster.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        await_answers(process)
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


def test_an_interrupted_load_in_virtual_time_tells_what_it_knows(tmp_path):
    words = [BIN / "understudy", "load", "--kind", "mixed-day", "--duration", "36000",
             "--rate", "5", "--time", "virtual", "--out", tmp_path]  # fmt: skip
    environment = {**os.environ, "UNDERSTUDY_REGISTRY": str(tmp_path / "registry")}
    with subprocess.Popen(
        list(map(str, words)), env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            if "answered" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    result = json.loads((tmp_path / "load.json").read_text())
    assert (result["interrupted"], result["lost"], result["is_virtual"]) == (2, 0, True)
    assert result["acknowledged"] > 0
    assert result["over_time"][-1]["at"] > result["seconds"]  # the cluster's time


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
