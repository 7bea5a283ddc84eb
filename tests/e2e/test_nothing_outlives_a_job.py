"""Whatever a job's processes do to get away, nothing of it is left when it is over: no process, no
file of the daemon's, no socket.

Covers: noded/family.
"""

import getpass
import os
import signal
import textwrap
import time
from pathlib import Path

import pytest
from real_cluster import RealCluster

# Each writes its number down and stays: it has left its parent, its session and process group, and
# heeds no signal that can be ignored.
ESCAPER = textwrap.dedent(
    """
    import os, signal, socket, sys, time
    name, keeps = sys.argv[1:3]
    for kind in "TERM HUP INT CONT USR1 USR2".split():
        number = getattr(signal, "SIG" + kind)
        signal.signal(number, signal.SIG_IGN)
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    if keeps != "keeps":
        for number in range(3):
            os.close(number)
    listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
    with open(name + ".new", "w") as file:
        file.write(f"{os.getpid()} {listener.getsockname()[1]}")
    os.rename(name + ".new", name)
    if keeps == "breeds":
        while True:
            if os.fork():
                time.sleep(0.002)
                os._exit(0)
            time.sleep(0.002)
    time.sleep(1000)
    """
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(tmp_path_factory.mktemp("c"))
    cluster.up()
    (cluster.home / "escape.py").write_text(ESCAPER)
    yield cluster
    cluster.down()


@pytest.fixture(autouse=True)
def nothing_to_disturb_the_next(cluster):
    yield
    cluster.run("scancel", "--user", getpass.getuser())


def processes_with(mark: str) -> list[int]:
    """The living processes that have the text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (
                    mark.encode() in (entry / "cmdline").read_bytes()
                    and (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def nothing_is_left(cluster: RealCluster, mark: str) -> None:
    cluster.until(lambda: cluster.spool() == [], 20)
    assert processes_with(mark) == []
    time.sleep(0.05)  # what breeds would be somebody else by now
    assert processes_with(mark) == []


@pytest.mark.parametrize(
    ("by", "end", "keeps"),
    [
        ("script", "exit", "keeps"),
        ("script", "scancel", "breeds"),
        ("srun", "exit", "breeds"),
        ("srun", "scancel", "closes"),
    ],
)
def test_of_a_batch_job(cluster, by, end, keeps):
    mark = f"{by}-{end}-{keeps}-{os.getpid()}"
    escape = (
        f"python3 {cluster.home}/escape.py {mark} {keeps}; while [ ! -e {mark} ]; do "
        f"sleep 0.02; done; touch {mark}.up"
    )
    last = "exit 0" if end == "exit" else 'trap "" TERM; sleep 500; sleep 500'
    script = (
        f"{escape}\n{last}\n" if by == "script" else f"srun bash -c '{escape}; {last}'\n{last}\n"
    )
    job = cluster.script(script, "--output=/dev/null")
    if end == "scancel":
        cluster.until((cluster.home / f"{mark}.up").exists)
        cluster.until(lambda: processes_with(mark))  # one that breeds may slip through a look
        cluster.run("scancel", job)
    assert cluster.ended(job) == ("COMPLETED" if end == "exit" else "CANCELLED")
    nothing_is_left(cluster, mark)


def test_of_a_step_while_its_job_goes_on(cluster):
    mark = f"of-step-{os.getpid()}"
    job = cluster.script("sleep 500", "--output=/dev/null")
    cluster.until(lambda: cluster.state(job) == "RUNNING")
    result = cluster.run(
        "srun",
        f"--jobid={job}",
        "--overlap",
        "bash",
        "-c",
        f"python3 {cluster.home}/escape.py {mark} closes; sleep 0.3; cat {mark}",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
    assert processes_with(mark) == []
    assert cluster.state(job) == "RUNNING"
    cluster.run("scancel", job)
    cluster.ended(job)
    nothing_is_left(cluster, mark)


def test_when_the_job_kills_what_watches_over_it(cluster):
    mark = f"killer-{os.getpid()}"
    script = (
        f"python3 {cluster.home}/escape.py {mark} closes\n"
        f"while [ ! -e {mark} ]; do sleep 0.02; done\nkill -9 $PPID\nsleep 500\n"
    )
    job = cluster.script(script, "--output=/dev/null")
    cluster.ended(job)
    nothing_is_left(cluster, mark)


def test_when_a_task_kills_what_watches_over_it(cluster):
    mark = f"task-killer-{os.getpid()}"
    run = (
        f"python3 {cluster.home}/escape.py {mark} closes; while [ ! -e {mark} ]; do sleep "
        "0.02; done; kill -9 $PPID; sleep 500"
    )
    result = cluster.run("srun", "bash", "-c", run)
    assert result.returncode != 0
    nothing_is_left(cluster, mark)


def start_away(cluster: RealCluster, mark: str) -> int:
    """A job that has a process that got away, and a step."""
    step = f"srun bash -c 'touch {mark}.task; sleep 500 # {mark}' &"
    job = cluster.script(
        f"python3 {cluster.home}/escape.py {mark} closes\n{step}\nsleep 500\n", "--output=/dev/null"
    )
    cluster.until(
        lambda: (cluster.home / mark).exists() and (cluster.home / f"{mark}.task").exists()
    )
    return job


def test_of_a_job_that_is_cancelled_while_its_node_daemon_is_away(cluster):
    mark = f"away-{os.getpid()}"
    job = start_away(cluster, mark)
    cluster.kill_daemon()
    cluster.run("scancel", job)
    assert processes_with(mark)
    cluster.start_daemon()
    assert cluster.ended(job) == "CANCELLED"
    nothing_is_left(cluster, mark)


def test_when_the_cluster_goes_down_without_its_node_daemon(tmp_path):
    cluster = RealCluster(tmp_path)
    cluster.up()
    try:
        (cluster.home / "escape.py").write_text(ESCAPER)
        mark = f"down-{os.getpid()}"
        start_away(cluster, mark)
        cluster.daemon().signal(signal.SIGKILL)
        cluster.run("understudy", "down", "--run-dir", cluster.run_dir)
        assert processes_with(mark) == []
    finally:
        cluster.down()
