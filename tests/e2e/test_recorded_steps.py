"""What srun, salloc, sbcast and sattach print, return and write, beside what Slurm 22.05.8 was seen
to (`recorded_steps.yaml`).

Covers: commands/srun/create, commands/srun/environment, commands/srun/follow, commands/srun/io,
commands/srun/multi_prog, commands/srun/sattach, commands/srun/sbcast, commands/srun/send_down,
commands/srun/srun, commands/srun/step, commands/srun/streams, commands/srun/task_texts,
commands/srun/terminal, commands/srun/verbose, noded/real_steps, noded/task, noded/task_exec,
protocol/task_frames, noded/taskd.
"""

import getpass
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml
from real_cluster import RealCluster

from understudy.commands.shared.client import Client
from understudy.model.cluster import Cluster
from understudy.tool.cluster.launch import location_of

CONVERSATIONS = yaml.safe_load((Path(__file__).with_name("recorded_steps.yaml")).read_text())
FIRST_JOB = 1000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(
        tmp_path_factory.mktemp("c"),
        more=f"FirstJobId={FIRST_JOB}\nJobAcctGatherType=jobacct_gather/linux",  # for sstat
        kill_wait_s=2,
    )
    cluster.up()
    # signal-at
    cluster.environment["PATH"] = f"{Path(__file__).with_name('bin')}:{cluster.environment['PATH']}"
    cluster.environment |= {"USER": getpass.getuser(), "TERM": "dumb", "SHELL": "/bin/bash"}
    yield cluster
    cluster.down()


def last_job(cluster) -> int:
    client = Client(lambda: location_of(Cluster.load(cluster.run_dir), cluster.run_dir))
    jobs = [job for (job,) in client.query("jobs", ["job_id"]).rows]
    client.close()
    return max([FIRST_JOB - 1, *jobs])


@pytest.mark.parametrize(
    "recorded", CONVERSATIONS, ids=[each["run"].replace("\n", " ")[:60] for each in CONVERSATIONS]
)
def test_a_command_answers_as_slurm_does(cluster, tmp_path, recorded):
    cluster.until(
        lambda: not cluster.run("squeue", "-h").stdout
    )  # what the case before has left is ending
    before = last_job(cluster)
    recorded = yaml.safe_load(
        yaml.dump(recorded)
        .replace("<host>", socket.gethostname().partition(".")[0])
        .replace("<user>", getpass.getuser())
    )
    result = subprocess.run(
        ["/bin/bash", "-c", recorded["run"]], cwd=tmp_path, env=cluster.environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip

    def common(text: str) -> str:
        """With names in place of what differs from run to run."""
        text = text.replace(str(tmp_path), "DIR")
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        return re.sub(
            r"(?<!\d)\d{4,}(?!\d)",
            lambda found: (
                f"J{int(found[0]) - before}" if 0 < int(found[0]) - before < 20 else found[0]
            ),
            text,
        )

    def lines(text: str) -> list[str]:
        found = common(text).strip("\n").split("\n")
        return sorted(found) if "sort!" in recorded["run"] else found

    assert lines(result.stdout) == recorded.get("out", "").split("\n")
    found = [
        line
        for line in common(result.stderr).split("\n")
        if line and line not in recorded.get("may", [])
    ]  # seen in some runs only, there as here
    assert sorted(found) == recorded.get("err", [])
    assert result.returncode == recorded.get("code", 0)
    for name, content in recorded.get("files", {}).items():
        (path,) = [
            path for path in tmp_path.rglob("*") if common(str(path.relative_to(tmp_path))) == name
        ]
        assert sorted(common(path.read_text()).split("\n")) == sorted(content.split("\n"))
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_a_debugger_test_says_where_each_task_runs(cluster):
    said = cluster.run("srun", "--debugger-test", "-N2", "-n2", "sleep", "0.1").stderr
    assert re.sub(r"pid:\d+", "pid:P", said).splitlines() == [
        f"srun: task:{number}, host:n{number + 1}, pid:P, executable:sleep" for number in (0, 1)
    ]


def test_who_attaches_later_reads_what_came_before(cluster):
    script = "echo before; touch said; while [ ! -e go ]; do sleep 0.05; done; echo after"
    for path in ("go", "said"):
        (cluster.home / path).unlink(missing_ok=True)
    job = cluster.script(f"srun sh -c '{script}'", "-o", "/dev/null")
    cluster.until((cluster.home / "said").exists)
    attached = subprocess.Popen(
        ["sattach", f"{job}.0"], env=cluster.environment, stdout=subprocess.PIPE, text=True
    )
    assert attached.stdout is not None
    assert attached.stdout.readline() == "before\n"
    (cluster.home / "go").touch()
    assert attached.communicate(timeout=60)[0] == "after\n"


def test_salloc_prints_what_scontrol_notify_says(cluster):
    said = cluster.run("salloc", "sh", "-c", "scontrol notify $SLURM_JOB_ID hi there; sleep 1")
    assert "salloc: hi there\nsalloc: Relinquishing" in said.stderr
